"""Variants of lesson 04."""

import math

from ..variants import Change, ask, mistake, question, vary


@ask("start_value")
def start_value(rng):
    kinds = int(rng.choice([4, 26, 100, 1000]))
    right = math.log(kinds)
    one = question(
        "start_value",
        "An untrained network is about to learn {kinds} classes. It prefers none of them. What is its mean surprise at "
        "the right class, the cross entropy, about? Write `{answer} = ...`",
        kinds=kinds,
    )
    one.solution(round(right, 3))
    one.also_right(right)

    @one.accept
    def near(value):
        return abs(value - right) <= 0.05 * right

    mistake(one, "log10", round(math.log10(kinds), 4), "That is log10. The surprise is a natural logarithm.")
    mistake(one, "log2", round(math.log2(kinds), 4), "That is a surprise in bits. The surprise is a natural logarithm.")
    mistake(one, "the share", 1 / kinds, "That is the share of each class.")
    mistake(one, "certain", 0.0, "A surprise of 0 means: certain, and right.")
    mistake(one, "classes", float(kinds), "That is the number of classes.")
    mistake(
        one, "below 0", -right, "A surprise is never below 0.", when=lambda value: abs(value + right) < 0.05 * right
    )
    mistake(one, "ten classes", 2.3, "That is the start with ten classes.", when=lambda value: abs(value - 2.3) < 0.05)
    return one


vary(
    "softmax",
    "Write `{answer}(scores)`. It takes scores (n, k), a row for each example, and computes the softmax of each row. "
    "It must be right for any scores, small or large, and the given scores must stay as they are. Do not use the "
    "library's softmax.",
    [
        Change("percentages", "Return it in percent: each row sums to 100.", result="100 * ({})"),
        Change("other_shares", "Return for each class the share of all *other* classes: 1 minus its softmax.",
               result="1 - ({})"),
        Change("shares_by_class", "Return it with the shape (k, n): a row for each class, a column for each example.",
               result="({}).T"),
    ],
)

vary(
    "surprise",
    "Write `{answer}(scores, labels)`. It takes scores (n, k) and labels (n,). The surprise of a row is -ln(share of "
    "the right class). It must be right for large scores too, and `backward` must find its way through it. Build it "
    "from exp, log and sums.",
    [
        Change(
            "surprise_in_bits",
            "Return one number: the mean surprise in bits, that is divided by ln 2.",
            result="({}) / 0.6931471805599453",
            undo=lambda answer: lambda scores, labels: answer(scores, labels) * 0.6931471805599453,
        ),
        Change(
            "summed_surprise",
            "Return one number: the *sum* of the surprises of all rows.",
            result="({}) * len(labels)",
            undo=lambda answer: lambda scores, labels: answer(scores, labels) / len(labels),
            stale="sum|mean|average",
        ),
        Change(
            "log_likelihood",
            "Return one number: the mean of ln(share of the right class), without the minus.",
            result="-({})",
            undo=lambda answer: lambda scores, labels: -answer(scores, labels),
            stale="minus|below 0",
        ),
    ],
)

vary(
    "collapse",
    "`nn.Linear` gives `x @ w.T + b`; its weight w has the shape (out, in). Two of them, one after the other, have the "
    "weights w1, b1 and w2, b2. One single layer does the same. Write `{answer}(w1, b1, w2, b2)`.",
    [
        Change("merged_layer", "Return the pair `(b, w)`: the bias first.", result="({})[::-1]"),
        Change("merged_halved", "The result of the second layer is halved. Return the pair `(w, b)` of the layer that "
               "does all of it.", result="tuple(part / 2 for part in ({}))"),
        Change("merged_negative", "The result of the second layer is multiplied by -1. Return the pair `(w, b)` of the "
               "layer that does all of it.", result="tuple(-part for part in ({}))"),
    ],
)

vary(
    "n_times_n",
    "`{answer}` below should compute a loss in which each prediction meets its own target. The model gives (n, 1), and "
    "y is (n,). Correct it. It must work for any n, and `backward` must find its way through it.",
    [
        Change(
            "half_loss",
            "The loss is *half* the mean squared error.",
            result="({}) / 2",
            undo=lambda answer: lambda model, x, y: answer(model, x, y) * 2,
        ),
        Change(
            "summed_loss",
            "The loss is the *sum* of the squared errors, not their mean.",
            result="({}) * len(y)",
            undo=lambda answer: lambda model, x, y: answer(model, x, y) / len(y),
            stale="sum|mean",
        ),
    ],
)
