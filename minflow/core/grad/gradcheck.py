"""Numeric checks of gradients by central differences, element by element. Read next: `../autograd.py`."""

from __future__ import annotations

import itertools

from ..autograd import as_tuple, grad
from ..backend import namespace
from ..base.errors import GradError
from ..ops.shape import constant_beside
from ..source_location import fail


def gradcheck(
    function, inputs, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True
) -> bool:
    """Compare the gradients of `function(*inputs)` with central differences, element by element.

    inputs: float64 tensors; those that require grad are checked.
    Returns True if all agree; else raises GradError for the first element that differs, or returns False if not
    raise_exception.
    """
    inputs = as_tuple(inputs)
    checked = [i for i, x in enumerate(inputs) if getattr(x, "requires_grad", False)]
    for i in checked:
        if inputs[i].dtype.itemsize < 8:
            what = f"gradcheck: input {i} is {inputs[i].dtype.name}, too coarse for differences of {eps}"
            fail(GradError, what, "flow.tensor(..., dtype=flow.float64, requires_grad=True)", input=inputs[i])
    outputs = as_tuple(function(*inputs))
    for k, out in enumerate(outputs):
        if not getattr(out, "_needs", False):
            continue
        for flat in range(out.spec.size):
            seed = namespace().zeros(out.shape)
            seed.flat[flat] = 1
            analytic = grad(
                out, [inputs[i] for i in checked], constant_beside(out, seed), retain_graph=True, allow_unused=True
            )
            for i, g in zip(checked, analytic):
                column = namespace().zeros(inputs[i].shape) if g is None else g.cpu().numpy()
                wrong = compare(function, inputs, i, k, flat, column, eps, atol, rtol)
                if wrong is not None and raise_exception:
                    place, numeric, mine = wrong
                    raise GradError(
                        f"gradcheck: d output {k}[{flat}] / d input {i}{list(place)} is {mine:.6g}, "
                        f"central differences give {numeric:.6g}",
                        values={
                            "input": inputs[i].spec,
                            "output": out.spec,
                            "difference": f"{abs(mine - numeric):.3g}",
                        },
                        hint="look at the gradient rules of the ops that use this input",
                    )
                if wrong is not None:
                    return False
    return True


def compare(function, inputs, i: int, k: int, flat: int, column, eps, atol, rtol):
    """(index, numeric gradient, analytic gradient) of the first element that differs, or None."""
    for place in itertools.product(*map(range, inputs[i].shape)):
        moved = []
        for h in (eps, -eps):
            array = inputs[i].detach().cpu().numpy().copy()
            array[place] += h
            shifted = constant_beside(inputs[i], array)
            shifted.requires_grad = True
            out = as_tuple(function(*[shifted if j == i else x for j, x in enumerate(inputs)]))[k]
            moved.append(float(out.detach().cpu().numpy().flat[flat]))
        numeric = (moved[0] - moved[1]) / (2 * eps)
        if not abs(numeric - column[place]) <= atol + rtol * abs(numeric):
            return place, numeric, float(column[place])
    return None


def gradgradcheck(function, inputs, **options) -> bool:
    """Check second derivatives: `gradcheck` of the gradient of `function`."""
    inputs = as_tuple(inputs)
    checked = [x for x in inputs if getattr(x, "requires_grad", False)]

    def first(*xs):
        wanted = [x for x in xs if getattr(x, "requires_grad", False)]
        out = as_tuple(function(*xs))
        total = [(o * o).sum() for o in out if o._needs]
        result = grad(total, wanted, create_graph=True, allow_unused=True)
        return tuple([g for g in result if g is not None and g._needs])

    return gradcheck(first, inputs, **options) if checked else True
