"""`grad` with all arguments of PyTorch; the backward pass itself is in `../autograd.py`. Read next: `functional.py`."""

from __future__ import annotations

from .. import functions as F
from ..autograd import as_tuple, grad as one_pass
from ..base.errors import GradError
from ..messages.no_gradient import as_tensors
from ..source_location import fail


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    only_inputs: bool = True,
    materialize_grads: bool = False,
) -> tuple:
    """Compute d outputs / d inputs as a tuple with a tensor per input, without changing any `.grad`.

    grad_outputs: cotangents of the outputs; 1 by default for an output of one element.
    retain_graph: keep saved tensors for another pass (default: create_graph).
    create_graph: record this pass too, for gradients of gradients.
    allow_unused: return None for an input that the outputs do not depend on; otherwise raise GradError.
    materialize_grads: return zeros in place of None.
    is_grads_batched: True if grad_outputs, and so the results, have a batch axis in front: one vector per entry.
    only_inputs: accepted; always True, as in PyTorch.
    """
    if materialize_grads and allow_unused is False:
        what = "grad: materialize_grads=True returns zeros for an unused input, allow_unused=False raises an error"
        fail(GradError, what, "leave out allow_unused")
    inputs = as_tensors("grad", "inputs", inputs)
    unused = bool(allow_unused or materialize_grads)
    if is_grads_batched:
        vectors = list(zip(*as_tuple(grad_outputs if grad_outputs is not None else ())))
        if not vectors:
            fail(GradError, "grad: is_grads_batched=True without grad_outputs", "grad_outputs=flow.eye(y.numel())")
        last = [True] * (len(vectors) - 1) + [create_graph if retain_graph is None else retain_graph]
        rows = [one_pass(outputs, inputs, g, keep, create_graph, unused) for g, keep in zip(vectors, last)]
        found = tuple(None if each[0] is None else F.stack(each) for each in zip(*rows))
        shapes = [(len(vectors), *x.shape) for x in inputs]
    else:
        found = one_pass(outputs, inputs, grad_outputs, retain_graph, create_graph, unused)
        shapes = [tuple(x.shape) for x in inputs]
    if materialize_grads:
        return tuple(x.new_zeros(shape) if g is None else g for g, x, shape in zip(found, inputs, shapes))
    return found
