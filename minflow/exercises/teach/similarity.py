"""`minflow exercises similar`: a page of submissions whose answers have much in common.

Answers to the same exercise are compared in pairs by copydetect (winnowing: Schleimer, Wilkerson, Aiken 2003), which
ignores names, comments and spaces. The stub, the solution and other right answers of the definition do not count. The
page has no scripts, and answers are escaped. A number is not a proof: see docs/teaching/exams.md.
"""

from __future__ import annotations

import collections
import dataclasses
import html
import io
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...core.base.optional import import_optional
from .. import cells
from ..definition import Exercise
from ..i18n import say
from . import notebook as nb
from .pages import html_page

K = 12  # least length of a common part, in characters without names; the library's default is 25, for whole programs
LEAST = 40  # characters of an answer, without names and without the stub's and the solution's parts
SHOWN = 100  # pairs on the page


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer that is compared. fingerprint: copydetect's CodeFingerprint, without what does not count."""

    file: str
    exercise: str
    source: str
    fingerprint: Any


@dataclasses.dataclass(frozen=True)
class Match:
    """Two similar answers. share: of the shorter one, 0 to 1. lines: numbers of the common lines, of each answer."""

    first: Answer
    second: Answer
    common: int
    share: float
    lines: tuple[set[int], set[int]]


@dataclasses.dataclass
class Comparison:
    """Outcome. pairs: (file, file) -> matches. files: submissions read. short: (exercise, number of answers left out).
    remarks: unreadable files.
    """

    pairs: dict[tuple[str, str], list[Match]]
    files: list[str]
    short: dict[str, int]
    remarks: list[str]


def compare(paths: Iterable[str], release: Path | None = None) -> Comparison:
    """Compare the answers of all notebooks. release: as for `grade`.

    Raises NotebookError if the release cannot be read, or none of the notebooks.
    """
    released = nb.read(release) if release else None
    answers: dict[str, list[Answer]] = collections.defaultdict(list)
    result = Comparison({}, [], collections.Counter(), [])
    for path in nb.notebooks(paths):
        try:
            notebook = nb.read(path)
            lesson = released or nb.release_of(notebook, path)
            nb.require_release(notebook, lesson)
        except (nb.NotebookError, LookupError) as error:
            result.remarks.append(f"{nb.printable(str(path))}: {error}")
            continue
        result.files.append(str(path))
        for exercise in nb.exercises_of(lesson):
            source, _ = nb.find_answer(notebook, exercise)
            if exercise.make_cases is None or cells.is_untouched(exercise.name, source):
                continue
            answer = Answer(str(path), exercise.name, source, fingerprint(exercise, source))
            if answer.fingerprint.token_coverage < LEAST:
                result.short[exercise.name] += 1
            else:
                answers[exercise.name].append(answer)
    if result.remarks and not result.files:
        raise nb.NotebookError("; ".join(result.remarks[:3]))
    for some in answers.values():
        for first, second in itertools.combinations(some, 2):
            if match := matched(first, second):
                result.pairs.setdefault((first.file, second.file), []).append(match)
    return result


def fingerprint(exercise: Exercise, source: str) -> Any:
    """Fingerprint of an answer, without the parts that the definition has too.

    copydetect's own removal of such parts assumes that no part occurs twice in an answer.
    """
    detector, utils = (
        import_optional(name, "the page of similar submissions") for name in ("copydetect", "copydetect.utils")
    )

    def of(text: str) -> Any:
        return detector.CodeFingerprint("answer.py", K, 1, fp=io.StringIO(text), language="python")

    result = of(source)
    written = [cells.answer_cell(exercise.name), cells.solved_cell(exercise.name)]
    written += [cells.definition_source(answer) for answer in exercise.other_solutions if callable(answer)]
    for text in written:
        for known in of(text).hashes & result.hashes:
            result.hashes.discard(known)
            del result.hash_idx[known]
    result.token_coverage = utils.get_token_coverage(result.hash_idx, K, len(result.filtered_code))
    return result


def matched(first: Answer, second: Answer) -> Match | None:
    """Common parts of two answers, None if there are none."""
    detector = import_optional("copydetect", "the page of similar submissions")
    common, shares, slices = detector.compare_files(first.fingerprint, second.fingerprint)
    if not common:
        return None
    lines = tuple(
        {line for start, end in zip(*places) for line in lines_of(answer.source, int(start), int(end))}
        for answer, places in zip((first, second), slices)
    )
    return Match(first, second, int(common), min(1.0, float(max(shares))), lines)  # type: ignore[arg-type]


def lines_of(source: str, start: int, end: int) -> range:
    """Numbers of the lines, from 0, that a part of a text touches."""
    return range(source.count("\n", 0, start), source.count("\n", 0, max(end - 1, start)) + 1)


# ---- the page -------------------------------------------------------------------------------------------------------


def page(paths: Iterable[str], release: Path | None = None) -> str:
    """HTML page of the pairs with the most in common. Raises as `compare` does."""
    found = compare(paths, release)
    pairs = sorted(found.pairs.items(), key=lambda pair: -sum(match.common for match in pair[1]))
    total = say(
        "submissions: {files}, pairs with common parts: {pairs}, shown below: {shown}",
        files=len(found.files),
        pairs=len(pairs),
        shown=min(len(pairs), SHOWN),
    )
    limits = (
        say(
            "A number is not a proof. Short exercises have few right answers, and honest ones may be equal: read both "
            "and ask."
        ),
        say(
            "Names, comments and spaces are ignored. The stub, the solution and other right answers of the exercise do "
            "not count."
        ),
        say("An answer that was rewritten is not found. Exercises whose answer is a value are not compared."),
    )
    short = ", ".join(f"{name} ({count})" for name, count in sorted(found.short.items())) or say("none")
    about = f"{say('Too short to compare, without what the definition has too:')} {short}"
    parts = [
        STYLE,
        f"<p>{html.escape(total)}</p>",
        "<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in limits) + "</ul>",
        *(f"<p>{html.escape(text)}</p>" for text in (about, *found.remarks)),
        html_page.table(
            say("The pairs with the most in common."),
            (say("pair"), say("submissions"), say("common characters"), say("largest share"), say("exercises")),
            [row(number, *pair) for number, pair in enumerate(pairs[:SHOWN], 1)],
        ),
        *(details(number, names, matches) for number, (names, matches) in enumerate(pairs[:SHOWN], 1)),
    ]
    return html_page.page(say("Similar submissions"), "\n".join(parts))


def row(number: int, names: tuple[str, str], matches: list[Match]) -> tuple:
    return (
        html_page.Html(f'<a href="#pair-{number}">{number}</a>'),
        html_page.Html("<br>".join(shown(name) for name in names)),
        sum(match.common for match in matches),
        f"{max(match.share for match in matches):.0%}",
        ", ".join(match.first.exercise for match in matches),
    )


def details(number: int, names: tuple[str, str], matches: list[Match]) -> str:
    """The answers of a pair side by side, with the common lines marked."""
    parts = [f'<h2 id="pair-{number}">{number}: {shown(names[0])} / {shown(names[1])}</h2>']
    for match in sorted(matches, key=lambda match: -match.common):
        texts = "".join(
            f'<pre tabindex="0">{marked(answer.source, lines)}</pre>'
            for answer, lines in zip((match.first, match.second), match.lines)
        )
        parts.append(
            f"<h3>{html.escape(match.first.exercise)}: {match.common}, {match.share:.0%}</h3>"
            f'<div class="sides">{texts}</div>'
        )
    return "\n".join(parts)


def marked(source: str, lines: set[int]) -> str:
    """Source as HTML, with lines marked."""
    escaped = [html.escape(nb.printable(line)) for line in source.split("\n")]
    return "\n".join(f"<mark>{line}</mark>" if i in lines else line for i, line in enumerate(escaped))


def shown(file: str) -> str:
    return html.escape(nb.printable(file))


STYLE = """<style>
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1em; }
.sides pre { overflow-x: auto; border: 1px solid #8888; padding: 6px; margin: 0; font-size: 13px; }
mark { background: light-dark(#ffe9a8, #5c4a12); color: inherit; }
</style>"""
