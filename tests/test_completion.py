"""Completion offers, in every public module, the names that programs use and none that the module imports."""

import json
from types import ModuleType

import minflow_widgets
import pytest
from IPython.core import completer
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import minflow as flow
from minflow.diagnosis import frames, ipython
from tests.processes import output
from tests.sources import TOP


def submodules(module: ModuleType, name: str) -> dict[str, ModuleType]:
    """Return every module that is reachable from `module` by listed names, by the name that a program uses."""
    found = {name: module}
    for part in dir(module):
        if isinstance(inner := getattr(module, part), ModuleType):
            found |= submodules(inner, f"{name}.{part}")
    return found


MODULES = submodules(flow, "flow") | {"minflow_widgets": minflow_widgets}
FOREIGN = {f"flow.typing.{name}" for name in ("Dict", "List", "Tuple")}  # OneFlow exports them there
FOREIGN |= {f"flow.{name}" for name in ("e", "inf", "nan", "newaxis", "pi")}  # numbers


def test_every_public_module_is_reached():
    assert len(MODULES) >= 39, sorted(MODULES)
    assert {"flow.nn.functional", "flow.optim.lr_scheduler", "flow.utils.data", "flow.vision.transforms.functional",
            "flow.backends", "flow.distributed", "flow.jit", "flow.nn.parallel", "flow.layers",
            "flow.optimizer.loss_scale", "flow.typing"} <= set(MODULES)  # fmt: skip
    assert not {"flow.core", "flow.job", "flow.views", "flow.nn.modules", "flow.nn.module"} & set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_public_module_lists_only_its_own_names(name):
    assert dir(MODULES[name]) == sorted(set(dir(MODULES[name])))
    for member in dir(MODULES[name]):
        value = getattr(MODULES[name], member)
        home = getattr(value, "__module__", None) or type(value).__module__
        ours = isinstance(value, ModuleType) or home.partition(".")[0] in ("minflow", "minflow_widgets", "types")
        assert member[0] != "_" and (ours or f"{name}.{member}" in FOREIGN), (member, home)


@pytest.mark.parametrize("use_jedi", [True, False])  # without jedi both are IPython's own completer
def test_tab_completion_offers_these_names(use_jedi, monkeypatch):
    shell = InteractiveShell(user_ns={"flow": flow, "nn": flow.nn, "minflow_widgets": minflow_widgets})
    shell.Completer.use_jedi = use_jedi
    monkeypatch.setattr(completer, "MATCHES_LIMIT", 500)  # IPython's default
    monkeypatch.setattr(frames, "ipython", lambda: shell)
    ipython.install()
    for name, module in [*MODULES.items(), ("nn", flow.nn)]:
        with provisionalcompleter():
            found = shell.Completer.completions(f"{name}.", len(name) + 1)
            offered = {item.text.rpartition(".")[2] for item in found}
        assert offered == set(dir(module)), name


@pytest.mark.parametrize(
    "program",
    ["flow.randn(2, 3)", "flow.softmax(x, 0).sum(0)", "(x @ x.T)", "x[0]", "nn.Linear(2, 3)(x)", "flow.sort(x).values"],
)
def test_results_of_calls_are_completed(program):
    jedi = pytest.importorskip("jedi")
    names = {"flow": flow, "nn": flow.nn, "x": flow.ones(2, 2)}
    offered = {it.name: it for it in jedi.Interpreter(f"{program}.re", [names]).complete()}
    assert {"reshape", "relu", "requires_grad", "repeat"} <= set(offered)
    signature = offered["reshape"].get_signatures()[0].to_string()
    assert signature.startswith("reshape(*sizes: int | Sequence[int]") and signature.endswith("-> Tensor")


def test_the_notebook_completes_a_result_with_its_signature():
    pytest.importorskip("jedi")
    shell = InteractiveShell(user_ns={"flow": flow})
    shell.Completer.use_jedi = True
    text = "flow.randn(2, 3).resh"
    with provisionalcompleter():
        found = {it.text: it for it in shell.Completer.completions(text, len(text))}
    assert set(found) == {"reshape", "reshape_as"}
    assert found["reshape"].type == "function" and found["reshape"].signature.endswith("-> Tensor")


def test_importing_aliases_lists_nothing_new():
    program = """
import contextlib, importlib, json
from tests.test_completion import MODULES
from minflow.core.base.errors import MissingModuleError
from minflow.import_aliases import ALIASES, MERGED
before = {name: dir(module) for name, module in MODULES.items()}
for alias in (*ALIASES, *MERGED):
    with contextlib.suppress(MissingModuleError):
        importlib.import_module(f"minflow.{alias}")
changed = [(name, *{*dir(module)} - {*before[name]}) for name, module in MODULES.items() if dir(module) != before[name]]
print(json.dumps([len(before), changed]))
"""
    count, changed = json.loads(output("-c", program, cwd=TOP))
    assert count >= 39 and not changed
