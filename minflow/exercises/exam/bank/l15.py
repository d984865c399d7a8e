"""Variants of lesson 15."""

from ..variants import Change, vary

vary(
    "next_one",
    "Write `{answer}(ids, length)`. `ids` is a text as a row of whole numbers, a tensor. There are two tensors of "
    "whole numbers, of the same shape: x has all windows of `length` symbols, one below the other, and y has, for "
    "each, the next symbol at every place. For the ids 3 1 4 1 5 and length 2, x is [[3, 1], [1, 4], [4, 1]].",
    [
        Change("targets_first", "Return the pair `(y, x)`.", result="({})[::-1]",
               undo=lambda answer: lambda ids, length: answer(ids, length)[::-1]),
        Change("windows_in_dict", 'Return a dict with the keys "x" and "y".', result='dict(zip("xy", ({})))',
               undo=lambda answer: lambda ids, length: (lambda both: (both["x"], both["y"]))(answer(ids, length))),
    ],
)

vary(
    "look_back",
    "Write `{answer}(q, k, v)`. All three have the shape (N, T, d): N texts, T places, width d; `v` may have another "
    "width. Its attention at a place is the mean of the values of this place and of the places before it, weighted by "
    "softmax shares, with scores divided by the square root of d. Later places must not change it at all, however "
    "large their scores are.",
    [
        Change("doubled_attention", "Return 2 times this attention, a tensor of the shape of `v`.", result="2 * ({})",
               undo=lambda answer: lambda *parts: answer(*parts) / 2),
        Change("attention_and_values", "Return the sum of this attention and `v`, a tensor of the shape of `v`.",
               result="v + ({})", undo=lambda answer: lambda q, k, v: answer(q, k, v) - v, without=("an array",)),
    ],
)

vary(
    "sample",
    "Write `{answer}(scores, temperature, rng)`. `scores` is a tensor, one for each symbol; `rng` is a generator of "
    "NumPy. At the temperature 0 choose the place of the largest score, otherwise draw a place by the shares. Draw "
    "with `rng` alone, so that the same generator writes the same text again.",
    [
        Change("sample_from_one", "Places count from 1: return the place as a plain whole number from 1 to "
               "`len(scores)`.", result="({}) + 1", undo=lambda answer: lambda *parts: answer(*parts) - 1),
        Change("sample_from_the_end", "Places count from the end: return 0 for the last symbol, 1 for the one before "
               "it, as a plain whole number.", result="len(scores) - 1 - ({})",
               undo=lambda answer: lambda scores, *rest: len(scores) - 1 - answer(scores, *rest)),
    ],
)
