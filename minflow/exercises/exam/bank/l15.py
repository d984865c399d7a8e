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
