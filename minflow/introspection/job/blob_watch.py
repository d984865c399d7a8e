"""flow.watch and flow.watch_diff: the elements of a Blob, or of its gradient, at every step.

Handlers run on the worker after their step and before its callback. Read next: `../../job/build.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...core.base.errors import JobError
from ...core.source_location import here
from ...core.tensor import Tensor
from ...job.build_context import building
from ...job.signature import LocalTensor, describe, resolved_annotations
from ...job.typing import KINDS, text


def watch(blob: Any, handler_or_prompt: Callable | str | None = None) -> None:
    """Pass the elements of `blob` to a handler at every step of the job. Given a string or None, print them.

    handler: a function of one argument, annotated tp.Numpy, tp.ListNumpy or tp.ListListNumpy. Without annotation it
    receives the result of a handle: an array that also has numpy() and numpy_list().
    """
    add_watch("flow.watch", blob, handler_or_prompt, False)


def watch_diff(blob: Any, handler_or_prompt: Callable | str | None = None) -> None:
    """Like `watch`, for the gradient of the *sum* of the loss. (Variables are updated with the gradient of its
    mean.).
    """
    add_watch("flow.watch_diff", blob, handler_or_prompt, True)


def add_watch(what: str, blob: Any, handler: Callable | str | None, gradient: bool) -> None:
    build = building(what, "for the curve of a graph, a job or a run: from minflow_widgets import watch")
    if not isinstance(blob, Tensor):
        wrong = f"{what}: blob must be a Blob"
        raise JobError(wrong, values={"got": describe(blob)}, where=here(), hint=f"{what}(loss, handler)")
    if gradient and not blob._needs:
        what = "flow.watch_diff of a Blob that has no gradient"
        hint = "one that a trainable variable leads to and the loss depends on"
        raise JobError(what, values={"blob": describe(blob)}, where=here(), hint=hint)
    kind, prompt = LocalTensor, ""
    if handler is None or isinstance(handler, str):
        prompt = handler or getattr(blob, "op_name", "blob")
        build.watch(blob, printer(prompt), kind, prompt, gradient)
        return
    if not callable(handler):
        what = f"the handler of {what} is not callable"
        raise JobError(what, values={"got": repr(handler)[:60]}, where=here(), hint="def handler(x: tp.Numpy): ...")
    parameters = list(inspect.signature(handler).parameters.values())
    try:
        inspect.signature(handler).bind(None)
    except TypeError:
        what = f"the handler of {what} must take one argument"
        hint = "def handler(x: tp.Numpy): ..."
        raise JobError(what, values={"it takes": str(inspect.signature(handler))}, where=here(), hint=hint) from None
    kind = (
        resolved_annotations(handler).get(parameters[0].name, LocalTensor)
        if hasattr(handler, "__annotations__")
        else LocalTensor
    )
    if kind is not LocalTensor and kind not in KINDS:
        what = f"the handler of {what} is annotated with another type"
        hint = "x: tp.Numpy, tp.ListNumpy or tp.ListListNumpy"
        raise JobError(what, values={"annotation": text(kind)}, where=here(), hint=hint)
    build.watch(blob, handler, kind, prompt, gradient)


def printer(prompt: str) -> Callable[[LocalTensor], None]:
    def show(array: LocalTensor) -> None:
        print(f"{prompt}: {array.numpy()}")

    return show
