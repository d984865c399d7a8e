"""Variants of lesson 01."""

from ..variants import Change, ask, mistake, question, vary


@ask("shapes")
def shapes(rng):
    a, b, c = (int(size) for size in rng.permutation([2, 3, 4, 5, 6, 7])[:3])
    rows = [
        (f"({a}, {b}) + ({b},)", (a, b), "left ends", "error"),
        (f"({a}, 1) + (1, {b})", (a, b), "one of the two", (a, 1)),
        (f"({c}, 1, {b}) * ({a}, 1)", (c, a, b), "third", (c, a, 1)),
        (f"sum(({a}, {b}), axis=1)", (a,), "the other axis", (b,)),
        (f"({a}, {b}) + ({a},)", "error", "does not fit", (a, b)),
    ]
    rows = [rows[i] for i in rng.permutation(5)]
    right = [row[1] for row in rows]
    one = question(
        "shapes",
        "Which shapes come out? Write a list of five answers, `{answer} = [...]`. An answer is a shape such as "
        '`(2, 3)`, or `"error"` if the shapes do not fit. In `sum`, the named axis is summed.\n\n{rows}',
        rows="\n".join(f"{i}. `{row[0]}`" for i, row in enumerate(rows, 1)),
    )
    one.solution(right)
    one.also_right(tuple(right))

    @one.accept
    def in_order(answers):
        return [one.lower() if isinstance(one, str) else tuple(one) for one in answers] == right

    for place, (_, _, name, wrong) in enumerate(rows):
        mistake(
            one, name, [*right[:place], wrong, *right[place + 1 :]],
            "Lay the right ends together: sizes are equal or 1.",
            when=lambda answers, place=place: [i for i in range(5) if answers[i] != right[i]] == [place], half=True,
        )
    mistake(one, "another number of answers", right[:4], "Five answers.", when=lambda answers: len(answers) != 5)
    return one


vary(
    "distances",
    "Write `{answer}(x, y)`. `x` holds n points and `y` holds m points, each with d coordinates: their shapes are "
    "`(n, d)` and `(m, d)`. The squared distance of two points is the sum of the squares of their differences, "
    "coordinate by coordinate. Use no loop and not `cdist`.",
    [
        Change(
            "distances_to",
            "The result has the shape `(m, n)`: the squared distance from each point of `y`, a row, to each of `x`.",
            result="({}).T",
        ),
        Change(
            "true_distances",
            "The result has the shape `(n, m)`: the distance itself, the root of the squared one, from each point of "
            "`x` to each of `y`.",
            result="({}) ** 0.5",
            stale="root|squared",
        ),
        Change(
            "half_squares",
            "The result has the shape `(n, m)`: *half* the squared distance from each point of `x` to each of `y`.",
            result="({}) / 2",
        ),
    ],
)

vary(
    "one_hot",
    "Write `{answer}(labels, k)`. `labels` holds n integers. The result has the shape `(n, k)` and the dtype float32: "
    "a row for each label. Use `flow.arange`, a comparison and indexing; no loop, and no function that does it all.",
    [
        Change(
            "one_hot_from_one",
            "Here labels count from 1: label 1 has its 1.0 in the first column, label k in the last one. A label that "
            "is not from 1 to k, such as 0, gives a row of zeros.",
            edits={"flow.arange(k)": "flow.arange(1, k + 1)", "flow.arange(1, k + 1)": "flow.arange(k)",
                   "label == i for": "label == i + 1 for", "labels] = 1": "labels - 1] = 1"},
            stale="from 1",
        ),
        Change("one_cold", "A row has 0.0 in the column of its label, which counts from 0, and 1.0 everywhere else.",
               result="1 - ({})", without=("whole numbers",), stale="Zeros and ones"),
        Change("signs", "A row has 1.0 in the column of its label, which counts from 0, and -1.0 everywhere else.",
               result="2 * ({}) - 1", without=("whole numbers",)),
    ],
)

vary(
    "same_scale",
    "Each row of `x` is an example, each column something measured. `{answer}` below should bring each column to a "
    "common mean and deviation (the root of the mean of the squared distances from the mean; divide by n). Correct "
    "it. `x` itself must stay as it was. A column of equal numbers gives the mean everywhere.",
    [
        Change(f"to_scale_{mean}", "Each column gets the mean {mean} and the deviation {spread}.",
               result=f"{mean} + {spread} * ({{}})", values={"mean": mean, "spread": spread})
        for mean, spread in ((50, 10), (100, 15), (5, 2))
    ],
)
