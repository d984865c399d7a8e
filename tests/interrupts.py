"""Ctrl-C at a line of one's choice, for tests: `Interrupter(files, at=5).run(function)` sends SIGINT at the sixth
line.

A real interrupt never comes between the last instruction of a `with` block and its `__exit__`, nor at a `try:`, which
does nothing; a trace function is called there, so these places are left out. So are the jumps of a comprehension to its
next element: where a trace function raises there, Python 3.12 and 3.13 skip the `finally` around the comprehension,
which they do not when a signal comes.
"""

import dis
import functools
import signal
import sys


class Interrupter:
    """Traces the lines of some files. lines: (code, line) that ran, in order; at: the one where Ctrl-C comes."""

    def __init__(self, files, at=None):
        self.files, self.lines, self.at = files, [], at

    def __call__(self, frame, event, arg):
        if frame.f_code.co_filename not in self.files:
            return None
        if event == "line" and frame.f_lasti not in never(frame.f_code):
            self.lines.append((frame.f_code, frame.f_lineno))
            if len(self.lines) - 1 == self.at:
                signal.raise_signal(signal.SIGINT)
        return self

    def interrupted_in(self, name):
        """Did the interrupt come in a function of this name?"""
        return self.at is not None and self.at < len(self.lines) and self.lines[self.at][0].co_name == name

    def run(self, function):
        """Was it interrupted? Another trace function, such as that of --disturb, rests meanwhile."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            function()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    def places(self, wanted=None):
        """The numbers of the lines that ran (in functions of these names), each line at its first and at its last
        time.
        """
        first, last = {}, {}
        for i, line in enumerate(self.lines):
            if wanted is None or line[0].co_name in wanted:
                first.setdefault(line, i)
                last[line] = i
        return sorted({*first.values(), *last.values()})


@functools.cache
def never(code):
    """Offsets where no interrupt comes: those that do nothing, those from which a `with` block is left, by
    `__exit__(None, None, None)`, and the jumps of comprehensions that are part of their function.
    """
    found = {i.offset for i in dis.get_instructions(code) if i.opname == "NOP"}
    names = {i.offset: i.opname for i in dis.get_instructions(code)}
    for block in dis.Bytecode(code).exception_entries:
        if names[block.target] == "SWAP":  # only a comprehension's handler begins so: it restores a variable
            found.update(offset for offset in range(block.start, block.end) if names.get(offset) == "JUMP_BACKWARD")
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "NOP", "PRECALL", "PUSH_NULL")]
    for i, instruction in enumerate(instructions):
        calls = [(x.opname, x.argval) for x in instructions[i : i + 3]] == [("LOAD_CONST", None)] * 3
        if calls and i + 3 < len(instructions) and instructions[i + 3].opname.startswith("CALL"):
            before = i
            while before and instructions[before - 1].opname in ("SWAP", "ROT_TWO"):
                before -= 1
            last = instructions[before - 1].offset if before else -1
            found.update(range(last + 1, instruction.offset + 1))
    return found
