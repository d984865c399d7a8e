"""The rooms and their arrows: who may import whom, what may be imported when, and how much code there is.

All imports are walked with `ast`, those inside functions too.
"""

import ast
import functools
import graphlib
import re
import statistics
import sys

import pytest

from tests.sources import MINFLOW as FILES, TOP, WIDGETS, code_lines, name_of, statements, text_of, tree_of

# A file of core may import only what precedes it; files of one entry with a star may import each other.
CORE = [
    "base.errors",
    "messages.invocation",
    "base.optional",
    "base.locks",
    "base.interrupts",
    "context",
    "base.events",
    "base.dtypes",
    "memory",
    "base.display",
    "base.legacy_dispatch",
    "base.out",
    "base.signatures",
    "base.gc_pause",
    "base.locks",
    "host.*",
    "files.temporary",
    "files.atomic",
    "symbolic_shapes",
    "spec",
    "ir",
    "mode",
    "source_location",
    "backend",
    "spans",
    "streams",
    "base.placement",
    "sharding",
    "deferred",
    "kernels",
    "launch_all",
    "infer",
    "overrides",
    "dispatch",
    "in_flight",
    "scalar",
    "op",
    "messages.wrong_arguments",
    "messages.symbolic_reads",
    "messages.unsupported",
    "messages.renamed",
    "messages.suggestions",
    "messages.no_gradient",
    "messages.training_warnings",
    "random",
    "ops.examples",
    "ops.*",
    "functionalize",
    "grad.modes",
    "grad.hooks",
    "autograd",
    "grad.function",
    "grad.registered",
    "grad.gradcheck",
    "messages.printing",
    "arrays",
    "functions.*",
    "methods.*",
    "tensor",
    "in_place_functions",
    "functions.creation",
    "grad.gradients",
    "grad.functional",
    "grad.saved_tensors",
    "grad.replay",
    "grad.composites",
    "eager",
    "trace",
    "subclasses",
]
# Room -> what it may import besides itself.
ROOMS = {
    "core": [],
    "compiler": ["core"],
    "distributed": ["core"],
    "views": [
        "core.backend",
        "core.base.errors",
        "core.base.locks",
        "core.base.optional",
        "core.base.events",
        "core.spec",
        "core.ir",
        "core.base.display",
        "core.files.atomic",
        "core.source_location",
        "compiler.passes.decomposition",
    ],
    "diagnosis": ["core", "compiler", "views"],
    "compat.namespaces": ["core", "distributed"],
    "platforms.numpy": ["core"],
    "platforms.cupy": ["core", "compiler.fusion", "compiler.target"],
    "platforms.compiled": [
        "core.base.errors",
        "core.base.locks",
        "core.base.optional",
        "core.files.atomic",
        "core.ir",
        "core.kernels",
        "core.messages.invocation",
        "core.memory",
        "core.op",
        "core.scalar",
        "core.ops",
        "core.spec",
        "core.source_location",
        "core.host.scratch",
        "compiler.executor",
        "compiler.fusion",
        "compiler.passes",
        "compiler.target",
        "compiler.uses",
        "compat.namespaces.threads",
    ],
    "platforms": ["core", "platforms.compiled.policy", "platforms.cupy"],
    "platforms.targets": ["core", "compiler.target", "platforms.compiled.policy", "platforms.cupy.fusion"],
    "nn": [
        "core",
        "distributed",
        "compiler",
        "views",
        "diagnosis",
        "platforms.targets",
        "platforms.compiled.roofline_peaks",
        "platforms.compiled.runtime.threads",
        "platforms.compiled.runtime.recorder",
    ],
    "optim": ["core", "nn"],
    "io": ["core", "nn"],
    "data": ["core", "diagnosis", "io"],
    "utils": ["core", "distributed"],
    "vision": ["core", "nn", "io", "data", "utils"],
    "models": ["core", "nn"],
    "job": [
        "core",
        "distributed",
        "compiler",
        "views",
        "diagnosis",
        "platforms.targets",
        "nn",
        "optim",
        "io",
        "data",
        "utils",
        "vision",
    ],
    "introspection": ["core", "compiler", "distributed", "views", "diagnosis", "platforms.compiled", "nn", "job"],
    "deploy": ["core", "compiler", "nn", "optim", "io", "job", "introspection.graph.listing"],
    "onnx": ["core", "compiler", "views", "nn", "io", "deploy", "introspection.graph.explore"],
    "distributions": ["core"],
    "compat.functional_api": ["core", "nn", "job", "linalg"],
    "compat": ["core", "nn", "distributed", "func", "compat.namespaces"],
    "distributed.launch": ["core", "distributed", "compat.names"],
    # Public namespaces of one screen each: `flow.amp`, `flow.autograd`, ...
    "amp": ["core", "optim"],
    "autograd": ["core"],
    "import_aliases": ["core"],
    "testing": ["core"],
    "cuda": ["core"],
    "env": ["core", "distributed"],
    "library": ["core"],
    "typing": ["core", "job"],
    "linalg": ["core"],
    "sbp": ["core"],
    "func": ["core"],
    "special": ["core", "nn"],
    "fft": ["core"],
    "sparse": ["core"],
    "signal": ["core"],
    "profiler": ["core", "nn"],
    # and, as learners write, `import minflow as flow`
    "exercises": [
        "core.base",
        "core.base.errors",
        "core.base.locks",
        "core.base.optional",
        "core.ir",
        "core.kernels",
        "core.messages.invocation",
        "core.messages.printing",
        "core.mode",
        "core.source_location",
        "compiler.passes",
        "platforms.compiled.config",
        "diagnosis",
        "job.queue.stream",
        "job.session",
        "views",
        "course",
        "io.atomic",
        "io.files",
    ],
    "cli": [
        "course",
        "run_notebook",
        "doctor",
        "exercises",
        "platforms.compiled",
        "distributed",
        "diagnosis.name_suggestions",
        "core.base.errors",
        "core.messages.invocation",
        "core.base.optional",
    ],
    "course": ["io.atomic", "io.files"],
    "run_notebook": ["core.messages.invocation"],
    "doctor": [
        "course",
        "platforms.compiled.compile_cache",
        "platforms.cupy.driver",
        "core.backend",
        "distributed",
        "core.base.errors",
        "core.messages.invocation",
        "core.base.optional",
    ],
    "__main__": ["cli"],
}
# Introspection is above what it shows. These modules alone attach it to public classes and functions.
ATTACHES_INTROSPECTION = {"minflow.nn.graph", "minflow.nn.roofline", "minflow.job.function"}
# These speak of the package as a whole (its version, its notebooks): they may import `minflow` itself.
OUTSIDE = {"exercises", "cli", "run_notebook", "doctor", "__main__"}
FAST = "minflow.platforms.numpy"  # only the package as a whole imports it: nothing depends on a fast kernel
# Modules that import NumPy, and why. Beside them, the engine asks the Backend of an array for its namespace.
# The rooms of NUMPY_ROOMS (kernels of the CPU, and data and pictures on the host) may import it too.
NUMPY = {
    "core.base.dtypes": "the dtypes of arrays on every device",
    "core.host": "the arrays of the host, by name",
    "core.host.blas": "the threads of its BLAS",
    "core.host.float_warnings": "its floating-point warnings",
    "core.host.scratch": "scratch memory for its kernels",
    "core.source_location": "skips the frames of its functions",
    "io.other_formats": "reads files of NumPy by its own functions",
    "nn.graph.side_effects": "reports draws of np.random while a graph is built",
    "nn.graph.undo": "restores np.random after a trace without side effects",
    "testing": "make_tensor draws from np.random, which its users seed",
    "utils.data.workers": "seeds the generator of NumPy in worker processes",
}
NUMPY_ROOMS = ("platforms", "views", "data", "vision", "exercises")
NUMPY_MOST = 25  # uses of its names in the modules of NUMPY
# Files that a student reads to follow `2 + 3` from Tensor to kernel, and `graph(x)` to the last call of its plan.
MECHANISM = [
    "core.mode",
    "core.source_location",
    "core.infer",
    "core.dispatch",
    "core.kernels",
    "core.op",
    "core.ir",
    "core.spec",
    "core.eager",
    "core.trace",
    "core.autograd",
    "core.functionalize",
    "core.tensor",
    "core.random",
    "compiler.plan",
    "compiler.buffer_assignment",
    "compiler.uses",
    "compiler.executor",
    "compiler.arena",
    "compiler.passes",
]
# The most lines of code, without the examples that ops are tested with: of the mechanism, and of all that minflow
# imports and its widgets, without exercises. `python -m tests.test_layering` prints the lines of each room.
MECHANISM_MOST = 4_770
PACKAGE_MOST = 98_800
# Rooms with parts that are counted apart.
PARTS = (
    "core.ops",
    "core.functions",
    "core.methods",
    "job.legacy",
    "onnx.converters",
    "exercises.lessons",
    "exercises.exam.bank",
)
FILES_MOST = 12  # Python files in a folder, `__init__` left out
MANY_FILES = {  # folders of more, and why
    "core/ops": "one file for each family of ops",
    "core/methods": "one file for each family of methods",
    "core/functions": "one file for each family of functions, the same families",
    "exercises": "the checker, one step from an answer to its card a file",
    "exercises/exam/bank": "the variants of one lesson a file",
    ".": "public namespaces of one screen each, and the command line",
    "core": "the mechanism of an op, one idea a file, in the order of CORE",
    "nn": "what modules are made of, one idea a file",
    "nn/graph": "a call of a graph, one step a file",
    "nn/functional": "one file for each family of layers",
    "nn/modules": "one file for each family of layers, the same families",
    "onnx/converters": "one file for each family of ops",
    "platforms/compiled/kernels": "one family of kernels a file, over the few that write instructions",
    "job/legacy": "one file for each family of names of that generation",
    "distributions": "one file for each family of distributions, and what they share",
}


def module_of(file):
    parts = file.relative_to(TOP).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports(file):
    """(module, line, whether inside a function) for each import; `from a import b` gives a.b if that is a module."""
    return tuple(walked(file))


def names_of_types(tree):
    """The imports under `if TYPE_CHECKING`, which only annotations use: they are not dependencies."""
    blocks = [node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    return {node for block in blocks for node in block.body}


def walked(file):
    package = module_of(file) if file.name == "__init__.py" else module_of(file).rpartition(".")[0]
    typed = names_of_types(tree_of(file))
    for node, inside in statements(tree_of(file)):
        if node in typed:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, inside
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")
                base = ".".join([*above[: len(above) - node.level + 1], *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{base}.{alias.name}"
                yield (name if is_module(name) else base), node.lineno, inside


@functools.cache
def is_module(name):
    path = TOP.joinpath(*name.split("."))
    return name.startswith("minflow") and (path.with_suffix(".py").is_file() or (path / "__init__.py").is_file())


def place(name):
    """The position of a module of core in its order, that of the longest entry for it; -1 for core itself."""
    inner = name.removeprefix("minflow.core").lstrip(".")
    if not inner:
        return -1
    fitting = [
        entry
        for entry in CORE
        if inner == entry.removesuffix(".*") or (entry.endswith("*") and inner.startswith(entry[:-1]))
    ]
    assert fitting, f"{name} has no place in the order of core: {CORE}"
    return CORE.index(max(fitting, key=len))


def room_of(name):
    """The package that a module belongs to: the longest entry of ROOMS for it, else its first folder."""
    inner = name.split(".")[1:]
    prefixes = [".".join(inner[:n]) for n in range(len(inner), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in ROOMS), prefixes[-1] if prefixes else "")


def forbidden(me, it):
    """Why module `me` may not import module `it` of minflow; None if it may."""
    mine, its = room_of(me), it.split(".")[1:]
    if not its:
        return None if mine in OUTSIDE else "a room never imports the package as a whole"
    if mine not in ROOMS:
        return f"{mine} is no room: add it to the table"
    if it.startswith(FAST) and not me.startswith(FAST):
        return "nothing depends on a fast kernel"
    if room_of(it) == mine == "core":
        a, b = place(me), place(it)
        return None if b < a or (a == b and CORE[a].endswith("*")) else f"{CORE[b]} stands after {CORE[a]}"
    if room_of(it) == mine:
        return None
    if its[0] == "introspection" and me in ATTACHES_INTROSPECTION:
        return None
    inner = ".".join(its)
    if any(inner == allowed or inner.startswith(f"{allowed}.") for allowed in ROOMS[mine]):
        return None
    return f"{mine} may import only {', '.join(ROOMS[mine]) or 'nothing of minflow'}"


def test_arrows_point_up():
    wrong = []
    for file in FILES:
        if (me := module_of(file)) == "minflow":
            continue
        for it, line, _ in imports(file):
            why = None
            if it.split(".")[0] == "minflow":
                why = forbidden(me, it)
            elif it.split(".")[0] == "minflow_widgets" and me.split(".")[1] not in OUTSIDE:
                why = "the arrow points the other way"
            if why:
                wrong.append(f"{name_of(file)}:{line} imports {it}: {why}")
    assert not wrong, "\n".join(wrong)


def test_what_runs_a_graph_knows_nothing_that_looks_at_it():
    """nn.Graph is assembled in `nn/graph/__init__.py`, from the class that runs and the mixin that shows."""
    looking = ("minflow.views", "minflow.introspection")
    running = [file for file in (TOP / "minflow/nn/graph").glob("*.py") if file.name != "__init__.py"]
    assert len(running) > 8
    assert not [(file.name, it) for file in running for it, _, _ in imports(file) if it.startswith(looking)]


def test_what_runs_a_job_knows_no_legacy_name_and_no_optimizer():
    """`job/__init__.py` alone names them, and imports them on first use."""
    known = {}  # part of job, "" for the files beside them -> what it imports
    for file in (TOP / "minflow/job").rglob("*.py"):
        part = "" if file.parent.name == "job" else file.relative_to(TOP / "minflow/job").parts[0]
        if (part, file.name) != ("", "__init__.py"):
            known.setdefault(part, set()).update(f"{it}." for it, _, _ in imports(file))
    assert len(list((TOP / "minflow/job").glob("*.py"))) <= 13 and set(known) >= {"", "legacy", "train", "queue"}
    apart = (*(f"minflow.job.{name}." for name in ("legacy", "train", "saving")), "minflow.introspection.job.")
    graphs = [it for it in known["queue"] if it.startswith(("minflow.job.", "minflow.nn."))]
    assert not [it for it in known[""] if it.startswith(apart)]
    assert not [it for it in graphs if not it.startswith("minflow.job.queue.")]
    assert not [it for it in known["legacy"] if it.startswith("minflow.job.train.")]


def test_arrows_are_judged():
    assert forbidden("minflow.core.spec", "minflow.core.op") and not forbidden("minflow.core.op", "minflow.core.spec")
    assert forbidden("minflow.core.op", "minflow.nn") and not forbidden("minflow.nn.modules.linear", "minflow.core.op")
    assert forbidden("minflow.views.text.listing", "minflow.core.op")
    assert not forbidden("minflow.views.text.listing", "minflow.core.ir")
    assert forbidden("minflow.nn.modules.linear", "minflow.io.checkpoint") and forbidden("minflow.optim.sgd", "minflow")
    assert not forbidden("minflow.core.ops.reduce", "minflow.core.ops.shape")
    assert forbidden("minflow.core.kernels", "minflow.core.ops.conv")
    assert not forbidden(f"{FAST}.conv", "minflow.core.ops.conv") and not forbidden(f"{FAST}.conv", f"{FAST}.reduce")
    assert forbidden("minflow.core.ops.conv", f"{FAST}.conv") and forbidden("minflow.nn.modules.conv", f"{FAST}.conv")


def test_no_circles():
    """Imports inside functions count: they put off the circle, and the reader still has to walk it."""
    edges = {module_of(file): {it for it, _, _ in imports(file) if is_module(it)} - {module_of(file)} for file in FILES}
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_a_folder_is_a_table_of_contents():
    folders = {}
    for file in FILES + WIDGETS:
        if file.name != "__init__.py":
            folder = file.parent.relative_to(TOP / ("widgets" if file in WIDGETS else "minflow")).as_posix()
            folders[folder] = folders.get(folder, 0) + 1
    crowded = {folder for folder, count in folders.items() if count > FILES_MOST}
    assert crowded == set(MANY_FILES), f"at most {FILES_MOST} files, or a reason in MANY_FILES"


COMPILED = "minflow.platforms.compiled"
LATE = {
    "minflow.run_notebook",  # imported by `minflow run` only
    *[
        f"{COMPILED}.{name}"
        for name in ("compile_cache", "runtime.recorder", "runtime.tasks", "runtime.task_scheduler")
    ],
    "minflow.platforms.cupy.backend",  # imported if CuPy is there
    "minflow.compat.einops",  # where a program imports einops
    "minflow.compat.einops_backend",
    "minflow.utils.tensorboard",
}
LATE_FOLDERS = (f"{COMPILED}.codegen.", f"{COMPILED}.kernels.")  # where kernels are used


def test_only_numpy_at_import():
    """Everything else comes at first use, inside the function that needs it."""
    allowed = sys.stdlib_module_names | {"numpy", "minflow"}
    wrong = [
        f"{name_of(file)}:{line} imports {it}"
        for file in FILES
        if module_of(file) not in LATE and not module_of(file).startswith(LATE_FOLDERS)
        for it, line, inner in imports(file)
        if not inner and it.split(".")[0] not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def uses_of_numpy(tree):
    """How often a module names something of NumPy; None if it does not import it."""
    names = {}  # the name of each import -> what it imports
    for node, _ in statements(tree):
        if isinstance(node, ast.Import):
            names |= {(alias.asname or alias.name).split(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {alias.asname or alias.name: node.module for alias in node.names}
    mine = {name for name, module in names.items() if module.split(".")[0] == "numpy"}
    return sum(isinstance(node, ast.Name) and node.id in mine for node in ast.walk(tree)) if mine else None


def test_numpy_is_imported_where_the_table_says():
    uses = {}
    for file in FILES:
        name, count = module_of(file).removeprefix("minflow").lstrip("."), uses_of_numpy(tree_of(file))
        if count is not None and name.split(".")[0] not in NUMPY_ROOMS:
            uses[name] = count
    assert set(uses) == set(NUMPY) and all(NUMPY.values())
    assert sum(uses.values()) <= NUMPY_MOST, sorted(uses.items(), key=lambda item: -item[1])[:8]


def test_uses_of_numpy_are_counted():
    text = "def f(x):\n  import numpy as np\n  from numpy import dot as d\n  return np.pi + np.e + d(x, pi)"
    assert uses_of_numpy(ast.parse(text)) == 3
    assert uses_of_numpy(ast.parse("import numpy.random")) == 0 and uses_of_numpy(ast.parse("np.pi")) is None


def test_no_star_imports():
    stars = [
        f"{name_of(file)}:{node.lineno}"
        for file in FILES + WIDGETS
        for node, _ in statements(tree_of(file))
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    ]
    assert not stars


def test_all_statements_are_found():
    """Those inside functions are known, since they run later than the import."""
    tree = ast.parse(
        "import a\nif a:\n  import b\ntry:\n  import c\nexcept E:\n  import d\nelse:\n  import e\n"
        "finally:\n  import f\nclass C:\n  import g\n  def m(self): import H\nmatch a:\n  case 1:\n"
        "    import i\nfor x in a: pass\nelse:\n  async def n():\n    with x: import J\n"
    )
    found = [(node.names[0].name, inside) for node, inside in statements(tree) if isinstance(node, ast.Import)]
    assert sorted(found) == [(name, name.isupper()) for name in "HJabcdefgi"]


def test_code_lines_are_counted():
    text = (
        '"""Module."""\n\n# why\nimport os  # here\n\n'
        'def f(x):\n    """Say\n    more."""\n    return (x +\n            1)\nT = """a\n\n# b"""\n'
    )
    assert code_lines(text) == {4, 6, 9, 10, 11, 12, 13}


DEFINE = {"define", "define_rule"}  # functions that define an op


def own_lines(file):
    """The numbers of a file's lines of code, without examples of ops: data for tests, which no program runs."""
    text = text_of(file)
    lines = code_lines(text, tree_of(file))
    for node in ast.walk(tree_of(file)) if "examples=" in text else ():
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in DEFINE:
            for word in node.keywords:
                if word.arg == "examples":
                    lines.difference_update(range(word.value.lineno, word.value.end_lineno + 1))
    return lines


def part_of(name):
    """The part of the code in which a module counts: the mechanism, a room, or one of PARTS."""
    inner = name.removeprefix("minflow").lstrip(".")
    if name.startswith("minflow_widgets"):
        return "widgets"
    if any(inner == entry or inner.startswith(f"{entry}.") for entry in MECHANISM):
        return "mechanism"
    apart = [part for part in PARTS if inner == part or inner.startswith(f"{part}.")]
    return apart[0] if apart else room_of(name) or "__init__"


def counted_name(file):
    return module_of(file).removeprefix("widgets.")


@functools.cache
def lines_of_parts():
    """Part -> {module: lines of code}, without the examples that ops are tested with."""
    parts = {}
    for file in FILES + WIDGETS:
        parts.setdefault(part_of(counted_name(file)), {})[counted_name(file)] = len(own_lines(file))
    return parts


def counted_lines():
    """Part -> lines of code, most first."""
    return dict(sorted(((part, sum(x.values())) for part, x in lines_of_parts().items()), key=lambda item: -item[1]))


def package_lines():
    """Lines of code of all parts but the exercises."""
    return sum([lines for part, lines in counted_lines().items() if not part.startswith("exercises")])


def test_every_file_is_counted():
    rooms = {"mechanism", "widgets", "__init__", *PARTS, *ROOMS}
    assert set(counted_lines()) <= rooms and not [part for part in PARTS if part not in counted_lines()]


def test_mechanism_is_found():
    """A file of the mechanism that is renamed or split would otherwise stop being counted."""
    names = {module_of(file) for file in FILES}
    assert all(f"minflow.{name}" in names for name in MECHANISM)


def test_budget():
    assert counted_lines()["mechanism"] <= MECHANISM_MOST, f"largest: {largest_files('mechanism')}"
    assert package_lines() <= PACKAGE_MOST, f"{package_lines()}; largest: {largest_files()}"


def largest_files(part=None):
    """The longest modules of a part, by default of the package, with their lines of code."""
    known = [item for name, x in lines_of_parts().items() if part in (None, name) for item in x.items()]
    return sorted(known, key=lambda item: -item[1])[:8]


def block_lines():
    """Op -> lines of its block: its definition without the examples, and its kernel."""
    sizes = {}
    for file in FILES:
        if not module_of(file).startswith("minflow.core.ops."):
            continue
        code, mine = own_lines(file), {}
        for node in tree_of(file).body:
            decorators = getattr(node, "decorator_list", [])
            calls = {
                call.func.id: call
                for call in [*decorators, getattr(node, "value", None)]
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
            }
            count = len(code & set(range(min([node.lineno, *(d.lineno for d in decorators)]), node.end_lineno + 1)))
            if calls.keys() & DEFINE and isinstance(node, ast.Assign):
                mine[node.targets[0].id] = count
            elif "kernel" in calls and isinstance(calls["kernel"].args[0], ast.Name):
                op = calls["kernel"].args[0].id
                mine[op] = mine.get(op, 0) + count
        sizes.update(mine)
    return sizes


def test_ops_are_short():
    sizes = block_lines()
    assert len(sizes) > 80  # those that loops define (comparisons, roundings) are shorter still
    assert statistics.median(sizes.values()) < 14
    assert not {op: n for op, n in sizes.items() if n > 60}


def test_readme_tells_the_totals():
    """How much there is to read, in thousands of lines of code, to a twentieth. Exercises are questions and answers."""
    parts = counted_lines()
    questions = parts["exercises.lessons"] + parts["exercises.exam.bank"]
    whole = sum(len(code_lines(text_of(file), tree_of(file))) for file in FILES + WIDGETS) - questions
    said = re.search(
        r"mechanism: ([\d.]+) thousand lines of code.*?"
        r"definitions take ([\d.]+) thousand more.*?it is ([\d.]+) thousand lines",
        (TOP / "README.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert said, "README.md no longer says how much there is to read"
    true = [parts["mechanism"] / 1000, parts["core.ops"] / 1000, whole / 1000]
    assert [float(number) for number in said.groups()] == pytest.approx(true, rel=0.05)


if __name__ == "__main__":
    for part, lines in counted_lines().items():
        print(f"{lines:8,}  {part}")
    print(f"{package_lines():8,}  the package, without exercises; {PACKAGE_MOST:,} at most")
