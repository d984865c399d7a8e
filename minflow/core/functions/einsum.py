"""`einsum`: sums of products named by letters, computed two tensors at a time with matmul."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from ..base.errors import ShapeError
from ..ops import elementwise as e, reduce as r, shape as s
from ..source_location import fail
from .linear_algebra import matmul, promoted

if TYPE_CHECKING:
    from ..tensor import Tensor


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products: `einsum("bij,bjk->bik", a, b)`. A letter missing on the right is summed over; "..." broadcasts.

    The same with numbers for letters: `einsum(a, [0, 1, 2], b, [0, 2, 3], [0, 1, 3])`.
    Raises ShapeError if the equation does not match the tensors.
    """
    if operands and not isinstance(equation, str):
        equation, operands = from_numbers((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    operands = tuple(promoted("einsum", *operands))
    terms, result = parse(equation, operands)
    sizes: dict[str, int] = {}
    for k, (term, x) in enumerate(zip(terms, operands)):
        own = dict(zip(term, x.spec.shape))
        for letter, size in zip(term, x.spec.shape):
            if own[letter] != size:
                what = f"einsum: {letter!r} is {size} and {own[letter]} in tensor {k}"
                fail(ShapeError, what, "a diagonal needs axes of the same size", **{f"tensor {k} ({term})": x})
            if sizes.setdefault(letter, size) != size and size != 1 and sizes[letter] != 1:
                fail(
                    ShapeError,
                    f"einsum: {letter!r} is {sizes[letter]} in one tensor and {size} in tensor {k}",
                    f"check {equation!r}",
                    **{f"tensor {j} ({t})": y for j, (t, y) in enumerate(zip(terms, operands))},
                )
            sizes[letter] = max(sizes[letter], size) if 1 in (size, sizes[letter]) else size
    left, x = once(terms[0], operands[0])
    order = result + "".join([letter for letter in sizes if letter not in result])
    for k in range(1, len(terms)):
        later = set(result).union(*terms[k + 1 :])
        right, y = once(terms[k], operands[k])
        left, x = contract(left, x, right, y, later, order)
    x = ordered(left, x, sorted(left, key=order.index))  # before the sum, so that its output is contiguous
    return r.sum(x, axis=tuple(range(len(result), len(left))), keepdims=False) if len(left) > len(result) else x


def from_numbers(arguments: tuple) -> tuple[str, tuple]:
    """Equation and tensors of the form that numbers the axes: tensors and lists in turn, then that of the result."""
    count = len(arguments) // 2 * 2
    lists = [*arguments[1:count:2], *arguments[count:]]
    for axes in lists:
        listed = isinstance(axes, list | tuple)
        if not listed or not all([x is ... or (isinstance(x, int) and 0 <= x < 52) for x in axes]):
            what = "einsum: without an equation, each tensor is followed by a list of numbers from 0 to 51"
            fail(ShapeError, what, "einsum(a, [0, 1], b, [1, 2], [0, 2])", list=axes)
    letters = [*map(chr, range(65, 91)), *map(chr, range(97, 123))]  # in the order of a result without a list
    terms = ["".join(["..." if x is ... else letters[x] for x in axes]) for axes in lists]
    equation = ",".join(terms[: count // 2])
    return equation if count == len(arguments) else f"{equation}->{terms[-1]}", arguments[:count:2]


def parse(equation: str, operands: Any) -> tuple[list[str], str]:
    """Letters for each tensor and for the result; the axes covered by "..." get Greek letters."""
    inputs, arrow, result = equation.replace(" ", "").partition("->")
    strange = re.sub(r"[a-zA-Z,]|\.\.\.", "", inputs + result)
    if strange:
        what = f"einsum: {strange[0]!r} in {equation!r} is not a letter"
        fail(ShapeError, what, 'letters from a to z and from A to Z, "..." and commas')
    terms = inputs.split(",")
    if len(terms) != len(operands):
        what = f"einsum: {equation!r} names {len(terms)} tensors, {len(operands)} are given"
        fail(ShapeError, what, "as many as the commas ask for")
    extra = [x.spec.ndim - len(term.replace("...", "")) if "..." in term else 0 for term, x in zip(terms, operands)]
    spare = [chr(c) for c in range(0x3B1, 0x3B1 + max(extra, default=0))]  # Greek, which no equation uses
    terms = [term.replace("...", "".join(spare[len(spare) - n :])) for term, n in zip(terms, extra)]
    for k, (term, x) in enumerate(zip(terms, operands)):
        if len(term) != x.spec.ndim:
            what = f"einsum: {term!r} names {len(term)} axes, tensor {k} has {x.spec.ndim}"
            fail(ShapeError, what, "a letter for each axis", **{f"tensor {k}": x})
    if arrow:
        result = result.replace("...", "".join(spare))
    else:
        letters = "".join(terms)
        result = "".join(spare) + "".join(sorted({c for c in letters if letters.count(c) == 1 and c not in spare}))
    unknown = set(result) - set("".join(terms))
    if unknown or len(set(result)) < len(result):
        what = f"einsum: the right side of {equation!r} has a letter twice or one that no tensor has"
        fail(ShapeError, what, "letters of the left side, each once")
    return terms, result


def once(term: str, x: Tensor) -> tuple[str, Tensor]:
    """Replace a letter that a tensor has twice by its diagonal."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            a = term.index(letter)
            b = term.index(letter, a + 1)
            x = s.diagonal(x, offset=0, dim1=a, dim2=b)
            term = term[:a] + term[a + 1 : b] + term[b + 1 :] + letter
    return term, x


def alone(term: str, x: Tensor, needed: set[str]) -> tuple[str, Tensor]:
    """Sum over the letters that no other tensor and no output needs."""
    gone = tuple([d for d, letter in enumerate(term) if letter not in needed])
    return ("".join([c for c in term if c in needed]), r.sum(x, axis=gone, keepdims=False)) if gone else (term, x)


def ordered(term: str, x: Tensor, letters: list[str]) -> Tensor:
    """View whose axes are in the order of these letters, of size 1 for a letter that the tensor doesn't have."""
    dims = tuple([term.index(c) for c in letters if c in term])
    x = s.permute(x, dims=dims) if dims != tuple(range(len(dims))) else x
    sizes = iter(x.spec.shape)
    return x if len(dims) == len(letters) else x.reshape(*[next(sizes) if c in term else 1 for c in letters])


def contract(left: str, a: Tensor, right: str, b: Tensor, later: set[str], order: str) -> tuple[str, Tensor]:
    """(letters, tensor): multiply two tensors and sum over the letters that are not needed later.

    The axes of the product are in the output's `order`, as far as one matrix product can write them so.
    """
    left, a = alone(left, a, later | set(right))
    right, b = alone(right, b, later | set(left))
    letters = sorted({*left, *right}, key=order.index)
    inner = [c for c in letters if c not in later]
    if not inner:
        return "".join(letters), e.mul(ordered(left, a, letters), ordered(right, b, letters))
    batch = [c for c in letters if c in left and c in right and c in later]
    only_a, only_b = [c for c in letters if c not in right], [c for c in letters if c not in left]
    if only_a and only_b and order.index(only_b[0]) < order.index(only_a[0]):
        left, a, only_a, right, b, only_b = right, b, only_b, left, a, only_a
    a, b = ordered(left, a, batch + only_a + inner), ordered(right, b, batch + inner + only_b)
    shape_a, shape_b, n = a.spec.shape, b.spec.shape, len(batch)
    wide = tuple(
        [max(p, q) if 1 in (p, q) else p for p, q in zip(shape_a[n:][len(only_a) :], shape_b[n : n + len(inner)])]
    )
    a = s.expand(a, shape=shape_a[: n + len(only_a)] + wide)
    b = s.expand(b, shape=shape_b[:n] + wide + shape_b[n + len(inner) :])
    rows, columns, middle = (
        math.prod(shape_a[n : n + len(only_a)]),
        math.prod(shape_b[n + len(inner) :]),
        math.prod(wide),
    )
    product = matmul(a.reshape(*shape_a[:n], rows, middle), b.reshape(*shape_b[:n], middle, columns))
    shape = product.spec.shape[:n] + shape_a[n : n + len(only_a)] + shape_b[n + len(inner) :]
    return "".join(batch + only_a + only_b), product.reshape(*shape)
