"""Variants of lesson 00."""

from functools import partial
from numbers import Real

import numpy as np

from ...definition import case
from ..variants import Change, ask, mistake, question, vary

CURVE = 12  # losses of the curves that tell a number of last losses from another one


@ask("blind")
def blind(rng):
    kinds = int(rng.choice([4, 6, 20, 50]))
    one = question(
        "blind",
        "A model with random weights sorts pictures into {kinds} kinds, equally many of each. It has learned nothing. "
        "Which share of the pictures does it sort correctly, about? Write a number from 0 to 1: `{answer} = ...`",
        kinds=kinds,
    )
    one.solution(round(1 / kinds, 3))
    one.also_right(1 / kinds)

    @one.accept
    def near(share):
        return 0.8 / kinds <= share <= 1.25 / kinds

    mistake(one, "no number", str(1 / kinds), when=lambda share: not isinstance(share, Real))
    mistake(one, "none", 0, "Even a blind guess is right now and then.", when=lambda share: share <= 0)
    mistake(one, "percent", 100 / kinds, "A share is between 0 and 1.", when=lambda share: share > 1)
    mistake(one, "ten kinds", 0.1, "That is the share with ten kinds.", when=lambda share: 0.09 <= share <= 0.11)
    mistake(one, "half", 0.5, "That is the share with two kinds.")
    mistake(one, "all but one", 1 - 1 / kinds, "That is the share of wrong answers.")
    return one


@ask("mixed_up")
def mixed_up(rng):
    kinds = 6
    matrix = np.diag(rng.integers(20, 40, kinds))
    places = [(i, j) for i in range(kinds) for j in range(kinds) if i != j]
    chosen = [places[i] for i in rng.permutation(len(places))[:6]]
    truth, read = pair = chosen[0]
    if (read, truth) not in chosen:
        chosen[1] = read, truth
    for place, count in zip(chosen, (9, 7, 5, 3, 2, 1)):
        matrix[place] = count if place != (read, truth) else 6
    one = question(
        "mixed_up",
        "A model sorts pictures of {kinds} kinds, 0 to {last}. In its confusion matrix a row is the true kind, and a "
        "column is what the model said:\n\n```text\n{matrix}\n```\n\nWhich kind is most often taken for which other? "
        "Write `{answer} = (true kind, what the model said)`.",
        kinds=kinds,
        last=kinds - 1,
        matrix="\n".join(" ".join(f"{count:3}" for count in row) for row in matrix),
    )
    one.solution(pair)
    one.also_right(list(pair))

    @one.accept
    def same(answer):
        return tuple(answer) == pair

    best = int(np.diag(matrix).argmax())
    mistake(one, "swapped", (read, truth), "Rows are the truth: the right kinds in the wrong order.")
    mistake(one, "right answers", (best, best), "On the diagonal the model was right.")
    mistake(one, "a count", 9, "That is how often it happened.")
    mistake(one, "counted from 1", (truth + 1, read + 1), "The first row is kind 0.")
    mistake(
        one, "not the most", chosen[2], "That happened, but not most often.",
        when=lambda answer: tuple(answer) in chosen[1:] and tuple(answer) not in (pair, (read, truth)),
    )
    return one


def keep_rate_case(last, high, text):
    """A curve whose loss number `last`, from the end, is far from the others, and a flat one between."""
    curve = [0.5] * CURVE
    curve[-last] = 0.5 + high
    flat = [0.5 + high / 20] * CURVE
    return case({0.1: curve, 0.2: flat}, text=text)


vary(
    "keep_rate",
    "Write `{answer}(losses)`. It gets a dict: for each learning rate the list of its losses. It returns the rate to "
    "keep. A list may be short. A loss may be `nan`: a rate with `nan` among the losses that count is never kept.",
    [
        Change(
            "best_rate",
            "The rate to keep is the one whose last {last} losses have the lowest mean; of a shorter list all count.",
            values={"last": last},
            edits={
                "[-10:]": f"[-{last}:]",
                "min(10,": f"min({last},",
                ") / 10)": f") / {last})",
                "[:10]": f"[:{last}]",
            },
            without=("nine losses",),
            more=(
                partial(keep_rate_case, last, 1.0, "0.1: one high loss among twelve; 0.2 is flat"),
                partial(keep_rate_case, last + 1, -1.0, "0.1: one low loss among twelve; 0.2 is flat"),
            ),
            stale="ten|10",
        )
        for last in (6, 7, 8)
    ],
)
