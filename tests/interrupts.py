"""Raise Ctrl-C at a chosen line: `Interrupter(files, at=5).run(function)` sends SIGINT at the sixth line.

A real interrupt never comes between the last instruction of a `with` block and its `__exit__`, nor at a `try:`, which
does nothing. A trace function is called there, so these offsets are left out, and so are the jumps of a comprehension
to its next element: if a trace function raises there, Python 3.12 and 3.13 skip the `finally` around the comprehension,
which they do not if a signal arrives.
"""

import dis
import functools
import signal
import sys


class Interrupter:
    """Trace the lines of some files. lines: (code, line) in execution order; at: the index where Ctrl-C comes."""

    def __init__(self, files, at=None):
        self.files, self.lines, self.at = files, [], at

    def __call__(self, frame, event, arg):
        if frame.f_code.co_filename not in self.files:
            return None
        if event == "line" and frame.f_lasti not in unreachable_offsets(frame.f_code):
            self.lines.append((frame.f_code, frame.f_lineno))
            if len(self.lines) - 1 == self.at:
                signal.raise_signal(signal.SIGINT)
        return self

    def interrupted_in(self, name):
        """True if the interrupt came in a function of this name."""
        return self.at is not None and self.at < len(self.lines) and self.lines[self.at][0].co_name == name

    def run(self, function):
        """Call the function; return True if it was interrupted. Another trace function, such as --disturb's, is
        suspended.
        """
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
        """Return indices of the lines that ran (in functions of these names): the first and last of each line."""
        first, last = {}, {}
        for i, line in enumerate(self.lines):
            if wanted is None or line[0].co_name in wanted:
                first.setdefault(line, i)
                last[line] = i
        return sorted({*first.values(), *last.values()})


@functools.cache
def unreachable_offsets(code):
    """Return offsets that no interrupt reaches.

    These do nothing, or leave a `with` block by `__exit__(None, None, None)`, or jump within an inlined comprehension.
    """
    found = {i.offset for i in dis.get_instructions(code) if i.opname == "NOP"}
    names = {i.offset: i.opname for i in dis.get_instructions(code)}
    for block in dis.Bytecode(code).exception_entries:
        if names[block.target] == "SWAP":  # only a comprehension has such a handler: it restores a variable
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
