"""07.4 stuck_counter: a number that a graph reads once, and never again."""

import minflow as flow

from ...definition import Exercise, case

nn = flow.nn

exercise = Exercise(
    "07.4", "stuck_counter", kind="mend", level="core", answer="Warm", tolerance=(1e-5, 1e-5),
    question="Why does the counter not change in a graph?",
    hint="`forward` runs at each call in eager mode, and once in a graph. A tensor that the module holds is read "
         "again at each call.",
    fact="This is why batch norm keeps its running mean in a buffer: an update that is an operation is in the plan, "
         "and runs at each call.",
    sibling="A module should remember the largest number it has seen. `self.top = max(self.top, x.max().item())` asks "
            'for a number, and a graph has none while it is built. With `self.register_buffer("top", flow.zeros(1))` '
            "and `self.top.copy_(flow.maximum(self.top, x.max()))` the update is an operation on a tensor.",
)


COUNT = [0]


@exercise.stub
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x / self.calls


@exercise.solution
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        # a tensor that the module keeps
        self.register_buffer("calls", flow.zeros(1))

    def forward(self, x):
        # written into, by an operation of the graph
        self.calls.add_(1)
        return x / self.calls


@exercise.also_right
class Warm(nn.Module):
    """Replaced: minflow updates a buffer of the same shape and dtype."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", flow.tensor(0.0))

    def forward(self, x):
        self.seen = self.seen + 1
        return x * (1 / self.seen)


@exercise.also_right
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", flow.tensor([0], dtype=flow.int64))

    def forward(self, x):
        self.count += 1
        return x / self.count.float()


@exercise.wrong("plain tensor",
                "It counts, but the count is not kept with the module: it is not in its `state_dict()`.",
                '`self.register_buffer("calls", flow.zeros(1))` instead of `self.calls = flow.zeros(1)`.')
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = flow.zeros(1)

    def forward(self, x):
        self.calls.add_(1)
        return x / self.calls


@exercise.wrong("plain tensor, replaced",
                "The graph knows the old tensor, and you put another in its place. Write *into* it: `add_(1)`.",
                "A tensor that is replaced must be a buffer: `register_buffer` in `__init__`.")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = flow.zeros(1)

    def forward(self, x):
        self.calls = self.calls + 1
        return x / self.calls


@exercise.wrong("Python number",
                "The count is a number of Python or NumPy, not a tensor that the module keeps: it is read once, while "
                "`forward` is written down, then frozen. Ask `graph.frozen()`.",
                "Make it a tensor that the module holds: `register_buffer` in `__init__`.")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x / self.calls


@exercise.wrong("global",
                "All modules share your number, because it belongs to none of them. Each needs its own count. And a "
                "number is frozen in a graph.",
                "Make it a tensor that the module holds: `register_buffer` in `__init__`.")
class Warm(nn.Module):
    def forward(self, x):
        COUNT[0] += 1
        return x / COUNT[0]


@exercise.wrong("one tensor for all",
                "All modules share your tensor: it is made once, outside `__init__`. Each module needs its own.",
                '`self.register_buffer("calls", flow.zeros(1))` in `__init__`.')
class Warm(nn.Module):
    calls = flow.zeros(1)

    def forward(self, x):
        self.calls.add_(1)
        return x / self.calls


@exercise.wrong("only in training",
                "After `eval()` yours does not count: is it batch norm that you have in mind? Here *every* call "
                "counts.",
                "No `if` is needed in `forward`.")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", flow.zeros(1))

    def forward(self, x):
        if self.training:
            self.calls.add_(1)
        return x / self.calls


@exercise.wrong("one ahead",
                "The results are right, but the number that is kept is not the number of calls: after three calls it "
                "is 4.",
                "Start at 0, and count before you divide.")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", flow.ones(1))

    def forward(self, x):
        result = x / self.calls
        self.calls.add_(1)
        return result


@exercise.wrong("a parameter",
                "`parameters()` returns your count: an optimizer that is made with them may change it, and clipping "
                "and weight decay too. It counts; it does not learn.",
                "A tensor that is kept and not learned is a buffer: `register_buffer`.")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = nn.Parameter(flow.zeros(1), requires_grad=False)

    def forward(self, x):
        self.calls.add_(1)
        return x / self.calls


@exercise.wrong("begun anew",
                "Each call makes a new count, which starts at 0 again. Where is something made that should stay?",
                "`register_buffer` belongs in `__init__`.")
class Warm(nn.Module):
    def forward(self, x):
        self.register_buffer("calls", flow.zeros(1))
        self.calls.add_(1)
        return x / self.calls


@exercise.wrong("multiplied",
                "It grows: 1, 2, 3. Divide by the count.",
                "`x / self.calls`.")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", flow.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        return x * self.calls


@exercise.wrong("counts twice",
                "Each call adds 2. Which two lines of yours count?",
                "`add_(1)` changes the tensor already.")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", flow.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        self.calls = self.calls + 1
        return x / self.calls


@exercise.wrong("adds the input",
                "It adds the numbers in `x`. Whatever `x` holds, a call counts 1.",
                "`self.calls.add_(1)`.")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", flow.zeros(1))

    def forward(self, x):
        self.calls.add_(x.sum())
        return x / self.calls


@exercise.wrong("never counts",
                "The tensor is there, but it never changes. Which line adds 1 to it?",
                "`self.calls + 1` is a new number. `self.calls.add_(1)` changes the tensor itself.")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", flow.zeros(1))

    def forward(self, x):
        return x / (self.calls + 1)


@exercise.wrong("one behind",
                "It counts, but from the wrong number: the first call must divide by 1.",
                "What is in the tensor when the first call divides?")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", flow.ones(1))

    def forward(self, x):
        self.calls.add_(1)
        return x / self.calls


@exercise.wrong("from 0",
                "The first call divides by 0. Count before you divide.",
                "First `add_(1)`, then `x / self.calls`.")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", flow.zeros(1))

    def forward(self, x):
        result = x / self.calls
        self.calls.add_(1)
        return result


@exercise.wrong("halved",
                "Each call halves: 1, 1/2, 1/4. It should be 1, 1/2, 1/3: divide by the number of calls.",
                "Add 1 to the count; do not multiply it.")
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", flow.ones(1))

    def forward(self, x):
        result = x / self.calls
        self.calls.mul_(2)
        return result


class Factors(str):
    """The divisors of three calls. Two are equal if they count in the same way: a global count starts anywhere."""

    manner: str

    def __new__(cls, outputs):
        by = [1 / value if value else float("inf") for value in outputs]
        self = super().__new__(cls, ", ".join(f"{value:.3g}" for value in outputs))
        known = {"right": [1, 2, 3], "halved": [1, 2, 4], "from 0": [0, 1, 2], "one behind": [2, 3, 4]}
        self.manner = next((name for name, expected in known.items()
                            if all(abs(one - two) < 1e-3 for one, two in zip(by, expected))), "")
        if not self.manner:
            steps = {round(two - one, 3) for one, two in zip(by, by[1:])}
            self.manner = {frozenset([0.0]): "stuck", frozenset([1.0]): "goes on",
                           frozenset([2.0]): "shared"}.get(frozenset(steps), str(self))
        return self

    def __eq__(self, other):
        return self.manner == getattr(other, "manner", other)

    __hash__ = str.__hash__


class Hold(nn.Graph):
    """Graph of one module."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def build(self, x):
        return self.module(x)


def factors(module, value):
    """Factors of three calls; None if a call returns nothing."""
    results = [module(flow.tensor([value])) for _ in range(3)]
    return None if None in results else [(result / value).item() for result in results]


def eager(Warm, value):
    return factors(Warm(), value)


def evaluating(Warm, value):
    return factors(Warm().eval(), value)


def graph(Warm, value):
    return factors(Hold(Warm()), value)


def two(Warm):
    """The second of two modules that take turns, eager: each has its own count."""
    one, other, x = Warm(), Warm(), flow.ones(1)
    return [(one(x), other(x))[1].item() for _ in range(3)]


def as_factors(outputs):
    return outputs and Factors(outputs)


def plans(Warm):
    hold, x = Hold(Warm()), flow.ones(1)
    for _ in range(3):
        hold(x)
    return str(hold.why()).splitlines()[0].partition(": ")[2]


def kept_count(Warm):
    """The numbers in the module's state after three calls."""
    warm = Warm()
    for _ in range(3):
        warm(flow.ones(1))
    kept = [f"{number:g}" for tensor in warm.state_dict().values() for number in tensor.flatten().tolist()]
    return "3" if "3" in kept else ", ".join(kept) or "nothing"


def parameters(Warm):
    return len(list(Warm().parameters()))


def counts(*args, **rest):
    return case(*args, finish=as_factors, expected=Factors([1, 1 / 2, 1 / 3]), **rest)


@exercise.cases
def cases(rng):
    yield counts(1.0, run=eager, text="three calls, eager, x = 1")
    yield counts(1.0, run=graph, text="three calls, in a graph, x = 1")
    yield counts(2.0, run=eager, text="three calls, eager, x = 2: the results, divided by 2")
    yield counts(1.0, run=evaluating, text="three calls after eval(), eager, x = 1")
    yield case(run=plans, expected="1 plan made, 1 kept", text="plans made in three calls")
    yield counts(run=two, text="two modules take turns, eager: what the second gives, x = 1")
    yield case(run=kept_count, expected="3", text="the count in the module's state_dict() after three calls")
    yield case(run=parameters, expected=0, text="how many parameters it has")
    yield counts(float(rng.integers(3, 9)), run=graph, hidden=True)
    yield counts(float(rng.integers(3, 9)), run=eager, hidden=True)
