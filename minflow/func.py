"""`flow.func`: functions made of functions. grad, vjp, jvp, jacrev, hessian, vmap; functional_call of a module.

Arguments may be tensors, or tuples, lists and dicts of them, such as the parameters of a module. Read next:
`core/grad/functional.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any

from .core.autograd import grad as _grad
from .core.base.errors import GradError, ShapeError
from .core.base.interrupts import Restoring
from .core.functions.creation import zeros_like
from .core.functions.shape import stack
from .core.grad import functional as _functional
from .core.grad.modes import enable_grad
from .core.messages.suggestions import name_hints as _name_hints
from .core.messages.wrong_arguments import contains_itself as _contains_itself
from .core.messages.wrong_arguments import own_entry as _own_entry
from .core.tensor import Tensor
from .core.source_location import fail

_depth: ContextVar[int] = ContextVar("depth", default=0)  # how many of these functions we are inside


def _leaves(tree: Any) -> list:
    """The leaves of a tree of tuples, lists and dicts, in order."""
    try:
        return _flat(tree)
    except RecursionError as error:
        if not _contains_itself(tree):
            raise
        raise _own_entry("func", "an argument", tree) from error


def _flat(tree: Any) -> list:
    if isinstance(tree, Mapping):
        return [leaf for value in tree.values() for leaf in _flat(value)]
    if isinstance(tree, list | tuple):
        return [leaf for value in tree for leaf in _flat(value)]
    return [tree]


def _like(tree: Any, leaves: Any) -> Any:
    """A tree of the same form with other leaves, an iterator."""
    if isinstance(tree, Mapping):
        return {key: _like(value, leaves) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[_like(value, leaves) for value in tree])
    if isinstance(tree, list | tuple):
        return type(tree)([_like(value, leaves) for value in tree])
    return next(leaves)


def _map(function: Callable, tree: Any) -> Any:
    return _like(tree, iter([function(leaf) for leaf in _leaves(tree)]))


class _Inside(Restoring):
    """Counts how deep we are: inside another one results stay on the tape."""

    variable = _depth

    def value(self) -> int:
        return _depth.get() + 1


def _ready(x: Any, nested: bool) -> Any:
    """A tensor to differentiate by: a new leaf, or inside another function what goes on from it."""
    if not isinstance(x, Tensor) or not x.spec.floating:
        fail(
            GradError,
            "func: an argument to differentiate by is no floating tensor",
            "argnums= of another argument",
            argument=x,
        )
    return x.clone() if x.requires_grad and nested else x.detach().requires_grad_()


def _off(tree: Any, nested: bool) -> Any:
    """What is given back: off the tape, where nobody outside differentiates."""
    return tree if nested else _map(lambda x: x.detach() if isinstance(x, Tensor) else x, tree)


def _chosen(owner: str, argnums: int | tuple[int, ...], args: tuple) -> list[int]:
    numbers = list(argnums) if isinstance(argnums, tuple | list) else [argnums]
    for i in numbers:
        if not isinstance(i, int) or not -len(args) <= i < len(args):
            fail(
                GradError,
                f"{owner}: argnums is {argnums!r}, and there are {len(args)} arguments",
                "argnums=0",
                argnums=argnums,
            )
    return [i % len(args) for i in numbers]


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that gives (gradient of func, func's value). argnums: by which arguments; several give a tuple.

    func gives a single number, or with has_aux (a number, anything else); then the value is such a pair too.
    """

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> tuple:
        numbers = _chosen("grad", argnums, args)
        nested = _depth.get() > 0
        with enable_grad(), _Inside():
            wanted = {i: _map(lambda x: _ready(x, nested), args[i]) for i in numbers}
            result = func(*[wanted.get(i, x) for i, x in enumerate(args)], **kwargs)
            value = result[0] if has_aux else result
            if not isinstance(value, Tensor) or value.ndim != 0:
                fail(
                    GradError,
                    "grad: the function gives something else than a single number",
                    "reduce it: .sum()",
                    value=value,
                )
            flat = [leaf for i in numbers for leaf in _leaves(wanted[i])]
            found: Any = [None] * len(flat)
            if value.requires_grad:
                found = _grad(value, flat, create_graph=nested, retain_graph=True, allow_unused=True)
            found = iter([zeros_like(x) if g is None else g for g, x in zip(found, flat)])
            gradients = tuple([_like(wanted[i], found) for i in numbers])
        picked = gradients if isinstance(argnums, tuple | list) else gradients[0]
        return _off(picked, nested), _off(result, nested)

    return wrapped


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that gives the gradient of func, a function that gives a single number; see grad_and_value."""
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(func(*primals), a function v -> v times its Jacobian, one entry for each primal); has_aux: and what func gives
    besides."""
    nested = _depth.get() > 0
    with enable_grad(), _Inside():
        inputs = [_map(lambda x: _ready(x, nested), x) for x in primals]
        result = func(*inputs)
    value, aux = result if has_aux else (result, None)
    outs, flat = _leaves(value), [leaf for x in inputs for leaf in _leaves(x)]

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> tuple:
        keep = nested if create_graph is None else create_graph
        with enable_grad():
            found = _functional.slopes("vjp", outs, flat, _leaves(cotangents), keep, False)
        rest = iter(found)
        return tuple([_off(_like(x, rest), keep) for x in inputs])

    return (_off(value, nested), pull, aux) if has_aux else (_off(value, nested), pull)


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """(func(*primals), its Jacobian times the tangents); has_aux: and what func gives besides."""
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        fail(GradError, "jvp: primals and tangents are tuples", "jvp(func, (x,), (v,))", primals=primals)
    nested = _depth.get() > 0
    with enable_grad(), _Inside():
        inputs = _map(lambda x: _ready(x, nested), tuple(primals))
        result = func(*inputs)
        value, aux = result if has_aux else (result, None)
        dummies = [zeros_like(out).requires_grad_() for out in _leaves(value)]
        back = _functional.slopes("jvp", _leaves(value), _leaves(inputs), dummies, True, strict)
        found = _functional.slopes("jvp", back, dummies, _leaves(tuple(tangents)), nested, False)
        tangent = _like(value, iter(found))
    return (_off(value, nested), _off(tangent, nested), *([aux] if has_aux else []))


def jacrev(
    func: Callable,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """A function that gives the Jacobian of func, of shape (*out.shape, *x.shape), by one backward pass a number."""

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        numbers = _chosen("jacrev", argnums, args)
        nested = _depth.get() > 0
        with enable_grad(), _Inside():
            wanted = {i: _map(lambda x: _ready(x, nested), args[i]) for i in numbers}
            result = func(*[wanted.get(i, x) for i, x in enumerate(args)], **kwargs)
            value, aux = result if has_aux else (result, None)

            def rows(out: Tensor) -> Any:
                flat = [leaf for i in numbers for leaf in _leaves(wanted[i])]
                parts = [
                    _functional.slopes("jacrev", [number], flat, [None], nested, False)
                    for number in out.reshape(-1).unbind()
                ]
                columns = iter([stack(column).reshape(*out.shape, *x.shape) for column, x in zip(zip(*parts), flat)])
                tables = tuple([_like(wanted[i], columns) for i in numbers])
                return tables if isinstance(argnums, tuple | list) else tables[0]

            table = _map(rows, value)
        return (_off(table, nested), _off(aux, nested)) if has_aux else _off(table, nested)

    return wrapped


def jacfwd(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable:
    """The numbers of jacrev; there is no forward mode here, so it takes the same passes."""
    return jacrev(func, argnums, has_aux)


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """A function that gives the second derivatives of func, of shape (*out.shape, *x.shape, *x.shape)."""
    return jacrev(jacrev(func, argnums), argnums)


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """A function over whole batches of what func takes one by one: func runs for each sample, and the results are
    stacked. The numbers are those of a loop, and so is the time.

    in_dims: which axis of an argument counts the samples; None for what is the same for all; one for all arguments, or
    a tuple with one for each, which may be a tree of the argument's form.  out_dims: where that axis stands in the
    results.
    """

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        dims = tuple(in_dims) if isinstance(in_dims, tuple | list) else (in_dims,) * len(args)
        if len(dims) != len(args):
            fail(
                ShapeError,
                f"vmap: in_dims has {len(dims)} entries for {len(args)} arguments",
                "in_dims=(0, None)",
                in_dims=in_dims,
            )
        axes = [leaf for arg, dim in zip(args, dims) for leaf in _axes(dim, arg)]
        flat = [leaf for arg in args for leaf in _leaves(arg)]
        sizes = {x.shape[axis] for x, axis in zip(flat, axes) if axis is not None}
        if len(sizes) != 1:
            fail(
                ShapeError,
                "vmap: no argument has an axis of samples"
                if not sizes
                else f"vmap: the arguments have {', '.join(map(str, sorted(sizes)))} samples, not one number",
                "in_dims=0 for batches of one size, None for what is the same for all",
                in_dims=in_dims,
            )
        if not (count := sizes.pop()):
            fail(ShapeError, "vmap: there is no sample, so the form of the results is not known", "at least one sample")
        results = []
        for i in range(count):
            part = iter([x if axis is None else x.select(axis, i) for x, axis in zip(flat, axes)])
            results.append(func(*[_like(arg, part) for arg in args], **kwargs))
        columns = zip(*[_leaves(result) for result in results])
        places = _axes(out_dims, results[0])
        joined = [_joined(column, place) for column, place in zip(columns, places)]
        return _like(results[0], iter(joined))

    return wrapped


def _joined(column: Any, place: int | None) -> Tensor:
    for x in column:
        if not isinstance(x, Tensor):
            fail(
                ShapeError,
                f"vmap: the function gives a {type(x).__name__}, where a tensor is wanted",
                "return tensors, or tuples and dicts of them",
                result=x,
            )
    return column[0] if place is None else stack(list(column), place)


def _axes(dim: Any, tree: Any) -> list:
    """The axis of each leaf of a tree: one for all, or a tree of them."""
    if dim is None or isinstance(dim, int):
        return [dim if isinstance(leaf, Tensor) else None for leaf in _leaves(tree)]
    if isinstance(dim, Mapping) and isinstance(tree, Mapping) and dim.keys() == tree.keys():
        return [axis for key in tree for axis in _axes(dim[key], tree[key])]
    if isinstance(dim, list | tuple) and isinstance(tree, list | tuple) and len(dim) == len(tree):
        return [axis for d, t in zip(dim, tree) for axis in _axes(d, t)]
    fail(
        ShapeError,
        f"vmap: {dim!r} does not fit an argument",
        "an axis, None, or a tree of the argument's form",
        dims=dim,
    )
    return []


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with other parameters and buffers in their places, by name: a dict, or several.

    strict: every parameter and buffer must be given. The module itself is as before afterwards.
    """
    dicts = parameter_and_buffer_dicts
    passed = dict(dicts) if isinstance(dicts, Mapping) else {k: v for each in dicts for k, v in each.items()}
    places = {
        name: (part, key, held)
        for prefix, part in module.named_modules()
        for held in ("_parameters", "_buffers")
        for key in getattr(part, held)
        for name in [f"{prefix}.{key}" if prefix else key]
    }
    unknown, missing = sorted(set(passed) - set(places)), sorted(set(places) - set(passed)) if strict else []
    if unknown or missing:
        fail(
            GradError,
            f"functional_call: {len(unknown)} names are unknown, {len(missing)} missing",
            "dict(module.named_parameters())",
            unknown=", ".join(unknown),
            missing=", ".join(missing),
        )
    if tie_weights:
        same = {id(getattr(p, h)[k]): passed[n] for n, (p, k, h) in places.items() if n in passed}
        passed |= {
            n: same[id(getattr(p, h)[k])]
            for n, (p, k, h) in places.items()
            if n not in passed and id(getattr(p, h)[k]) in same
        }
    before = {name: getattr(places[name][0], places[name][2])[places[name][1]] for name in passed}
    try:
        for name, value in passed.items():
            part, key, held = places[name]
            getattr(part, held)[key] = value
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))
    finally:
        for name, value in before.items():
            part, key, held = places[name]
            getattr(part, held)[key] = value


def stack_module_state(models: Any) -> tuple[dict, dict]:
    """(parameters, buffers) of modules of one form, by name, each stacked along a new first axis: for vmap."""
    listed = list(models)
    if not listed:
        fail(ShapeError, "stack_module_state: there is no module", "a list of modules of one form")
    return tuple(
        [
            {
                name: stack([dict(each(m))[name].detach() for m in listed]).requires_grad_(name in trained)
                for name, _ in each(listed[0])
            }
            for each, trained in (
                (lambda m: m.named_parameters(), {n for n, p in listed[0].named_parameters() if p.requires_grad}),
                (lambda m: m.named_buffers(), set()),
            )
        ]
    )


__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "stack_module_state",
    "vjp",
    "vmap",
]
__getattr__ = _name_hints("flow.func", globals())
