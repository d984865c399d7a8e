"""Variants of lesson 03."""

from ...definition import case
from ...lessons.l03.forgot import model_of
from ..variants import Change, ask, mistake, question, vary


@ask("diamond")
def diamond(rng):
    a, k = int(rng.choice([2, 3])), int(rng.choice([3, 4, 5]))
    one = question(
        "diamond",
        "`a` is {a}. Then `b = a * a`, `c = {k} * b` and `d = c * b`. What is the slope of `d` "
        "with respect to `a`? Write `{answer} = ...`",
        a=a,
        k=k,
    )
    value, slope, up_to_b = k * a**4, 4 * k * a**3, 2 * k * a**2
    one.solution(slope)
    # an intermediate result may equal the answer by chance
    for name, wrong, hint in (
        ("half", slope / 2, "One path is missing: b is used in c and in d, and a twice in b."),
        ("up to b", up_to_b, "That is the slope of d with respect to b. There is one more step, from b to a."),
        ("twice", 2 * slope, "One path is counted twice."),
        ("value of d", value, "That is the value of d, not a slope."),
        ("value of c", k * a * a, "That is c, the slope of d with respect to b on the straight path."),
        ("added along the way", up_to_b + 2 * a, "From d to b and on to a the slopes are multiplied."),
    ):
        if wrong != slope and wrong not in [known.answer for known in one.wrongs]:
            mistake(one, name, wrong, hint)
    return one


vary(
    "parents_first",
    "Write `{answer}(node, inputs)`. `inputs(n)` gives the list of inputs of a node `n`. Return a list of the nodes "
    "that `node` was computed from. Each node is in it once. A chain of 5,000 nodes must work.",
    [
        Change(
            "backward_order",
            "`node` itself is in the list too, as the first. Each node comes *before* all its inputs.",
            result="({})[::-1]",
            undo=lambda answer: lambda node, inputs: answer(node, inputs)[::-1],
        ),
        Change(
            "ancestors_first",
            "`node` itself is *not* in the list. Each node comes after all its inputs.",
            result="({})[:-1]",
            undo=lambda answer: lambda node, inputs: [*answer(node, inputs), node],
            without=("backwards",),
        ),
    ],
)

vary(
    "fold_back",
    "Some tensor of shape `shape` was stretched by broadcasting. `g` is the gradient of the stretched tensor. Write "
    "`{answer}(g, shape)`: bring `g` back to `shape` by summing over the axes that were stretched.",
    [
        Change("fold_and_turn", "Return it with the opposite sign.", result="-({})"),
        Change("step_back", "Return the step of an optimizer with the learning rate 0.5: -0.5 times this gradient.",
               result="-0.5 * ({})"),
        Change("fold_doubled", "The tensor was used twice in the same way: return 2 times this gradient.",
               result="2 * ({})"),
    ],
)


def unless_none(result, change):
    """A result that is None stays None, so that the check can say so."""
    return None if result is None else change(result)


def counted(train_step):
    """Second entry of the result, for a batch of two."""
    return train_step(*model_of([[1.0], [2.0]], [[2.0], [3.0]]))[1]


vary(
    "forgot",
    "`{answer}` below should train one step. It trains badly: correct it. The loss is that of the batch before this "
    "step, as a plain number.",
    [
        Change(
            "step_and_count",
            "It returns a pair: the loss, and the number of examples in the batch.",
            result="({}, len(x))",
            undo=lambda answer: lambda *batch: unless_none(answer(*batch), lambda pair: pair[0]),
            more=(lambda: case(run=counted, expected=2, text="x = [1 2]: the second of the pair"),),
        ),
        Change(
            "step_and_root",
            "It returns the root of the loss instead of the loss.",
            result="({}) ** 0.5",
            undo=lambda answer: lambda *batch: unless_none(answer(*batch), lambda root: root**2),
        ),
    ],
)

vary(
    "who_keeps",
    "The cell below shows the memory of a tape. Which operation keeps the most bytes for the backward pass? Write its "
    'name as a text: `{answer} = "..."`',
    [Change("keeper", "")],
    setup='mine = draw("{name}")\nflow.show(mine, memory=True)',
)
