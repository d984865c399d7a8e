"""Sandbox of an answer's process on Linux, by bubblewrap: the command that starts it, and why there is none.

The process sees Python, its packages, minflow without solutions and a small folder in memory. It sees no other file, no
other process, no network and no socket, and cannot start processes. Limits of memory and time are set by worker.py and
process.py. Read next: `worker.py`.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import minflow

PACKAGE = Path(minflow.__file__).parent
# Folders of the package with solutions, or with texts about them.
SOLUTIONS = [
    PACKAGE / name for name in ("exercises/lessons", "exercises/inside", "exercises/exam", "exercises/i18n/zh")
]
SOLUTIONS += [PACKAGE / name for name in ("_notebooks", "_docs")]
SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/nix/store", "/etc/ld.so.cache", "/etc/localtime")
DEVICES = ("null", "urandom", "random")  # memory mapped from /dev/zero would have no limit
FOLDER = "/tmp/answer"  # working folder
FOLDER_BYTES = 64_000_000
NOBODY = 65534  # user and group of answers if root grades
TRIAL_SECONDS = 60.0
NOT_INSTALLED = "bubblewrap is not installed"


def problem() -> str:
    """Reason why there is no sandbox, "" if it works. The first call tries it."""
    if sys.platform != "linux":
        return f"there is no sandbox for {platform.system()}"
    if platform.machine() not in MACHINES:
        return f"system calls of {platform.machine()} are not known"
    if not shutil.which("bwrap"):
        return NOT_INSTALLED
    return failure()


@functools.cache
def failure() -> str:
    with tempfile.TemporaryFile() as rules:
        try:
            done = subprocess.run(
                command("print('works')", rules),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TRIAL_SECONDS,
                pass_fds=[rules.fileno()],
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap fails: {error}"
    if done.stdout == "works\n":
        return ""
    return f"bubblewrap fails: {(done.stderr.strip().splitlines() or [f'exit code {done.returncode}'])[-1]}"


def sys_path() -> list[str]:
    """Folders of sys.path that exist in the sandbox: the package's own one, those of Python and of its packages, and
    that of the widgets, which a checkout has elsewhere.
    """
    tops = [os.path.join(os.path.realpath(top), "") for top in (sys.prefix, sys.base_prefix)]
    known = [str(PACKAGE.parent)]
    for folder in sys.path:
        inside = any(os.path.join(os.path.realpath(folder), "").startswith(top) for top in tops)
        if folder and (inside or os.path.basename(folder) in ("site-packages", "dist-packages")):
            known.append(folder)
    widgets = importlib.util.find_spec("minflow_widgets")
    if widgets is not None and widgets.origin:
        known.append(str(Path(widgets.origin).parents[1]))
    return list(dict.fromkeys(known))


def command(program: str, rules: IO[bytes], hidden: Iterable[Path] = ()) -> list[str]:
    """Command that runs a Python program in the sandbox.

    rules: an open file for the rules of system calls; the caller must pass its descriptor on. hidden: more folders with
    solutions.
    """
    rules.write(filter_program())
    rules.flush()
    rules.seek(0)
    words = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--die-with-parent", "--new-session", "--seccomp", str(rules.fileno()), "--cap-drop", "ALL"]
    if os.geteuid() == 0:  # root's own files, such as /dev/null, must not be those of the answer
        words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        leave = f"os.setgroups([]), os.setresgid(*3 * [{NOBODY}]), os.setresuid(*3 * [{NOBODY}])"
        program = f"import os; {leave}\n{program}"
    else:
        words += ["--unshare-user"]
    links = [place for place in SYSTEM if os.path.islink(place)]
    for place in links:
        words += ["--symlink", os.readlink(place), place]
    places = [sys.base_prefix, sys.prefix, *sys_path()[1:], str(PACKAGE)]
    places = [*SYSTEM, *(place for folder in places for place in (os.path.realpath(folder), folder))]
    places = [place for place in dict.fromkeys(places) if os.path.exists(place) and not place.startswith("/usr/")]
    places = [place for place in places if place not in links]
    for folder in dict.fromkeys(str(top) for place in places for top in reversed(Path(place).parents[:-1])):
        words += ["--dir", folder]  # otherwise only root could enter it
    for place in places:
        words += ["--ro-bind", place, place]
    for folder in masked(places, (*SOLUTIONS, *hidden)):
        words += ["--tmpfs", folder, "--remount-ro", folder]
    words += ["--proc", "/proc", "--remount-ro", "/proc", "--tmpfs", "/dev"]
    for name in DEVICES:
        words += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    words += ["--perms", "1777", "--size", str(FOLDER_BYTES), "--tmpfs", "/tmp"]
    words += ["--perms", "0777", "--dir", FOLDER, "--chdir", FOLDER, "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*words, "--", sys.executable, "-I", "-X", "utf8", "-c", program]


def masked(places: Iterable[str], hidden: Iterable[Path]) -> list[str]:
    """Paths of the hidden folders below the places, each of which may be another name of a folder."""
    pairs = [(place, Path(os.path.realpath(place)), folder.resolve()) for place in places for folder in hidden]
    paths = [os.path.join(place, below.relative_to(top)) for place, top, below in pairs if below.is_relative_to(top)]
    return [path for path in dict.fromkeys(paths) if os.path.isdir(path)]


# ---- system calls ---------------------------------------------------------------------------------------------------

# System calls that the rules name, with their numbers on x86_64 and on aarch64.
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # (column, the machine's number in rules)
SYSTEM_CALLS = {"clone": (56, 220), "clone3": (435, 435), "mmap": (9, 222), "socket": (41, 198)}
REFUSED_CALLS: dict[str, tuple[int, int]] = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    # memory that no limit counts
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # other views of the system
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    # parts of the kernel that answers do not need
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
}
NEW_PROCESSES = (57, 58), ()  # fork, vfork
LOAD, AND, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06  # operations of a rule
ALLOW, KILL, REFUSE, UNKNOWN = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026  # results: EPERM, ENOSYS
NUMBER, MACHINE, FIRST_ARGUMENT, FOURTH_ARGUMENT = 0, 4, 16, 40  # offsets in the kernel's description of a call


def filter_program() -> bytes:
    """Rules for system calls, a program of classic BPF as `bwrap --seccomp` reads it.

    An instruction is (operation, jump if true, jump if false, operand); jumps count the instructions skipped.
    """
    column, machine = MACHINES[platform.machine()]
    clone, clone3, mmap, socket = (numbers[column] for numbers in SYSTEM_CALLS.values())
    refused = [*NEW_PROCESSES[column], *(numbers[column] for numbers in REFUSED_CALLS.values())]
    new_thread, shared_anonymous, families = 0x10000, 0x21, (1, 2, 10)
    program = [(LOAD, 0, 0, MACHINE), (EQUAL, 1, 0, machine), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    program += [(AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, REFUSE)]  # x32
    for number in refused:
        program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    # The C library then starts threads by clone, whose flags a rule can read.
    program += [(EQUAL, 0, 1, clone3), (RETURN, 0, 0, UNKNOWN)]
    program += [(EQUAL, 0, 4, clone), (LOAD, 0, 0, FIRST_ARGUMENT), (ANY_BIT, 0, 1, new_thread)]
    program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    program += [(EQUAL, 0, 5, mmap), (LOAD, 0, 0, FOURTH_ARGUMENT), (AND, 0, 0, shared_anonymous)]
    program += [(EQUAL, 0, 1, shared_anonymous), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    program += [(EQUAL, 0, 5, socket), (LOAD, 0, 0, FIRST_ARGUMENT)]
    program += [(EQUAL, len(families) - i, 0, family) for i, family in enumerate(families)]
    program += [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
