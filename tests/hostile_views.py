"""Thirty-four hostile names, and a table of views that show them. A new view needs one row to be tested with all names.

`VIEWS[what](name)` returns the bundles (MIME type -> data) that a notebook would receive if a module, an op, a job or a
file had that name. tests/views/test_hostile_names.py checks them without a browser, tests/browser/test_hostile.py with
one, where this file runs in the notebook kernel. Does not depend on pytest.
"""

import contextlib
import importlib.util
import io
import linecache
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.diagnosis.card import card_bundle
from minflow.diagnosis.card_record import card_of, warning_record
from minflow.diagnosis.frames import full_traceback
from minflow.views.renderers.debug_lines import Line
from minflow.views.renderers.debug_tree import debug_bundle
from minflow.views.show import picture
from minflow.views.text.listing import clean

BAD = "window.__pwned=1"
NAMES = {
    "script": f"<script>{BAD}</script>",
    "img": f'"><img src=x onerror="{BAD}">',
    "svg": f"<svg onload={BAD}>",
    "closing tags": f"</div></pre></td></table></details></svg></text><b onclick={BAD}>b</b>",
    "raw text elements": f"</title></style></textarea></script><script>{BAD}</script>",
    "single quote": f"' onload='{BAD}",
    "double quote": f'" autofocus tabindex=1 onfocus="{BAD}',
    "backtick": f"`onload={BAD}`",
    "entity": f"&lt;script&gt;{BAD}&lt;/script&gt;",
    "numeric entity": f"&#60;img src=x onerror={BAD}&#62;&#x0;",
    "ampersands": "&amp;amp; &nbsp;&copy;&&;",
    "javascript url": f'<a href="javascript:{BAD}">click</a>',
    "data url": f'<iframe src="data:text/html,<script>parent.{BAD[7:]}</script>"></iframe>',
    "svg namespace": f'<svg xmlns="http://www.w3.org/2000/svg"><foreignObject><script>{BAD}</script></foreignObject></svg>',
    "math namespace": f"<math><mtext><table><mglyph><style><img src=x onerror={BAD}>",
    "css": "x;background:url(http://outside.example/x);position:fixed;inset:0",
    "style": '</style><style>*{display:none}@import "http://outside.example/x.css"</style>',
    "comment": f"--><!--[if IE]><script>{BAD}</script><![endif]-->",
    "cdata": f"]]><script>{BAD}</script><![CDATA[",
    "xml": '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>&e;',
    "control characters": "a\x00b\x1b[31mred\x07\r\n\tc\x85d\u2028e",
    "right to left": "\u202egnp.exe\u2066\u200b\u200f\ufeff",
    "very long": "long" * 1250,
    "dot": f'"]; evil [label="x" URL="javascript:{BAD}"]; a -> b {{|}} \\N \\l \\',
    "dot html": "<<b>bold</b><img src='http://outside.example/x'/>>",
    "markdown": f"![x](http://outside.example/x.png) [a](javascript:{BAD}) **b** `c` | d |",
    "templates": f"{{{{constructor.constructor('{BAD}')()}}}} ${{{BAD}}} <%= 1 %> {{0}} {{x!r}} %s %(x)s",
    "mathtext": "$\\frac{x} \\undefined{y}$ $x$",
    "json": '\\u003cscript\\u003e", "injected": true, "x": "</script>',
    "path": "../../<b>/etc/passwd%00<i>",
    "surrogates": "\ud800\U0001f600\ufffe\udfff",
    "prototype": "__proto__",
    "method": "constructor",
    "other letters": "名前 імʼя שם",
}


def harmless(name: str) -> str:
    """Return letters that take the same space as `name` on display; separators of names and lines are kept."""
    return "".join(c if c in " ./_\n" else "n" * len(clean(c)) for c in name)


def word(name: str) -> str:
    """Return the part of `name` that can be a member's name: a dot is refused."""
    return name.replace(".", "_")


def class_name(name: str) -> str:
    """Return the part of `name` that Python accepts for a class or function: no null characters, no lone surrogates."""
    return "".join("n" * len(clean(c)) if c == "\0" or 0xD800 <= ord(c) < 0xE000 else c for c in name)


def shows(text: str, name: str) -> bool:
    """True if the text contains the beginning of the name, sanitized or as a Python literal.

    The name of a class or file may be partly altered.
    """
    text = re.sub(r"\s", "", text)
    forms = [
        clean(name),
        clean(class_name(name)),
        clean(word(name)),
        repr(name)[1:-1],
        clean(class_name(name)).replace("/", "\\"),
    ]
    return any(re.sub(r"\s", "", form)[:5] in text for form in forms)


# ---- objects with the name
# ---------------------------------------------------------------------------------------------


class Block(nn.Module):
    """A module in which every text is the name: members, parameter, buffer, class, extra_repr."""

    def __init__(self, name: str, size: int = 4):
        super().__init__()
        self.told = name
        self.add_module(word(name), nn.Linear(4, 4))
        self.add_module("in" + word(name), nn.Sequential(nn.Linear(4, size), nn.ReLU()))
        self.register_parameter("w" + word(name), nn.Parameter(flow.ones(4)))
        self.register_buffer("b" + word(name), flow.ones(4))

    def extra_repr(self) -> str:
        return self.told

    def forward(self, x):
        for module in self._modules.values():
            x = module(x)
        return x * self._parameters["w" + word(self.told)] + self._buffers["b" + word(self.told)]


def block(name: str) -> Block:
    flow.manual_seed(0)
    return type(class_name(name), (Block,), {})(name)


def train_graph(name: str, called: bool = True):
    """A training step whose graph class, members and inputs have the name."""
    model, member = block(name), word(name).replace("__", "")

    def __init__(self):
        super(cls, self).__init__()
        setattr(self, member, model)
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

    def build(self, x):
        loss = model(x).square().mean()
        loss.backward()
        return loss

    cls = type(class_name(name), (nn.Graph,), {"__init__": __init__, "build": build})
    graph = cls()
    if called:
        graph(flow.ones(2, 4))
    return graph


def job(name: str, result=tp.Numpy, run: bool = True):
    """A job function with the name, whose ops have it too; a variable of that name is refused."""
    flow.clear_default_session()

    def function(x: tp.Numpy.Placeholder((3, 4))) -> result:
        h = flow.layers.dense(x, 5, name="in")
        w = flow.get_variable("v", (5, 2), initializer=flow.zeros_initializer())
        return flow.nn.relu(flow.matmul(h, w, name=name), name="r" + name)

    function.__name__ = class_name(name)
    made = flow.global_function(type="predict")(function)
    if run:
        made(np.ones((3, 4), "f"))
    return made


def error_in(program, *args) -> Exception:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            program(*args)
    except Exception as error:
        return error
    raise AssertionError("it was to fail")


def card(error: Exception) -> list[dict[str, str]]:
    found = card_of(error)
    if found is not None:
        return [card_bundle(found, full_traceback(error))]
    return [{"text/plain": f"{type(error).__name__}: {error}"}]


class Raises(nn.Module):
    """A module that fails with an error whose text is the name."""

    def __init__(self, name: str):
        super().__init__()
        self.told = name
        self.add_module(word(name), Thrower(name))

    def forward(self, x):
        return self._modules[word(self.told)](x.relu())


class Thrower(nn.Module):
    def __init__(self, name: str):
        super().__init__()
        self.told = name

    def forward(self, x):
        raise RuntimeError(self.told)


FILE_PROGRAM = """
def program(x):
    y = x.relu()
    return y @ y
"""


def from_file(name: str):
    """Return a function from a file and a folder of that name."""
    part = class_name(name).replace("/", "\\")
    path = f"/{part}/{part}.py"
    namespace: dict = {}
    exec(compile(FILE_PROGRAM, path, "exec"), namespace)
    linecache.cache[path] = (len(FILE_PROGRAM), None, FILE_PROGRAM.splitlines(True), path)
    return namespace["program"]


def labeled(name: str):
    x = flow.ones(3, 4, requires_grad=True)
    return x, (x * 2.0).tanh().sum()


# ---- views of them
# -----------------------------------------------------------------------------------------------------


def of(*things) -> list[dict[str, str]]:
    return [thing._repr_mimebundle_() for thing in things]


def texts(*things) -> list[dict[str, str]]:
    return [{"text/plain": thing if isinstance(thing, str) else repr(thing)} for thing in things]


def view_module(name):
    model = block(name)
    return [*of(picture(model), model, flow.summary(model, (2, 4)))]


def view_tape(name):
    x, y = labeled(name)
    model = block(name)
    out = model(flow.ones(2, 4)).sum()
    out.backward(retain_graph=True)
    named = picture(y, names={name: x, "y": y}), picture(y, values=True, names={name: x})
    return of(*named, picture(out, names={}), picture(out, values=True))


def view_tape_memory(name):
    x, y = labeled(name)
    return of(
        picture(y, memory=True, names={name: x}), picture(block(name)(flow.ones(2, 4)).sum(), memory=True, names={})
    )


def view_tensor(name):
    parameter = nn.Parameter(flow.arange(64, dtype=flow.float32).reshape(8, 8))
    parameter._label = name
    return [
        *of(parameter, picture(parameter, numbers=True)),
        *of(picture(parameter.reshape(2, 4, 8), images=True, labels=[name, 7])),
    ]


def view_graph(name):
    graph = train_graph(name)
    return [*of(picture(graph), graph, picture(graph, boxes=100))]


def function_named(name):
    def function():
        return flow.ones(3) + 1

    function.__name__ = name
    return function


def view_graph_reports(name):
    graph = train_graph(name)
    graph.profile(1)
    graph(flow.ones(2, 4))
    graph(flow.ones(3, 4))
    for part in graph._last.parts:  # times determine the order; they must be the same for the harmless name
        part.plan.seconds = [1e-6 * (i + 1) for i in range(len(part.plan.calls))]
    calls = [(call.name, call.phase, float(i), i + 1.0) for i, call in enumerate(graph.plan.record.calls)]
    graph._last.recorded = 1, calls, [(2, 0, 5.25, 5.75)], []
    reports = [
        graph.tree(),
        graph.stages(),
        graph.changes(0),
        graph.lanes(),
        graph.memory(),
        graph.timeline(),
        graph.frozen(),
        graph.why(),
        graph.plan,
        flow.roofline(graph),
        flow.kernels(function_named(name)),
        graph.threads(),
    ]
    return [*of(*reports), *texts(repr(graph))]


def view_graph_error(name):
    def build(self, x):
        return self.model(x)

    def __init__(self):
        super(cls, self).__init__()
        self.model = block(name)

    cls = type(class_name(name), (nn.Graph,), {"__init__": __init__, "build": build})
    return card(error_in(cls(), flow.ones(2, 5)))


def view_module_error(name):
    return card(error_in(block(name), flow.ones(2, 5))) + card(
        error_in(nn.Sequential(Block(name, 3), Block(name)), flow.ones(2, 4))
    )


def view_error_text(name):
    return card(error_in(Raises(name), flow.ones(2, 4)))


def view_warning(name):
    parts = flow.MinflowError(f"{name}: a likely mistake", values={name: name}, where=f"in {name}", hint=name)
    return [card_bundle(warning_record(parts, __file__, 1))]


def view_file_name(name):
    program = from_file(name)
    y = program(flow.ones(4, 4, requires_grad=True))
    return card(error_in(program, flow.ones(2, 3))) + of(picture(y, names={}), picture(y, memory=True, names={}))


def view_job(name):
    return of(job(name), picture(job(name)))


def view_job_error(name):
    flow.clear_default_session()

    def function(x: tp.Numpy.Placeholder((3, 4))) -> tp.Numpy:
        h = flow.nn.relu(flow.layers.dense(x, 5, name="in"), name=name)
        return flow.matmul(h, flow.get_variable("w", (6, 2), initializer=flow.zeros_initializer()), name=name)

    function.__name__ = class_name(name)
    return card(error_in(flow.global_function(type="predict")(function), np.ones((3, 4), "f")))


def view_variable_error(name):
    flow.clear_default_session()

    def function(x: tp.Numpy.Placeholder((3, 4))) -> tp.Numpy:
        with flow.scope.namespace(name):
            return flow.matmul(x, flow.get_variable(name + "?", (4, 2), initializer=flow.zeros_initializer()))

    return card(error_in(flow.global_function(type="predict")(function), np.ones((3, 4), "f")))


def view_timeline(name):
    made = job(name, run=False)
    for _ in range(4):
        made(np.ones((3, 4), "f"))
    line = flow.timeline(steps=3)
    return of(line, line.compare(flow.timeline(steps=3)))


def view_timeline_kept(name):
    from minflow_widgets import watch_timeline

    made = job(name, run=False)
    live = watch_timeline()
    for _ in range(4):
        made(np.ones((3, 4), "f"))
    return of(live)


def view_curve(name):
    from minflow_widgets import LossCurve
    from minflow_widgets.curve import loss_curve as module

    chosen, module.frontends.choose_frontend = module.frontends.choose_frontend, lambda *kinds: NullFrontEnd()
    try:
        with LossCurve() as curve:
            for step in range(5):
                curve.add(step, **{name: 1 / (step + 1), "v" + name: step})
    finally:
        module.frontends.choose_frontend = chosen
    return [curve.bundle()]


def view_runs(name):
    """Several runs in one picture, named by the learner; one of them diverged."""
    from minflow_widgets import LossCurve, compare
    from minflow_widgets.curve import loss_curve as module

    chosen, module.frontends.choose_frontend = module.frontends.choose_frontend, lambda *kinds: NullFrontEnd()
    try:
        curves = [LossCurve(name=name, config={name: lr}, epoch=2) for lr in (0.1, 0.01)]
        for curve, last in zip(curves, (0.5, float("inf"))):
            for step, loss in enumerate((1.0, 0.75, 0.5, last), 1):
                curve.add(step, **{"loss": loss, "v" + name: step})
            curve.finish()
    finally:
        module.frontends.choose_frontend = chosen
    return [compare(*curves).bundle(), curves[0].bundle()]


class NullFrontEnd:
    """A front end that displays nothing: the view is requested by hand."""

    def update(self, curve):
        """Display nothing."""

    finish = update


def view_debug(name):
    """The lines of a build: as text, and as the tree that a notebook shows instead."""
    graph, said = train_graph(name, called=False), []
    graph.debug(3)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        graph(flow.ones(2, 4))
    for line in out.getvalue().splitlines():
        said.append(Line((len(line) - len(line.lstrip())) // 2, line.strip()))
    return [*texts(out.getvalue()), debug_bundle(graph.name, said)]


def view_compared(name):
    graph = train_graph(name)
    other = type("Other", (nn.Sequential,), {})(nn.Linear(4, 4))
    compared = graph.compare(train_graph(name), flow.ones(2, 4)), predict(name).compare(other, flow.ones(2, 4))
    return [*of(graph.compare_eager(flow.ones(2, 4)), *compared)]


def predict(name: str):
    """A graph without training."""
    model = block(name)
    cls = type(class_name(name), (nn.Graph,), {"build": lambda self, x: model(x)})
    return cls()


def session(name: str):
    from minflow_widgets import explore

    return explore(train_graph(name), flow.ones(2, 4))


def view_explorer(name):
    """The saved output, and what the page receives, with all boxes open."""
    from minflow_widgets.explorer.explorer import compact

    shown = session(name)
    first = of(shown)
    for _ in range(3):
        shut = [item for item in shown.session.tree.items if item.kind in ("module", "fold")]
        shown.session.opened.update(item.key for item in shut)
        shown.session.update_layout()
    shown.session.act({"do": "search", "text": (re.findall("[a-z]{2}", name) or ["n"])[0]})
    return [*first, *of(shown), *texts(compact(shown.session.picture()), compact(shown.session.detail()))]


def view_job_explorer(name):
    from minflow_widgets import explore

    return of(explore(job(name), np.ones((3, 4), "f")))


def view_onnx(name):
    """An ONNX file in which every text is the name: nodes, values, ops, sizes, attributes, functions, producer."""
    import onnx
    from onnx import helper

    name = class_name(name)  # texts in a file are UTF-8
    shape, weight = ["n" + name, 4], onnx.numpy_helper.from_array(np.ones((4, 4), "f"), "w" + name)
    own = helper.make_function(
        name, "f" + name, ["x"], ["y"], [helper.make_node("Neg", ["x"], ["y"])], [helper.make_opsetid("", 18)]
    )
    inner = helper.make_graph(
        [helper.make_node(name, ["a" + name], ["b"])], name, [], [helper.make_tensor_value_info("b", 1, shape)]
    )
    nodes = [
        helper.make_node("MatMul", ["x" + name, "w" + name], ["a" + name], name=f"{name}/in{name}/{name}"),
        helper.make_node(name, ["a" + name], ["c"], name=f"{name}/{name}", domain="d" + name, text=name),
        helper.make_node("If", ["c"], ["d"], then_branch=inner, else_branch=inner),
        helper.make_node("f" + name, ["d"], ["y" + name], domain=name),
    ]
    graph = helper.make_graph(
        nodes, name, *[[helper.make_tensor_value_info(x + name, 1, shape)] for x in "xy"], [weight]
    )
    model = helper.make_model(
        graph,
        functions=[own],
        producer_name=name,
        producer_version=name,
        opset_imports=[helper.make_opsetid(domain, 18 if not domain else 1) for domain in ("", name, "d" + name)],
    )
    with tempfile.TemporaryDirectory() as folder:
        (file := Path(folder) / f"{word(name)[:20].replace('/', '_')}.onnx").write_bytes(model.SerializeToString())
        view = flow.onnx.show(file)
    closed = view._repr_mimebundle_()
    return [closed, *of(view.open(view.session.tree.root.children[1].name))]


def view_figures(name):
    """Figures by matplotlib, which reads $...$ as a formula."""
    if importlib.util.find_spec("matplotlib") is None:
        return texts(name)
    from matplotlib.figure import Figure
    from minflow_widgets import figures

    names = [name, "b" + name]
    told = (
        figures.confusion_text([0, 1, 1], [0, 1, 0], names=names),
        figures.activations_text(block(name), flow.ones(2, 4)),
        figures.attention_text([[1, 0], [0.5, 0.5]], names),
        figures.plane_text(lambda x: x, [[0, 1], [1, 0]], [0, 1], names=names),
        figures.Landscape(lambda w, b: w * b, (0, 1), (0, 1), names=names).text(),
    )
    # drawing takes time, and a harmless name contains nothing that could be interpreted
    if re.search(r"[^n ./_\n]", name):
        figure = Figure()
        figures.confusion_matrix([0, 1, 1], [0, 1, 0], names=names, ax=figure.add_subplot(2, 2, 1))
        figures.History({name: [1.0, 2.0, 3.0], "b" + name: [2.0, 1.0, 1.0]}).plot(ax=figure.add_subplot(2, 2, 2))
        figures.activations(block(name), flow.ones(2, 4), ax=figure.add_subplot(2, 2, 3))
        figures.attention([[1, 0], [0.5, 0.5]], names, ax=figure.add_subplot(2, 2, 4))
        figure.draw_without_rendering()
    return texts(*told)


VIEWS = {
    "module": view_module,
    "tape": view_tape,
    "memory of a tape": view_tape_memory,
    "tensor": view_tensor,
    "graph": view_graph,
    "reports of a graph": view_graph_reports,
    "error in a graph": view_graph_error,
    "error in a module": view_module_error,
    "text of an error": view_error_text,
    "warning": view_warning,
    "file name": view_file_name,
    "job": view_job,
    "error in a job": view_job_error,
    "name of a variable": view_variable_error,
    "timeline": view_timeline,
    "timeline that was live": view_timeline_kept,
    "curve": view_curve,
    "runs": view_runs,
    "debug": view_debug,
    "comparison": view_compared,
    "explorer": view_explorer,
    "explorer of a job": view_job_explorer,
    "ONNX file": view_onnx,
    "figures": view_figures,
}


def bundles(what: str, name: str) -> list[dict[str, str]]:
    """Return the bundles that a notebook receives for that view of that name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return VIEWS[what](name)


# ---- live, in a notebook kernel
# ----------------------------------------------------------------------------------------


def live_curve(name):
    """Leave a curve running."""
    from minflow_widgets import LossCurve

    curve = LossCurve()
    for step in range(5):
        curve.add(step, **{name: 1 / (step + 1), "v" + name: step})
    return curve


def live_timeline(name):
    from minflow_widgets import watch_timeline

    made = job(name, run=False)
    live = watch_timeline(made)
    live.start()
    for _ in range(3):
        made(np.ones((3, 4), "f"))
    return live


def live_explorer(name):
    from IPython.display import display

    shown = session(name)
    display(shown)
    return shown


LIVE = {"curve": live_curve, "timeline": live_timeline, "explorer": live_explorer}
