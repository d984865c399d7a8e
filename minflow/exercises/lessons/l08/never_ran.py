"""08.2 never_ran: a new head that is never called."""

import math

import minflow as flow

from ...definition import Exercise, case

nn = flow.nn

exercise = Exercise(
    "08.2", "never_ran", kind="mend", level="core", answer="repair", tolerance=(1e-6, 1e-6),
    question="Why does the new head not run?",
    hint="Print the model: which modules does it have, and which of them does its `forward` call?",
    fact="Keeping what a network has learned and giving it a new head is called fine-tuning. The first loss shows at "
         "once whether the new head is the one that runs.",
    sibling="A model calls `self.embed` and `self.out`. A program sets `model.uot = nn.Linear(32, 5)`. Python keeps "
            "it as one more attribute, and `self.out` runs as before. Two lines mend that: `del model.uot`, and "
            "`model.out = nn.Linear(32, 5)`. Setting an attribute again replaces the old one.",
)


class Trained(nn.Module):
    """Trained features, and a head for 1,000 classes."""

    def __init__(self, pixels=8, width=16):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(pixels, width), nn.ReLU())
        self.classifier = nn.Linear(width, 1000)

    def forward(self, x):
        return self.classifier(self.features(x))


@exercise.stub
def repair(model):
    width = model.classifier.in_features
    model.classifer = nn.Linear(width, 10)
    return model


@exercise.solution
def repair(model):
    width = model.classifier.in_features
    # the name that forward calls: the new head takes the place of the old one
    model.classifier = nn.Linear(width, 10)
    return model


@exercise.also_right
def repair(model):
    head = nn.Linear(model.classifier.weight.shape[1], 10)
    model.classifier = head
    return model


@exercise.also_right
def repair(model):
    old = model.classifier
    del model.classifier
    rows, columns = old.weight.shape
    head = nn.Linear(columns, 10)
    model.classifier = nn.Sequential(nn.Dropout(0.0), head)
    return model


@exercise.wrong("both heads",
                "The new head runs. But the model has one more part, with another name. Which line puts it there?",
                "Only one name is needed: the one that `forward` calls. Leave the other line out.")
def repair(model):
    width = model.classifier.in_features
    model.classifer = nn.Linear(width, 10)
    model.classifier = nn.Linear(width, 10)
    return model


@exercise.wrong("the old head scaled",
                "`forward` still calls the old head, with its 1000 answers. The data have ten classes.",
                "Put a new `nn.Linear` with 10 outputs in its place: `model.classifier = ...`.")
def repair(model):
    with flow.no_grad():
        model.classifier.weight.mul_(0.01)
        model.classifier.bias.mul_(0.01)
    return model


@exercise.wrong("features begun anew",
                "The parameters of the features are new: everything they had learned is gone.",
                "Only the head is to be replaced.")
def repair(model):
    model.features = nn.Sequential(nn.Linear(model.features[0].in_features, model.classifier.in_features), nn.ReLU())
    model.classifier = nn.Linear(model.classifier.in_features, 10)
    return model


@exercise.wrong("misspelt",
                "The new head never runs: the badge says so. Compare its name with the one that `forward` calls.",
                "Letter by letter: c-l-a-s-s-i-f-i-e-r.")
def repair(model):
    width = model.classifier.in_features
    model.clasifier = nn.Linear(width, 10)
    return model


@exercise.wrong("built anew",
                "The head is right. But everything the features had learned is gone: this model is new.",
                "Change the head of the given model.")
def repair(model):
    other = type(model)(model.features[0].in_features, model.classifier.in_features)
    other.classifier = nn.Linear(model.classifier.in_features, 10)
    return other


@exercise.wrong("nothing returned",
                "The model may be mended, but `repair` returns nothing.",
                "The last line is `return model`.")
def repair(model):
    model.classifier = nn.Linear(model.classifier.in_features, 10)


@exercise.wrong("squashed",
                "A head gives scores of any size, below 0 and above. Something after your layer lets only some of them "
                "through.",
                "`nn.CrossEntropyLoss` takes the scores as they are: no ReLU and no softmax after the last layer.")
def repair(model):
    model.classifier = nn.Sequential(nn.Linear(model.classifier.in_features, 10), nn.ReLU())
    return model


@exercise.wrong("other number of inputs",
                "The new head does not take what the features give. How many numbers come in?",
                "`nn.Linear(width, 10)`: the width of the old head's input, then the number of classes.")
def repair(model):
    model.classifier = nn.Linear(1000, 10)
    return model


@exercise.wrong("forward replaced",
                "Your new head runs, because you replaced `forward`. But the old head is still in the model, and never "
                "runs.",
                "Leave `forward` as it is, and give the new head the name that it calls.")
def repair(model):
    width = model.classifier.in_features
    model.classifer = nn.Linear(width, 10)
    model.forward = lambda x: model.classifer(model.features(x))
    return model


@exercise.wrong("under two names",
                "The new head runs, but it has two names now: its parameters are in `state_dict()` twice. Which line "
                "can go?",
                "Only one name is needed: the one that `forward` calls.")
def repair(model):
    width = model.classifier.in_features
    model.classifer = nn.Linear(width, 10)
    model.classifier = model.classifer
    return model


@exercise.wrong("a copy",
                "That is a copy. Whoever has the given model still has the old head: change *it*, and return it.",
                "No `deepcopy` is needed.")
def repair(model):
    import copy
    other = copy.deepcopy(model)
    other.classifier = nn.Linear(other.classifier.in_features, 10)
    return other


@exercise.wrong("another model",
                "It computes the right thing, but it is another model. Whoever has the given one still has the old "
                "head.",
                "Set `model.classifier`, and return `model`.")
def repair(model):
    return nn.Sequential(model.features, nn.Linear(model.classifier.in_features, 10))


@exercise.wrong("the head returned",
                "You return the head alone: it gets images in place of features.",
                "The last line is `return model`.")
def repair(model):
    model.classifier = nn.Linear(model.classifier.in_features, 10)
    return model.classifier


@exercise.wrong("a layer more in the features",
                "Your new layer is the end of `features` now, and the old head comes after it.",
                "Leave `features` alone. The new layer takes the place of `classifier`.")
def repair(model):
    model.features = nn.Sequential(model.features, nn.Linear(model.classifier.in_features, 10))
    return model


@exercise.wrong("another number of classes",
                "The second size of the scores is the number of classes. How many are there?",
                "`nn.Linear(width, 10)`.")
def repair(model):
    model.classifier = nn.Linear(model.classifier.in_features, 11)
    return model


class Train(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model, self.loss_fn = model, nn.CrossEntropyLoss()
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.001))

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


def repaired(repair, pixels, width):
    """(the model that comes back, the one that went in, the features' numbers before)"""
    flow.manual_seed(0)
    model = Trained(pixels, width)
    before = [parameter.tolist() for parameter in model.features.parameters()]
    return repair(model), model, before


def batch(pixels):
    return 0.1 * flow.ones(10, pixels), flow.arange(10)


def first_loss(repair, pixels, width):
    model, *_ = repaired(repair, pixels, width)
    if model is None:
        return None
    loss = Train(model)(*batch(pixels)).item()
    return f"near ln {10 if abs(loss - math.log(10)) < 0.4 else 1000 if abs(loss - math.log(1000)) < 0.4 else loss}"


def badges(repair, pixels, width):
    """The modules that never run: none, the old head, or others."""
    model, *_ = repaired(repair, pixels, width)
    if model is None:
        return None
    train = Train(model)
    train(*batch(pixels))
    paths = [row.path for row in train.tree().record.rows if "never ran" in row.badges]
    return "the old head" if "model.classifier" in paths else "another head" if paths else "none"


def shape(repair, pixels, width):
    model, *_ = repaired(repair, pixels, width)
    return model if model is None else str(tuple(model(flow.ones(5, pixels)).shape))


def scores(repair, pixels, width):
    """Which scores the model can give after one step: a new head may be all 0 before. Inputs are very large."""
    model, *_ = repaired(repair, pixels, width)
    if model is None:
        return None
    Train(model)(batch(pixels)[0], flow.zeros(10, dtype=flow.int64))
    values = model.eval()(1e7 * flow.randn(8, pixels, generator=flow.Generator().manual_seed(0)))
    return "of any size" if values.min().item() < -1 and values.max().item() > 1 else "only some"


def features(repair, pixels, width):
    """True if the features' parameters are the same objects, with the same numbers."""
    model, given, before = repaired(repair, pixels, width)
    if model is None:
        return None
    mine = list(getattr(model, "features", model).parameters())
    same = [parameter.tolist() for parameter in mine] == before
    theirs = list(given.features.parameters())
    if same and len(mine) == len(theirs) and all(a is b for a, b in zip(mine, theirs)):
        return "as before"
    return "a copy" if same else "changed"


def parts(repair, pixels, width):
    model, *_ = repaired(repair, pixels, width)
    if model is None:
        return None
    more = len({*model._modules} - {"features", "classifier"})
    return f"features, classifier, and {more} more" if more else "features, classifier"


def same_model(repair, pixels, width):
    model, given, _ = repaired(repair, pixels, width)
    return "yes" if model is given else "no"


@exercise.cases
def cases(rng):
    yield case(8, 16, run=shape, expected="(5, 10)", text="the shape of the scores of 5 images")
    yield case(8, 16, run=first_loss, expected="near ln 10", text="the first loss")
    yield case(8, 16, run=scores, expected="of any size", text="which scores it can give")
    yield case(8, 16, run=badges, expected="none", text="which modules never run")
    yield case(8, 16, run=features, expected="as before", text="the parameters of the features")
    yield case(8, 16, run=parts, expected="features, classifier", text="the parts of the model")
    yield case(8, 16, run=same_model, expected="yes", text="is it the model that was given?")
    width = int(rng.integers(20, 40))
    yield case(12, width, run=first_loss, expected="near ln 10", hidden=True)
    yield case(12, width, run=features, expected="as before", hidden=True)
