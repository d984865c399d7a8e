"""Variants of lesson 14."""

from ..variants import Change, vary

vary(
    "swish_rule",
    "Write `{answer}(g, x)`, a gradient rule. It gets `g`, the gradient of the result, and x, both tensors, and "
    "returns the gradient of x. Write it with operations of the engine, so that it has a gradient itself. It must be "
    "right for very large x too.",
    [
        Change("rule_of_double_swish", "It is the rule of `2 * x * x.sigmoid()`.", result="2 * ({})",
               undo=lambda answer: lambda g, x: answer(g, x) / 2),
        Change("rule_of_minus_swish", "It is the rule of `1 - x * x.sigmoid()`.", result="-({})",
               undo=lambda answer: lambda g, x: -answer(g, x)),
        Change("rule_of_shifted_swish", "It is the rule of `3 * x + x * x.sigmoid()`.", result="3 * g + ({})",
               undo=lambda answer: lambda g, x: answer(g, x) - 3 * g),
    ],
)
