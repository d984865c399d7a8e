"""Every public name is documented: a signature with argument names, a docstring, a name, its module.

`help`, Shift+Tab in a notebook and editors show these. The names are read from the package, so new ones are included.
"""

import inspect
from types import ModuleType

import pytest

from minflow.sbp import sbp
from tests.test_completion import FOREIGN, MODULES

SPREAD = (["args", "options"], ["args", "kwargs"], ["inputs", "attrs"])
# these forward any call: the arguments are those of another function, or of the user's
ANY = {"flow.nn.Identity", "flow.jit.fork", "flow.nn.utils.skip_init", "flow.nn.parallel.DistributedDataParallel",
       "flow.utils.data.StackDataset", "minflow_widgets.explore", "flow.typing.Numpy", "flow.typing.ListNumpy",
       "flow.typing.ListListNumpy", "flow.kernels", "flow.overrides.handle_torch_function",
       *[f"flow.signal.windows.{name}" for name in """bartlett blackman cosine exponential gaussian general_cosine
         general_hamming hamming hann kaiser nuttall""".split()]}  # fmt: skip
ANY_METHODS = {"forward", "backward", "apply", "build", "to", "compile", "step", "compare", "compare_eager", "submit"}
ANY_METHODS |= {"rule"}  # of an optimizer: subclasses name what it receives
ANY_METHODS |= {"submit"}  # of a graph: those of build
NAMES = {
    f"{room}.{name}": getattr(module, name)
    for room, module in MODULES.items()
    for name in dir(module)
    if f"{room}.{name}" not in FOREIGN
}
OURS = {kind for it in NAMES.values() if isinstance(it, type) for kind in it.__mro__
        if kind.__module__.startswith("minflow")}  # fmt: skip


def signature(it):
    """Return the signature; None for classes of Python itself, such as errors."""
    try:
        return inspect.signature(it)
    except ValueError:
        assert isinstance(it, type) and issubclass(it, Exception)
        return inspect.Signature()


def spread(it) -> bool:
    return [p.name for p in signature(it).parameters.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)] in SPREAD


def first_line(doc) -> str:
    return (doc or "").strip().partition("\n")[0].strip()


@pytest.mark.parametrize("room", MODULES)
def test_public_names_are_documented(room):
    named = {name: it for name, it in NAMES.items() if name.rpartition(".")[0] == room}
    assert first_line(MODULES[room].__doc__)
    called = {n: it for n, it in named.items() if callable(it) and not isinstance(it, ModuleType | sbp)}
    assert not [n for n, it in called.items() if not first_line(vars(it).get("__doc__") if isinstance(it, type) else
                it.__doc__)], "no docstring"  # fmt: skip
    assert not [n for n, it in called.items() if n not in ANY and spread(it)], "arguments without names"
    assert not [n for n, it in called.items() if not getattr(it, "__name__", "")], "no __name__"
    homes = {n: getattr(it, "__module__", None) or "" for n, it in called.items()}
    assert not [n for n, home in homes.items() if home.partition(".")[0] not in ("minflow", "minflow_widgets")], homes


def documented(kind: type, name: str) -> bool:
    """True if the member, or the same member of a base class, has a docstring."""
    members = [vars(base)[name] for base in kind.__mro__ if name in vars(base)]
    return any(first_line(getattr(it, "__func__", it).__doc__) for it in members)


def test_methods_and_properties_are_documented():
    silent, nameless = [], []
    for kind in OURS:
        for name, it in vars(kind).items():
            it, path = getattr(it, "__func__", it), f"{kind.__module__}.{kind.__qualname__}.{name}"
            called = inspect.isroutine(it) and callable(it) and name[0] != "_"  # a RenamedHook is not callable
            if (called or (name[0] != "_" and isinstance(it, property))) and not documented(kind, name):
                silent.append(path)
            if called and name not in ANY_METHODS and spread(it):
                nameless.append(path)
    assert not silent, "no docstring: " + " ".join(sorted(silent))
    assert not nameless, "arguments without names: " + " ".join(sorted(nameless))
