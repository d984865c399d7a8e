"""Display of a verdict: one record, rendered as text and as an HTML card.

A card shows the smallest failing case, the result and the expected result, then one helpful sentence: the hint of the
named wrong answer, else a clue from comparing the numbers, else the hint of the exercise. Judges nothing: see judge.py.
"""

from __future__ import annotations

import dataclasses
import html
import inspect
import numbers
import re
from typing import Any

import numpy as np

from ..views.draw.theme import AMBER, BLUE, GREEN, RED
from ..views.html.table import framed, table
from . import answer_source
from .compare import format_number, format_value, shorten, to_array
from .i18n import say
from .i18n.width import padded, width, wrapped
from .judge import Verdict
from .runner import RaisedError

MARKS = {"right": "\u2713", "nearly": "\u2248", "not started": "\u00b7", "changed": "!"}  # other outcomes: a cross
COLORS = {"right": GREEN, "nearly": AMBER, "not started": BLUE}
INDENT, WIDTH = "  ", 78
NOT_AFTER_WORD, NOT_BEFORE_WORD = (
    r"(?<![A-Za-z0-9_*])",
    r"(?![A-Za-z0-9_*])",
)  # the star in 2*x is not emphasis; \b would fail: Chinese has no spaces
MAX_ERROR_CHARS = 500  # characters of an error message
MAX_GRID = 8  # largest number of rows and columns drawn as a grid


@dataclasses.dataclass
class Card:
    """Contents of a card.

    outcome (gives the mark), name, headline, progress: the first line. rows: (label, text). paragraphs: sentences below
    the rows. tables: (label, array, mask of differences), drawn in a notebook. folded: (title, text), collapsed.
    """

    outcome: str
    name: str
    headline: str
    progress: str = ""
    rows: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    paragraphs: list[str] = dataclasses.field(default_factory=list)
    tables: list[tuple[str, np.ndarray, np.ndarray]] = dataclasses.field(default_factory=list)
    folded: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    @property
    def mark(self) -> str:
        return MARKS.get(self.outcome, "\u2717")


def make_card(verdict: Verdict, level: int = 1, stuck: bool = False, progress: str = "") -> Card:
    """Make the card of a verdict.

    level: how many times in a row this wrong answer has occurred. stuck: True after many attempts or a long time.
    """
    card = Card(verdict.outcome, verdict.exercise.name, "", progress)
    write = {
        "right": fill_right,
        "not started": fill_not_started,
        "refused": fill_refused,
        "changed": fill_changed,
        "stopped": fill_stopped,
    }
    write.get(verdict.outcome, fill_wrong)(verdict, card)
    if verdict.outcome in ("nearly", "wrong", "stopped"):
        add_help(verdict, card, level, stuck)
    if verdict.result is not None:
        add_output(verdict, card)
    return card


# ---- outcomes -------------------------------------------------------------------------------------------------------


def fill_right(verdict: Verdict, card: Card) -> None:
    if verdict.total <= 1 and not verdict.hidden[1]:
        card.headline = say("right")
        if verdict.exercise.value:
            card.rows.append((say("yours"), format_value(verdict.got)))
    else:
        card.headline = say(
            "right: {right} of {of} cases",
            right=verdict.right + verdict.hidden[0],
            of=verdict.total + verdict.hidden[1],
        )
        if hidden := verdict.hidden[1]:
            card.headline += say(", {hidden} of them hidden", hidden=hidden)
        if 0 < verdict.largest_difference <= max(verdict.exercise.tolerance):
            card.headline += say(
                ", largest difference {size}", size=f"{verdict.largest_difference:.0e}".replace("e-0", "e-")
            )
    if verdict.exercise.fact:
        card.paragraphs.append(say("Worth knowing: {fact}", fact=say(verdict.exercise.fact)))


def fill_not_started(verdict: Verdict, card: Card) -> None:
    card.headline = say("not started: the cell above holds no answer yet.")


def fill_refused(verdict: Verdict, card: Card) -> None:
    card.headline = say("not checked")
    card.paragraphs.append(verdict.message)


def fill_changed(verdict: Verdict, card: Card) -> None:
    card.headline = say("{what} has been replaced. Nothing was checked.", what=verdict.message)
    card.paragraphs.append(say("Kernel > Restart Kernel, then run the cells again."))


def fill_stopped(verdict: Verdict, card: Card) -> None:
    result, own = verdict.result, verdict.source or answer_source.AnswerSource("", "", None)
    assert result is not None and result.error is not None
    error = result.error
    line, text = error.line
    place = say("before its first line") if verdict.message else say("when its result was checked")
    if line:  # code made by exec has no text
        place = say("in your line {line}:  {text}", line=line, text=shorten(text)).rstrip(" :\uff1a")
    if result.timed_out and verdict.case:
        card.headline = say(
            "stopped after {seconds} s {place}", seconds=format_number(verdict.exercise.time_limit), place=place
        )
    else:
        card.headline = say("stopped {place}", place=place)
    add_case_rows(verdict, card)
    if not result.timed_out:
        card.paragraphs.append(error_text(error))
    if near := answer_source.suggest_name(error.missing, own):
        card.paragraphs.append(near)
    if verdict.message:
        card.paragraphs.append(verdict.message)


def error_text(error: RaisedError) -> str:
    if error.is_a("RecursionError"):
        return say("RecursionError: a function calls itself too many times.")
    text = error.text if error.is_a("MinflowError") else error.text[:MAX_ERROR_CHARS]
    return f"{error.name}: {text}" if text else error.name


def fill_wrong(verdict: Verdict, card: Card) -> None:
    if verdict.total <= 1 and verdict.case is None:  # the answer is a value, not code
        card.headline = say("not yet")
        card.rows.append((say("yours"), format_value(verdict.got)))
        if isinstance(verdict.got, str) and isinstance(verdict.expected, numbers.Real) and not verdict.wrong:
            card.paragraphs.append(say("Write a number, without quotes."))
        elif verdict.difference and verdict.difference.kind == "type" and not verdict.wrong:
            card.paragraphs.append(verdict.difference.text)
        return
    if verdict.case.hidden:
        good, every = verdict.hidden
        card.headline = say(
            "all {of} cases shown are right; {missed} of {others} hidden cases failed.",
            of=verdict.total,
            others=every,
            missed=every - good,
        )
        return
    if verdict.outcome == "nearly":
        card.headline = (
            say("nearly: {right} of {of} cases are right", right=verdict.right, of=verdict.total)
            if verdict.right > verdict.total / 2
            else say(
                "nearly: the smallest case that differs, {number} of {of}", number=verdict.number, of=verdict.total
            )
        )
    else:
        card.headline = say("the smallest case that fails: {number} of {of}", number=verdict.number, of=verdict.total)
    add_case_rows(verdict, card)
    card.rows += [(say("yours"), result_text(verdict, verdict.got))]
    card.rows += [(say("expected"), result_text(verdict, verdict.expected))]
    if verdict.difference.text:
        card.paragraphs.append(verdict.difference.text)
    elif (
        verdict.difference.kind == "value"
        and np.isfinite(verdict.difference.size)
        and verdict.difference.size
        and max(verdict.exercise.tolerance)
    ):
        card.rows.append(
            (
                say("difference"),
                say(
                    "{size}, allowed {allowed}",
                    size=format_number(verdict.difference.size),
                    allowed=format_number(max(verdict.exercise.tolerance)),
                ),
            )
        )
    mine, expected = to_array(verdict.got), to_array(verdict.expected)
    if (
        mine is not None
        and expected is not None
        and mine.ndim == expected.ndim == 2
        and mine.size > 1
        and max(*mine.shape, *expected.shape) <= MAX_GRID
    ):
        with np.errstate(all="ignore"):
            same = (
                np.isclose(mine, expected, *reversed(verdict.exercise.tolerance))
                if mine.shape == expected.shape
                else None
            )
        card.tables += [
            (say("yours"), mine, ~same if same is not None else np.zeros(mine.shape, bool)),
            (say("expected"), expected, np.zeros(expected.shape, bool)),
        ]


def result_text(verdict: Verdict, value: Any) -> str:
    """A result as text. A text of the case itself, such as "as it was", is in the learner's language."""
    described = type(value) is str and verdict.case is not None and verdict.case.run is not None
    return format_value(verdict.exercise.say(value) if described else value)


def add_case_rows(verdict: Verdict, card: Card) -> None:
    """Add the rows of the failing case: its text, else its arguments by name."""
    case = verdict.case
    if case is None or case.hidden:
        return
    label = say("case {number}", number=verdict.number)
    if case.text:
        card.rows.append((label, say(case.text)))
        return
    try:
        bound = inspect.signature(verdict.exercise.right).bind(*case.args, **case.kwargs).arguments
    except (TypeError, ValueError):
        bound = {str(i): value for i, value in enumerate(case.args, 1)} | case.kwargs
    for i, (name, value) in enumerate(bound.items()):
        card.rows.append((f"{label}: {name}" if i == 0 else name, format_value(value)))


# ---- help -----------------------------------------------------------------------------------------------------------


def add_help(verdict: Verdict, card: Card, level: int, stuck: bool) -> None:
    """Add the next hint; after the last one, or if the learner is stuck, also a worked related problem."""
    exercise, wrong = verdict.exercise, verdict.wrong
    hints = wrong.hints if wrong else ()
    if verdict.slip:
        card.paragraphs.append(verdict.slip)
    if verdict.slip and level == 1:
        pass
    elif wrong:
        card.paragraphs.append(say(hints[min(level, len(hints)) - 1]))
    elif verdict.outcome == "stopped" and level == 1:  # the error message is enough
        if verdict.result.timed_out:
            card.paragraphs.append(say("Which loop does not end, or does the same work again and again?"))
    elif (
        level == 1 and verdict.case and verdict.difference and verdict.difference.kind in ("type", "dtype", "argument")
    ):
        pass  # the difference is already described, and the hint is about something else
    elif verdict.case is None or not verdict.clue:
        card.paragraphs.append(say(exercise.hint) if exercise.hint else default_advice(verdict))
    else:
        card.paragraphs.append(verdict.clue)
        if level > 1 and exercise.hint:
            card.paragraphs.append(say(exercise.hint))
    if exercise.sibling and (level > max(len(hints), 2) or stuck):
        card.folded.append((say("A related problem, worked"), say(exercise.sibling)))
    if stuck:
        card.paragraphs.append(say("You may leave this one and come back: nothing later needs your answer."))


def default_advice(verdict: Verdict) -> str:
    if verdict.case is None:
        return say("How would you find out? Run the cells above, or work it out by hand on paper.")
    return say("Take this case and work it out by hand, then print what your code has at each step.")


def add_output(verdict: Verdict, card: Card) -> None:
    """Add what the answer printed and warned about in the shown case."""
    result = verdict.result
    assert result is not None
    if result.printed:
        text = "\n".join(result.printed)
        if result.omitted_lines:
            text += "\n" + say("... {more} more lines are not shown", more=f"{result.omitted_lines:,}")
        card.folded.append((say("what your code printed"), text))
    for text in dict.fromkeys(result.warned):
        card.folded.append((say("a warning"), text))


# ---- as text and as HTML --------------------------------------------------------------------------------------------


def card_text(card: Card) -> str:
    """Render the card as text for a terminal."""
    head = f"{card.mark} {card.name}   {card.headline}"
    lines = [f"{head}   {card.progress}".rstrip()]
    wide = max((width(label) for label, text in card.rows), default=0)
    lines += [f"{INDENT}{padded(label, wide)}  {text}" for label, text in card.rows]
    for paragraph in card.paragraphs:
        lines += wrap_text(strip_emphasis(paragraph), INDENT)
    for title, text in card.folded:
        lines += [f"{INDENT}{title}:", *wrap_text(strip_emphasis(text), INDENT * 2)]
    return "\n".join(lines)


def wrap_text(text: str, indent: str) -> list[str]:
    """Wrap text at WIDTH columns; code keeps its indentation."""
    return [indent + part for line in text.split("\n") for part in wrapped(line, WIDTH)]


def card_html(card: Card) -> str:
    """Render the card as HTML in the colors of the page, without scripts or ids."""
    title = (
        f'<span aria-hidden="true">{card.mark}</span> <code style="background:transparent;color:inherit">'
        f"{html.escape(card.name)}</code> &nbsp;{html.escape(card.headline)}"
    )
    parts = []
    if card.rows and not card.tables:
        parts.append(table((label, html.escape(text), "") for label, text in card.rows))
    if card.tables:
        known = {label for label, array, differs in card.tables}
        parts.append(table((label, html.escape(text), "") for label, text in card.rows if label not in known))
        cells = "".join(
            f'<td style="border:0;padding:4px 24px 4px 0;vertical-align:top">{matrix_html(*entry)}</td>'
            for entry in card.tables
        )
        parts.append(f'<table style="border-collapse:collapse;background:transparent"><tr>{cells}</tr></table>')
    parts += [
        f'<div style="margin-top:6px;white-space:pre-wrap">{markdown_to_html(paragraph)}</div>'
        for paragraph in card.paragraphs
    ]
    parts += [
        f'<details style="margin-top:6px"><summary style="cursor:pointer">{html.escape(title)}</summary>'
        f'<div style="white-space:pre-wrap;margin:4px 0 0 1em">{markdown_to_html(text)}</div></details>'
        for title, text in card.folded
    ]
    if card.progress:
        parts.append(f'<div style="margin-top:6px;opacity:.75;font-size:12.5px">{html.escape(card.progress)}</div>')
    return framed(COLORS.get(card.outcome, RED), title, "".join(parts))


def matrix_html(label: str, array: np.ndarray, differs: np.ndarray) -> str:
    """Small matrix as HTML. Differing elements have a frame and a sign, so that color is not the only mark."""
    rows = []
    for i in range(len(array)):
        cells = []
        for j in range(array.shape[1]):
            look = "padding:1px 8px;text-align:right;font-family:monospace;font-size:12.5px;border:"
            look += f"2px solid {RED};font-weight:600" if differs[i, j] else "1px solid rgba(125,133,144,.35)"
            sign = "\u2260 " if differs[i, j] else ""
            cells.append(f'<td style="{look}">{sign}{html.escape(format_number(array[i, j]))}</td>')
        rows.append(f'<tr style="background:transparent">{"".join(cells)}</tr>')
    head = f'<div style="opacity:.75;font-weight:600;font-size:12.5px">{html.escape(label)}</div>'
    return f'{head}<table style="border-collapse:collapse;background:transparent">{"".join(rows)}</table>'


def markdown_to_html(text: str) -> str:
    """Convert Markdown's `code`, *emphasis* and **strong** to HTML."""
    parts = re.split(r"(`[^`\n]+`)", text)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f'<code style="background:transparent;color:inherit">{html.escape(part[1:-1])}</code>'
        else:
            part = html.escape(part, quote=False)
            part = re.sub(r"\*\*(\S(?:[^*\n]*\S)?)\*\*", r"<b>\1</b>", part)
            parts[i] = re.sub(rf"{NOT_AFTER_WORD}\*(\S(?:[^*\n]*\S)?)\*{NOT_BEFORE_WORD}", r"<em>\1</em>", part)
    return "".join(parts)


def strip_emphasis(text: str) -> str:
    """Remove Markdown's emphasis marks; code stays unchanged."""
    parts = re.split(r"(`[^`\n]+`)", text)
    stress = rf"{NOT_AFTER_WORD}\*{{1,2}}([^\s*](?:[^*\n]*[^\s*])?)\*{{1,2}}{NOT_BEFORE_WORD}"
    parts[::2] = [re.sub(stress, r"\1", part) for part in parts[::2]]
    return "".join(parts)


class CardDisplay:
    """Base of objects with a card: HTML in Jupyter, text elsewhere."""

    card: Card

    def __repr__(self) -> str:
        return card_text(self.card)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": card_text(self.card), "text/html": card_html(self.card)}
