"""Variants of exercises: the same idea with another specification, created from the definition of the exercise.

    vary("slope", "Write `{answer}(f, x, h=1e-3)`. ...", [
        Change("slope_in_percent", "Return it in percent.", result="100 * ({})"),
    ])

A variant has the answers and cases of its exercise, with edited source: the learner's name is replaced, texts of
`edits` are replaced in the code, and each returned value is wrapped in `result`. So its solution is code that a teacher
can read, and named wrong answers and hints are written once. Values have a function in place of changes, see `ask`.
The name of a variant, "slope_1a2b3c4d", ends with a key that determines it; a seed cannot be found from a key.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import importlib
import inspect
import io
import itertools
import linecache
import re
import sys
import tokenize
import types
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..definition import NOT_GIVEN, Case, Exercise, NamedWrongAnswer
from ..i18n import say

READ_AGAIN = "The task differs from the exercise of the lesson here. Read it once more."


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of an exercise's specification.

    answer: name of the learner's function or class. asks: what is asked, a template for `values`, added to the task.
    redo: function from an answer to the lesson's exercise to one that fits this change, where its source cannot be
    edited; for all answers but the solution.
    result: expression around each returned value; "{}" is the value, and the parameters may be used. edits: text of
    the code -> new text; each must occur. undo: for cases with `run`, a function from an answer to one that fits the
    exercise of the lesson. more: functions that make further cases, such as those that tell this change from others.
    without: named wrong answers that this change makes right or meaningless. stale: pattern of hints that are false
    here.
    """

    answer: str
    asks: str
    result: str = "{}"
    edits: dict[str, str] = dataclasses.field(default_factory=dict)
    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    undo: Callable | None = None
    redo: Callable | None = None
    more: tuple[Callable[[], Case], ...] = ()
    without: tuple[str, ...] = ()
    stale: str = ""


@dataclasses.dataclass(frozen=True)
class Family:
    """The variants of an exercise.

    task: text of the task, a template, or "". variants: a change for each, or a function that makes the exercise from
    a random generator. setup: code above the answer's cell, with {name} for the name of the variant and
    {drawn} for the text of its drawn object.
    """

    task: str
    variants: tuple[Change, ...] | Callable[[np.random.Generator], Exercise]
    setup: str = ""


FAMILIES: dict[str, Family] = {}


def vary(name: str, task: str, changes: Iterable[Change], setup: str = "") -> None:
    """Add the variants of an exercise with code."""
    FAMILIES[name] = Family(task, tuple(changes), setup)


def ask(name: str, setup: str = "") -> Callable:
    """Decorator: add the variants of an exercise whose answer is a value. The function gets a random generator."""

    def register(make: Callable[[np.random.Generator], Exercise]) -> Callable:
        FAMILIES[name] = Family("", make, setup)
        return make

    return register


def family(name: str) -> Family | None:
    """Variants of an exercise, None if it has none."""
    from ..registry import find

    lesson = find(name).lesson
    if Path(__file__).with_name("bank").joinpath(f"l{lesson}.py").is_file():
        importlib.import_module(f".bank.l{lesson}", __package__)
    return FAMILIES.get(name)


def key_of(seed: int, name: str) -> str:
    """Key of the variant of an exercise for a seed: eight hexadecimal digits.

    Consecutive seeds have different changes. The key of a value selects its numbers, which may be equal by chance.
    """
    known, digest = family(name), hashlib.sha256(f"{seed} {name}".encode()).hexdigest()[:8]
    if known is None or callable(known.variants):
        return digest
    count, number = len(known.variants), int(digest, 16) // 2
    return f"{number - number % count + (seed + zlib.crc32(name.encode())) % count:08x}"


@functools.cache
def variant(name: str, key: str) -> Exercise:
    """Make the variant of an exercise with this key, eight hexadecimal digits. Raises LookupError if it has none."""
    known = family(name)
    if known is None:
        raise LookupError(f"{name} has no variants for exams")
    if callable(known.variants):
        result = known.variants(np.random.default_rng(int(key, 16)))
        result.name = f"{name}_{key}"
    else:
        result = changed(name, key, known, known.variants[int(key, 16) % len(known.variants)])
    result.setup = known.setup.replace("{name}", result.name)
    return result


# ---- exercises with code --------------------------------------------------------------------------------------------


def changed(name: str, key: str, known: Family, change: Change) -> Exercise:
    """Make an exercise from the edited source of another one's definition."""
    from ..registry import find

    base = find(name)
    module = sys.modules[(base.make_cases or base.draw_object).__module__]
    source = edited(Path(module.__file__).read_text(encoding="utf-8"), base, change)  # type: ignore[arg-type]
    created = types.ModuleType(f"{module.__name__}_{key}", module.__doc__)
    created.__package__, created.__file__ = module.__package__, f"<{name}_{key}>"
    linecache.cache[created.__file__] = (len(source), None, source.splitlines(keepends=True), created.__file__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of wrong answers whose result is wrapped
        code = compile(source, created.__file__, "exec", dont_inherit=True)
    exec(code, created.__dict__)
    result: Exercise = created.exercise
    result.name, result.answer = f"{name}_{key}", change.answer
    result.wrongs = [fresh(wrong, change) for wrong in result.wrongs if wrong.name not in change.without]
    if change.redo:
        result.other_solutions = [change.redo(answer) for answer in result.other_solutions]
    own, theirs = result.make_cases, base.make_cases
    if own is not None and theirs is not None:
        result.make_cases = functools.wraps(theirs)(lambda rng: cases_of(own(rng), base, change, created))
    result.task = lambda: (
        say(known.task).format(answer=change.answer)
        + (f"\n\n{say(change.asks).format(**change.values)}" if change.asks else "")
    )
    return result


def fresh(wrong: NamedWrongAnswer, change: Change) -> NamedWrongAnswer:
    """A named wrong answer in a variant: without the hints that are false there."""
    hints = tuple(hint for hint in wrong.hints if not change.stale or not re.search(change.stale, hint))
    answer = change.redo(wrong.answer) if change.redo else wrong.answer
    return dataclasses.replace(wrong, answer=answer, hints=hints or (READ_AGAIN,))


def cases_of(cases: Iterable[Case], base: Exercise, change: Change, created: types.ModuleType) -> list[Case]:
    """Cases of a variant: expected results are wrapped too, and texts have the learner's new name."""
    result = []
    parameters = inspect.signature(base.right) if callable(base.right) else None
    for case in cases:
        if case.run and change.undo:
            case = dataclasses.replace(case, run=undone(case.run, change.undo))
        elif not case.run and parameters and change.result != "{}" and case.expected is not NOT_GIVEN:
            arguments = parameters.bind(*case.args, **case.kwargs).arguments
            value = eval(change.result.format("expected"), created.__dict__ | arguments | {"expected": case.expected})
            case = dataclasses.replace(case, expected=value)
        text = re.sub(rf"\b{base.answer}\(", f"{change.answer}(", say(case.text))
        result.append(dataclasses.replace(case, text=text))
    return [*result, *(one() for one in change.more)]


def undone(run: Callable, undo: Callable) -> Callable:
    return lambda answer, *args, **kwargs: run(undo(answer), *args, **kwargs)


def edited(source: str, base: Exercise, change: Change) -> str:
    """Apply a change to the source of a definition."""
    source = outside_texts(source, change.edits)
    if change.result != "{}":
        source = wrap_returns(source, base.answer, change.result)
    return renamed(source, base.answer, change.answer)


def outside_texts(source: str, edits: dict[str, str]) -> str:
    """Replace parts of the code that are not in string literals. Raises ValueError for one that does not occur."""
    if not edits:
        return source
    starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    texts = [
        (starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
        for token, is_text in tokens_of(source)
        if is_text
    ]
    met = set()

    def replaced(match: re.Match) -> str:
        if any(start < match.end() and match.start() < end for start, end in texts):
            return match[0]
        met.add(match[0])
        return edits[match[0]]

    result = re.sub("|".join(map(re.escape, sorted(edits, key=len, reverse=True))), replaced, source)
    if missing := edits.keys() - met:
        raise ValueError(f"not in the definition: {sorted(missing)}")
    return result


def tokens_of(source: str) -> Iterator[tuple[tokenize.TokenInfo, bool]]:
    """Yield (token, whether it is part of a string). From Python 3.12 on, an f-string is several tokens."""
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        depth += kind.endswith("STRING_START")
        yield token, depth > 0 or kind == "STRING"
        depth -= kind.endswith("STRING_END")


def wrap_returns(source: str, answer: str, result: str) -> str:
    """Wrap the values that the answers of a definition return."""
    places = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == answer and node.decorator_list:
            places += [found.value for found in own_returns(node) if found.value is not None]
    lines = source.splitlines(keepends=True)
    for value in sorted(places, key=lambda value: (value.lineno, value.col_offset), reverse=True):
        first, last = value.lineno - 1, (value.end_lineno or value.lineno) - 1
        text = "".join(lines[first : last + 1])
        start, end = value.col_offset, len(text) - len(lines[last]) + (value.end_col_offset or 0)
        simple = isinstance(value, ast.Name | ast.Call | ast.Attribute | ast.Subscript | ast.List)
        wrapped = (re.sub(r"(?<!\w)\(\{\}\)", "{}", result) if simple else result).format(text[start:end])
        lines[first : last + 1] = [text[:start] + wrapped + text[end:]]
    return "".join(lines)


def own_returns(node: ast.AST) -> Iterable[ast.Return]:
    """Return statements of a function, without those of functions inside it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield from own_returns(child)


def renamed(source: str, old: str, new: str) -> str:
    """Rename a name in code: not in texts, and not an attribute."""
    lines, before = source.splitlines(keepends=True), ""
    edits = []
    for token, is_text in tokens_of(source):
        if not is_text and token.type == tokenize.NAME and token.string == old and before != ".":
            edits.append(token.start)
        before = token.string
    for row, column in reversed(edits):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)


# ---- exercises with a value -----------------------------------------------------------------------------------------


def question(name: str, task: str, answer: str = "", **values: Any) -> Exercise:
    """Make the exercise of a variant whose answer is a value: `name` with another task, a template for `values`."""
    from ..registry import find

    base = find(name)
    result = Exercise(
        base.number,
        name,
        kind=base.kind,
        level=base.level,
        question=base.question,
        fact=base.fact,
        answer=answer or base.answer,
        tolerance=base.tolerance,
        exact_types=base.exact_types,
        value=True,
    )
    result.task = functools.partial(say_task, task, answer=result.answer, **values)
    return result


def say_task(task: str, **values: Any) -> str:
    """Text of a task in the language of the command."""
    return say(task).format(**values)


def mistake(
    exercise: Exercise,
    name: str,
    value: Any,
    hint: str = READ_AGAIN,
    when: Callable | None = None,
    half: bool = False,
) -> None:
    """Add a named wrong value. Its hint is in the feedback only: an exam shows none. half: True for half the points."""
    exercise.wrong_value(name, value, hint, when=when)
    if half:
        exercise.partial[name] = exercise.points / 2
