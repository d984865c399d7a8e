"""The learner's progress: state of each exercise by lesson, points, and what comes next."""

from __future__ import annotations

import dataclasses
import html
import warnings
from typing import Any

from ..views.draw.theme import AMBER, GREEN
from ..views.html.table import PLAIN_STYLE, framed
from . import record, welcome
from .i18n import say
from .record import MARKS
from .registry import all_exercises

COLORS = {"right": GREEN, "tried": AMBER, "": "rgba(125,133,144,.55)"}


@dataclasses.dataclass
class Progress:
    """Result of `progress()`.

    lessons: lesson ("02") -> {exercise: "right", "tried" or ""}. next: the exercise to continue with, in the lesson of
    the last attempt if that is not done; "" if all are right. points, max_points: points earned and available; stretch
    exercises count only as earned.
    """

    lessons: dict[str, dict[str, str]]
    next: str
    points: int
    max_points: int

    @property
    def of(self) -> int:
        """Old name of `max_points`."""
        warnings.warn("Progress.of is now Progress.max_points", DeprecationWarning, stacklevel=2)
        return self.max_points

    def __repr__(self) -> str:
        wide = max((len(name) for names in self.lessons.values() for name in names), default=0)
        lines = [self.headline()]
        for lesson, names in self.lessons.items():
            cells = [
                f"{MARKS[state]} {name:<{wide}}".rstrip() if i + 1 == len(names) else f"{MARKS[state]} {name}  "
                for i, (name, state) in enumerate(names.items())
            ]
            lines.append(f"  {lesson}  {''.join(cells)}")
        lines.append("  " + self.legend())
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        rows = []
        for lesson, names in self.lessons.items():
            cells = "".join(self.cell(name, state) for name, state in names.items())
            rows.append(
                f'<tr style="background:transparent"><td style="{PLAIN_STYLE};font-weight:600">{lesson}</td>'
                f'<td style="{PLAIN_STYLE}">{cells}</td></tr>'
            )
        body = f'<table style="border-collapse:collapse;background:transparent">{"".join(rows)}</table>'
        body += f'<div style="opacity:.75;font-size:12.5px;margin-top:4px">{html.escape(self.legend())}</div>'
        return {"text/plain": repr(self), "text/html": framed(GREEN, html.escape(self.headline()), body)}

    def cell(self, name: str, state: str) -> str:
        look = (
            "display:inline-block;padding:0 8px;margin:1px 3px 1px 0;border-radius:9px;font-size:12.5px;"
            f"border:1px solid {COLORS[state]}" + (";border-width:2px" if name == self.next else "")
        )
        return f'<span style="{look}">{MARKS[state]} {html.escape(name)}</span>'

    def headline(self) -> str:
        states = [state for names in self.lessons.values() for state in names.values()]
        text = say(
            "{done} of {count} exercises are right: {points} of {of} points.",
            done=states.count("right"),
            count=len(states),
            points=self.points,
            of=self.max_points,
        )
        lesson = next((lesson for lesson, names in self.lessons.items() if self.next in names), "")
        return (
            text
            + " "
            + (
                say("Next: {name}, in lesson {lesson}.", name=self.next, lesson=lesson)
                if self.next
                else say("All exercises are right.")
            )
        )

    def legend(self) -> str:
        return say(
            "{right} right   {tried} tried   {new} not yet", right=MARKS["right"], tried=MARKS["tried"], new=MARKS[""]
        )


def progress() -> Progress:
    """Show which exercises are right or tried, and what to do next. Reads `.progress.jsonl` next to the lessons."""
    welcome.refresh()
    attempts = record.attempts()
    states = record.states(attempts)
    exercises = [exercise for exercise in all_exercises() if exercise.points]
    lessons: dict[str, dict[str, str]] = {}
    for exercise in exercises:
        lessons.setdefault(exercise.lesson, {})[exercise.name] = states.get(exercise.name, "")
    return Progress(
        lessons,
        record.next_exercise({lesson: list(names) for lesson, names in lessons.items()}, attempts)[1],
        sum(exercise.points for exercise in exercises if states.get(exercise.name) == "right"),
        sum(exercise.points for exercise in exercises if exercise.level != "stretch"),
    )
