"""Plans of exams: which exercises, and the minutes and points of each."""

from __future__ import annotations

import dataclasses

from ..definition import POINTS, Exercise
from ..registry import all_exercises, find
from .variants import family, key_of

MINUTES = {"warm-up": 6, "core": 12, "stretch": 20}  # per exercise: with an exam's nerves, without the lesson at hand


@dataclasses.dataclass(frozen=True)
class Plan:
    """An exam. name: of its files. exercises: names of the exercises of the course."""

    name: str
    exercises: tuple[str, ...]

    def variants(self, seed: int) -> list[Exercise]:
        """The variants for a seed. Raises LookupError for an exercise that does not exist or has no variants."""
        return [find(f"{find(name).name}_{key_of(seed, name)}") for name in self.exercises]


PLANS = {
    plan.name: plan
    for plan in (
        Plan(
            "midterm",
            ("mixed_up", "shapes", "slope", "diamond", "gradient", "softmax", "out_size", "two_cheats", "score"),
        ),
        Plan(
            "final",
            ("edge", "fold_back", "surprise", "batches", "what_stays", "sbp", "swish_rule", "next_one", "cheapest"),
        ),
    )
}


def plan_of(names: list[str]) -> Plan:
    """Plan by name, or one with the named exercises."""
    return PLANS[names[0]] if names[0] in PLANS and len(names) == 1 else Plan("exam", tuple(names))


def minutes(exercise: Exercise) -> int:
    return MINUTES[exercise.level]


def coverage() -> tuple[list[str], list[str]]:
    """Names of the exercises with and without variants. Recall questions are not exam questions."""
    names = [exercise.name for exercise in all_exercises() if POINTS[exercise.level]]
    return [name for name in names if family(name)], [name for name in names if not family(name)]
