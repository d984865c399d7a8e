"""Suggestions for unknown names and unknown arguments: the nearest names that exist.

In a correct program only a wrapper around each public function runs: a call that does not match the signature of a
Python function raises before its first line, so only the caller can improve the error.
Read next: `../source_location.py` for the four parts of an error.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib.machinery import PathFinder
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from ..base.errors import CallError, MinflowError, MissingNameError
from ..base.legacy_dispatch import BUILDING, OVERLOADED, find_overload
from ..base.out import run_into, wants_out
from ..base.signatures import argument_names, rename
from ..dispatch import RAW_ERRORS, special_method
from ..overrides import PUBLIC, SUBCLASSES, call_of_objects, call_override
from ..source_location import here, one_line
from .renamed import translate_call
from .unsupported import reason, substitute
from .wrong_arguments import explain_error, safe_hasattr

# argument names of other libraries, and of other functions of this one -> ours
ARGUMENT_SYNONYMS = {name: tuple(ours.split()) for name, ours in {
    "axis": "dim dims", "axes": "dims dim", "dimension": "dim", "keepdims": "keepdim", "x": "input", "a": "input",
    "y": "target other",
    "b": "other", "labels": "target", "logits": "input", "learning_rate": "lr", "decay": "weight_decay",
    "l2": "weight_decay",
    "beta1": "betas", "beta2": "betas", "epsilon": "eps", "rate": "p lr", "prob": "p", "units": "out_features",
    "input_size": "in_features in_channels", "output_size": "out_features out_channels", "in_dim": "in_features",
    "out_dim": "out_features",
    "filters": "out_channels", "kernel": "kernel_size", "filter_size": "kernel_size", "strides": "stride",
    "pad": "padding",
    "use_bias": "bias", "vocab_size": "num_embeddings", "num_channels": "num_features", "shape": "size",
    "batchsize": "batch_size",
    "workers": "num_workers", "params": "parameters", "parameters": "params",
}.items()}  # fmt: skip
Kind = TypeVar("Kind", bound=type)
NO_NAMES: Mapping[str, str] = {}
EXPLAINED_ERRORS = (*RAW_ERRORS, MinflowError, RecursionError)
MAX_NAME_LENGTH = 100  # longest name for which suggestions are made
NAMESPACES: dict[str, Mapping[str, Any]] = {}  # "flow.optim" -> its names
LAZY_NAMES: dict[str, Mapping[str, str]] = {}  # "minflow.optim" -> its names that are imported on first use
# "minflow.utils" -> the aliases in it that programs have imported, and modules that PyTorch's programs import by name
IMPORTED_ALIASES: dict[str, set[str]] = {"minflow.utils": {"tensorboard"}}
# job/ fills these two: "flow.nn" -> its legacy names, which are imported on first use; and a function
# (namespace, name) -> the replacement of a name of the legacy API, or None
LEGACY_NAMES: dict[str, Mapping[str, Any]] = {}
REPLACEMENTS: list[Callable[[str, str], str | None]] = []
RESOLVERS: list[
    Callable[[str, str], Any]
] = []  # (namespace, name) -> a moved module, or None: `../../import_aliases.py`


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three names of `known` of which `name` may be a typing error or the beginning; the nearest first.

    Case and underscores are ignored; a different number at the end is never taken for a typing error.
    """
    asked = normalized(name)
    letters = set(asked)
    result: list[tuple[int, str]] = []
    if len(name) > MAX_NAME_LENGTH:  # hardly typed by hand, and the edit distance of long texts is slow
        return []
    for other in known:
        it = normalized(other)
        if other[:1] == "_" or other == name:
            continue
        if asked == it:
            result.append((0, other))
        elif asked.rstrip("0123456789") == it.rstrip("0123456789") and asked[-1:].isdigit():
            continue
        elif (
            abs(len(asked) - len(it)) <= (most := 1 if min(len(asked), len(it)) < 6 else 2)
            and len(letters.symmetric_difference(it)) <= 2 * most  # a cheap bound: one edit changes at most two letters
            and (slips := distance(asked, it)) <= most
        ):
            result.append((slips, other))
        elif len(asked) >= 4 and it.startswith(asked):
            result.append((2, other))
    result.sort(key=lambda pair: (pair[0], pair[1][-1:].isdigit() != name[-1:].isdigit(), distance(name, pair[1])))
    return [other for slips, other in result if slips == result[0][0]][:3]


def normalized(name: str) -> str:
    return name.replace("_", "").lower()


def distance(a: str, b: str) -> int:
    """The edit distance: insertions, deletions, substitutions, and swaps of adjacent letters (Damerau 1964)."""
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (x != y)))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                row[-1] = min(row[-1], rows[-2][j - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


def did_you_mean(names: Iterable[str], prefix: str = "") -> str:
    """The hint "did you mean flow.relu or flow.selu?", or "" without names."""
    result = list(dict.fromkeys(prefix + name for name in names))
    return f"did you mean {' or '.join(result)}?" if result else ""


# ---- names of a module -----------------------------------------------------------------------------------------------


def missing_name(namespace: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for an unknown name such as flow.optim.Sdg, with the nearest names, or another namespace that has the
    name.
    """
    if name.startswith(("__", "_ipython_", "_repr_")):  # Python, IPython, copy or pickle probe for it
        return AttributeError(f"module {namespace.replace('flow', 'minflow', 1)!r} has no attribute {name!r}")
    if name[:1] == "_":
        hint = reason(f"{namespace}.{name}".partition(".")[2]) or f"dir({namespace}) lists the public names"
        return MissingNameError(f"{namespace} has no {name}, a private name of PyTorch", where=here(), hint=hint)
    for replacement in REPLACEMENTS:
        if hint := replacement(namespace, name):
            return MissingNameError(f"{namespace} has no {name}", where=here(), hint=hint)
    if hint := reason(f"{namespace}.{name}".partition(".")[2]):
        return MissingNameError(f"{namespace} has no {name}", where=here(), hint=hint)
    above = NAMESPACES.get(namespace, {})
    if (
        "__path__" in above
        and name.isidentifier()
        and len(name) <= MAX_NAME_LENGTH
        and PathFinder.find_spec(f"{above['__name__']}.{name}", above["__path__"])
    ):
        return MissingNameError(
            f"{namespace}.{name} is a module that is not imported yet",
            where=here(),
            hint=f"from {above['__name__']} import {name}",
        )
    import_lazy_namespaces()
    elsewhere = [
        space
        for space, names in NAMESPACES.items()
        if space != namespace and name in {*names, *LAZY_NAMES.get(names["__name__"], ())}
    ]
    hint = (
        did_you_mean(elsewhere[:2], "").replace("?", f".{name}?").replace(" or ", f".{name} or ")
        if elsewhere
        else did_you_mean(without_modules(nearest(name, known), NAMESPACES.get(namespace, {})), f"{namespace}.")
        or substitute(f"{namespace}.{name}".partition(".")[2])
        or (f"dir({namespace}) lists what is there")
    )
    return MissingNameError(f"{namespace} has no {name}", where=here(), hint=hint)


def import_lazy_namespaces() -> None:
    """Import the namespaces that are imported on first use, so that their names are known."""
    for above, later in list(LAZY_NAMES.items()):
        for name, place in later.items():
            if place == f"{name}.":
                importlib.import_module(f"{above}.{name}")


def without_modules(found: list[str], names: Mapping[str, Any]) -> list[str]:
    """Drop modules whose names differ from another name only in case, such as sgd if there is SGD."""
    files = {n for n in found if isinstance(names.get(n), ModuleType)}
    return [
        n
        for n in found
        if n not in files or not any(normalized(n) == normalized(other) for other in found if other not in files)
    ]


def attribute_hint(error: BaseException) -> str:
    """The hint for Python's AttributeError of an object of minflow, such as a Tensor; "" if there is none.

    A `__getattr__` of Tensor could raise it directly, but would make every `x.array` three times as slow.
    """
    owner, name = getattr(error, "obj", None), getattr(error, "name", None)
    if (
        type(error) is not AttributeError
        or not isinstance(name, str)
        or not type(owner).__module__.startswith("minflow.")
    ):
        return ""
    for kind in type(owner).__mro__:
        if hint := reason(f"Tensor.{name}" if kind.__name__ == "Tensor" else f"nn.Module.{name}"):
            return hint
    return did_you_mean(nearest(name, dir(owner)))


def public(names: Mapping[str, Any]) -> Iterable[str]:
    """The public names of a module: its `__all__`, else all names without a leading underscore, except modules that are
    not namespaces and aliases that a program has imported.
    """
    aliases = IMPORTED_ALIASES.get(names.get("__name__", ""), ())
    return names.get("__all__") or [
        n
        for n, it in names.items()
        if n[:1] != "_" and n not in aliases and (not isinstance(it, ModuleType) or "__dir__" in vars(it))
    ]


def by_module(table: Mapping[str, str]) -> dict[str, str]:
    """Invert a table: {"run": "start Run"} becomes {"start": "run.start", "Run": "run.Run"}."""
    return {name: f"{module}.{name}" for module, names in table.items() for name in names.split()}


def missing_names(
    namespace: str, names: dict[str, Any], at_first_use: Mapping[str, str] = NO_NAMES
) -> Callable[[str], Any]:
    """Make the `__getattr__` of the module whose public name is `namespace`, and set its `__dir__` for completion.

    names: its globals().  at_first_use: name -> "module.name" below it, imported on first use; "module." is the module
    itself. See `by_module`.
    """
    LAZY_NAMES[names["__name__"]] = at_first_use
    names.setdefault(
        "__path__", ()
    )  # a tuple, which jedi ignores; so that `from minflow.linalg import nothing` reaches `MissingFinder`

    def listed() -> list[str]:
        return sorted({*public(names), *at_first_use})

    names.setdefault("__dir__", listed)

    def __getattr__(name: str) -> Any:
        if path := at_first_use.get(name):
            home, _, attribute = path.rpartition(".")
            it = importlib.import_module(f"{names['__name__']}.{home}")
            if attribute:
                names[name] = it = getattr(it, attribute)
                hint_class(it, names["__name__"], namespace.removeprefix("flow."))
            return it
        later = LEGACY_NAMES.get(namespace, {})
        if name in later:
            return later[name]
        for resolve in RESOLVERS:
            if (found := resolve(namespace, name)) is not None:
                return found
        raise missing_name(namespace, name, [*names.get("__dir__", listed)(), *later])

    return __getattr__


# ---- arguments of a function -----------------------------------------------------------------------------------------


def signature_error(
    function: Callable, args: tuple, kwargs: Mapping[str, Any], qualname: str, error: Exception
) -> CallError | None:
    """The error for a call that does not match the signature; None if it matches, or if the function was entered.

    function: the called object; methods are bound.  qualname: its name as users write it.
    """
    if isinstance(error, MinflowError) or not isinstance(error, TypeError):
        return None
    code, trace = (
        getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None),
        error.__traceback__,
    )
    while trace is not None:
        if trace.tb_frame.f_code is code:
            return None
        trace = trace.tb_next
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*args, **kwargs)
        return None
    except TypeError:
        pass
    parameters = {n: p for n, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
    named = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    by_place = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    many = [f"*{n}" for n, p in parameters.items() if p.kind is p.VAR_POSITIONAL]
    hint = f"{qualname}({', '.join([*by_place, *many, *[f'{n}=...' for n in named if n not in by_place]])})"
    unknown = [k for k in kwargs if k not in named]
    passed = {k: short_text(kwargs[k]) for k in unknown[:3]}
    if unknown:
        what = f"{qualname} has no argument {unknown[0]!r}"
        meant = [n for n in ARGUMENT_SYNONYMS.get(unknown[0], ()) if n in named] or nearest(
            unknown[0], [n for n in named if n not in kwargs]
        )
        hint = did_you_mean(meant[:2]) or hint
    elif len(args) > len(by_place):
        what = (
            f"{qualname} takes {len(by_place) or 'no'} positional argument{'s' * (len(by_place) != 1)}, got {len(args)}"
        )
    elif twice := [n for n in by_place[: len(args)] if n in kwargs]:
        what, passed = (
            f"{qualname} got {twice[0]!r} twice, by position and by name",
            {twice[0]: short_text(kwargs[twice[0]])},
        )
    else:
        known = {*kwargs, *by_place[: len(args)]}
        missing = [n for n in named if parameters[n].default is inspect.Parameter.empty and n not in known]
        what = f"{qualname} also needs {' and '.join(missing)}"
    return CallError(what, values=passed, where=here(), hint=hint)


def short_text(value: Any) -> str:
    return str(value.spec) if safe_hasattr(value, "spec") else one_line(value)


# Namespaces whose functions call the `__torch_function__` of tensors, and what does not: "{}" is a constructor.
OVERRIDDEN = {"flow", "Tensor", "nn.functional", "nn.init", "linalg", "fft", "special", "autograd"}
NOT_OVERRIDDEN = set("{} tensor as_tensor asarray is_tensor is_storage typename save load compile".split())


def with_hints(function: FunctionType, qualname: str, module: str = "", method: bool = False) -> FunctionType:
    """Wrap a function so that its errors suggest the argument that was meant. module: its public module, for pickle."""
    space, _, name = qualname.rpartition(".")
    asks = space in OVERRIDDEN and name not in NOT_OVERRIDDEN

    def wrapper(*args, **kwargs):
        if SUBCLASSES and asks and (result := call_override(wrapper, args, kwargs)) is not NotImplemented:
            return result
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not isinstance(error, EXPLAINED_ERRORS) and special_method(error) is None:
                raise
            if (result := call_of_objects(wrapper, args, kwargs)) is not NotImplemented:
                return result
            words = translate(function, qualname.format(type(args[0]).__name__ if args else ""), args, kwargs, error)
            if words is None and not wants_out(qualname, kwargs):
                if (better := explained(error, wrapper, args, kwargs, qualname, method)) is not error:
                    raise better  # noqa: B904 (its cause is set)
                raise
        return run_into(qualname, wrapper, args, kwargs) if words is None else wrapper(*words[0], **words[1])

    functools.update_wrapper(wrapper, function)  # called a thousand times at import; `wraps` takes twice as long
    if module:
        return with_public_name(wrapper, qualname, module)
    rename(wrapper, function.__qualname__)
    return wrapper


def translate(
    function: Callable, qualname: str, args: tuple, kwargs: Mapping[str, Any], error: BaseException
) -> tuple[tuple, dict[str, Any]] | None:
    """`translate_call` with the names of the function's parameters."""
    known = [] if not kwargs or isinstance(error, MinflowError) else argument_names(function)
    return translate_call(qualname, args, kwargs, error, known)


def explained(
    error: Any, function: Callable, args: tuple, kwargs: Mapping, qualname: str, method: bool = False
) -> BaseException:
    """The error that a public call raises in place of `error`: a mismatch of the signature, or a wrong argument; the
    error itself if it has four parts already.
    """
    bound = function.__get__(args[0]) if method and args else function
    kind = type(args[0]) if method and args else None
    name = qualname if kind is None or kind.__module__.startswith("minflow.") else "{}"
    name = name.format(kind and kind.__name__)
    misfitting = signature_error(bound, args[method and bool(args) :], kwargs, name, error)
    if misfitting is not None:
        misfitting.__suppress_context__ = True
        return misfitting
    better = explain_error(error, function, args, kwargs, name)
    if better is error and isinstance(error, MinflowError):  # modules below `source_location` cannot add the line
        error.where = error.where or here()
    return better


def with_public_name(wrapper: Any, qualname: str, module: str) -> Any:
    wrapper.__module__ = module
    if qualname.startswith("flow."):
        PUBLIC[qualname.removeprefix("flow.")] = wrapper
    rename(wrapper, qualname.rpartition(".")[2])  # the public name, e.g. concat for cat
    return wrapper


def with_overloads(function: Callable, qualname: str, module: str) -> Callable:
    """`with_hints` for a public name with an overload, such as flow.sort: Blobs of a job, or a keyword that only the
    legacy function has, select the overload. Eager code pays one test.
    """
    building = BUILDING.get

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if SUBCLASSES and (result := call_override(wrapper, args, kwargs)) is not NotImplemented:
            return result
        if building() is None or (other := find_overload(qualname, args, kwargs)) is None:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if not isinstance(error, EXPLAINED_ERRORS) and special_method(error) is None:
                    raise
                if (result := call_of_objects(wrapper, args, kwargs)) is not NotImplemented:
                    return result
                other = find_overload(qualname, args, kwargs) if kwargs else None  # by a keyword that only it has
                words = translate(function, qualname, args, kwargs, error) if other is None else None
                if words is not None and not accepts(function, *words):
                    words = None
                if words is not None:
                    other, (args, kwargs) = wrapper, words
                elif other is None and wants_out(qualname, kwargs):
                    other = functools.partial(run_into, qualname, wrapper, args)
                    args, kwargs = (kwargs,), {}
                elif other is None:
                    if type(function) is FunctionType:  # ops raise four-part errors themselves
                        if (better := explained(error, function, args, kwargs, qualname)) is not error:
                            raise better  # noqa: B904 (its cause is set)
                    raise
        return other(*args, **kwargs)

    return with_public_name(wrapper, qualname, module)


def accepts(function: Callable, args: tuple, kwargs: Mapping[str, Any]) -> bool:
    """True if these arguments fit the signature."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def is_unwrapped(function: Any) -> bool:
    """True for a Python function that is not wrapped yet."""
    return type(function) is FunctionType and function.__code__.co_filename != __file__


# Methods that are too hot for a wrapper; the functions they call report wrong arguments.
UNWRAPPED = "reshape view transpose swapaxes swapdims permute unsqueeze mul matmul mul_ clone contiguous cpu".split()


def hint_methods(cls: Kind, names: Iterable[str] | None = None) -> Kind:
    """Wrap methods of a class by `with_hints`: those in `names`; without `names`, for Tensor, all public methods with
    arguments except UNWRAPPED.
    """
    for name, function in list(vars(cls).items()):
        if is_unwrapped(function) and (name[:1] != "_" and name not in UNWRAPPED if names is None else name in names):
            many = function.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
            if many or len(argument_names(function)) > 1:
                kind = "Tensor" if names is None else cls.__name__
                setattr(cls, name, with_hints(function, f"{kind}.{name}", method=True))
    return cls


def is_error(it: Any) -> bool:
    return isinstance(it, type) and issubclass(it, Exception)


def name_hints(
    namespace: str, names: dict[str, Any], at_first_use: Mapping[str, str] = NO_NAMES
) -> Callable[[str], Any]:
    """Wrap the public functions and classes of the module whose public name is `namespace`, so that errors suggest the
    argument that was meant. Returns its `__getattr__`, which does the same for names.

    names: its globals().  at_first_use: names that are imported on first use, see `missing_names`.
    """
    own, start = names["__name__"], namespace.removeprefix("flow.")
    mine = {name: it for name, it in names.items() if name[:1] != "_"}
    # True if the module itself defines functions or classes; error classes only claim to be in it
    at_home = any(getattr(it, "__module__", "") == own for it in mine.values() if not is_error(it))
    face = namespace in ("flow", "flow.linalg", "flow.autograd", "flow.cuda") or not at_home
    for name, it in mine.items():
        if f"{namespace}.{name}" in OVERLOADED:
            names[name] = with_overloads(it, f"{start}.{name}", own)
        elif (
            is_unwrapped(it)
            and (it.__name__ in (name, f"{start}_{name}") or mine.get(it.__name__) is it)
            and (face or it.__module__ == own)
        ):
            names[name] = with_hints(it, f"{start}.{name}", own)
        elif isinstance(it, type):
            hint_class(it, own, start)
    NAMESPACES[namespace] = names
    return missing_names(namespace, names, at_first_use)


def hint_class(it: type, own: str, start: str) -> None:
    """Wrap the `__init__` of a class, and those that it inherits from classes of the module `own`."""
    for kind in it.__mro__:
        if f"{kind.__module__}.".startswith(f"{own}.") and is_unwrapped(vars(kind).get("__init__")):
            kind.__init__ = with_hints(vars(kind)["__init__"], f"{start}.{{}}", method=True)  # type: ignore[misc]
