"""The record of an error card: which error of the chain it describes, and its contents.

Read next: `failure.py`, the frames of a traceback; `failed_graph.py`, the picture.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import Any

from ..core.base.errors import MinflowError
from ..core.ir import INPUT
from ..core.messages.suggestions import attribute_hint
from .card import CardRecord
from .failed_graph import drop_repeated_names, failed_graph_record, separate_calls
from .failure import MAX_INPUTS, Failure, name_of, read_failure
from .frames import chain_of, message_of
from .shape_suggestions import expected_of_layer
from .source_lines import source_line

Pairs = tuple[tuple[str, str], ...]


def card_of(error: BaseException) -> CardRecord | None:
    """Record of an error from a model, a graph, a job or a tensor; None for any other error."""
    chosen = None
    for link in chain_of(error):
        failure = read_failure(link)
        if failure.is_located or isinstance(link, MinflowError):
            chosen = chosen or failure
            if failure.is_located and (failure.label or failure.node):
                chosen = failure
                break
        if link.__cause__ is None:  # it does not only wrap its cause
            break
    return None if chosen is None else card_from_failure(chosen, error)


def card_from_failure(failure: Failure, raised: BaseException) -> CardRecord:
    error = failure.error
    ours = isinstance(error, MinflowError) and "what" in vars(error)  # a subclass may not have called our __init__
    scope = failure.scope or (failure.recorded_graph.title if failure.recorded_graph is not None else "")
    data = [(name, x) for name, x in failure.inputs if not x._label]
    got = tuple((name, str(x.spec)) for name, x in (data or failure.inputs)[:MAX_INPUTS])
    if not failure.expected and ours and failure.module is not None and failure.node is None:
        failure.expected = expected_module_input(failure)
    if ours and " if " in error.hint:  # the hint depends on the user's intention
        failure.expected = ""
    got, values = split_named_values(error, failure, got) if ours else (got, ())
    where = error.where if ours and error.where else ""
    if failure.user_line and failure.plan is None and failure.user_line not in where:
        where = where or (f"in {failure.scope.lstrip('/')}" if failure.scope else "")
        where = ", ".join(filter(None, [where, f"at {failure.user_line}"]))
    raised_as = ""
    if raised is not error:
        raised_as = f"{type(raised).__name__}: {message_of(raised).partition(f' raised {type(error).__name__}')[0]}"
    card = CardRecord(
        title=f"{type(error).__name__} in {scope}" if scope else type(error).__name__,
        what=error.what if ours else message_of(error),
        values=values,
        got=got,
        expected=failure.expected,
        where=where,
        code=failure.code,
        created_at=failure.created_at,
        hint=error.hint if ours else attribute_hint(error),
        raised_as=raised_as.partition("\n")[0][:200],
        notes=notes_of(raised, error),
    )
    try:
        named = {name for name, _ in values}  # parameters among the inputs are kept if the error names them
        if data or (ours and got and got[0] in error.values.items()):
            keep = [not x._label or name_of(failure, x, name) in named for name, x in failure.inputs]
            failure.inputs = list(compress(failure.inputs, keep))
        graph = failed_graph_record(failure, card)
        return replace(card, graph=graph and replace(graph, nodes=drop_repeated_names(separate_calls(graph.nodes))))
    except Exception:  # a card without a picture is better than none
        return card


def notes_of(raised: BaseException, error: BaseException) -> tuple[str, ...]:
    """The notes of the error and of its wrappers, without duplicates; a note with a place is cut before it, because the
    card shows the place.
    """
    notes = [note for link in chain_of(raised) for note in getattr(link, "__notes__", ())]
    return tuple(dict.fromkeys(note if "\n" in note else note.partition(": in ")[0] for note in notes))


def warning_record(parts: MinflowError, file: str, number: int) -> CardRecord:
    """The card of a MinflowWarning, given its four parts."""
    return CardRecord(
        title="Warning",
        what=parts.what,
        values=tuple(parts.values.items()),
        where=parts.where,
        hint=parts.hint,
        code=source_line(file, number),
        error=False,
    )


def split_named_values(error: MinflowError, failure: Failure, got: Pairs) -> tuple[Pairs, Pairs]:
    """(got, the other values). Values that the error itself names as got or expected take precedence over those of the
    frames.
    """
    values = dict(error.values)
    failure.expected = values.pop("expected", failure.expected)
    named_got = [name for name in values if name == "got" or name.startswith("got ")]
    if named_got:
        got = tuple((name[4:], values.pop(name)) for name in named_got)
    elif "expected" in error.values:  # show only the input that the error is about
        named, _, rest = failure.expected.partition(" ")
        failure.expected = f"{named}  {rest}"
        got = tuple(pair for pair in (*got, *values.items()) if pair[0] == named)[:1] or got
        failure.inputs = [(name, x) for name, x in failure.inputs if x._label or name == named] or failure.inputs
        if failure.plan is not None and (name := input_of(failure.node)):
            got = tuple((f"{named}, the input {name}", values.pop(own)) for own, _ in got if own in values) or got
    elif failure.inputs and all(
        x._label for _, x in failure.inputs
    ):  # the inputs that are not parameters are not tensors
        parameters = {name_of(failure, x, name) for name, x in failure.inputs}
        got = tuple(pair for pair in values.items() if pair[0] not in parameters)[:MAX_INPUTS] or got
    elif len(got) == 1 and got[0][1] == values.get("x"):  # a single tensor: "x" in the error, "self" or "input" in code
        got = (("x", values["x"]),)
    return got, tuple(values.items())


def input_of(node: Any) -> str:
    """The name of the input of a graph that a node is, or is a view of; "" for any other node."""
    while node.inputs and node.op.is_view:
        node = node.inputs[0].node
    return node.name if node.op is INPUT else ""


def expected_module_input(failure: Failure) -> str:
    """Inputs that the layer would accept, for a check of a module that fails before any op runs."""
    frame_names = [name for name, x in failure.inputs if not x._label]
    inputs = [x for _, x in failure.inputs if not x._label]
    place = expected_of_layer(failure.module, inputs)
    return "" if place is None else f"{frame_names[place[0]]}  {place[1]}"
