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
                "The new head runs. But the model has one more head, which never runs. Which line puts it there?",
                "Only one name is needed: the one that `forward` calls. Leave the other line out.")
def repair(model):
    width = model.classifier.in_features
    model.classifer = nn.Linear(width, 10)
    model.classifier = nn.Linear(width, 10)
    return model


@exercise.wrong("the old head scaled",
                "The old head still has 1000 answers, however small they are. The data have ten classes.",
                "Put a new `nn.Linear` with 10 outputs in its place.")
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
                "The head is right. But everything the features had learned is gone: this is another model.",
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
                "A head gives scores of any size, even below 0. Something after your layer lets only some of them "
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
    """(the model that comes back, the features that went in)"""
    flow.manual_seed(0)
    model = Trained(pixels, width)
    features = list(model.features.parameters())
    return repair(model), features


def first_loss(repair, pixels, width):
    model, features = repaired(repair, pixels, width)
    if model is None:
        return None
    loss = Train(model)(0.1 * flow.ones(10, pixels), flow.arange(10)).item()
    return f"near ln {10 if abs(loss - math.log(10)) < 0.4 else 1000 if abs(loss - math.log(1000)) < 0.4 else loss}"


def badges(repair, pixels, width):
    """Number of modules that never run."""
    model, features = repaired(repair, pixels, width)
    if model is None:
        return None
    train = Train(model)
    train(0.1 * flow.ones(10, pixels), flow.arange(10))
    return f"{sum('never ran' in row.badges for row in train.tree().record.rows)} modules"


def shape(repair, pixels, width):
    model, features = repaired(repair, pixels, width)
    return model if model is None else str(tuple(model(flow.ones(4, pixels)).shape))


def below(repair, pixels, width):
    """True if some of 80 scores are below 0. After a ReLU or a softmax none is."""
    model, features = repaired(repair, pixels, width)
    if model is None:
        return None
    scores = model(flow.randn(8, pixels, generator=flow.Generator().manual_seed(0)))
    return "yes" if scores.min().item() < 0 else "no"


def keeps_features(repair, pixels, width):
    """True if the features' parameters are the same objects."""
    model, features = repaired(repair, pixels, width)
    if model is None:
        return None
    mine = list(model.features.parameters())
    return "all" if len(mine) == len(features) and all(a is b for a, b in zip(mine, features)) else "not all"


def same_model(repair, pixels, width):
    flow.manual_seed(0)
    model = Trained(pixels, width)
    return "yes" if repair(model) is model else "no"


@exercise.cases
def cases(rng):
    yield case(8, 16, run=shape, expected="(4, 10)", text="the shape of the scores of 4 images")
    yield case(8, 16, run=first_loss, expected="near ln 10", text="the first loss")
    yield case(8, 16, run=below, expected="yes", text="are some of its scores below 0?")
    yield case(8, 16, run=badges, expected="0 modules", text="how many modules never run")
    yield case(8, 16, run=keeps_features, expected="all",
               text="which parameters of the features are the same objects as before")
    yield case(8, 16, run=same_model, expected="yes", text="is it the model that was given?")
    width = int(rng.integers(20, 40))
    yield case(12, width, run=first_loss, expected="near ln 10", hidden=True)
    yield case(12, width, run=keeps_features, expected="all", hidden=True)
