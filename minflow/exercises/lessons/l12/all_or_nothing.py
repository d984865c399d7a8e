"""12.2 all_or_nothing: write a file as a whole or not at all."""

import os
import tempfile
from pathlib import Path
from unittest import mock

from ...definition import Exercise, case

exercise = Exercise(
    "12.2", "all_or_nothing", kind="write", level="core", answer="safe_write",
    question="How is a file written as a whole, or not at all?",
    hint="Three steps: write into another file in the same folder; close it; rename it to `path`. If a step fails, "
         "remove the other file.",
    fact="minflow does one thing more: it tells the disk to write now, with `os.fsync`. Without it, if the power "
         "fails, a file may have been renamed before its content reached the disk.",
    sibling="A timetable hangs in the hall of a school, and a new one is due. Rubbing out the old one and writing "
            "anew leaves the hall without one for an hour. Better: write the new one in the office. When it is "
            "finished, exchange the two sheets. If you spill ink on it, throw it away: the old one still hangs.",
)


@exercise.solution
def safe_write(path, write):
    other = path + ".part"
    try:
        # a file beside it, closed before it is renamed
        with open(other, "wb") as file:
            write(file)
        # in one step: a reader sees the old one or the new one
        os.replace(other, path)
    except BaseException:
        # nothing is left, and the caller gets the error
        os.remove(other)
        raise


@exercise.also_right
def safe_write(path, write):
    import tempfile

    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
        beside = os.path.join(folder, "new")
        with open(beside, "wb") as file:
            write(file)
        os.rename(beside, path)


@exercise.also_right
def safe_write(path, write):
    from pathlib import Path

    target = Path(path)
    beside = target.with_name("." + target.name + str(os.getpid()))
    try:
        file = beside.open("wb")
        try:
            write(file)
        finally:
            file.close()
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


@exercise.also_right
def safe_write(path, write):
    """Write to memory first: once the file is made, `write` can no longer fail."""
    import io

    memory = io.BytesIO()
    write(memory)
    with open(path + "~", "wb") as file:
        file.write(memory.getvalue())
    os.replace(path + "~", path)


@exercise.wrong("copied",
                "The finished bytes are written over the old file. That takes time, and may fail half way.",
                "`os.replace(other, path)` takes one step, however large the file is.")
def safe_write(path, write):
    import shutil

    try:
        with open(path + ".part", "wb") as file:
            write(file)
        shutil.copyfile(path + ".part", path)
    finally:
        os.remove(path + ".part")


@exercise.wrong("half one put in place",
                "After a failure the half file takes the place of the old one: `finally` runs after an error too.",
                "Call `os.replace` only if `write` came to its end.")
def safe_write(path, write):
    try:
        with open(path + ".part", "wb") as file:
            write(file)
    finally:
        os.replace(path + ".part", path)


@exercise.wrong("old one put back",
                "You put the old file back after an error. But if the power fails, the old file is never put back.",
                "Leave `path` alone until the new file is whole: write into another name, then `os.replace`.")
def safe_write(path, write):
    import shutil

    there = os.path.exists(path)
    if there:
        shutil.copyfile(path, path + ".old")
    try:
        with open(path, "wb") as file:
            write(file)
    except BaseException:
        os.remove(path)
        if there:
            os.replace(path + ".old", path)
        raise
    if there:
        os.remove(path + ".old")


@exercise.wrong("text",
                '`write` writes bytes, but the file is open for text. Open it with "wb".',
                "\"w\" is for text, \"wb\" for bytes.")
def safe_write(path, write):
    with open(path + ".part", "w") as file:
        write(file)
    os.replace(path + ".part", path)


@exercise.wrong("opens path itself",
                "`open(path, \"wb\")` empties the old file at once. If `write` fails now, both are gone.",
                "Open another name, such as `path + \".part\"`, and rename it when all is written.")
def safe_write(path, write):
    with open(path, "wb") as file:
        write(file)


@exercise.wrong("path itself, removed",
                "You write into `path` itself, and remove it after a failure: then the old file is gone too.",
                "Open another name, such as `path + \".part\"`, and rename it when all is written.")
def safe_write(path, write):
    try:
        with open(path, "wb") as file:
            write(file)
    except BaseException:
        os.remove(path)
        raise


@exercise.wrong("another folder",
                "The other file is in another folder. That may be another disk, and then renaming is copying.",
                "Put it beside `path`: the same folder, another name.")
def safe_write(path, write):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/new", "wb") as file:
            write(file)
        os.replace(folder + "/new", path)


@exercise.wrong("old one removed first",
                "For a moment there is no file at all: the old one is removed before the new one has its name.",
                "`os.replace` needs no room: it puts the new one in place of the old in one step.")
def safe_write(path, write):
    try:
        with open(path + ".part", "wb") as file:
            write(file)
        if os.path.exists(path):
            os.remove(path)
        os.replace(path + ".part", path)
    except BaseException:
        os.remove(path + ".part")
        raise


@exercise.wrong("left behind",
                "After a failure, half a file is left in the folder. Remove it.",
                "`try:` ... `except BaseException:` remove it, then `raise`.")
def safe_write(path, write):
    with open(path + ".part", "wb") as file:
        write(file)
    os.replace(path + ".part", path)


@exercise.wrong("swallowed",
                "The error is swallowed: the caller believes that the file is saved.",
                "`raise`, alone, at the end of the `except` block passes the error on.")
def safe_write(path, write):
    try:
        with open(path + ".part", "wb") as file:
            write(file)
        os.replace(path + ".part", path)
    except Exception:
        os.remove(path + ".part")


@exercise.wrong("not closed",
                "You rename while the file is still open: part of it may not be written yet.",
                "`os.replace` belongs after the `with` block, not in it.")
def safe_write(path, write):
    try:
        with open(path + ".part", "wb") as file:
            write(file)
            os.replace(path + ".part", path)
    except BaseException:
        os.remove(path + ".part")
        raise


@exercise.wrong("divided",
                "`path` is a text, and texts are joined with `+`. (With a `Path`, `/` would give a name *in* the "
                "folder `path`.)",
                "`path + \".part\"`.")
def safe_write(path, write):
    other = path / ".part"
    with open(other, "wb") as file:
        write(file)
    os.replace(other, path)


@exercise.wrong("a name in the file",
                "Your other name is *in* `path`, as if that were a folder. It should be beside it.",
                "`path + \".part\"` is in the same folder as `path`.")
def safe_write(path, write):
    other = os.path.join(path, ".part")
    with open(other, "wb") as file:
        write(file)
    os.replace(other, path)


@exercise.wrong("a method of Path",
                "`path` is a text, and has no such method. Join texts with `+`, or make a `Path(path)` first.",
                "`path + \".part\"`.")
def safe_write(path, write):
    other = path.with_suffix(".part")
    with open(other, "wb") as file:
        write(file)
    os.replace(other, path)


@exercise.wrong("a name for write",
                "`write` wants an open file, not a name.",
                "`with open(other, \"wb\") as file:`, and then `write(file)`.")
def safe_write(path, write):
    try:
        write(path + ".part")
        os.replace(path + ".part", path)
    except BaseException:
        os.remove(path + ".part")
        raise


@exercise.wrong("write written",
                "`write` is a function, not the bytes: call it with your open file.",
                "`write(file)`.")
def safe_write(path, write):
    try:
        with open(path + ".part", "wb") as file:
            file.write(write)
        os.replace(path + ".part", path)
    except BaseException:
        os.remove(path + ".part")
        raise


@exercise.wrong("exchanged",
                "You give the *old* file another name: then there is none under `path`. The first argument is renamed "
                "to the second.",
                "`os.replace(other, path)`.")
def safe_write(path, write):
    try:
        with open(path + ".part", "wb") as file:
            write(file)
        os.replace(path, path + ".part")
    except BaseException:
        os.remove(path + ".part")
        raise


@exercise.wrong("never renamed",
                "The new file is written, and then? Under `path` there is still the old one.",
                "`os.replace(other, path)`, when all is written.")
def safe_write(path, write):
    try:
        with open(path + ".part", "wb") as file:
            write(file)
    except BaseException:
        os.remove(path + ".part")
        raise


@exercise.wrong("appended",
                "\"a\" adds to the old file. The new one should take its place.",
                "Write into another name, with \"wb\", and rename it when all is written.")
def safe_write(path, write):
    with open(path, "ab") as file:
        write(file)


@exercise.wrong("removed after it was renamed",
                "When all goes well, the other name is gone after `os.replace`: there is nothing to remove. `finally` "
                "runs then too.",
                "Remove it in an `except` block, and `raise` there.")
def safe_write(path, write):
    try:
        with open(path + ".part", "wb") as file:
            write(file)
        os.replace(path + ".part", path)
    finally:
        os.remove(path + ".part")


@exercise.wrong("old one removed first, always",
                "You remove the old file first. For a moment there is none at all; and if there was none, removing "
                "fails.",
                "`os.replace` needs no room: it puts the new one in place of the old in one step.")
def safe_write(path, write):
    try:
        with open(path + ".part", "wb") as file:
            write(file)
        os.remove(path)
        os.replace(path + ".part", path)
    except BaseException:
        os.remove(path + ".part")
        raise


@exercise.wrong("old one moved away",
                "You move the old file away first: until the new one is whole, there is none under `path`. And what if "
                "there was no old file?",
                "Leave `path` alone until the new file is whole: write into another name, then `os.replace`.")
def safe_write(path, write):
    os.replace(path, path + ".old")
    try:
        with open(path, "wb") as file:
            write(file)
        os.remove(path + ".old")
    except BaseException:
        os.replace(path + ".old", path)
        raise


@exercise.wrong("another error",
                "The caller should get the error of `write`, which says what went wrong. You raise another one.",
                "`raise`, alone, at the end of the `except` block passes the error on.")
def safe_write(path, write):
    try:
        with open(path + ".part", "wb") as file:
            write(file)
        os.replace(path + ".part", path)
    except BaseException:
        os.remove(path + ".part")
        raise RuntimeError("not saved") from None


@exercise.wrong("one kind of error",
                "`write` may fail with any error. After some, your other file is left in the folder.",
                "`except BaseException:` catches all of them, also an interrupt.")
def safe_write(path, write):
    try:
        with open(path + ".part", "wb") as file:
            write(file)
        os.replace(path + ".part", path)
    except ValueError:
        os.remove(path + ".part")
        raise


OLD = b"old"


class Watched:
    """A temporary folder, with or without a file, and what a reader of the file sees at each moment."""

    def __init__(self, folder, new, there=True):
        self.folder, self.path, self.new = Path(folder), Path(folder) / "model.bin", new
        self.seen, self.came_from = [], "nothing was renamed"
        if there:
            self.path.write_bytes(OLD)

    def record_state(self):
        content = self.path.read_bytes() if self.path.exists() else None
        state = {None: "no file", OLD: "old", self.new: "new"}.get(content, "half")
        if self.seen[-1:] != [state]:
            self.seen.append(state)

    def spy_on(self, name):
        """Wrap `os.replace` and similar functions to look at the file before and after."""
        do = getattr(os, name)

        def call(path, *others, **more):
            self.record_state()
            if others and os.path.realpath(others[0]) == os.path.realpath(self.path):
                inside = os.path.realpath(path).startswith(os.path.realpath(self.folder) + os.sep)
                self.came_from = "its own folder" if inside else "another folder"
            result = do(path, *others, **more)
            self.record_state()
            return result

        return mock.patch.object(os, name, call)

    def save(self, safe_write, fail_at=None, error=ValueError):
        """Save once. fail_at: number of bytes after which `write` fails. Returns whether the caller got the error."""
        def write(file):
            self.record_state()
            file.write(self.new[:fail_at])
            self.record_state()
            if fail_at is not None:
                raise error("the disk is full")

        with self.spy_on("replace"), self.spy_on("rename"), self.spy_on("remove"), self.spy_on("unlink"):
            try:
                safe_write(str(self.path), write)
            except Exception as caught:
                if isinstance(caught, error) and "the disk is full" in str(caught):
                    return "the error is raised"
                if fail_at is not None and type(caught) in (Exception, RuntimeError, ValueError, OSError):
                    return "another error is raised"
                raise
            finally:
                self.record_state()
        return "no error is raised"


def save(safe_write, ask, new, there=True, fail_at=None, error=ValueError):
    """Property to return: what readers `saw`, the file `after` the save, the folder that it came `from`, the `names`
    in the folder, or what the caller `heard`."""
    with tempfile.TemporaryDirectory() as folder:
        watched = Watched(folder, new, there)
        heard = watched.save(safe_write, fail_at, error)
        return {"saw": watched.seen, "after": watched.seen[-1], "from": watched.came_from, "heard": heard,
                "names": sorted(file.name for file in watched.folder.iterdir())}[ask]


@exercise.cases
def cases(rng):
    new = rng.bytes(int(rng.integers(20, 90)))
    size = len(new)
    yield case("after", new, run=save, expected="new", text=f"{size} bytes over an old file: which one is there?")
    yield case("after", new, False, run=save, expected="new", text=f"{size} bytes, no old file: which one is there?")
    yield case("saw", new, run=save, expected=["old", "new"], text="what does a reader see, from first to last?")
    yield case("from", new, run=save, expected="its own folder", text="from which folder was the new file renamed?")
    yield case("after", new, True, 10, run=save, expected="old",
               text="`write` fails after 10 bytes: which one is there?")
    yield case("names", new, True, 10, run=save, expected=["model.bin"],
               text="`write` fails after 10 bytes: the files in the folder")
    yield case("heard", new, True, 10, run=save, expected="the error is raised",
               text="`write` fails after 10 bytes: what does the caller see?")
    yield case("names", new, run=save, expected=["model.bin"], text="all goes well: the files in the folder")
    yield case("names", new, False, 0, run=save, expected=[], hidden=True)
    yield case("names", new, True, 5, KeyError, run=save, expected=["model.bin"], hidden=True)
    yield case("after", new, True, 0, OSError, run=save, expected="old", hidden=True)
    yield case("saw", new[:5] * 3, True, None, run=save, expected=["old", "new"], hidden=True)
