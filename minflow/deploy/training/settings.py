"""Convert settings, style and passes of a graph to data and back; for a training graph also its steps and the
generator.

Read next: `../saving.py`.
"""

from __future__ import annotations

import functools
from typing import Any

from ...compiler.passes import PASSES, RENAMED_PASSES, Pass, pass_name
from ...core.base.errors import GraphError
from ...core.host import host_array
from ...core.mode import bump_mutations
from ...core.random import default_generator
from ...core.source_location import fail
from ...io.files import META
from ...nn.graph.config import NO_EFFECT, STYLES
from ..checks import check_bool, check_choice, check_each, check_fields, check_int, checking_file, choice_of
from .built_in import count, positive

SAVED_NAMES = {now: old for old, now in RENAMED_PASSES.items()}  # a file keeps the first name of a pass


def saved_name(step: Pass) -> str:
    name = pass_name(step)
    return SAVED_NAMES.get(name, name)


KNOWN_PASSES = {saved_name(step): step for step in PASSES}


def config_as_data(graph: Any) -> dict[str, Any]:
    """Settings, style and passes of a graph; for a training graph also its steps and the default generator's state.

    Raises GraphError for a user-defined pass, which is a function.
    """
    config = graph.config
    for step in graph.passes:
        if KNOWN_PASSES.get(saved_name(step)) is not step:
            fail(
                GraphError,
                f"flow.save: {graph.name} has the pass {pass_name(step)}, a function of the program's "
                "own, and a file holds no code",
                f"graph.passes.remove({pass_name(step)}) before saving",
                passes=[pass_name(step) for step in graph.passes],
            )
    data = {
        "accumulation": config.accumulation,
        "static": config.static,
        "gradients": config.gradients,
        "without_effect": list(config.without_effect),
        "repr_style": graph.repr_style,
        "passes": [saved_name(step) for step in graph.passes],
    }
    if graph.optimizers:
        data |= {"steps": graph._steps, "generator": default_generator.get_state().tolist()}
    return data


def config_from_data(data: Any, graph: Any) -> None:
    """Apply the output of `config_as_data` to a graph, all or nothing. For a training graph, the default generator of
    this process continues from the saved state.

    Raises GraphFormatError.
    """
    with checking_file(META):
        training = ("steps", "generator") if graph.optimizers else ()
        names = ("accumulation", "static", "gradients", "without_effect", "repr_style", "passes", *training)
        x, word = check_fields(data, "config", names), functools.partial(check_int, low=-(2**63))
        accumulation = positive(x["accumulation"], "config.accumulation")
        static, gradients = check_bool(x["static"], "config.static"), check_bool(x["gradients"], "config.gradients")
        known = *NO_EFFECT, "enable_zero"  # which had no effect when older files were saved
        unused = check_each(x["without_effect"], "config.without_effect", choice_of(*known), len(known))
        style = check_choice(x["repr_style"], "config.repr_style", STYLES)
        passes = check_each(x["passes"], "config.passes", choice_of(*KNOWN_PASSES), 1000)
        if training:
            steps = count(x["steps"], "config.steps")
            words = check_each(x["generator"], "config.generator", word, 2, 2)
    config = graph.config
    config.accumulation, config.static, config.gradients = accumulation, static, gradients
    config.without_effect = dict.fromkeys([name for name in unused if name in NO_EFFECT], ())
    graph.passes = [KNOWN_PASSES[name] for name in passes]
    if graph.repr_style != style:
        graph.repr_style = style
    if training:
        graph.__dict__.update(_steps=steps, _accumulation=accumulation)
        default_generator.set_state(host_array(words, "int64"))
    bump_mutations()
