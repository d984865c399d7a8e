"""08.1 read_card: a build that fails says where."""

import numbers

import minflow as flow

from ...definition import Exercise

nn = flow.nn

exercise = Exercise(
    "08.1", "read_card", kind="read", level="warm-up", answer="answer",
    question="Which module failed, what did it get, and what does it take?",
    hint="The path follows the word `in`. The module got the last size of the input, and takes the last size of the "
         'weight. Write all three: `("model.stem", 32, 30)`.',
    fact="The sentence says what went wrong, the values with their names say why, and the last line says what to try. "
         "Every error of minflow has these parts.",
    sibling='A card says: "linear: the input has 20 features (its last axis), up.weight takes 24", with input '
            "float32[7, 20], up.weight float32[5, 24], in model.up. The module is model.up. It got 20 numbers in each "
            "row, the last axis of the input. It takes 24, the last axis of the weight. 7 is only the batch.",
)
NAMES = ("stem", "body", "head", "first", "middle", "last", "up", "down")


class Chain(nn.Module):
    """Linear layers in a row, by names; sizes: (in, out) of each."""

    def __init__(self, names, sizes):
        super().__init__()
        self.names = names
        for name, (wide, narrow) in zip(names, sizes):
            setattr(self, name, nn.Linear(wide, narrow))

    def forward(self, x):
        for name in self.names:
            x = getattr(self, name)(x).relu()
        return x


class Predict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


@exercise.drawn
def drawn(rng):
    """(graph, x): a call of the graph on x fails in one of its layers."""
    names = [str(name) for name in rng.permutation(NAMES)[:4]]
    widths = [int(width) for width in rng.permutation(range(20, 70, 4))[:5]]
    bad = int(rng.integers(1, 4))
    sizes = [[wide, narrow] for wide, narrow in zip(widths, widths[1:])]
    sizes[bad][0] += 3
    return Predict(Chain(names, sizes)), flow.ones(int(rng.integers(5, 12)), widths[0])


@exercise.solution
def answer(given):
    import re

    graph, x = given
    try:
        graph(x)
    except flow.MinflowError as error:
        text = str(error)
    path = re.search(r"in (model\.\w+)", text).group(1)
    got, expected = re.search(r"has (\d+) features .* takes (\d+)", text).groups()
    return path, int(got), int(expected)


def card_parts(given):
    """The right answer, and other numbers and names on the card."""
    path, got, expected = answer(given)
    names = given[0].model.names
    before = names[names.index(path.removeprefix("model.")) - 1]
    return path, got, expected, f"model.{before}", len(given[1])


def strip_model_prefix(path):
    return str(path).removeprefix("model.")


@exercise.accept
def matches_answer(value, given):
    path, got, expected = answer(given)
    return (len(value) == 3 and strip_model_prefix(value[0]) == strip_model_prefix(path)
            and tuple(value[1:]) == (got, expected))


def swapped(given):
    path, got, expected = answer(given)
    return path, expected, got


def one_before(given):
    path, got, expected, before, batch = card_parts(given)
    return before, got, expected


def with_batch(given):
    path, got, expected, before, batch = card_parts(given)
    return path, batch, expected


def kind(given):
    path, got, expected = answer(given)
    return "Linear", got, expected


def weight(given):
    path, got, expected = answer(given)
    return f"{strip_model_prefix(path)}.weight", got, expected


def whole(given):
    path, got, expected = answer(given)
    return "model", got, expected


def where(given):
    path, got, expected = answer(given)
    return 12, got, expected


def outputs(given):
    path, got, expected = answer(given)
    return path, got, getattr(given[0].model, strip_model_prefix(path)).out_features


def three(value):
    return isinstance(value, tuple | list) and len(value) == 3


exercise.wrong_value("not three parts", "model.stem",
                     'Three parts in brackets: the module, what it got, and what it takes, as in `("model.stem", 32, '
                     "30)`.",
                     "The path is a text in quotes, the two others are whole numbers.",
                     when=lambda value, given: not three(value))
exercise.wrong_value("a line number", where,
                     "That is a number. The *name* of the module follows the word `in`.",
                     "It begins with `model.`.", when=lambda value, given: not isinstance(value[0], str))
exercise.wrong_value("the example", ("model.stem", 32, 30),
                     "That is the example of the task, with other answers. Read the card above.",
                     "The path follows the word `in`.",
                     when=lambda value, given: tuple(value) == ("model.stem", 32, 30))
exercise.wrong_value("a parameter", weight,
                     "That is a parameter of the module. The module's path comes without its last part.",
                     "The path follows the word `in`.",
                     when=lambda value, given: value[0].rpartition(".")[2] in ("weight", "bias"))
exercise.wrong_value("the class", kind,
                     "That is a class or a kind of operation, and several modules belong to it. Which one is it? Give "
                     "its path.",
                     "The path follows the word `in`, and begins with `model.`.",
                     when=lambda value, given: value[0] in ("Linear", "Chain", "Predict", "linear"))
exercise.wrong_value("the whole model", whole,
                     "That is the whole model, or its graph. Which module *in* it failed?",
                     "The path follows the word `in`, and begins with `model.`.",
                     when=lambda value, given: value[0] == "model" or value[0].startswith("Predict_"))
exercise.wrong_value("no whole numbers", lambda given: (answer(given)[0], (6, 44), (32, 47)),
                     "The second and the third part are one whole number each, without quotes: how many numbers *in "
                     "each row* came in, and how many the layer takes.",
                     "The input's last size, and the weight's last size.",
                     when=lambda value, given: not all(isinstance(number, numbers.Real) for number in value[1:]))
exercise.wrong_value("swapped", swapped,
                     "The two numbers are there, the wrong way round. *Got* is what came in.",
                     "The input says what it got; the weight says what it takes.",
                     when=lambda value, given: tuple(value[1:]) == swapped(given)[1:])
exercise.wrong_value("the batch size", with_batch,
                     "That is how many rows came in: the batch. A layer takes any number of rows.",
                     "The last axis of the input does not fit: its second number.",
                     when=lambda value, given: card_parts(given)[4] in value[1:])
exercise.wrong_value("the size of its result", outputs,
                     "That is how many numbers the layer gives. What does it *take*?",
                     "The sentence says how many the weight takes.",
                     when=lambda value, given: value[2] == outputs(given)[2]
                     and strip_model_prefix(value[0]) == strip_model_prefix(answer(given)[0]))
exercise.wrong_value("a module that ran", one_before,
                     "That module worked: it ran, and gave its result. Which module could not take it?",
                     "The card names the module after the word `in`.",
                     when=lambda value, given: strip_model_prefix(value[0]) != strip_model_prefix(answer(given)[0])
                     and strip_model_prefix(value[0]) in given[0].model.names)
exercise.wrong_value("other numbers", lambda given: (answer(given)[0], 264, answer(given)[2]),
                     "The module is right. The numbers are the *last* size of its input and the last size of its "
                     "weight: the lines with the values show both.",
                     "The sentence at the top says both: has ... features, takes ...",
                     when=lambda value, given: strip_model_prefix(value[0]) == strip_model_prefix(answer(given)[0]))
