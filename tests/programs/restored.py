"""Restore programs from a tutorial that was saved as plain text, in which the code has lost its indentation.

Code is recognized by the form of its lines, and its indentation by four habits of such programs: a method belongs to
the last class, `return` ends a function, a class or a function without `self` starts at the margin, and loops extend to
the end of their program. It does not depend on what the programs do.
"""

import ast
import re
import textwrap

CJK = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")
STATEMENT = re.compile(
    r"(import|from|class|def|return|for|while|if|elif|else|with|try|except|finally|raise)\b"
    r"|[A-Za-z_][\w., ]*=(?!=)|\(\w[\w, ()]*=(?!=)"  # an assignment
    r"|@\w"  # a decorator
    r"|[A-Za-z_][\w.]*\("  # a call
    r"|# "
)
OUTPUT = re.compile(r"(输出|output)\s*[:：]$", re.IGNORECASE)
MODULES = [
    (r"^import flowvision$", "from minflow import vision as flowvision"),
    (r"^import flowvision\.", "import minflow.vision."),
    (r"^from flowvision\b", "from minflow.vision"),
    (r"^(import|from) oneflow\b", r"\1 minflow"),
]


def code_of(line: str) -> str:
    """Return the line without its comment. A # in a string does not start one."""
    return re.sub(r"""("[^"]*"|'[^']*')|\s*#.*""", lambda found: found[1] or "", line)


def depth_of(line: str) -> int:
    """Return the brackets that the line opens, minus those that it closes."""
    bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", code_of(line))
    return sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))


def programs(text: str) -> list[str]:
    """Return every program of the text, in order and indented; text that does not parse is not a program."""
    runs: list[list[str]] = []
    run: list[str] = []
    depth, before, given = 0, "", False
    for line in [*text.splitlines(), "."]:
        line = line.strip()
        form = not CJK.search(code_of(line)) and (depth > 0 or STATEMENT.match(line))
        if form and not run:
            given = bool(OUTPUT.search(before))  # output of a program
        if form:
            run.append(line)
            depth = max(0, depth + depth_of(line))
        elif run:
            runs += [] if given else [run]
            run, depth = [], 0
        before = line
    return [source for source in map(indented, runs) if parses(source)]


def parses(source: str) -> bool:
    try:
        return bool(ast.parse(source).body)
    except SyntaxError:
        return False


def indented(lines: list[str]) -> str:
    """Return the program with the indentation that its lines must have had."""
    blocks: list[str] = []  # the first lines of the open blocks
    out: list[str] = []
    depth, returned = 0, False
    for line in lines:
        if depth == 0:
            word = re.match(r"\w*", line)[0]
            method = re.match(r"def \w+\(self\b", line)
            if method:
                while blocks and blocks[-1] != "class":
                    blocks.pop()
            elif word in ("class", "def") or (returned and blocks[-1:] == ["class"]):
                blocks = []
            returned = word == "return"
        out.append("    " * len(blocks) + ("    " if depth else "") * (line[0] not in ")]}") + line)
        depth += depth_of(line)
        if depth == 0 and code_of(line).endswith(":"):
            blocks.append(word)
        if returned and depth == 0:
            while blocks and blocks.pop() != "def":
                pass
    return "\n".join(out) + "\n"


def for_minflow(source: str) -> str:
    """Return the program with its import lines changed to minflow's names, and no other change."""
    lines = source.splitlines(keepends=True)
    for pattern, new in MODULES:
        lines = [re.sub(pattern, new, line) for line in lines]
    return "".join(lines)


def blocks(text: str) -> list[str]:
    """Return every program of an indented text, in order: the code between lines of prose or fences."""
    runs: list[list[str]] = [[]]
    for line in text.splitlines():
        if CJK.search(code_of(line)) or line.lstrip().startswith(("```", "•")):
            runs.append([])
        else:
            runs[-1].append(line)
    found = [textwrap.dedent("\n".join(run)).strip("\n") + "\n" for run in runs]
    return [source for source in found if parses(source)]
