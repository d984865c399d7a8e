"""The cases of an exercise, as an answer's process gets them: arguments and functions, without anything that judges.

Functions and classes of definitions are pickled by value, because the definitions do not exist in that process. An
answer of the definition among them is an error. Read next: `worker.py`.
"""

from __future__ import annotations

import functools
import importlib
import io
import pickle
import sys
from collections.abc import Callable, Iterable
from typing import Any

from ...core.base.optional import import_optional
from ..definition import Case, Exercise

cloudpickle = import_optional("cloudpickle", "grading")

INSTALLED = ("minflow", "minflow.exercises")  # packages that exist in the process


class Pickler(cloudpickle.Pickler):
    """Pickler that refuses exercises and their answers."""

    def __init__(self, file: Any, exercises: Iterable[Exercise]) -> None:
        super().__init__(file)
        self.secrets: dict[int, str] = {}
        for exercise in exercises:
            answers = [exercise.right, *exercise.other_solutions, *(wrong.answer for wrong in exercise.wrongs)]
            self.secrets |= {id(answer): exercise.name for answer in answers if callable(answer)}
        self.shared = shared_objects()

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Exercise) or id(obj) in self.secrets:
            name = self.secrets.get(id(obj)) or obj.name
            raise pickle.PicklingError(f"a case of {name} refers to an answer of its definition, or to the exercise")
        if id(obj) in self.shared:
            return attribute, self.shared[id(obj)]
        if isinstance(obj, functools._lru_cache_wrapper):  # otherwise pickled by its name
            return cached, (obj.__wrapped__, obj.cache_parameters())
        return super().reducer_override(obj)


def shared_objects() -> dict[int, tuple[str, str]]:
    """Objects of minflow's own classes that its modules hold, such as the current session: id -> (module, name)."""
    modules = [(name, module) for name, module in list(sys.modules.items()) if name.partition(".")[0] == "minflow"]
    return {
        id(value): (name, key)
        for name, module in modules
        if not name.startswith("minflow.exercises")
        for key, value in list(vars(module).items())
        if not isinstance(value, type) and type(value).__module__.startswith("minflow.")
    }


def attribute(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def cached(function: Callable, parameters: dict[str, Any]) -> Callable:
    return functools.lru_cache(**parameters)(function)


def dump_cases(exercise: Exercise, cases: Iterable[Case]) -> bytes:
    """Pickle the cases, without the results that they expect. Raises pickle.PicklingError."""
    return dump([exercise], [Case(case.args, case.kwargs, run=case.run) for case in cases])


def dump_draws(exercises: Iterable[Exercise]) -> bytes:
    """Pickle the functions that make the objects of drawn questions, by name."""
    exercises = [exercise for exercise in exercises if exercise.draw_object is not None]
    return dump(exercises, {exercise.name: exercise.draw_object for exercise in exercises})


def dump(exercises: list[Exercise], value: Any) -> bytes:
    for exercise in exercises:
        for function in (exercise.make_cases, exercise.draw_object):
            pickle_by_value(function)
    file = io.BytesIO()
    Pickler(file, exercises).dump(value)
    return file.getvalue()


def pickle_by_value(function: Callable | None) -> None:
    """Pickle everything that is defined beside a function by value: in its module, and in the package of that."""
    name = getattr(function, "__module__", "")
    while name and name not in INSTALLED:
        if name in sys.modules:
            cloudpickle.register_pickle_by_value(sys.modules[name])
        name = name.rpartition(".")[0]
