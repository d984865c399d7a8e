"""Symbolic sizes: ints and floats that know how they follow from the sizes of a graph's inputs.

While a build is traced for sizes that vary, the shape of an input holds a SymInt for each of them. Arithmetic on
SymInts gives SymInts and SymFloats. Whatever else the program does with one (a comparison, a truth value, the key of a
dict, a conversion to a plain number) gives the plain result and adds a guard: the trace holds at other sizes only if
all guards do. The names are those of PyTorch's symbolic shapes. As a check, `compiler/dynamic_shapes/` compares such a
trace with a plain one.
Read next: `spec.py`, whose shapes hold SymInts.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from typing import Any, NamedTuple, TypeAlias

from .host import host_array

# A sum of products: ((factors, coefficient), ...), sorted, without zeros. A factor is a name or a FloorDiv.
Terms: TypeAlias = tuple[tuple[tuple, int], ...]
LEAST = 2  # the smallest symbolic size: 0 and 1 are special cases of most ops, such as broadcasting
MAX_POWER = 8
DIVISIONS = operator.floordiv, operator.mod


class FloorDiv(NamedTuple):
    """`terms // divisor`, a factor of a term, for a division that leaves a remainder at some sizes."""

    terms: Terms
    divisor: int


class Guard(NamedTuple):
    """A decision of the program, `left relation right`, which was `truth` when it was traced.

    relation: "==", "<" or "<="; or "contiguous" or "view", of a `view_path` and the shape of a view.  where: the line
    of the program.
    """

    relation: str
    left: Any
    right: Any
    truth: bool
    where: str

    def holds(self, evaluate: Evaluation) -> bool:
        """True if the decision is the same with these values."""
        try:
            left, right = [map_structure(x, evaluate) for x in (self.left, self.right)]
            return RELATIONS[self.relation](left, right) is self.truth
        except Exception:  # a division by zero, a view that does not exist
            return False

    def __str__(self) -> str:
        if self.relation not in NEGATED:
            return f"the strides of a view are {'' if self.truth else 'not '}{self.relation}"
        relation = self.relation if self.truth else NEGATED[self.relation]
        left, right = text_of(self.left), text_of(self.right)
        if plain(self.left) is self.left:  # a plain number, which is written last
            left, right, relation = right, left, relation.translate(MIRRORED)
        return f"{left} {relation} {right}"


RELATIONS: dict[str, Callable[[Any, Any], bool]] = {"==": operator.eq, "<": operator.lt, "<=": operator.le}
NEGATED = {"==": "!=", "<": ">=", "<=": ">"}
MIRRORED = str.maketrans("<>", "><")


class ShapeEnv:
    """The symbols of one trace, and the guards that it has added.

    sizes: name -> the size at which the program is traced, at least LEAST.  here: returns the line of the program, for
    a guard.  is_engine: tells from a frame whether its code is minflow's, which may look up SymInts in its caches
    without a guard.  active: False after the trace; SymInts that are left behave as plain ints.
    """

    def __init__(self, sizes: Mapping[str, int], here: Callable[[], str], is_engine: Callable[[Any], bool]):
        self.sizes, self.here, self.is_engine = dict(sizes), here, is_engine
        self.guards: dict[tuple, Guard] = {}
        self.known: dict[Terms, SymInt] = {}
        self.ranges: dict[int, tuple] = {}  # id of the array of a constant -> (array, start, end, step)
        self.active = True

    def symbol(self, name: str) -> int:
        """The SymInt of a size."""
        return self.number(((((name,)), 1),))

    def number(self, terms: Terms) -> Any:
        """The int with these terms: a plain one if it is constant, else the one SymInt."""
        if not terms:
            return 0
        if terms[-1][0] == () and len(terms) == 1:
            return terms[0][1]
        if terms not in self.known:
            self.known[terms] = SymInt(self, terms)
        return self.known[terms]

    def fix_range(self, array: Any) -> None:
        """Guard the bounds of a constant made by `arange`, whose elements the program reads."""
        _, *bounds = self.ranges.get(id(array), (array,))
        list(map(fixed, bounds))

    def in_engine(self) -> bool:
        """True if minflow's own code called a method of this module, false if the program did."""
        frame = sys._getframe(1)
        while frame.f_code.co_filename == __file__ and frame.f_back is not None:
            frame = frame.f_back
        return self.is_engine(frame)

    def decide(self, relation: str, left: Any, right: Any) -> bool:
        """The truth of a comparison at the traced sizes. Adds a guard unless it is the same at all sizes."""
        truth = RELATIONS[relation](plain(left), plain(right))
        if self.active and always(relation, left, right) is None:
            key = relation, id_or_number(left), id_or_number(right)
            if key not in self.guards:
                self.guards[key] = Guard(relation, left, right, truth, self.here())
        return truth


def decide_structure(relation: str, left: tuple, right: tuple) -> bool:
    """The truth of a relation of structures, with a guard if they hold symbolic numbers."""
    truth = RELATIONS[relation](plain_structure(left), plain_structure(right))
    for env in {x.env for x in symbols_in((left, right)) if x.env.active}:
        env.guards.setdefault(
            (relation, identity(left), identity(right)), Guard(relation, left, right, truth, env.here())
        )
    return truth


def symbols_in(x: Any) -> Iterator[Any]:
    """The symbolic numbers in a structure (tuples, lists, dicts)."""
    kind = type(x)
    if kind in SYMBOLIC:
        yield x
    elif kind in (tuple, list, dict):
        for y in x.values() if kind is dict else x:
            yield from symbols_in(y)


def identity(x: Any) -> Any:
    """A key that is equal for structures of the same numbers and objects."""
    kind = type(x)
    if kind is dict:
        return tuple([(key, identity(y)) for key, y in x.items()])
    return tuple(map(identity, x)) if kind is tuple or kind is list else (kind, x) if kind is int else id(x)


def id_or_number(x: Any) -> Any:
    return (id(x),) if type(x) in SYMBOLIC else (type(x), x)


def plain(x: Any) -> Any:
    """The number at the traced sizes, without a guard."""
    return x.value if type(x) in SYMBOLIC else x


def map_structure(x: Any, function: Callable[[Any], Any]) -> Any:
    """The structure (tuples, lists, dicts, slices) with the results of a function in place of all else."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([map_structure(y, function) for y in x])
    if kind is dict:
        return {key: map_structure(y, function) for key, y in x.items()}
    if kind is slice:
        return slice(*[map_structure(y, function) for y in (x.start, x.stop, x.step)])
    return function(x)


def plain_structure(x: Any) -> Any:
    """The structure with the numbers in it at the traced sizes, without guards."""
    return map_structure(x, plain)


# ---- terms -----------------------------------------------------------------------------------------------------------


def collected(sums: Mapping[tuple, int]) -> Terms:
    return tuple(
        sorted([(factors, n) for factors, n in sums.items() if n], key=lambda term: (-len(term[0]), str(term)))
    )


def add(a: Terms, b: Terms, factor: int = 1) -> Terms:
    """a + factor * b."""
    sums = dict(a)
    for factors, n in b:
        sums[factors] = sums.get(factors, 0) + factor * n
    return collected(sums)


def multiply(a: Terms, b: Terms) -> Terms:
    sums: dict[tuple, int] = {}
    for one, n in a:
        for other, m in b:
            factors = tuple(sorted(one + other, key=str))
            sums[factors] = sums.get(factors, 0) + n * m
    return collected(sums)


def floor_divide(a: Terms, b: Terms) -> Terms | None:
    """a // b; None if it cannot be expressed."""
    if (exact := divide(a, b)) is not None:
        return exact
    if len(b) != 1 or b[0][0] != () or b[0][1] < 1:
        return None
    divisor = b[0][1]
    whole = collected({factors: n // divisor for factors, n in a})
    rest = collected({factors: n % divisor for factors, n in a})
    if rest[0][0] == ():  # only a constant is left, smaller than the divisor
        return whole
    return add(whole, (((FloorDiv(rest, divisor),), 1),))


def divide(a: Terms, b: Terms) -> Terms | None:
    """a / b if b divides a at all sizes, by a number, one product or a multiple of b; otherwise None."""
    if not a:
        return ()
    if not b:
        return None
    first, lead = b[0]
    if len(b) == 1:
        quotients: dict[tuple, int] = {}
        for factors, n in a:
            left = list(factors)
            for factor in first:
                if factor not in left:
                    return None
                left.remove(factor)
            if n % lead:
                return None
            quotients[tuple(left)] = n // lead
        return collected(quotients)
    ratio, rest = divmod(a[0][1], lead)
    return ((((), ratio),)) if not rest and add(a, b, -ratio) == () else None


def remainder(a: Terms, b: Terms) -> Terms | None:
    """a % b; None if it cannot be expressed."""
    quotient = floor_divide(a, b)
    return None if quotient is None else add(a, multiply(b, quotient), -1)


def evaluate_terms(terms: Terms, sizes: Mapping[str, int]) -> int:
    return sum(
        [
            n * math.prod([sizes[f] if f.__class__ is str else evaluate_terms(f[0], sizes) // f[1] for f in factors])
            for factors, n in terms
        ]
    )


def always(relation: str, left: Any, right: Any) -> bool | None:
    """The truth of a comparison that is the same at all sizes of at least LEAST; None if it is not known to be."""
    a, b = terms_of(left), terms_of(right)
    if a is None or b is None:
        return None
    difference = add(a, b, -1)
    variable = [(factors, n) for factors, n in difference if factors]
    if not variable:
        return RELATIONS[relation](sum([n for _, n in difference]), 0)
    if any(factor.__class__ is FloorDiv for factors, _ in variable for factor in factors):
        return None
    names = {factor: LEAST for factors, _ in variable for factor in factors}
    bound = evaluate_terms(difference, names)
    if all(n > 0 for _, n in variable):  # it is at least `bound`
        return False if bound > 0 or (relation == "<" and bound == 0) else None
    if all(n < 0 for _, n in variable):  # it is at most `bound`
        if relation == "==":
            return False if bound < 0 else None
        return True if bound < 0 or (relation == "<=" and bound == 0) else None
    return None


def terms_of(x: Any) -> Terms | None:
    if type(x) is SymInt and x.env.active:
        return x.terms
    if isinstance(x, int):
        return (((), int(x)),) if x else ()
    return None


def text_of(x: Any) -> str:
    """An expression as the user would write it: "8*batch + 3"."""
    if type(x) is SymFloat:
        operation, *operands = x.tree
        return f"({f' {OPERATORS.get(operation, operation.__name__)} '.join(map(text_of, operands))})"
    if type(x) is not SymInt:
        return repr(x)
    return terms_text(x.terms)


def terms_text(terms: Terms) -> str:
    products = []
    for factors, n in terms:
        names = [f if f.__class__ is str else quotient_text(f) for f in factors]
        products.append("*".join([*([str(n)] if n != 1 or not names else []), *names]).replace("-1*", "-"))
    return " + ".join(products).replace("+ -", "- ") or "0"


def quotient_text(quotient: FloorDiv) -> str:
    dividend = terms_text(quotient.terms)
    return f"({f'({dividend})' if ' ' in dividend else dividend} // {quotient.divisor})"


# ---- numbers ---------------------------------------------------------------------------------------------------------


def env_of(*numbers: Any) -> ShapeEnv | None:
    """The active environment of these operands; None if there are two, or none since the traces have ended."""
    found = {x.env for x in numbers if type(x) in SYMBOLIC and x.env.active}
    return found.pop() if len(found) == 1 else None


def on_integers(combine: Callable[[Terms, Terms], Terms | None], operation: Callable) -> tuple[Callable, Callable]:
    """The method of an operator on two ints, and its reflected form."""

    def method(left: Any, right: Any) -> Any:
        return combined(left, right) if isinstance(right, Number) else NotImplemented

    def reflected(right: Any, left: Any) -> Any:
        return combined(left, right) if isinstance(left, Number) else NotImplemented

    def combined(left: Any, right: Any) -> Any:
        if operation is operator.truediv or isinstance(left, float) or isinstance(right, float):
            return SymFloat.of(operation, left, right)
        env = env_of(left, right)
        if env is not None and isinstance(left, int) and isinstance(right, int):
            terms = (
                None if operation in DIVISIONS and right == 0 else combine(terms_of(left) or (), terms_of(right) or ())
            )
            if terms is not None:
                return env.number(terms)
        return operation(fixed(left), fixed(right))

    return method, reflected


def fixed(x: Any) -> Any:
    """The plain number, which the program then depends on: a guard."""
    if type(x) in SYMBOLIC:
        x.env.decide("==", x, plain(x))
    return plain(x)


def with_fixed(name: str, kind: type) -> Callable:
    """A method that reads the plain number."""
    method = getattr(kind, name)

    def wrapped(self: Any, *args: Any) -> Any:
        return method(fixed(self), *map(fixed, args))

    return wrapped


def compared(relation: str, swap: bool = False, negate: bool = False) -> Callable:
    """A comparison, which adds a guard."""

    def method(left: Any, right: Any) -> Any:
        if not isinstance(right, Number):
            return NotImplemented
        pair = (right, left) if swap else (left, right)
        env = env_of(*pair)
        if env is None or not isinstance(right, int | float):
            return RELATIONS[relation](*map(fixed, pair)) is not negate
        return env.decide(relation, *pair) is not negate

    return method


def powers(base: Any, exponent: Any, modulo: Any = None) -> Any:
    if exponent.__class__ is int and 0 <= exponent <= MAX_POWER and modulo is None and type(base) is SymInt:
        return math.prod([base] * exponent)
    if modulo is None and exponent.__class__ in (int, float) and not base <= 0:  # a guard
        return SymFloat.of(operator.pow, base, exponent)
    return pow(fixed(base), fixed(exponent), modulo)


def powers_of(exponent: Any, base: Any) -> Any:
    return pow(base, fixed(exponent))


COMPARISONS = {
    "__eq__": compared("=="),
    "__ne__": compared("==", negate=True),
    "__lt__": compared("<"),
    "__gt__": compared("<", swap=True),
    "__le__": compared("<="),
    "__ge__": compared("<=", swap=True),
}


class Symbolic:
    """Methods of all symbolic numbers."""

    __slots__ = ()
    env: ShapeEnv
    locals().update(COMPARISONS)

    def __hash__(self) -> int:
        if self.env.active and self.env.in_engine():
            return object.__hash__(self)
        return hash(fixed(self))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return host_array(fixed(self), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*map(fixed, inputs), **options)

    def __copy__(self) -> Symbolic:
        return self

    def __deepcopy__(self, memo: Any) -> Symbolic:
        return self

    def __reduce__(self) -> Any:
        return type(plain(self)), (fixed(self),)

    def __bool__(self) -> bool:
        return not self.env.decide("==", self, 0)


class SymInt(Symbolic):
    """A number that depends on symbolic sizes, and is an int to `isinstance`. C code calls its methods, as it would for
    any object, where it would read a subclass of int unseen.

    env: the ShapeEnv of its trace, with one SymInt for equal terms.  value: at the traced sizes.
    """

    __slots__ = "env", "terms", "value"
    __class__ = property(lambda self: int)

    def __init__(self, env: ShapeEnv, terms: Terms):
        self.env, self.terms, self.value = env, terms, evaluate_terms(terms, env.sizes)

    __add__, __radd__ = on_integers(add, operator.add)
    __sub__, __rsub__ = on_integers(lambda a, b: add(a, b, -1), operator.sub)
    __mul__, __rmul__ = on_integers(multiply, operator.mul)
    __truediv__, __rtruediv__ = on_integers(lambda a, b: None, operator.truediv)
    __floordiv__, __rfloordiv__ = on_integers(floor_divide, operator.floordiv)
    __pow__, __rpow__ = powers, powers_of
    __mod__, __rmod__ = on_integers(remainder, operator.mod)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    __trunc__ = __floor__ = __ceil__ = conjugate = __pos__
    real = numerator = property(__pos__)
    imag, denominator = 0, 1

    def __round__(self, ndigits: Any = None) -> Any:
        return self if ndigits is None else round(fixed(self), ndigits)

    for name in (
        "__repr__ __str__ __format__ __int__ __index__ __float__ __abs__ __lshift__ __rlshift__ __rshift__ __rrshift__ "
        "__and__ __rand__ __or__ __ror__ __xor__ __rxor__ __invert__ bit_length bit_count to_bytes as_integer_ratio"
    ).split():
        locals()[name] = with_fixed(name, int)


class SymFloat(Symbolic):
    """A float that depends on symbolic sizes, see SymInt. tree: (operation, operands), evaluated as Python would."""

    __slots__ = "env", "tree", "value"
    __class__ = property(lambda self: float)

    def __init__(self, env: ShapeEnv, tree: tuple, value: float):
        self.env, self.tree, self.value = env, tree, value

    @classmethod
    def of(cls, operation: Callable, *operands: Any) -> Any:
        """The result of an operation on numbers of which one is symbolic."""
        if not all([isinstance(x, Number) for x in operands]):
            return NotImplemented
        env = env_of(*operands) if all([isinstance(x, int | float) for x in operands]) else None
        if env is None or (operation is operator.truediv and operands[1] == 0):  # a guard
            return operation(*map(fixed, operands))
        result = operation(*map(plain, operands))
        if result.__class__ is not float:
            return operation(*map(fixed, operands))
        return cls(env, (operation, *operands), result)

    __pow__, __rpow__ = powers, powers_of

    def __neg__(self) -> Any:
        return SymFloat.of(operator.neg, self)

    for name in (
        "__repr__ __str__ __format__ __int__ __float__ __abs__ __round__ __trunc__ __floor__ __ceil__ __floordiv__ "
        "__rfloordiv__ __mod__ __rmod__ __divmod__ __rdivmod__ is_integer hex as_integer_ratio"
    ).split():
        locals()[name] = with_fixed(name, float)
    for name, operation in (
        ("add", operator.add),
        ("sub", operator.sub),
        ("mul", operator.mul),
        ("truediv", operator.truediv),
    ):
        locals()[f"__{name}__"] = lambda self, other, f=operation: SymFloat.of(f, self, other)
        locals()[f"__r{name}__"] = lambda self, other, f=operation: SymFloat.of(f, other, self)


SYMBOLIC = SymInt, SymFloat
OPERATORS = {operator.truediv: "/", operator.mul: "*", operator.add: "+", operator.sub: "-", operator.pow: "**"}


class Evaluation:
    """Values of symbolic numbers at other sizes. env: their ShapeEnv.  sizes: name -> size."""

    def __init__(self, env: ShapeEnv, sizes: Mapping[str, int]):
        self.env, self.sizes = env, sizes
        self.known: dict[int, Any] = {}

    def __call__(self, x: Any) -> Any:
        """The number at these sizes; a plain one is unchanged."""
        if type(x) in SYMBOLIC and x.env is not self.env:  # kept by the program since an earlier trace
            return x.value
        if type(x) is SymInt:
            if id(x) not in self.known:
                self.known[id(x)] = evaluate_terms(x.terms, self.sizes)
            return self.known[id(x)]
        if type(x) is SymFloat:
            operation, *operands = x.tree
            return operation(*map(self, operands))
        return x
