"""Programs about one question for all names: Python values that become tensors, batches, in-place writes.

Each program has the public name it is about, as docs/differences.md spells it. `record.py` records PyTorch's results;
PyTorch is not needed here. Read next: `test_families.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.fuzz.calls import RANDOM, call_of, called_names

Program = tuple[str, list[str]]  # public name, and lines that end with `r = ...`


def split(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")]


# ---- Python values that become tensors -----------------------------------------------------------------------------

DATA = split("""
1 | 2.5 | True | 1j | [] | [[]] | [[], []] | [1, 2] | [1.5, 2] | [1, 2.5, True] | [True, False] | [True, 2]
[True, 2.5]
[1, 1j] | [1.5, 1j] | [True, 1j] | L.tensor(1) | L.tensor([1., 2.]) | L.tensor([]) | [L.tensor([])] | L.tensor([True])
[L.tensor([1.]), L.tensor([2.])] | [[L.tensor([1.])], [L.tensor([2.])]] | [L.tensor([[1]]), L.tensor([[2]])]
[L.tensor(1.), L.tensor(2.)] | [L.tensor(1), L.tensor(2.)] | [L.tensor(True), L.tensor(2)] | [L.tensor(True), 2.5]
[2.5, L.tensor(1)] | [1, L.tensor(2.5)] | [L.tensor(1.5, dtype=L.float64), 2.5] | [L.tensor(1, dtype=L.int8), 2]
[L.tensor(1, dtype=L.int32), L.tensor(2, dtype=L.int32)] | [L.tensor(1.5, dtype=L.bfloat16)] | [L.tensor([1.5]), 2.5]
[L.tensor(1.5, dtype=L.float16), L.tensor(2.5)] | [L.tensor(1.5, dtype=L.float16), 2.5] | [2.5, L.tensor([1.5])]
[L.tensor(1.5, dtype=L.float16), 2] | [L.tensor([1, 2]), L.tensor([3, 4])] | [L.tensor([1, 2]), 3]
[3, L.tensor([1, 2])]
[[1, 2], L.tensor([3, 4])] | [L.tensor([3, 4]), [1, 2]] | [[1, 2], L.tensor([3.5, 4])] | [[1], L.tensor([1.])]
[L.tensor([[1., 2.]]), L.tensor([[3., 4.]])] | [L.tensor([1., 2.]), L.tensor([3.])]
[L.tensor([1.]), L.tensor([1., 2.])]
[L.tensor([1.]), L.tensor(2.)] | [[L.tensor(2.)], L.tensor([1.])] | [L.tensor([1.]), [1]] | [[L.tensor(1), 2], [3, 4.5]]
[L.zeros(0, 3)] | [L.zeros(1, 1, 1)] | [[[L.tensor([1.])]]] | (L.tensor([1.]), L.tensor([2.])) | [L.tensor(1.), [2.]]
[L.tensor([1.], requires_grad=True), L.tensor([2.])] | [L.tensor([True]), L.tensor([False])] | [L.tensor([1j])]
np.float32(1.5) | np.float64(1.5) | np.int32(2) | np.bool_(True) | np.uint8(3) | np.float16(1.5) | [np.float32(1.5)]
[np.float64(1.5)] | [np.float64(1.5), np.float32(2)] | [np.float32(1), 2] | [1, np.float32(1.5)]
[np.int32(1), np.int64(2)]
[np.int32(1), 2.5] | [np.bool_(True)] | [np.uint8(1)] | [np.uint8(1), -1] | [np.int8(1), np.float32(2)]
[np.complex64(1j)]
np.array(1.5) | np.array([1, 2]) | np.array([1, 2], 'float32') | np.array([]) | np.array([True]) | np.array(['a'])
np.array([1, 'a'], object) | np.arange(6).reshape(2, 3).T | np.zeros((0, 3)) | [np.array([1, 2]), np.array([3, 4])]
[np.array([1., 2.]), np.array([3, 4])] | [np.array([1.]), np.array([2.])] | [np.array([1, 2]), [3, 4]]
[[3, 4], np.array([1, 2])] | [np.array([1, 2]), L.tensor([3, 4])] | [np.array([1., 2.]), np.array([3.])]
[[1, 2], [3]] | [1, [2]] | [[1], 2] | [[1], []] | [[], [1]] | [[[1]], [2]] | [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
((1, 2), [3, 4]) | range(3) | [range(3), range(3)] | [(1, 2), range(2)] | {1, 2} | {'a': 1} | 'x' | ['x'] | None
[None]
[1, None] | object() | 2**63 | 2**63 - 1 | -2**63 | [2**63] | [2**63, 1.5] | [300] | [-1] | [inf, nan] | [1e300] | [0.1]
[L.tensor(0.1), 0.1] | [-0.0] | L.tensor([1, 2]).t() | L.Size([2, 3])
""")
DTYPES = "float32 float64 float16 bfloat16 int64 uint8 bool".split()
SIZES = split("1 | 2, 3 | L.Size([2, 3]) | np.int64(2) | (2, 3) | [2, 3] | 0 | 2, 0 | -1 | 2**63 | 1.5 | True | 2, 1.5")


def constructors() -> Iterator[Program]:
    """`tensor` and similar: shape, dtype and values of their arguments, or a refusal."""
    for x in DATA:
        yield "tensor", [f"r = L.tensor({x})"]
        yield "as_tensor", [f"r = L.as_tensor({x})"]
        yield from [("tensor", [f"r = L.tensor({x}, dtype=L.{dtype})"]) for dtype in DTYPES]
        for dtype in ("float32", "int64"):
            yield "Tensor.new_tensor", [f"r = L.ones(2, dtype=L.{dtype}).new_tensor({x})"]
        if not re.match(r"-?\d|True|np\.u?int|L.Size", x):
            yield from [(name, [f"r = L.{name}({x})"]) for name in "Tensor FloatTensor LongTensor BoolTensor".split()]
    for x in SIZES:
        yield from [(name, [f"r = list(L.{name}({x}).shape)"]) for name in ("Tensor", "LongTensor")]


# ---- batches -------------------------------------------------------------------------------------------------------

CLASSES = """from collections import OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from types import MappingProxyType
P = namedtuple('P', 'x y')
class D(dict): pass
class S(list): pass
class Odd(dict):
    def __init__(self, a, b): super().__init__(a=a, b=b)
def f(x):
    if isinstance(x, L.Tensor): return [str(x.dtype), x]
    if hasattr(x, 'keys'): return [type(x).__name__, {k: f(x[k]) for k in x.keys()}]
    if isinstance(x, (list, tuple, deque, UserList)): return [type(x).__name__, [f(i) for i in x]]
    return [type(x).__name__, x]""".splitlines()
BATCHES = split("""
[0, 0.7] | [0.7, 0] | [1, 2] | [1.5, 2.5] | [True, False] | [True, 2] | [True, 2.5] | [1, True] | [2**40, 1] | [2**63]
[1j] | [1, 1j] | [1.5, 1j] | [L.tensor(1), L.tensor(2.)] | [L.tensor([1]), L.tensor([2.5])] | [L.tensor(1.), 2.]
[2., L.tensor(1.)] | [2, L.tensor(1.5)] | [2, L.tensor([1.5])] | [L.tensor([1.]), L.tensor([1., 2.])]
[L.tensor(True), L.tensor(2)] | [L.tensor(1.5, dtype=L.float16), L.tensor(2)]
[L.tensor(1, dtype=L.int32), L.tensor(2)]
[np.array([1, 2]), np.array([1.5, 2])] | [np.array([1, 2], 'float32'), np.array([1., 2.])]
[np.array(1.5), np.array(2.5)]
[np.array([1, 2], 'int32'), np.array([1, 2])] | [np.array([1.]), [2.]] | [np.array([1.]), L.tensor([2.])]
[np.array([1.]), 2.] | [np.array([1.]), np.array([1., 2.])] | [np.array([True])] | [np.array([1j])] | [np.array(['a'])]
[np.array([None])] | [L.tensor([1.]), np.array([2.])] | [np.float32(1), np.float32(2)] | [np.float32(1), 0.7]
[np.float64(1), 2] | [np.int32(1), np.int64(2)] | [np.int32(1), 2.5] | [np.bool_(True), np.bool_(False)]
[np.int64(1), np.float32(2.5)] | [0.7, np.float32(1)] | [1, np.float32(1.5)] | [1, np.int32(2)] | [np.complex64(1j)]
['a', 'b'] | [b'a'] | ['a', 1] | [None] | [object()] | [[]] | [()] | [{}] | [] | [(1, 2.), (3, 4)]
[(1, 0.5), (0.5, 1)]
[[1, 2], [3, 4]] | [(1, 'a'), (2, 'b')] | [(1, 2), (1,)] | [[1, [2, 3]], [4, [5, 6]]] | [(1, 2), [3, 4]]
[[1, 2], (3, 4)]
[P(1, 2.), P(3, 4)] | [P(1, [2, 3.5]), P(3, [4, 5])] | [S([1, 2]), S([3, 4])] | [deque([1, 2]), deque([3, 4])]
[UserList([1, 2]), UserList([3, 4])] | [range(2), range(2)] | [(L.tensor([1.]), 3), (L.tensor([2.]), 4.5)]
[{'a': 1}, {'a': 0.7}] | [{'a': 1, 'b': [1, 2]}, {'a': 2, 'b': [3, 4]}]
[OrderedDict(a=1, b=2.), OrderedDict(a=2, b=3)]
[defaultdict(list, a=1), defaultdict(list, a=2)] | [D(a=1), D(a=2)] | [UserDict(a=1), UserDict(a=2)]
[Odd(1, 2), Odd(3, 4)]
[MappingProxyType({'a': 1}), MappingProxyType({'a': 2})] | [{'a': 1}, OrderedDict(a=2)]
[{'a': {'b': 1}}, {'a': {'b': 2}}]
[{1: L.tensor(1)}, {1: L.tensor(2)}] | [OrderedDict(a=(1, 2)), OrderedDict(a=(3, 4))] | [D(a=P(1, 2)), D(a=P(3, 4.5))]
""")
SAMPLES = split("""
1 | 1.5 | True | 'a' | b'a' | None | np.array([1, 2]) | np.array(['a']) | np.array([1j]) | np.float32(1) | np.int64(2)
np.bool_(True) | L.tensor([1]) | (1, np.array([2.])) | [1, np.array([2.])] | P(np.float32(1), 'a') | S([np.float32(1)])
deque([np.float32(1)]) | UserList([np.float32(1)]) | range(2) | {'a': np.float32(1)}
OrderedDict(a=np.float32(1), b=(1, 2))
defaultdict(int, a=np.float32(1)) | D(a=[np.array([1])]) | MappingProxyType({'a': np.float32(1)})
Odd(np.float32(1), 2)
UserDict(a=np.array([1])) | {1: {2: np.array(1.5)}} | () | [] | {} | ['a', 'b'] | np.array(1.5)
""")


def collate() -> Iterator[Program]:
    """Batches of samples, and samples that cannot be batched: container classes, dtypes, refusals."""
    for name, arguments in (("default_collate", BATCHES), ("default_convert", SAMPLES)):
        yield from [(f"utils.data.{name}", [*CLASSES, f"r = f(L.utils.data.{name}({x}))"]) for x in arguments]


# ---- dtypes of in-place writes -------------------------------------------------------------------------------------

TARGETS = {"int64": "[1, -2, 3]", "uint8": "[1, 200, 3]", "bool": "[True, False, True]", "float32": "[1.5, -2.5, 0.]"}
NUMBERS = "0.7 -1.7 2 -1 True 300 1j inf nan".split()
TENSORS = split("""
L.tensor(0.7) | L.tensor(-1.7) | L.tensor(2) | L.tensor(True) | L.tensor([0.7, 1.7, -2.7]) | L.tensor([1, 2, -3])
L.tensor([0.7, 1.7, -2.7], dtype=L.float64) | L.tensor([True, False, True]) | L.tensor([1j, 2, 3])
""")
MASK, INDEX = "L.tensor([True, False, True])", "L.tensor([0, 2])"
WRITES = {  # {v}: a number or tensor, {s}: its first two elements
    "fill_": "y.fill_({v})", "copy_": "y.copy_({v})", "masked_fill_": f"y.masked_fill_({MASK}, {{v}})",
    "index_fill_": f"y.index_fill_(0, {INDEX}, {{v}})", "scatter_": f"y.scatter_(0, {INDEX}, {{v}})",
    "index_put_": f"y.index_put_(({INDEX},), {{s}})", "index_put_ ": f"y.index_put_(({INDEX},), {{s}}, True)",
    "scatter_ ": f"y.scatter_(0, {INDEX}, value={{v}})", "scatter_  ": f"y.scatter_(0, {INDEX}, {{v}}, reduce='add')",
    "scatter_add_": f"y.scatter_add_(0, {INDEX}, {{s}})", "index_add_": f"y.index_add_(0, {INDEX}, {{s}})",
    "scatter_reduce_": f"y.scatter_reduce_(0, {INDEX}, {{s}}, 'amax')", "put_": f"y.put_({INDEX}, {{s}})",
    "index_copy_": f"y.index_copy_(0, {INDEX}, {{s}})", "masked_scatter_": f"y.masked_scatter_({MASK}, {{v}})",
    "__setitem__": "y[0] = {e}", "__setitem__ ": "y[:] = {v}", "__setitem__  ": f"y[{MASK}] = {{s}}",
    "__setitem__   ": "y[[0, 2]] = {s}", "lerp_": "y.lerp_(y, {v})", "lerp_ ": "y.lerp_({v}, 0.5)",
    "clamp_": "y.clamp_({v})", "clamp_ ": "y.clamp_(None, {v})", "div_ ": "y.div_({v}, rounding_mode='floor')",
    "add_ ": "y.add_(y, alpha={v})", "addcmul_": "y.addcmul_(y, y, value={v})",
    "addcdiv_": "y.addcdiv_(y, y, value={v})",
    **{f"{name}_": f"y.{name}_({{v}})" for name in (
        "add sub mul div pow floor_divide remainder fmod eq lt bitwise_and xlogy copysign").split()},
    **{f"__i{name}__": f"y {sign}= {{v}}" for name, sign in zip(
        "add sub mul truediv floordiv mod pow and or xor".split(), "+ - * / // % ** & | ^".split())},
}  # fmt: skip
ALONE = split("""
exp_() | sqrt_() | sin_() | sigmoid_() | reciprocal_() | log_() | floor_() | ceil_() | round_() | trunc_() | neg_()
abs_()
square_() | logical_not_() | bitwise_not_() | relu_() | zero_() | sinc_() | lgamma_() | exp2_() | uniform_() | normal_()
bernoulli_() | bernoulli_(0.7) | random_() | random_(3) | exponential_() | cauchy_() | log_normal_() | geometric_(0.5)
cumsum_(0) | cumprod_(0) | clamp_(0.5, 1.5) | clip_(0, 1) | pow_(2) | pow_(0.5) | pow_(-1) | fill_([1]) | fill_('x')
fill_(None) | copy_(None) | copy_([0.5, 1, 2]) | copy_(np.array([0.5, 1, 2])) | fill_(np.float32(0.7))
__setitem__(0, [0.7])
__setitem__(slice(None), [0.7, 1, 2]) | __setitem__(slice(None), np.array([0.7, 1, 2])) | __setitem__(0, 'x')
__setitem__(0, None)
""")


def dtypes() -> Iterator[Program]:
    """Numbers and tensors of other dtypes, written in place: truncated, converted, or refused."""
    for dtype, numbers in TARGETS.items():
        target = f"y = L.tensor({numbers}, dtype=L.{dtype})"
        for name, call in WRITES.items():
            for value in NUMBERS + TENSORS:
                part = "[:2]" if "[" in value else ""
                line = call.format(v=value, s=value + part, e=value + "[0]" * bool(part))
                yield f"Tensor.{name.strip()}", [target, line, "r = y"]
        yield from [(f"Tensor.{call.partition('(')[0]}", [target, f"y.{call}", "r = y"]) for call in ALONE]


# ---- writes to tensors that a tape may have saved ------------------------------------------------------------------

SETTINGS = [
    dict(profile="plain", dtype="float32", layout="plain"),
    dict(profile="unit", dtype="float32", layout="plain", shape=(2, 3)),
]
RESULTS = "for t in [t for t in (r if isinstance(r, (tuple, list)) else [r]) if t.requires_grad]: t."


def overwritten(lines: list[str]) -> list[list[str]]:
    """A program unchanged, but on computed tensors; and then with a write to its result, by a factor or with zeros, to
    each tensor that it read, and to the parameters of its layer.
    """
    made = [m[1] for line in lines if (m := re.match(r"(x\d+) = .*requires_grad_\(\)$", line))]
    if not made or not lines[-1].startswith("r ="):
        return []
    start = next(i for i, line in enumerate(lines) if not re.match(r"x\d+ = ", line))
    computed = lambda line: re.sub(r"\bx(\d+)\b", lambda m: f"z{m[1]}" if m[0] in made else m[0], line)
    base = [*lines[:start], *[f"z{x[1:]} = {x} * 1" for x in made], *map(computed, lines[start:])]
    ends = [["r = r"], [f"{RESULTS}mul_(2)"], [f"{RESULTS}zero_()"], *[[f"z{x[1:]}.mul_(2)"] for x in made]]
    if any(line.startswith("m = ") for line in lines):
        ends.append(["with L.no_grad(): [p.mul_(2) for p in m.parameters()]"])
    return [[*base, *end] for end in ends]


def writes() -> Iterator[tuple[str, list[list[str]]]]:
    """A write after a call and before backward: several programs per call, the first of them without a write.
    `record.py` takes the first call of a name that has a gradient in PyTorch.
    """
    for name in called_names():
        if name not in RANDOM and not name.startswith(("optim.", "lr_scheduler.")):
            for seed in range(12):
                lines = call_of(name, f"write {seed}", valid=True, grad=True, **SETTINGS[seed % 2])
                if programs := overwritten(lines):
                    yield name, programs


FAMILIES = {"constructors": constructors, "collate": collate, "dtypes": dtypes}
