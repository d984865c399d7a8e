"""07.3 assemble: a training graph, put together from its lines."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

nn = flow.nn

exercise = Exercise(
    "07.3", "assemble", kind="complete", level="warm-up", answer="Train", tolerance=(1e-5, 1e-5),
    question="What belongs in a training graph?",
    hint="`__init__` says what the graph holds, `build` says what one step computes. Which of your lines is which?",
    fact="A call of a training graph is a whole step: forward, backward, update. That is why the graph can plan the "
         "memory of all three together.",
    sibling="A recipe has two parts: what must be on the table, and what to do. On the table: a bowl, flour, an oven "
            "that is set to switch on. To do: mix, then put it into the oven, then say what came out. No step of the "
            "recipe switches the oven on: it was set before.",
    forbidden={"step": "`add_optimizer` hands the step to the graph: it steps by itself at the end of each call.",
               "zero_grad": "The graph begins each step with clean slopes: `zero_grad` is one of the two that do not "
                            "belong."},
)


@exercise.stub
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        # self.add_optimizer(optimizer)
        # loss.backward()
        # super().__init__()
        # self.model.zero_grad()
        ...

    def build(self, x, y):
        # return loss
        # optimizer.step()
        # self.model, self.loss_fn = model, loss_fn
        # loss = self.loss_fn(self.model(x), y)
        ...


@exercise.solution
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        # what the graph holds
        super().__init__()
        self.model, self.loss_fn = model, loss_fn
        self.add_optimizer(optimizer)

    def build(self, x, y):
        # what one step computes
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


@exercise.also_right
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.add_optimizer(optimizer)
        self.model, self.loss_fn = model, loss_fn

    def build(self, x, y):
        prediction = self.model(x)
        loss = self.loss_fn(prediction, y)
        loss.backward()
        return loss


@exercise.also_right
class Train(flow.nn.Graph):
    def __init__(self, net, score, optimizer):
        super().__init__()
        self.net = net
        self.score = score
        self.add_optimizer(optimizer)

    def loss(self, x, y):
        return self.score(self.net(x), y)

    def build(self, x, y):
        result = self.loss(x, y)
        result.backward()
        return result


@exercise.wrong("no optimizer",
                "The slopes are there, but nothing uses them: the graph does not have an optimizer.",
                "`self.add_optimizer(optimizer)` belongs in `__init__`.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


@exercise.wrong("nothing returned",
                "`build` returns nothing. What should the caller get from the step?",
                "The last line of `build` is `return loss`.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()


@exercise.wrong("in the other method",
                "In `build` only `self`, `x` and `y` are known. Which of your lines there needs something else?",
                "Lines with `model`, `loss_fn` or `optimizer` alone, without `self.` before it, belong in `__init__`.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        self.add_optimizer(optimizer)  # noqa: F821
        return loss


@exercise.wrong("computed too early",
                "`__init__` runs once, when the graph is made: there is no `x`, no `y` and no `loss` yet. Which of "
                "your lines there needs them?",
                "All lines with `loss` alone belong in `build`.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn
        self.add_optimizer(optimizer)
        loss.backward()  # noqa: F821

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        return loss


@exercise.wrong("an optimizer as attribute",
                "An attribute is not enough: the graph would not know that it should step. Which of the eight lines "
                "hands the optimizer over?",
                "`self.add_optimizer(optimizer)` belongs in `__init__`.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn
        self.optimizer = optimizer

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


@exercise.wrong("super without brackets",
                "`super` is a function here, and it is called: `super()`, with brackets.",
                "`super().__init__()` is the first line of `__init__`.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super.__init__()
        self.model, self.loss_fn = model, loss_fn
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


@exercise.wrong("backward twice",
                "One backward computes all slopes. There is only one such line among the eight.",
                "Leave the second `loss.backward()` out.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        loss.backward()
        return loss


@exercise.wrong("no loss returned",
                "Your step gives a number for each example. It should give the loss.",
                "The last line of `build` is `return loss`.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn
        self.add_optimizer(optimizer)

    def build(self, x, y):
        scores = self.model(x)
        self.loss_fn(scores, y).backward()
        return scores


@exercise.wrong("no backward",
                "An optimizer needs slopes. Which line computes them? Compare the weights before and after.",
                "`loss.backward()` belongs in `build`, before the return.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        return loss


@exercise.wrong("slopes cleared",
                "The graph starts each step clean. Leave `zero_grad` out.",
                "`zero_grad` is one of the two lines that do not belong.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        self.model.zero_grad()
        return loss


@exercise.wrong("begun late",
                "The graph cannot hold anything yet: something comes before `super().__init__()`.",
                "`super().__init__()` is the first line of `__init__`.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        self.model, self.loss_fn = model, loss_fn
        super().__init__()
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


@exercise.wrong("named forward",
                "A Module has a `forward`, a graph has a `build`.",
                "Rename `forward` to `build`.")
class Train(nn.Graph):
    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn
        self.add_optimizer(optimizer)

    def forward(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


RATE = 0.1


def line_model(weight):
    """A line through 0 with this weight, its loss and its optimizer."""
    model = nn.Linear(len(weight), 1, bias=False)
    model.weight.data.copy_(flow.tensor([weight]))
    return model, nn.MSELoss(), flow.optim.SGD(model.parameters(), lr=RATE)


def losses(Train, weight, x, y, steps):
    """Results of the first calls."""
    train = Train(*line_model(weight))
    results = [train(flow.tensor(x), flow.tensor(y)) for _ in range(steps)]
    return [result.item() if result.numel() == 1 else result.tolist() for result in results]


def weights(Train, weight, x, y, steps):
    """The weights after the same calls."""
    model, loss_fn, optimizer = line_model(weight)
    train = Train(model, loss_fn, optimizer)
    for _ in range(steps):
        train(flow.tensor(x), flow.tensor(y))
    return model.weight.tolist()[0]


def same_bits(Train, weight, x, y, steps):
    """True if the weights equal those of eager mode in all bits."""
    model, loss_fn, optimizer = line_model(weight)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_fn(model(flow.tensor(x)), flow.tensor(y)).backward()
        optimizer.step()
    return "yes" if weights(Train, weight, x, y, steps) == model.weight.tolist()[0] else "no"


def slopes_by_hand(Train, weight, x, y):
    """True if the weight has a slope after build was called by hand."""
    model, loss_fn, optimizer = line_model(weight)
    Train(model, loss_fn, optimizer).build(flow.tensor(x), flow.tensor(y))
    return "no" if model.weight.grad is None else "yes"


def given_by_hand(Train, weight, x, y):
    """Type of the result of build."""
    return type(Train(*line_model(weight)).build(flow.tensor(x), flow.tensor(y))).__name__


def has_build(Train):
    return "no" if Train.build is nn.Graph.build else "yes"


def reference(weight, x, y, steps):
    """(losses, weights), by NumPy in float64."""
    x, y, w, found = np.asarray(x, float), np.asarray(y, float), np.asarray(weight, float), []
    for _ in range(steps):
        error = x @ w - y[:, 0]
        found.append(float(np.mean(error**2)))
        w = w - RATE * 2 * error @ x / len(x)
    return found, w.tolist()


@exercise.cases
def cases(rng):
    small = [0.5], [[1.0], [2.0]], [[2.0], [3.0]]
    data = "a weight of 0.5, x = [1 2], y = [2 3]"
    yield case(*small, 1, run=losses, expected=reference(*small, 1)[0], text=f"the loss of the first call; {data}")
    yield case(*small, 1, run=weights, expected=reference(*small, 1)[1], text=f"the weight after one call; {data}")
    yield case(*small, 5, run=losses, expected=reference(*small, 5)[0], text=f"the losses of five calls; {data}")
    x, y = rng.uniform(-1, 1, (6, 3)).round(2).tolist(), rng.uniform(-1, 1, (6, 1)).round(2).tolist()
    wide = [0.1, -0.2, 0.3], x, y
    yield case(*wide, 5, run=same_bits, expected="yes", text="after five calls: the same bits as eager?")
    yield case(run=has_build, expected="yes", text="does the class have a build of its own?")
    yield case(*small, run=slopes_by_hand, expected="yes", text="are there slopes, once build was called by hand?")
    yield case(*small, run=given_by_hand, expected="Tensor", text="the type of what build gives")
    yield case(*wide, 5, run=losses, expected=reference(*wide, 5)[0], hidden=True)
    yield case(*wide, 3, run=weights, expected=reference(*wide, 3)[1], hidden=True)
