"""Names that were meant: the nearest to one that is not there, and to an argument that a function does not take.

Nothing here runs while a program is right, but for one frame around a public function: the call of a Python function
whose signature does not fit raises before any line of it runs, so only who calls it can say more.
Read next: `core/source_location.py` for the four parts of an error.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from ..base.errors import CallError, MinflowError, MissingNameError
from ..base.out import run_into, wants_out
from ..base.signatures import argument_names
from ..base.legacy_dispatch import BUILDING, SHARED, other_meaning
from .renamed import in_our_words
from .unsupported import reason
from .wrong_arguments import has, spoken as spoken_words
from ..dispatch import RAW, special_method
from ..source_location import here, one_line

# What other libraries, and other functions of this one, call it.
OTHERS = {name: tuple(ours.split()) for name, ours in {
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
NONE: Mapping[str, str] = {}
EXPLAINED = (*RAW, MinflowError, RecursionError)
LONGEST = 100  # letters of a name that is looked for
SPACES: dict[str, Mapping[str, Any]] = {}  # "flow.optim" -> the names that are there
AT_FIRST_USE: dict[str, Mapping[str, str]] = {}  # "minflow.optim" -> its names that are imported at their first use
# job/ fills these two: "flow.nn" -> names that are imported at their first use; what says, for a room and a name that
# it had before, what takes its place
LATER: dict[str, Mapping[str, Any]] = {}
REPLACEMENTS: list[Callable[[str, str], str | None]] = []
OPENED: list[Callable[[str, str], Any]] = []  # what gives the module of a room by another address: `../../addresses.py`


def near(name: str, known: Iterable[str]) -> list[str]:
    """Those of `known` that `name` may be a slip of the keyboard for, or is the beginning of; the nearest first.

    Letters' case and underscores count for nothing, a number at the end is never a slip.
    """
    asked = plain(name)
    letters, result = set(asked), []
    if len(name) > LONGEST:  # nobody types that, and the distance of long texts takes long
        return result
    for other in known:
        it = plain(other)
        if other[:1] == "_" or other == name:
            continue
        if asked == it:
            result.append((0, other))
        elif asked.rstrip("0123456789") == it.rstrip("0123456789") and asked[-1:].isdigit():
            continue
        elif (
            abs(len(asked) - len(it)) <= (most := 1 if min(len(asked), len(it)) < 6 else 2)
            and len(letters.symmetric_difference(it)) <= 2 * most  # a slip changes two letters at most; much quicker
            and (slips := distance(asked, it)) <= most
        ):
            result.append((slips, other))
        elif len(asked) >= 4 and it.startswith(asked):
            result.append((2, other))
    result.sort(key=lambda pair: (pair[0], pair[1][-1:].isdigit() != name[-1:].isdigit(), distance(name, pair[1])))
    return [other for slips, other in result if slips == result[0][0]][:3]


def plain(name: str) -> str:
    return name.replace("_", "").lower()


def distance(a: str, b: str) -> int:
    """How many letters are to be put in, left out, changed, or swapped with the next (Damerau 1964)."""
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
    """ "did you mean flow.relu or flow.selu?", or "" where there are none."""
    result = [prefix + name for name in names]
    return f"did you mean {' or '.join(result)}?" if result else ""


# ---- names of a module -----------------------------------------------------------------------------------------------


def no_name(room: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for `room.name`, such as flow.optim.Sdg: the nearest names there, or the other room that has the
    name."""
    if name[:1] == "_":  # asked by Python, IPython, copy, pickle: nobody reads the text
        return AttributeError(f"module {room.replace('flow', 'minflow', 1)!r} has no attribute {name!r}")
    for replacement in REPLACEMENTS:
        if hint := replacement(room, name):
            return MissingNameError(f"{room} has no {name}", where=here(), hint=hint)
    if hint := reason(f"{room}.{name}".partition(".")[2]):
        return MissingNameError(f"{room} has no {name}", where=here(), hint=hint)
    above = SPACES.get(room, {})
    if (
        "__path__" in above
        and name.isidentifier()
        and len(name) <= LONGEST
        and importlib.util.find_spec(f"{above['__name__']}.{name}")
    ):
        return MissingNameError(
            f"{room}.{name} is a module that is not imported yet",
            where=here(),
            hint=f"from {above['__name__']} import {name}",
        )
    open_rooms()
    elsewhere = [
        space
        for space, names in SPACES.items()
        if space != room and name in {*names, *AT_FIRST_USE.get(names["__name__"], ())}
    ]
    hint = (
        did_you_mean(elsewhere[:2], "").replace("?", f".{name}?").replace(" or ", f".{name} or ")
        if elsewhere
        else did_you_mean(speaking(near(name, known), SPACES.get(room, {})), f"{room}.")
        or (f"dir({room}) lists what is there")
    )
    return MissingNameError(f"{room} has no {name}", where=here(), hint=hint)


def open_rooms() -> None:
    """Import the rooms that are imported at their first use, so that their names are known."""
    for above, later in list(AT_FIRST_USE.items()):
        for name, place in later.items():
            if place == f"{name}.":
                importlib.import_module(f"{above}.{name}")


def speaking(found: list[str], names: Mapping[str, Any]) -> list[str]:
    """Without a file that has the name of a class that was found too, as sgd and SGD."""
    files = {n for n in found if isinstance(names.get(n), ModuleType)}
    return [
        n for n in found if n not in files or not any(plain(n) == plain(other) for other in found if other not in files)
    ]


def of_object(error: BaseException) -> str:
    """What to try where an object of a class of ours, such as a Tensor, has no such attribute and Python itself said
    so.

    A `__getattr__` of Tensor would say it at once, and make every `x.array` three times as slow.
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
    return did_you_mean(near(name, dir(owner)))


def public(names: Mapping[str, Any]) -> Iterable[str]:
    """The names that a module gives away: its `__all__`; or all that it imports to give away, with no module but those
    that do so themselves."""
    return names.get("__all__") or [
        n for n, it in names.items() if n[:1] != "_" and (not isinstance(it, ModuleType) or "__dir__" in vars(it))
    ]


def by_module(table: Mapping[str, str]) -> dict[str, str]:
    """{"run": "start Run"} as {"start": "run.start", "Run": "run.Run"}."""
    return {name: f"{module}.{name}" for module, names in table.items() for name in names.split()}


def missing_names(room: str, names: dict[str, Any], at_first_use: Mapping[str, str] = NONE) -> Callable[[str], Any]:
    """A `__getattr__` for a module that is known as `room`; its `__dir__`, what completion offers, is set. names: its
    globals().  at_first_use: name -> "module.name" below it, imported when it is asked for; "module." is the module
    itself. See `by_module`."""
    AT_FIRST_USE[names["__name__"]] = at_first_use

    def listed() -> list[str]:
        return sorted({*public(names), *at_first_use})

    names.setdefault("__dir__", listed)

    def __getattr__(name: str) -> Any:
        if path := at_first_use.get(name):
            home, _, attribute = path.rpartition(".")
            it = importlib.import_module(f"{names['__name__']}.{home}")
            if attribute:
                names[name] = it = getattr(it, attribute)
                hint_class(it, names["__name__"], room.removeprefix("flow."))
            return it
        later = LATER.get(room, {})
        if name in later:
            return later[name]
        for opened in OPENED:
            if (found := opened(room, name)) is not None:
                return found
        raise no_name(room, name, [*names.get("__dir__", listed)(), *later])

    return __getattr__


# ---- arguments of a function -----------------------------------------------------------------------------------------


def misfit(
    function: Callable, args: tuple, kwargs: Mapping[str, Any], spoken: str, error: Exception
) -> CallError | None:
    """The error for a call that the signature does not allow; None where it does, or where the call had begun.

    function: as it is called, a method bound.  spoken: how a learner writes it.
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
    hint = f"{spoken}({', '.join([*by_place, *many, *[f'{n}=...' for n in named if n not in by_place]])})"
    unknown = [k for k in kwargs if k not in named]
    passed = {k: short(kwargs[k]) for k in unknown[:3]}
    if unknown:
        what = f"{spoken} has no argument {unknown[0]!r}"
        meant = [n for n in OTHERS.get(unknown[0], ()) if n in named] or near(
            unknown[0], [n for n in named if n not in kwargs]
        )
        hint = did_you_mean(meant[:2]) or hint
    elif len(args) > len(by_place):
        what = (
            f"{spoken} takes {len(by_place) or 'no'} argument{'s' * (len(by_place) != 1)} by place, {len(args)} "
            f"were given"
        )
    elif twice := [n for n in by_place[: len(args)] if n in kwargs]:
        what, passed = (
            f"{spoken} is given {twice[0]!r} twice, by its place and by its name",
            {twice[0]: short(kwargs[twice[0]])},
        )
    else:
        known = {*kwargs, *by_place[: len(args)]}
        missing = [n for n in named if parameters[n].default is inspect.Parameter.empty and n not in known]
        what = f"{spoken} also needs {' and '.join(missing)}"
    return CallError(what, values=passed, where=here(), hint=hint)


def short(value: Any) -> str:
    return str(value.spec) if has(value, "spec") else one_line(value)


def with_hints(function: FunctionType, spoken: str, module: str = "", method: bool = False) -> FunctionType:
    """`function`, which says to a caller which argument was meant. module: where it stands by its name, for pickle."""

    def calling(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not isinstance(error, EXPLAINED) and special_method(error) is None:
                raise
            words = in_our_words(spoken.format(type(args[0]).__name__ if args else ""), args, kwargs, error)
            if words is None and not wants_out(spoken, kwargs):
                if (better := explained(error, function, args, kwargs, spoken, method)) is not error:
                    raise better  # noqa: B904 (its cause is set)
                raise
        return run_into(spoken, calling, args, kwargs) if words is None else calling(*words[0], **words[1])

    functools.update_wrapper(calling, function)  # a thousand of them at import: `wraps` takes twice as long
    return named(calling, spoken, module) if module else calling  # type: ignore[return-value]


def explained(
    error: Any, function: Callable, args: tuple, kwargs: Mapping, spoken: str, method: bool = False
) -> BaseException:
    """What a public call raises in the place of an error: that it does not fit the signature, or which argument was
    wrong. The error itself where it says that already."""
    bound = function.__get__(args[0]) if method and args else function
    kind = type(args[0]) if method and args else None
    name = spoken if kind is None or kind.__module__.startswith("minflow.") else "{}"
    name = name.format(kind and kind.__name__)
    misfitting = misfit(bound, args[method and bool(args) :], kwargs, name, error)
    if misfitting is not None:
        misfitting.__suppress_context__ = True
        return misfitting
    better = spoken_words(error, function, args, kwargs, name)
    if better is error and isinstance(error, MinflowError):  # what knows of dtypes and devices knows no lines
        error.where = error.where or here()
    return better


def named(calling: Any, spoken: str, module: str) -> Any:
    calling.__module__ = module
    calling.__name__ = calling.__qualname__ = spoken.rpartition(".")[2]  # concat is cat by another name
    return calling


def choosing(function: Callable, spoken: str, module: str) -> Callable:
    """As `with_hints`, for a public name of two meanings, such as flow.sort: the Blobs of a job, or a keyword that only
    the other function has, choose the other. Eager code pays for one test."""
    building = BUILDING.get

    @functools.wraps(function)
    def calling(*args, **kwargs):
        if building() is None or (other := other_meaning(spoken, args, kwargs)) is None:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if not isinstance(error, EXPLAINED) and special_method(error) is None:
                    raise
                words = in_our_words(spoken, args, kwargs, error)
                if words is not None and not takes(function, *words):  # with a keyword of the other meaning
                    words = None
                other = other_meaning(spoken, args, kwargs) if kwargs and words is None else None
                if words is not None:
                    other, (args, kwargs) = calling, words
                elif other is None and wants_out(spoken, kwargs):
                    other = functools.partial(run_into, spoken, calling, args)
                    args, kwargs = (kwargs,), {}
                elif other is None:
                    if type(function) is FunctionType:  # an op says what is wrong itself
                        if (better := explained(error, function, args, kwargs, spoken)) is not error:
                            raise better  # noqa: B904 (its cause is set)
                    raise
        return other(*args, **kwargs)

    return named(calling, spoken, module)


def takes(function: Callable, args: tuple, kwargs: Mapping[str, Any]) -> bool:
    """True if these arguments fit the signature."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def ours(function: Any) -> bool:
    """A Python function that is not wrapped yet."""
    return type(function) is FunctionType and function.__code__.co_filename != __file__


# Small and often called: what they call itself says what is wrong with an argument.
QUICK = "reshape view transpose swapaxes swapdims permute unsqueeze mul matmul mul_ clone contiguous cpu".split()


def hint_methods(cls: Kind, names: Iterable[str] | None = None) -> Kind:
    """Put `with_hints` around the methods of these names; of a part of Tensor around those that have arguments, except
    operators and a few others, which stay quick."""
    for name, function in list(vars(cls).items()):
        if ours(function) and (name[:1] != "_" and name not in QUICK if names is None else name in names):
            many = function.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
            if many or len(argument_names(function)) > 1:
                kind = "Tensor" if names is None else cls.__name__
                setattr(cls, name, with_hints(function, f"{kind}.{name}", method=True))
    return cls


def is_error(it: Any) -> bool:
    return isinstance(it, type) and issubclass(it, Exception)


def name_hints(room: str, names: dict[str, Any], at_first_use: Mapping[str, str] = NONE) -> Callable[[str], Any]:
    """Wrap the public functions and classes of the module known as `room`, so that an error names the argument that was
    meant. Returns its `__getattr__`, which does the same for names. names: its globals().  at_first_use: classes that
    not every program needs: see `missing_names`."""
    own, start = names["__name__"], room.removeprefix("flow.")
    mine = {name: it for name, it in names.items() if name[:1] != "_"}
    # of names that stand elsewhere; errors only say that they stand here
    at_home = any(getattr(it, "__module__", "") == own for it in mine.values() if not is_error(it))
    face = room in ("flow", "flow.linalg", "flow.autograd") or not at_home
    for name, it in mine.items():
        if f"{room}.{name}" in SHARED:
            names[name] = choosing(it, f"{start}.{name}", own)
        elif (
            ours(it)
            and (it.__name__ in (name, f"{start}_{name}") or mine.get(it.__name__) is it)
            and (face or it.__module__ == own)
        ):
            names[name] = with_hints(it, f"{start}.{name}", own)
        elif isinstance(it, type):
            hint_class(it, own, start)
    SPACES[room] = names
    return missing_names(room, names, at_first_use)


def hint_class(it: type, own: str, start: str) -> None:
    """Wrap its `__init__`, and those that it inherits from classes of the module `own`."""
    for kind in it.__mro__:
        if f"{kind.__module__}.".startswith(f"{own}.") and ours(vars(kind).get("__init__")):
            kind.__init__ = with_hints(vars(kind)["__init__"], f"{start}.{{}}", method=True)  # type: ignore[misc]
