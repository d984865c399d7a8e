"""08.3 first_part: of many operations that differ, one is the cause."""

import minflow as flow

from ...definition import Exercise

nn = flow.nn

exercise = Exercise(
    "08.3", "first_part", kind="read", level="core", answer="name",
    question="Which operation is the cause?",
    hint="The rows are in the order in which they run. A difference of 0 means: equal in all bits. Which is the first "
         "that is not?",
    fact="All later ones differ because their inputs are wrong already. In a network of a thousand operations the "
         "first difference is often the only line that you must read.",
    sibling="A message is whispered from one to the next: Ada, Ben, Cleo, Dan. Ada and Ben heard *red hat*, Cleo *red "
            "cat*, Dan *dead cat*. Dan is farthest from the truth, but most of that is not his mistake. The first who "
            "differs is Cleo: ask her what she heard.",
)


class Small(nn.Module):
    """Network with 8 inputs and 4 outputs, and three settings that can be wrong."""

    def __init__(self, slope=0.01, scale=0.5, most=0.5):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)
        self.bend, self.scale, self.most = nn.LeakyReLU(slope), scale, most

    def forward(self, x):
        h = self.bend(self.first(x)) * self.scale
        h = self.second(h).clamp(-self.most, self.most)
        return self.last(10 * h) * 10


class Predict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


@exercise.drawn
def drawn(rng):
    """(mine, theirs, x): a graph, a module with the same parameters, and inputs on which they differ."""
    setting = [{"slope": 0.3}, {"scale": 0.6}, {"most": 0.1}][int(rng.integers(3))]
    generator = flow.Generator().manual_seed(int(rng.integers(1000)))
    theirs, mine = Small(), Small(**setting)
    with flow.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(0.3 * flow.randn(parameter.shape, generator=generator))
    mine.load_state_dict(theirs.state_dict())
    return Predict(mine), theirs, flow.randn(6, 8, generator=generator)


def rows(given):
    """The operations in order."""
    mine, theirs, x = given
    return mine.compare(theirs, x).rows


@exercise.solution
def name(given):
    mine, theirs, x = given
    return mine.compare(theirs, x).first.name


@exercise.accept
def matches_answer(value, given):
    """Accept a name that was copied with the sign before it."""
    return value.lstrip(">= ").rstrip() == name(given)


def answer_index(given):
    return [row.name for row in rows(given)].index(name(given))


def name_before(given):
    return rows(given)[answer_index(given) - 1].name


def last_name(given):
    return rows(given)[-1].name


def module(given):
    return name(given).rpartition("-")[0].rpartition("-")[0]


def names(given):
    return [row.name for row in rows(given)]


def modules(given):
    """Paths of the modules."""
    return {"model", *(f"model.{path}" for path, _ in given[0].model.named_modules() if path)}


def largest(given):
    """The largest difference between the first and the last."""
    return max(rows(given)[answer_index(given) + 1:-1], key=lambda row: row.difference).name


def is_part(value, given):
    """True for a part of a name: without its path, or without the number at its end."""
    return any(value in (full.partition("-")[2], full.rpartition("-")[0], full.split("-")[-2]) for full in names(given))


exercise.wrong_value("no text", 7,
                     "The answer is a text: one name, in quotes.",
                     'As in the example: `name = "model.first-matmul-0"`.',
                     when=lambda value, given: not isinstance(value, str))
exercise.wrong_value("the last", last_name,
                     "It depends on everything before it: it only passes on an earlier mistake.",
                     "Where do the differences begin?")
exercise.wrong_value("an input", "x",
                     "The inputs are the same for both. The answer is an operation.",
                     "Names of operations end in a number, such as `model.first-matmul-0`.",
                     when=lambda value, given: value in ("x", "input", "inputs", "_Predict_0-input_0"))
exercise.wrong_value("an equal one", name_before,
                     "The difference of that one is 0: it is equal in all bits, so it is not the cause.",
                     "The cause is the first whose difference is not 0.",
                     when=lambda value, given: value in names(given)[:answer_index(given)])
exercise.wrong_value("the largest difference", largest,
                     "That one runs later: its difference has grown on the way, or is passed on. Where is the *first*?",
                     "The first that differs may differ only a little.",
                     when=lambda value, given: value in names(given)[answer_index(given) + 1:])
exercise.wrong_value("a module", module,
                     "That is a module. Which operation in it? Its name is longer.",
                     "Copy the whole name of the row, up to the number at its end.",
                     when=lambda value, given: value in modules(given))
exercise.wrong_value("a part of a name", lambda given: name(given).split("-")[-2],
                     "That is only a part of a name, and several names may have it. Copy the whole name, with its "
                     "path and the number at its end.",
                     "It begins with `model` and ends in a number.", when=is_part)
exercise.wrong_value("no name of a row", "max",
                     "No row has exactly this name. Copy the name of a row, and nothing else.",
                     "It begins with `model` and ends in a number.",
                     when=lambda value, given: matches_answer(value, given) is False)
