"""Answers for tests of the checker, with their source as a notebook keeps it."""

import itertools
import linecache
import textwrap

NUMBERS = itertools.count(1)


def typed(text, name, **names):
    """What `name` is after a cell with this text."""
    text = textwrap.dedent(text)
    file = f"<ipython-input-{next(NUMBERS)}-0>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"__name__": "__main__", **names}
    exec(compile(text, file, "exec"), space)
    return space[name]
