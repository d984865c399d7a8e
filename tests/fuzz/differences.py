"""Table of deliberate differences in docs/differences.md, as rows that findings are compared with.

`| call | kind | when | minflow | PyTorch | reason |`: call is one or more patterns of public names (`add`, `Tensor.*_`,
`F.*`), separated by commas; kind is one or several of `KINDS`; when is `always`, or `theirs: TEXT` or `ours: TEXT`,
regular expressions searched in the text of PyTorch or minflow, or `call: TEXT`, searched in the program.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from .comparison import KINDS, Finding

FILE = Path(__file__).parents[2] / "docs" / "differences.md"


class Row(NamedTuple):
    calls: tuple
    kinds: tuple
    when: str
    ours: str
    theirs: str
    reason: str

    def fits(self, finding: Finding) -> bool:
        if finding.kind not in self.kinds or not any(fnmatchcase(finding.name, call) for call in self.calls):
            return False
        where, _, pattern = self.when.partition(": ")
        if where == "always":
            return True
        said = {"theirs": finding.theirs, "ours": finding.ours, "call": "\n".join(finding.lines)}[where]
        return re.search(pattern, said) is not None


def cells(line: str) -> list[str]:
    r"""The cells of one row; `\|` is a bar inside a cell."""
    return [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def read(text: str | None = None) -> list[Row]:
    """Read the rows; raise ValueError for a malformed one."""
    rows = []
    for line in (FILE.read_text(encoding="utf-8") if text is None else text).splitlines():
        if not line.startswith("| `"):
            continue
        parts = cells(line)
        if len(parts) != 6:
            raise ValueError(f"{len(parts)} cells, 6 wanted: {line}")
        calls, kinds = (tuple(p.strip("` ") for p in part.split(",")) for part in parts[:2])
        when = parts[2].strip("`")
        if not set(kinds) <= set(KINDS):
            raise ValueError(f"kinds are {', '.join(KINDS)}, not {parts[1]}: {line}")
        if when != "always" and not re.match(r"(theirs|ours|call): .", when):
            raise ValueError(f"when is `always`, `theirs: TEXT`, `ours: TEXT` or `call: TEXT`, not {when!r}: {line}")
        re.compile(when)
        rows.append(Row(calls, kinds, when, *parts[3:]))
    return rows
