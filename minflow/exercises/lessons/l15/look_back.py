"""15.2 look_back: attention that only looks back."""

import math

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "15.2", "look_back", kind="write", level="core", answer="attention", tolerance=(1e-5, 1e-5),
    question="How does a place take what it needs from earlier places, and nothing from later ones?",
    hint="Three steps: scores of each place for each place, shares that sum to 1 in each row, and a mean by these "
         "shares. What does row 0 look at?",
    fact="All places are done at once, by two matrix products. That made this kind of model fast to train, and large.",
    sibling="Three places, scores of place 1 for places 0, 1, 2: [0, 0, 5]. It must not look at place 2. So its score "
            "becomes -inf *before* the softmax: exp(-inf) is exactly 0, and the others share the 1: [1/2, 1/2, 0]. In "
            "code: `scores.masked_fill(later, -math.inf)`, where `later` is True at places that must not be seen.",
    forbidden={name: "That is the library's function. Write the three steps." for name in
               ("scaled_dot_product_attention", "MultiheadAttention")},
)


@exercise.solution
def attention(q, k, v):
    n, t, d = q.shape
    # how well does each question fit each key?
    scores = q @ k.transpose(1, 2) / math.sqrt(d)
    # exclude later places before the shares are made
    later = flow.ones(t, t).triu(1) == 1
    shares = scores.masked_fill(later, -math.inf).softmax(2)
    # a mean of the values, weighted by these shares
    return shares @ v


@exercise.also_right
def attention(q, k, v):
    places = flow.arange(q.shape[1])
    allowed = places[:, None] >= places
    scores = flow.where(allowed, (q / q.shape[2] ** 0.5) @ k.transpose(-1, -2), flow.tensor(-math.inf, dtype=q.dtype))
    weights = (scores - scores.amax(2, keepdim=True)).exp()
    return (weights / weights.sum(2, keepdim=True)) @ v


@exercise.also_right
def attention(q, k, v):
    results = []
    for place in range(q.shape[1]):
        seen = slice(0, place + 1)
        scores = (k[:, seen] * q[:, place:place + 1]).sum(2) / math.sqrt(q.shape[2])
        results.append((scores.softmax(1)[:, :, None] * v[:, seen]).sum(1))
    return flow.stack(results, 1)


def later(t):
    return flow.ones(t, t).triu(1) == 1


def attend(q, k, v, *, mask=lambda scores: scores.masked_fill(later(scores.shape[1]), -math.inf), axis=2, scale=0.5,
           after=lambda shares: shares):
    scores = mask(q @ k.transpose(1, 2) / q.shape[2] ** scale)
    return after(scores.softmax(axis)) @ v


@exercise.wrong("mask after softmax",
                "Your rows do not sum to 1: the future was taken out *after* the shares were made.",
                "Mask the scores with -inf, then softmax.")
def attention(q, k, v):
    return attend(q, k, v, mask=lambda s: s, after=lambda s: s.masked_fill(later(s.shape[1]), 0.0))


@exercise.wrong("sees the future alone",
                "Your mask is reversed: place 0 sees all, and the last place only itself.",
                "True, and -inf, belong where the column comes *after* the row: above the diagonal.")
def attention(q, k, v):
    return attend(q, k, v, mask=lambda s: s.masked_fill(later(s.shape[1]).T, -math.inf))


@exercise.wrong("no mask",
                "A place sees later places: to predict the next symbol it can simply look at it.",
                "Above the diagonal, set the scores to -inf before the softmax.")
def attention(q, k, v):
    return attend(q, k, v, mask=lambda s: s)


@exercise.wrong("not scaled",
                "With wide vectors one place takes nearly everything: the scores grow with the width.",
                "Divide the scores by the square root of d, the last size of q.")
def attention(q, k, v):
    return attend(q, k, v, scale=0.0)


@exercise.wrong("divided by d",
                "Your shares are too even: you divide by d. If you divide by its square root, the scores keep their "
                "size.",
                "`math.sqrt(d)`.")
def attention(q, k, v):
    return attend(q, k, v, scale=1.0)


@exercise.wrong("multiplied by the root",
                "One place takes nearly everything: your scores become larger. They should be kept small.",
                "Divide by the square root of d.")
def attention(q, k, v):
    return attend(q, k, v, scale=-0.5)


@exercise.wrong("root of the places",
                "You divide by the root of T, the number of places. The scores are sums over the width of q.",
                "d is the last size of q.")
def attention(q, k, v):
    return attend(q * (q.shape[2] / q.shape[1]) ** 0.5, k, v)


@exercise.wrong("width of four",
                "The width is fixed in yours. How wide is q in this case?",
                "`q.shape[2]`")
def attention(q, k, v):
    return attend(q * (q.shape[2] / 4) ** 0.5, k, v)


POWER = ("`d ** 1 / 2` is not the root: the power comes first, and then its result is halved.",
         "`d ** 0.5` or `math.sqrt(d)`.")


@exercise.wrong("power before division", *POWER)
def attention(q, k, v):
    return attend(q / 2, k, v, scale=1.0)


@exercise.wrong("power before division, in brackets", *POWER)
def attention(q, k, v):
    return attend(q * 2, k, v, scale=1.0)


@exercise.wrong("four places",
                "Your mask is for four places. How many are there in this case?",
                "T is the second size of q.")
def attention(q, k, v):
    return attend(q, k, v, mask=lambda s: s.masked_fill(later(4), -math.inf))


@exercise.wrong("texts for places",
                "`k.transpose(0, 1)` swaps texts and places. Each text must stay alone: which two axes does `@` use?",
                "`k.transpose(1, 2)` swaps places and width.")
def attention(q, k, v):
    scores = q @ k.transpose(0, 1) / math.sqrt(q.shape[2])
    return scores.masked_fill(later(q.shape[1]), -math.inf).softmax(2) @ v


@exercise.wrong("shares alone",
                "These are the shares. What does each place take, by these shares?",
                "The shares times the values: a mean of the values.")
def attention(q, k, v):
    return (q @ k.transpose(1, 2) / math.sqrt(q.shape[2])).masked_fill(later(q.shape[1]), -math.inf).softmax(2)


@exercise.wrong("a pair",
                "You return two things, the result and the shares. The exercise asks for the result.",
                "`return shares @ v`, and nothing else.")
def attention(q, k, v):
    scores = (q @ k.transpose(1, 2) / math.sqrt(q.shape[2])).masked_fill(later(q.shape[1]), -math.inf)
    return scores.softmax(2) @ v, scores.softmax(2)


SCORES = ("These are scores times values. What must each row of scores sum to, so that it is a mean?",
          "A softmax over each row comes between the scores and the values.")


@exercise.wrong("no softmax", *SCORES)
def attention(q, k, v):
    return (q @ k.transpose(1, 2) / math.sqrt(q.shape[2])).masked_fill(later(q.shape[1]), 0.0) @ v


@exercise.wrong("no softmax, masked", *SCORES)
def attention(q, k, v):
    return (q @ k.transpose(1, 2) / math.sqrt(q.shape[2])).masked_fill(later(q.shape[1]), -math.inf) @ v


@exercise.wrong("exp overflows",
                "exp of a large score is too large for a number, and infinite by infinite is none.",
                "`softmax` subtracts the largest score first, and avoids this.")
def attention(q, k, v):
    weights = (q @ k.transpose(1, 2) / math.sqrt(q.shape[2])).exp().masked_fill(later(q.shape[1]), 0.0)
    return weights / weights.sum(2, keepdim=True) @ v


@exercise.wrong("place by place",
                "`*` multiplies what is at the same place. But each place must be compared with *all* places.",
                "`@` takes every row with every column.")
def attention(q, k, v):
    return (q * k / math.sqrt(q.shape[2])).softmax(2) * v


@exercise.wrong("shares times values, place by place",
                "`*` multiplies what is at the same place. A mean of the values is a sum over all places.",
                "`shares @ v`")
def attention(q, k, v):
    return (q @ k.transpose(1, 2) / math.sqrt(q.shape[2])).masked_fill(later(q.shape[1]), -math.inf).softmax(2) * v


@exercise.wrong("equal shares",
                "Each place takes the same from all. What are q and k for?",
                "The score of two places: question times key, summed.")
def attention(q, k, v):
    return attend(q * 0, k, v)


@exercise.wrong("an array",
                "You return an array of NumPy. With tensors, the network can be trained through the attention.",
                "`.numpy()` is not needed.")
def attention(q, k, v):
    return attend(q, k, v).numpy()


@exercise.wrong("softmax over the wrong axis",
                "Each row is a place that looks, and shares out its attention: a row sums to 1, not a column.",
                "Take softmax over the last axis, the places that are looked at.")
def attention(q, k, v):
    return attend(q, k, v, axis=1)


@exercise.wrong("0 and 1 added",
                "The future is only a little less likely, not excluded: you added 0 and 1 to the scores.",
                "Only -inf becomes exactly 0 in the softmax.")
def attention(q, k, v):
    return attend(q, k, v, mask=lambda s: s + flow.ones(s.shape[1], s.shape[1]).tril())


@exercise.wrong("0 for -inf",
                "A score of 0 is not small: exp(0) is 1. The future still gets a share.",
                "-inf, not 0: `masked_fill(later, -math.inf)`.")
def attention(q, k, v):
    return attend(q, k, v, mask=lambda s: s.masked_fill(later(s.shape[1]), 0.0))


@exercise.wrong("-1e4 for -inf",
                "That is right until the scores are large: with a score of 100,000, what you add is too little.",
                "`-math.inf` is below every number.")
def attention(q, k, v):
    return attend(q, k, v, mask=lambda s: s + later(s.shape[1]) * -1e4)


@exercise.wrong("-1e9 for -inf",
                "That is right until the other scores are very low: -10,000,000,000 is below your number.",
                "`-math.inf` is below every number.")
def attention(q, k, v):
    return attend(q, k, v, mask=lambda s: s.masked_fill(later(s.shape[1]), -1e9))


@exercise.wrong("question and key exchanged",
                "Which place asks? A row of scores belongs to the place that looks, so q is on the left.",
                "q @ k turned: row i, column j is the question of i times the key of j.")
def attention(q, k, v):
    return attend(k, q, v)


@exercise.wrong("itself not seen, NaN",
                "Row 0 sees no place at all, so its shares are 0/0. A place may see itself too.",
                "Only what comes *later* is out: triu(1), not triu(0).")
def attention(q, k, v):
    return attend(q, k, v, mask=lambda s: s.masked_fill(flow.ones(s.shape[1], s.shape[1]).triu(0) == 1, -math.inf))


@exercise.wrong("itself not seen",
                "A place may see itself too. Place 0 has no other.",
                "Only what comes *later* is out: triu(1), not triu(0).")
def attention(q, k, v):
    return attend(q, k, v, mask=lambda s: s.masked_fill(flow.ones(s.shape[1], s.shape[1]).triu(0) == 1, -1e30))


# ---- what is asked --------------------------------------------------------------------------------------------------

def reference(q, k, v):
    """Place by place, in float64."""
    result = np.zeros(v.shape)
    for n in range(len(q)):
        for t in range(q.shape[1]):
            scores = k[n, :t + 1] @ q[n, t] / q.shape[2] ** 0.5
            weights = np.exp(scores - scores.max())
            result[n, t] = weights @ v[n, :t + 1] / weights.sum()
    return result


def attention_case(q, k, v, text="", hidden=False):
    arrays = [np.asarray(one, float) for one in (q, k, v)]
    return case(*[flow.tensor(one, dtype=flow.float32) for one in arrays], expected=reference(*arrays), text=text,
                hidden=hidden)


def column(*numbers):
    return [[[number] for number in numbers]]


def kind(attention, q, k, v):
    """The type of the result."""
    return type(attention(q, k, v)).__name__


def before_change(attention, q, k, v, k2, v2):
    """How much the places before the last one change when the last one does."""
    one, other = np.asarray(attention(q, k, v)), np.asarray(attention(q, k2, v2))
    return float(np.abs(one - other)[:, :-1].max())


def future(rng, hidden=False):
    q, k, v, k2, v2 = rng.normal(size=(5, 1, 4, 3))
    k2[:, :-1], v2[:, :-1] = k[:, :-1], v[:, :-1]
    return case(*[flow.tensor(one, dtype=flow.float32) for one in (q, k, v, k2, v2)], run=before_change, expected=0.0,
                text="4 places, k and v of the last one changed: the change at the others", hidden=hidden)


@exercise.cases
def cases(rng):
    fixed = np.random.default_rng(3)
    yield attention_case(column(2), column(3), column(5), "one place: q = 2, k = 3, v = 5")
    yield case(*flow.ones(3, 1, 1, 1), run=kind, expected="Tensor", text="one place, all 1: the type of the result")
    yield attention_case(column(0, 0, 0), column(0, 0, 0), column(1, 1, 1), "3 places, q and k all 0, v all 1")
    yield attention_case(column(0, 0, 0), column(0, 0, 0), column(1, 3, 8), "3 places, q and k all 0, v = 1, 3, 8")
    yield attention_case(column(1, 2), column(1, -1), column(10, 20), "2 places: q = 1, 2, k = 1, -1, v = 10, 20")
    yield attention_case([[[1, 1, 1, 1], [1, 0, 1, 0]]], [[[1, 0, 0, 0], [1, 1, 1, 1]]], [[[1, 0], [0, 1]]],
             "2 places, q and k 4 wide, v 2 wide: every size counts")
    yield future(fixed)
    yield attention_case(column(0, 1, 1), column(0, 0, 1e5), column(1, 2, 3),
                         "3 places, a score of 100,000 for the last")
    yield attention_case(column(1e5, 1e5, 1e5), column(-1e5, -1e5, -1e5), column(1, 2, 3),
             "3 places, all scores -10,000,000,000, v = 1, 2, 3")
    yield attention_case(*fixed.normal(size=(3, 2, 3, 16)) * 2, "a batch of 2, 3 places, 16 wide")
    yield attention_case(*rng.normal(size=(3, 3, 5, 8)), hidden=True)
    yield attention_case(*rng.normal(size=(3, 1, 6, 2)), hidden=True)
    yield future(rng, hidden=True)
