"""14.3 spiral_by_you: arrays with the learner's own tape learn the spiral."""

import gc
import tracemalloc

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "14.3", "spiral_by_you", kind="complete", level="stretch", answer="train", time_limit=5.0, tolerance=(1e-6, 1e-6),
    question="Can an engine of one page train a network?",
    hint="Follow the smallest case that fails with pencil and shapes. Each gradient has the shape of its array.",
    fact="Your losses equal minflow's, digit by digit. An engine is no more than this: values that remember, a rule "
         "for each operation, one walk back, a step.",
    sibling="Take y = x @ w with x of shape (5, 2) and w of shape (2, 3). Then y and g have shape (5, 3). Which "
            "product of x and g has the shape of w? `x.T @ g`: (2, 5) @ (5, 3) is (2, 3). And for a scale that is "
            "stretched, y = x * s with s of shape (3,): each s is used in all 5 rows, so it gets `(g * x).sum(0)`.",
    forbidden={name: "The point is that it is yours: Python and NumPy alone." for name in
               ("flow", "minflow", "nn", "torch", "Tensor", "autograd", "jax")},
)


@exercise.solution
def train(x, y, weights, steps, rate):
    class Array:
        def __init__(self, data, inputs=(), op="", rule=None):
            self.data, self.grad = data, 0.0
            self.inputs, self.op, self.rule = inputs, op, rule

        def __matmul__(self, w):
            def rule(g):  # the gradients of self and of w
                return g @ w.data.T, self.data.T @ g
            return Array(self.data @ w.data, (self, w), "matmul", rule)

        def __add__(self, bias):
            def rule(g):  # the bias is stretched over all rows
                return g, g.sum(0)
            return Array(self.data + bias.data, (self, bias), "add", rule)

        def tanh(self):
            t = np.tanh(self.data)
            return Array(t, (self,), "tanh", lambda g: (g * (1 - t * t),))

        def surprise(self, labels):
            n, place = len(labels), (np.arange(len(labels)), labels)
            shares = np.exp(self.data - self.data.max(1, keepdims=True))
            shares = shares / shares.sum(1, keepdims=True)
            wrong = shares.copy()
            wrong[place] -= 1
            return Array(-np.log(shares[place]).mean(), (self,), "surprise", lambda g: (g * wrong / n,))

        def backward(self):
            order = []
            def visit(array):
                if array not in order:
                    for one in array.inputs:
                        visit(one)
                    order.append(array)
            visit(self)
            self.grad = 1.0
            for array in reversed(order):
                if array.rule:
                    for one, g in zip(array.inputs, array.rule(array.grad)):
                        one.grad = one.grad + g

    w1, b1, w2, b2, w3, b3 = knobs = [Array(w.copy()) for w in weights]
    losses = []
    for step in range(steps):
        h = (Array(x) @ w1 + b1).tanh()
        h = (h @ w2 + b2).tanh()
        loss = (h @ w3 + b3).surprise(y)
        losses.append(float(loss.data))
        # clear, walk back, step: off the tape
        for knob in knobs:
            knob.grad = 0.0
        loss.backward()
        for knob in knobs:
            knob.data = knob.data - rate * knob.grad
    return losses, [knob.data for knob in knobs]


@exercise.stub
def train(x, y, weights, steps, rate):
    class Array:
        def __init__(self, data, inputs=(), op="", rule=None):
            self.data, self.grad = data, 0.0
            self.inputs, self.op, self.rule = inputs, op, rule

        def __matmul__(self, w):
            def rule(g):  # the gradients of self and of w
                return ..., ...  # your code here: two products
            return Array(self.data @ w.data, (self, w), "matmul", rule)

        def __add__(self, bias):
            def rule(g):  # the bias is stretched over all rows
                return g, ...  # your code here: the gradient of the bias
            return Array(self.data + bias.data, (self, bias), "add", rule)

        def tanh(self):
            t = np.tanh(self.data)
            return Array(t, (self,), "tanh", lambda g: (g * (1 - t * t),))

        def surprise(self, labels):
            n, place = len(labels), (np.arange(len(labels)), labels)
            shares = np.exp(self.data - self.data.max(1, keepdims=True))
            shares = shares / shares.sum(1, keepdims=True)
            wrong = shares.copy()
            wrong[place] -= 1
            return Array(-np.log(shares[place]).mean(), (self,), "surprise", lambda g: (g * wrong / n,))

        def backward(self):
            order = []
            def visit(array):
                if array not in order:
                    for one in array.inputs:
                        visit(one)
                    order.append(array)
            visit(self)
            self.grad = 1.0
            for array in reversed(order):
                if array.rule:
                    for one, g in zip(array.inputs, array.rule(array.grad)):
                        one.grad = one.grad + g

    w1, b1, w2, b2, w3, b3 = knobs = [Array(w.copy()) for w in weights]
    losses = []
    for step in range(steps):
        h = (Array(x) @ w1 + b1).tanh()
        h = (h @ w2 + b2).tanh()
        loss = (h @ w3 + b3).surprise(y)
        losses.append(float(loss.data))
        ...  # your code here: clear all slopes, walk back, step
    return losses, [knob.data for knob in knobs]


# ---- the same by hand, with one difference for each mistake ---------------------------------------------------------

def by_hand(x, y, weights, steps, rate, *, bias=lambda g: g.sum(0), weight=lambda x, g: x.T @ g, count=len, kept=0.0,
            sign=-1, late=False, own=True, memory=None):
    """Train without a tape. bias, weight: their gradients. kept: share of the previous gradient that is not cleared."""
    w = [one.copy() for one in weights] if own else weights
    old, losses, n = [0.0] * 6, [], len(x)
    for _ in range(steps + late):
        a = np.tanh(x @ w[0] + w[1])
        b = np.tanh(a @ w[2] + w[3])
        scores = b @ w[4] + w[5]
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        losses.append(float(-np.log(shares[range(n), y]).sum() / count(y)))
        g3 = shares - np.eye(shares.shape[1])[y]
        g3 = g3 / count(y)
        g2 = g3 @ w[4].T * (1 - b**2)
        g1 = g2 @ w[2].T * (1 - a**2)
        if memory is not None:
            memory.append((a, b, scores, g1, g2, g3, *w))
        now = [weight(x, g1), bias(g1), weight(a, g2), bias(g2), weight(b, g3), bias(g3)]
        old = [new + kept * before for new, before in zip(now, old)]
        for i in range(6):
            if own:
                w[i] = w[i] + sign * rate * old[i]
            else:
                w[i] += sign * rate * old[i]
    return losses[late:], w


@exercise.also_right
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate)


@exercise.also_right
def train(x, y, weights, steps, rate):
    """The tape is a list in the order of the operations, so it needs no sorting."""
    knobs, losses = [w.copy() for w in weights], []
    for _ in range(steps):
        tape, grads, h = [], {}, x
        for i in range(0, 6, 2):
            tape.append(("layer", h, i))
            h = h @ knobs[i] + knobs[i + 1]
            if i < 4:
                h = np.tanh(h)
                tape.append(("tanh", h, i))
        e = np.exp(h - h.max(axis=1)[:, None])
        shares = e / e.sum(axis=1)[:, None]
        losses.append(-np.log(shares[np.arange(len(y)), y]).mean())
        g = (shares - (y[:, None] == np.arange(shares.shape[1]))) / len(y)
        while tape:
            op, h, i = tape.pop()
            if op == "tanh":
                g = g * (1 - h * h)
            else:
                grads[i], grads[i + 1], g = h.T @ g, np.ones(len(g)) @ g, g @ knobs[i].T
        knobs = [w - rate * grads[i] for i, w in enumerate(knobs)]
    return losses, knobs


@exercise.wrong("minflow's own engine",
                "The point is that it is yours: Python and NumPy alone.",
                "Do not use flow or nn: your Array class has all that you need.")
def train(x, y, weights, steps, rate):
    knobs = [flow.tensor(w).requires_grad_() for w in weights]
    return [0.0] * steps, [knob.numpy() for knob in knobs]


@exercise.wrong("update on the tape",
                "The losses are right, and the memory climbs: each step holds on to the steps before it. The update "
                "was written on the tape.",
                "Change `knob.data`, a plain array. Do not make a new Array from the old one.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, memory=[])


@exercise.wrong("slopes not cleared",
                "The first step is right, then each goes by the slopes of all steps before it: see 03.4.",
                "Before each walk back, set the grad of every knob to 0 again.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, kept=1.0)


@exercise.wrong("mean over the wrong count",
                "Is your first loss ln 2? The mean goes over the examples, not over all scores.",
                "Divide by the number of labels.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, count=lambda y: 2 * len(y))


@exercise.wrong("sum in place of mean",
                "Your loss grows with the number of points: it is a sum. The loss is a mean.",
                "Divide by the number of labels, in the loss and in its gradient.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, count=lambda y: 1)


@exercise.wrong("gradient of the bias not folded",
                "A bias has got the shape (points, width): it was stretched over all rows, and its gradient was not "
                "folded back. You know this from 03.3.",
                "Each bias is used in every row: its gradient is the sum over axis 0.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, bias=lambda g: g)


@exercise.wrong("mean for the bias",
                "The biases move too little. Where ways meet, slopes add: a sum over the rows, not a mean.",
                "`g.sum(0)`: the division by n is in the loss already.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, bias=lambda g: g.mean(0))


@exercise.wrong("uphill",
                "The loss rises: your steps go uphill.",
                "Each knob *minus* rate times its slope.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, sign=1)


@exercise.wrong("without the rate",
                "Each step goes by the whole slope: the rate is not used.",
                "Each knob minus `rate` times its slope.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, 1.0)


@exercise.wrong("loss after the step",
                "Your first loss is that after one step. Write it down before you step.",
                "The loss of untrained weights belongs in the list too: it is the first one.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, late=True)


@exercise.wrong("the given weights changed",
                "The given arrays have different values now: you changed them in place.",
                "Work on copies: `w.copy()`; and write `a = a - b`, which makes a new array, not `a -= b`.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, own=False)


@exercise.wrong("never stepped",
                "The loss stays as it is: nothing moves the knobs, or their slopes are 0.",
                "Three things in each step: clear the slopes, walk back, move each knob's data.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, 0.0)


@exercise.wrong("transposed product",
                "Two shapes do not fit: in one of your products, or in the gradient of the bias. Write the shapes of "
                "g, x, w and the bias under each other.",
                "The gradient of w has its shape, (in, out): x.T is (in, n), g is (n, out). That of a bias is (out,): "
                "a sum over the n rows.")
def train(x, y, weights, steps, rate):
    raise ValueError("matmul: the shapes do not fit")


@exercise.wrong("one sum for all biases",
                "All biases of a layer get the same gradient: `g.sum()` adds up everything. Each has its own column.",
                "The bias is used once in each row: add up the rows, axis 0.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, bias=lambda g: g.sum())


@exercise.wrong("biases stay",
                "The weights move, and the biases stay as they are. All six are knobs.",
                "Go through `knobs`.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, bias=lambda g: 0 * g.sum(0))


@exercise.wrong("weights stay",
                "The biases move, and the weights stay as they are: they get no gradient.",
                "The second of the two products goes to w.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, weight=lambda x, g: 0 * (x.T @ g))


@exercise.wrong("divided once more",
                "The weights move too little: the division by the number of points is in g already.",
                "`self.data.T @ g`, and nothing else.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate, weight=lambda x, g: x.T @ g / len(g))


@exercise.wrong("two steps",
                "Each step is twice as long as it should be. How often do you move a knob?",
                "Once in each step, by rate times its slope.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, 2 * rate)


@exercise.wrong("rate of 0.1",
                "The rate is fixed in yours. Which one is given in this case?",
                "`rate`")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, 0.1)


@exercise.wrong("losses alone",
                "You return the losses only. The trained weights belong to the result too.",
                "`return losses, [knob.data for knob in knobs]`, as it was.")
def train(x, y, weights, steps, rate):
    return by_hand(x, y, weights, steps, rate)[0]


SHAPES = ("Two shapes do not fit: in one of your products, or in the gradient of the bias. Write the shapes of g, x, w "
          "and the bias under each other.",
          "The gradient of w has its shape, (in, out): x.T is (in, n), g is (n, out). That of a bias is (out,): a sum "
          "over the n rows.")


@exercise.wrong("shapes that do not fit", *SHAPES)
def train(x, y, weights, steps, rate):
    return np.zeros((2, 2)) * np.zeros((3, 2))


@exercise.wrong("products that do not fit", *SHAPES)
def train(x, y, weights, steps, rate):
    return np.zeros((3, 2)) @ np.zeros((3, 2))


@exercise.wrong("attribute of a tensor",
                "The error says which attribute is missing. An Array has `data`, `grad` and `inputs`. Its `data` "
                "and `grad` are numbers or arrays of NumPy.",
                "`w.data.T`, `self.data.T`; and `knob.grad = 0.0` clears a slope.")
def train(x, y, weights, steps, rate):
    class Array:
        pass

    return Array().T


NONE = ("A slope is None: one of the open places returns None, or you clear a grad to None. It must be a number.",
        "0.0 is a cleared slope.")


@exercise.wrong("None cleared", *NONE)
def train(x, y, weights, steps, rate):
    return None + np.zeros(2)


@exercise.wrong("an Array moved",
                "`knob` is an Array, which knows no minus. The numbers are in its `data`.",
                "`knob.data = knob.data - ...`")
def train(x, y, weights, steps, rate):
    class Array:
        pass

    return Array() - 1.0


# ---- what is asked --------------------------------------------------------------------------------------------------

def start(rng, width, second=None, scale=1.0, classes=2):
    """Weights in the order w1, b1, w2, b2, w3, b3."""
    second = second or width
    return [scale * rng.normal(size=(2, width)), 0.1 * rng.normal(size=width),
            rng.normal(size=(width, second)) / width**0.5, 0.1 * rng.normal(size=second),
            rng.normal(size=(second, classes)) / second**0.5, 0.1 * rng.normal(size=classes)]


def zero(width=2):
    return [np.zeros(shape) for shape in ((2, width), width, (width, width), width, (width, 2), 2)]


def losses(train, *args):
    return [float(loss) for loss in train(*args)[0]]


def shapes(train, *args):
    return [np.shape(one) for one in train(*args)[1]]


def trained(train, *args, place):
    return np.asarray(train(*args)[1][place], float)


def unchanged(train, x, y, weights, steps, rate):
    before = [w.copy() for w in weights]
    train(x, y, weights, steps, rate)
    return all(np.array_equal(one, old) for one, old in zip(weights, before))


def climbs(train, x, y, weights, few, rate, many):
    """True if the memory of a training grows with its steps."""
    train(x, y, weights, few, rate)
    if tracemalloc.is_tracing():
        return False
    peaks, before = {few: [], many: []}, gc.get_threshold()
    # Garbage is not on a tape, and each version of Python collects it at different times.
    # Frozen objects make no collection slower.
    gc.freeze()
    gc.set_threshold(100, 0, 0)
    try:
        # Other threads of a kernel allocate, too, but not in each of three trials.
        for steps in (few, many) * 3:
            gc.collect()
            tracemalloc.start()
            try:
                train(x, y, weights, steps, rate)
                peaks[steps].append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
    return min(peaks[many]) > 3 * min(peaks[few])


def spiral(n):
    x, y = flow.data.points("spiral", n=n)
    return x.astype(float), y


def asks(run, points, weights, steps, rate, text, hidden=False, **kwargs):
    """Case whose expected value comes from the training by hand."""
    expected = run(by_hand, *points, weights, steps, rate, **kwargs)
    return case(*points, weights, steps, rate, run=run, expected=expected, text=text, hidden=hidden, **kwargs)


@exercise.cases
def cases(rng):
    fixed = np.random.default_rng(0)
    few = np.array([[1.0, 2.0], [0.5, -1.0], [-2.0, 0.0]]), np.array([0, 1, 1])
    small, wide = start(fixed, 2), start(fixed, 32, scale=2.0)
    yield asks(losses, few, zero(), 1, 0.1, "3 points, all weights 0: the first loss")
    yield asks(losses, few, small, 1, 0.1, "3 points, 2 hidden numbers in both layers: the first loss")
    yield asks(shapes, few, start(fixed, 4, 5), 1, 0.1, "3 points, layers of 4 and 5, 1 step: shapes of the weights")
    yield asks(trained, few, small, 1, 0.1, "3 points, 1 step at the rate 0.1: b3 afterwards", place=5)
    yield asks(trained, few, small, 1, 0.1, "3 points, 1 step at the rate 0.1: w1 afterwards", place=0)
    yield asks(losses, few, small, 4, 0.1, "3 points, 4 steps at the rate 0.1: the losses")
    yield case(*few, small, 2, 0.1, run=unchanged, expected=True, text="are the weights that were given as they were?")
    yield case(*few, small, 8, 0.1, run=climbs, many=80, expected=False,
               text="80 steps in place of 8: does it need three times the memory?")
    yield asks(losses, spiral(100), wide, 20, 1.0, "the spiral, 100 points, 20 steps at the rate 1: the losses")
    points = rng.normal(size=(7, 2)), rng.integers(0, 3, 7)
    yield asks(losses, points, start(rng, 3, 5, classes=3), 5, 0.3, "", hidden=True)
    yield asks(trained, points, start(rng, 4, 3, classes=3), 3, 0.3, "", hidden=True, place=1)
