"""07.2 read_tags: what does a listing say?"""

import minflow as flow

from ...definition import Exercise

nn = flow.nn

exercise = Exercise(
    "07.2", "read_tags", kind="read", level="warm-up", answer="answers",
    question="What does the listing of a graph say?",
    hint='A dict with three entries: `"parameters"` is a count of lines, the two others are paths such as '
         '"model.name".',
    fact="A module without INPUT and OUTPUT was made and never ran. Its numbers stay as they were in the beginning. "
         "Lesson 08 looks for such modules.",
    sibling="A listing has the lines `MODULE:model.a`, `PARAMETER:model.a.weight`, `MODULE:model.b`, "
            "`INPUT:_model.b-input_0`, `BUFFER:model.b.mean`. There is 1 PARAMETER line. The BUFFER's path is "
            "model.b.mean, so model.b owns it. model.a has no INPUT line inside its brackets: it never ran.",
)
NAMES = ("first", "middle", "last", "stem", "body", "head", "up", "down", "left", "right")


class Drawn(nn.Module):
    """A chain of layers with a batch norm in it, and one more layer that never runs."""

    def __init__(self, rng):
        super().__init__()
        names = [str(name) for name in rng.permutation(NAMES)]
        norm, unused, layers = names[0], names[1], names[2:2 + int(rng.integers(2, 5))]
        self.chain = []
        norm_at, unused_at = int(rng.integers(1, len(layers))), int(rng.integers(1, len(layers) + 1))
        for place, name in enumerate(layers):
            if place == norm_at:
                setattr(self, norm, nn.BatchNorm1d(8))
                self.chain.append(norm)
            if place == unused_at:
                setattr(self, unused, nn.Linear(8, 8, bias=False))
            setattr(self, name, nn.Linear(8, 8, bias=bool(rng.integers(2))))
            self.chain.append(name)
        if unused_at == len(layers):
            setattr(self, unused, nn.Linear(8, 8, bias=False))

    def forward(self, x):
        for name in self.chain:
            x = getattr(self, name)(x)
        return x


class Predict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


@exercise.drawn
def drawn(rng):
    """A graph that was called once."""
    graph = Predict(Drawn(rng))
    graph(flow.ones(4, 8))
    return graph


def lines(graph, tag):
    """Paths in the lines with this tag."""
    return [line.strip()[1:].split(":")[1] for line in repr(graph).splitlines() if line.strip().startswith(f"({tag}:")]


@exercise.solution
def answers(graph):
    listing = repr(graph).splitlines()
    parameters = [line for line in listing if "(PARAMETER:" in line]
    buffer = next(line for line in listing if "(BUFFER:" in line)
    owner = buffer.split(":")[1].rpartition(".")[0]
    modules = [line.split(":")[1] for line in listing if "(MODULE:" in line]
    unused = next(path for path in modules if f"(INPUT:_{path}-input" not in repr(graph))
    return {"parameters": len(parameters), "buffer": owner, "no input": unused}


def strip_model_prefix(path):
    return str(path).removeprefix("model.")


@exercise.accept
def matches_answers(value, graph):
    right = answers(graph)
    return value["parameters"] == right["parameters"] and all(
        strip_model_prefix(value[key]) == strip_model_prefix(right[key]) for key in ("buffer", "no input"))


def numbers_in(graph):
    return sum(tensor.numel() for tensor in graph.model.parameters())


def replace_answer(key, other):
    """The right answers with one replaced by `other`."""
    return lambda graph: answers(graph) | {key: other(graph)}


def has_answer(key, *others):
    return lambda value, graph: any(value[key] == other(graph) for other in others)


def with_buffers(graph):
    return len(lines(graph, "PARAMETER")) + len(lines(graph, "BUFFER"))


def first_module(graph):
    return lines(graph, "MODULE")[1]


def without_unused(graph):
    """The count without the module that never ran."""
    unused = answers(graph)["no input"]
    return len([path for path in lines(graph, "PARAMETER") if not path.startswith(unused + ".")])


def is_count_of_modules(value, graph):
    modules = len(lines(graph, "MODULE"))
    return value["parameters"] in {modules, modules - 1} - {without_unused(graph)}


def is_module_with_input(value, graph):
    given, right = value["no input"], answers(graph)["no input"]
    return given in {"model", *lines(graph, "MODULE")} and strip_model_prefix(given) != strip_model_prefix(right)


def is_other_module(value, graph):
    return strip_model_prefix(value["buffer"]) in {strip_model_prefix(path) for path in lines(graph, "MODULE")} - {
        "model", strip_model_prefix(answers(graph)["buffer"])}


exercise.wrong_value("no dict", 7,
                     'Three answers in one dict: `{"parameters": 7, "buffer": "model.a", "no input": "model.b"}`.',
                     'The keys are "parameters", "buffer" and "no input".',
                     when=lambda value, graph: not isinstance(value, dict)
                     or set(value) != {"parameters", "buffer", "no input"})
exercise.wrong_value("modules counted", replace_answer("parameters", lambda graph: len(lines(graph, "MODULE")) - 1),
                     "You counted MODULE lines. The tag comes first in each line: look for PARAMETER.",
                     "A layer may have one PARAMETER line or two, so counting layers is not enough.",
                     when=is_count_of_modules)
exercise.wrong_value("a count in quotes", replace_answer("parameters", lambda graph: "8"),
                     "The count is a number: write it without quotes.",
                     'As in the example: `"parameters": 7`.',
                     when=lambda value, graph: isinstance(value["parameters"], str))
exercise.wrong_value("without the unused module", replace_answer("parameters", without_unused),
                     "Count *all* lines that begin with PARAMETER, also those of the module that never ran.",
                     "A module that never ran has parameters all the same.",
                     when=has_answer("parameters", without_unused))
exercise.wrong_value("numbers counted", replace_answer("parameters", numbers_in),
                     "That is how many numbers they hold. Count the *lines* that begin with PARAMETER.",
                     "A weight of 8 times 8 numbers is one line.", when=has_answer("parameters", numbers_in))
exercise.wrong_value("buffers as parameters", replace_answer("parameters", with_buffers),
                     "You counted the BUFFER lines too. No optimizer changes a buffer.",
                     "Count only the lines whose first word is PARAMETER.", when=has_answer("parameters", with_buffers))
exercise.wrong_value("the graph's name", replace_answer("buffer", lambda graph: "Predict_0"),
                     "That is the whole. The path in the BUFFER line tells which module in it keeps the buffer.",
                     "Take the path after BUFFER, and leave out its last part.",
                     when=lambda value, graph: str(value["buffer"]) in ("model", "Predict", "graph")
                     or str(value["buffer"]).startswith("Predict_"))
exercise.wrong_value("the buffer itself", replace_answer("buffer", lambda graph: lines(graph, "BUFFER")[0]),
                     "That is a buffer. Which module *owns* it? Leave out the last part of the path.",
                     "The part before the last dot is the module.",
                     when=lambda value, graph: any(str(value["buffer"]) in (path, path.rpartition(".")[2])
                                                   for path in lines(graph, "BUFFER")))
exercise.wrong_value("another owner", replace_answer("buffer", lambda graph: answers(graph)["no input"]),
                     "That module has no BUFFER line between its brackets. Find the BUFFER lines first.",
                     "The path in a BUFFER line begins with the path of its module.", when=is_other_module)
exercise.wrong_value("no module at the buffers", replace_answer("buffer", lambda graph: "BatchNorm1d"),
                     'The owner is one module, and its path is the answer, such as "model.one". Which MODULE line has '
                     'the '
                     "BUFFER lines between its brackets?",
                     "Take the path in a BUFFER line, and leave out its last part.",
                     when=lambda value, graph: strip_model_prefix(value["buffer"])
                     != strip_model_prefix(answers(graph)["buffer"]))
exercise.wrong_value("a module that ran", replace_answer("no input", first_module),
                     "That one ran: see the INPUT line inside its brackets. Which module has none?",
                     "Go from MODULE line to MODULE line. Below each that ran, the next line is its INPUT.",
                     when=is_module_with_input)
exercise.wrong_value("no module without input", replace_answer("no input", lambda graph: None),
                     'The path of a MODULE line is asked for, such as "model.two". Which of them has no INPUT line '
                     'between '
                     "its brackets?",
                     "Below each MODULE line that ran, the next line is its INPUT.",
                     when=lambda value, graph: strip_model_prefix(value["no input"])
                     != strip_model_prefix(answers(graph)["no input"]))
exercise.wrong_value("another count", replace_answer("parameters", lambda graph: 0),
                     "Count again the lines that begin with PARAMETER. A layer has one or two.",
                     "Do not forget the module that never ran: its parameters are listed too.",
                     when=lambda value, graph: value["parameters"] != answers(graph)["parameters"])
