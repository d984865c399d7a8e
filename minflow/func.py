"""Function transforms (`flow.func`): grad, vjp, jvp, jacrev, hessian and vmap; functional_call of a module.

Arguments may be tensors, or tuples, lists and dicts of tensors, such as the parameters of a module.
Read next: `core/grad/functional.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any

from .core.autograd import grad as _grad, nodes_leading_to as _nodes_leading_to
from .core.base.errors import GradError, ShapeError
from .core.base.interrupts import ContextVarScope
from .core.functions.creation import zeros_like
from .core.functions.shape import stack
from .core.grad import functional as _functional
from .core.grad.modes import enable_grad, is_grad_enabled
from .core.ir import toposort as _toposort
from .core.messages.suggestions import name_hints as _name_hints
from .core.messages.wrong_arguments import (
    contains_itself as _contains_itself,
    contains_itself_error as _contains_itself_error,
)
from .core.mode import MODE as _MODE
from .core.source_location import fail
from .core.tensor import Tensor


def _tree_leaves(tree: Any) -> list:
    """Leaves of a tree of tuples, lists and dicts, in order."""
    try:
        return _flatten(tree)
    except RecursionError as error:
        if not _contains_itself(tree):
            raise
        raise _contains_itself_error("func", "an argument", tree) from error


def _flatten(tree: Any) -> list:
    if isinstance(tree, Mapping):
        return [leaf for value in tree.values() for leaf in _flatten(value)]
    if isinstance(tree, list | tuple):
        return [leaf for value in tree for leaf in _flatten(value)]
    return [tree]


def _unflatten(tree: Any, leaves: Any) -> Any:
    """Rebuild the structure of `tree` with leaves from an iterator."""
    if isinstance(tree, Mapping):
        return {key: _unflatten(value, leaves) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[_unflatten(value, leaves) for value in tree])
    if isinstance(tree, list | tuple):
        return type(tree)([_unflatten(value, leaves) for value in tree])
    return next(leaves)


def _tree_map(function: Callable, tree: Any) -> Any:
    return _unflatten(tree, iter([function(leaf) for leaf in _tree_leaves(tree)]))


class _Transform(ContextVarScope):
    """A call of a transform. keep: False if the caller has gradients switched off, so that results are detached.

    leaves: the new leaves of this call and of the transforms in it.
    """

    variable: ContextVar[tuple[_Transform, ...]] = ContextVar("transforms", default=())

    def __init__(self):
        super().__init__()
        self.keep, self.leaves = is_grad_enabled(), set()

    def value(self) -> tuple:
        return (*self.variable.get(), self)

    def add_leaf(self, x: Tensor) -> Tensor:
        for transform in self.variable.get():
            transform.leaves.add(_MODE.get().grad_key(x._value))
        return x

    def target(self, x: Any) -> Any:
        """Tensor to differentiate by: a new leaf, or a clone that stays on the tape of the caller."""
        if not isinstance(x, Tensor) or not x.spec.floating:
            what = "func: an argument to differentiate by must be a floating tensor"
            fail(GradError, what, "argnums= of another argument", argument=x)
        return x.clone() if x.requires_grad and self.keep else self.add_leaf(x.detach().requires_grad_())

    def outer_nodes(self, tensors: list) -> set:
        """Nodes on the tape of these tensors that depend on tensors of the caller which require grad."""
        mode, tracked = _MODE.get(), [x for x in tensors if isinstance(x, Tensor) and x.requires_grad]
        values = [x._value for x in tracked if x._value is not None]
        order = _toposort([x.node for x in values])
        values += [x for node in order for i, x in enumerate(node.inputs) if node.needs >> i & 1]
        outer = {mode.grad_key(x) for x in values if not x.node.needs} - self.leaves
        return _nodes_leading_to(mode, order, outer) | {x.node for x in outer}

    def keeps(self, *trees: Any) -> bool:
        """True if the caller may differentiate what is computed from these results."""
        return self.keep and bool(self.outer_nodes(_tree_leaves(trees)))

    def detached(self, tree: Any, keep: bool) -> Any:
        """Detach the tensors of a result that do not depend on the caller's; all of them unless keep."""
        nodes = self.outer_nodes(_tree_leaves(tree)) if keep else ()

        def stays(x: Tensor) -> bool:
            return x.requires_grad and x._value is not None and x._value.node in nodes

        return _tree_map(lambda x: x if not isinstance(x, Tensor) or stays(x) else x.detach(), tree)


def _checked_argnums(owner: str, argnums: int | tuple[int, ...], args: tuple) -> list[int]:
    indices = list(argnums) if isinstance(argnums, tuple | list) else [argnums]
    for i in indices:
        if not isinstance(i, int) or not -len(args) <= i < len(args):
            what = f"{owner}: argnums must be the index of one of {len(args)} arguments, got {argnums!r}"
            fail(GradError, what, "argnums=0", argnums=argnums)
    return [i % len(args) for i in indices]


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes (gradient of func, value of func).

    func: returns a tensor of shape (), or with has_aux a pair of it and anything else; the value is then such a pair.
    argnums: index of the argument to differentiate by; for a tuple of indices the gradient is a tuple.
    Raises GradError if an index, an argument or the result of func does not fit.
    """

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> tuple:
        indices = _checked_argnums("grad", argnums, args)
        with _Transform() as transform, enable_grad():
            targets = {i: _tree_map(transform.target, args[i]) for i in indices}
            result = func(*[targets.get(i, x) for i, x in enumerate(args)], **kwargs)
            value = result[0] if has_aux else result
            if not isinstance(value, Tensor) or value.ndim != 0:
                fail(GradError, "grad: the function must return a single number", "reduce it: .sum()", value=value)
            flat = [leaf for i in indices for leaf in _tree_leaves(targets[i])]
            keep = transform.keeps(result)
            grads: Any = [None] * len(flat)
            if value.requires_grad:
                grads = _grad(value, flat, create_graph=keep, retain_graph=True, allow_unused=True)
            grads = iter([zeros_like(x) if g is None else g for g, x in zip(grads, flat)])
            gradients = tuple([_unflatten(targets[i], grads) for i in indices])
        picked = gradients if isinstance(argnums, tuple | list) else gradients[0]
        return transform.detached((picked, result), keep)

    return wrapped


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes the gradient of func, whose result has shape (); see grad_and_value.

    With has_aux it returns (gradient, aux).
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """Return (func(*primals), pull), where pull(v) is v times the Jacobian, one entry per primal.

    has_aux: func returns (value, aux), and the result is (value, pull, aux).
    """
    with _Transform() as transform, enable_grad():
        inputs = [_tree_map(transform.target, x) for x in primals]
        result = func(*inputs)
    value, aux = result if has_aux else (result, None)
    outs, flat = _tree_leaves(value), [leaf for x in inputs for leaf in _tree_leaves(x)]

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> tuple:
        vectors = _tree_leaves(cotangents)
        keep = is_grad_enabled() if create_graph is None else create_graph
        keep = keep and bool(transform.outer_nodes([*outs, *vectors]))
        with enable_grad():
            grads = iter(_functional.gradients_or_zeros("vjp", outs, flat, vectors, keep, False))
        return transform.detached(tuple([_unflatten(x, grads) for x in inputs]), keep)

    value = transform.detached(value, transform.keep)
    return (value, pull, aux) if has_aux else (value, pull)


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """Return (func(*primals), Jacobian times the tangents).

    Computed by two backward passes, since minflow has no forward mode. has_aux: func returns (value, aux), and the
    result is (value, tangent, aux). strict: raise if a result does not depend on a primal.
    """
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        fail(GradError, "jvp: primals and tangents must be tuples", "jvp(func, (x,), (v,))", primals=primals)
    with _Transform() as transform, enable_grad():
        inputs = _tree_map(transform.target, tuple(primals))
        result = func(*inputs)
        value, aux = result if has_aux else (result, None)
        outs, flat, vectors = _tree_leaves(value), _tree_leaves(inputs), _tree_leaves(tuple(tangents))
        keep = transform.keeps(outs, vectors)
        dummies = [transform.add_leaf(zeros_like(out).requires_grad_()) for out in outs]
        back = _functional.gradients_or_zeros("jvp", outs, flat, dummies, True, strict)
        rows = _functional.gradients_or_zeros("jvp", back, dummies, vectors, keep, False)
        results = value, _unflatten(value, iter(rows))
    return (*transform.detached(results, keep), *([aux] if has_aux else []))


def jacrev(
    func: Callable,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """Return a function that computes the Jacobian of func, of shape (*out.shape, *x.shape).

    It takes one backward pass per element of the result.
    """

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        indices = _checked_argnums("jacrev", argnums, args)
        with _Transform() as transform, enable_grad():
            targets = {i: _tree_map(transform.target, args[i]) for i in indices}
            result = func(*[targets.get(i, x) for i, x in enumerate(args)], **kwargs)
            value, aux = result if has_aux else (result, None)
            flat = [leaf for i in indices for leaf in _tree_leaves(targets[i])]
            keep = transform.keeps(result)

            def rows(out: Tensor) -> Any:
                parts = [
                    _functional.gradients_or_zeros("jacrev", [number], flat, [None], keep, False)
                    for number in out.reshape(-1).unbind()
                ]
                columns = iter([stack(column).reshape(*out.shape, *x.shape) for column, x in zip(zip(*parts), flat)])
                tables = tuple([_unflatten(targets[i], columns) for i in indices])
                return tables if isinstance(argnums, tuple | list) else tables[0]

            table = _tree_map(rows, value)
        results = transform.detached((table, aux), keep)
        return results if has_aux else results[0]

    return wrapped


def jacfwd(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable:
    """Same as jacrev, and as slow: minflow has no forward mode."""
    return jacrev(func, argnums, has_aux)


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """Return a function that computes the second derivatives of func, of shape (*out.shape, *x.shape, *x.shape)."""
    return jacrev(jacrev(func, argnums), argnums)


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """Return a function that maps func over a batch: it calls func for each sample and stacks the results.

    Results and time are those of a loop. in_dims: the batch axis of the arguments, None for an argument that all
    samples share; one value for all arguments, or a tuple with one per argument, each of which may be a tree of the
    argument's structure. out_dims: the batch axis in the results. Raises ShapeError if the axes do not fit.
    """

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        dims = tuple(in_dims) if isinstance(in_dims, tuple | list) else (in_dims,) * len(args)
        if len(dims) != len(args):
            what = f"vmap: in_dims has {len(dims)} entries for {len(args)} arguments"
            fail(ShapeError, what, "in_dims=(0, None)", in_dims=in_dims)
        axes = [leaf for arg, dim in zip(args, dims) for leaf in _leaf_axes(dim, arg)]
        flat = [leaf for arg in args for leaf in _tree_leaves(arg)]
        sizes = {x.shape[axis] for x, axis in zip(flat, axes) if axis is not None}
        if len(sizes) != 1:
            fail(
                ShapeError,
                "vmap: no argument has a batch axis"
                if not sizes
                else f"vmap: all arguments must have the same batch size, got {', '.join(map(str, sorted(sizes)))}",
                "in_dims=0 for batches of one size, None for an argument that all samples share",
                in_dims=in_dims,
            )
        if not (count := sizes.pop()):
            what = "vmap: the batch is empty, so the shapes of the results are unknown"
            fail(ShapeError, what, "at least one sample")
        results = []
        for i in range(count):
            part = iter([x if axis is None else x.select(axis, i) for x, axis in zip(flat, axes)])
            results.append(func(*[_unflatten(arg, part) for arg in args], **kwargs))
        columns = zip(*[_tree_leaves(result) for result in results])
        places = _leaf_axes(out_dims, results[0])
        joined = [_stack_results(column, place) for column, place in zip(columns, places)]
        return _unflatten(results[0], iter(joined))

    return wrapped


def _stack_results(column: Any, place: int | None) -> Tensor:
    for x in column:
        if not isinstance(x, Tensor):
            what = f"vmap: the function must return tensors, got {type(x).__name__}"
            fail(ShapeError, what, "return tensors, or tuples and dicts of them", result=x)
    return column[0] if place is None else stack(list(column), place)


def _leaf_axes(dim: Any, tree: Any) -> list:
    """Axis of each leaf of `tree`. dim: one axis for all leaves, or a tree of axes."""
    if dim is None or isinstance(dim, int):
        return [dim if isinstance(leaf, Tensor) else None for leaf in _tree_leaves(tree)]
    if isinstance(dim, Mapping) and isinstance(tree, Mapping) and dim.keys() == tree.keys():
        return [axis for key in tree for axis in _leaf_axes(dim[key], tree[key])]
    if isinstance(dim, list | tuple) and isinstance(tree, list | tuple) and len(dim) == len(tree):
        return [axis for d, t in zip(dim, tree) for axis in _leaf_axes(d, t)]
    what = f"vmap: {dim!r} does not match the structure of an argument"
    fail(ShapeError, what, "an axis, None, or a tree of the argument's structure", dims=dim)
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
    """Call module(*args, **kwargs) with other parameters and buffers, given by name in one dict or several.

    tie_weights: a tensor that the module uses under several names is replaced under all of them.
    strict: require every parameter and buffer. The module itself is unchanged afterwards.
    Raises GradError for unknown or missing names.
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
        what = f"functional_call: {len(unknown)} names are unknown, {len(missing)} missing"
        fail(GradError, what, "dict(module.named_parameters())", unknown=", ".join(unknown), missing=", ".join(missing))
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
    """Stack the parameters and buffers of modules of the same structure along a new first axis, for vmap.

    Returns two dicts by name: (parameters, buffers).
    """
    listed = list(models)
    if not listed:
        fail(ShapeError, "stack_module_state: the list of modules is empty", "a list of modules of the same structure")
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
