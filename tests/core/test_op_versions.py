"""An op keeps its signature and the results of its examples until its version changes: saved graphs rely on it.

`tests/golden/ops.txt` has one op per line: name@version, signature, and for each example its key, and dtype, shape and
digest of each result. A digest is a weighted sum of the elements, compared to four digits: it is the same on another
machine, BLAS or NumPy, but changes with a sign, a position or the meaning. Random ops draw by key and counter, so they
are reproducible too; for an op with a data-dependent shape, the shape is a result. `--update-golden` writes new ops,
versions and examples, and never another result of the same version.
"""

import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from minflow.core.dispatch import apply
from minflow.core.functions.creation import from_numpy
from minflow.core.kernels import CALLS
from minflow.core.op import OPS
from minflow.core.ops import update_adaptive as update_adaptive  # read by the first optimizer
from minflow.core.ops.examples import Maker, case, cases, floats
from minflow.deploy.attrs import NOT_STORED
from tests.core.oracles import GLOBAL_OPS
from tests.core.test_ops import many, tensors

GOLDEN = Path(__file__).parent.parent / "golden" / "ops.txt"
TOLERANCE, TOLERANCE_OF_HALF = 1e-4, 5e-3  # relative to each element
NOISE = {2: 1e-3, 4: 1e-6, 8: 1e-12}  # by dtype size: smaller values count as 0
FAR = np.array([1, np.inf, np.nan, -np.inf])
Z = np.array([1 + 2j, -0.5 + 0.25j, 3j])
# Examples in addition to those of op definitions: complex numbers, and ops that only the engine calls.
EXAMPLES = {
    "isnan": case(FAR), "isinf": case(FAR), "isfinite": case(FAR), "firsts": case(np.array([0, 0, 1, 0, 2])),
    "complex": case(floats(3), floats(3)), "conj": case(Z), "real": case(Z), "imag": case(Z), "view_as_real": case(Z),
    "view_as_complex": case(floats(3, 2)), "fft": case(Z, axis=0, inverse=False), "unrecorded": case(*[floats(3)] * 2),
    "recompute": case(*[floats(3)] * 2, call=0), "strided_look": case(floats(6), shape=(3,), strides=(16,)),
}  # fmt: skip


def gradient_example(op):
    """An example of the gradient of a composite op: its first one, with a cotangent."""
    first = cases(op)[0]
    inputs = tensors(first.arrays())
    outs = many(op.infer(*[type(x) if isinstance(x, int | float) else x.spec for x in inputs], **first.attrs))
    needs = sum([1 << i for i, x in enumerate(inputs) if hasattr(x, "spec") and x.spec.floating])
    return case(*[floats(*spec.shape) for spec in outs], *first.inputs, **first.attrs, needs=needs)


EXAMPLES |= {op.gradient.name: gradient_example(op) for op in OPS.values() if op.decompose}


def in_order(values, vectors):
    """Eigenvalues have no order, and eigenvectors are determined only up to a factor."""
    order = np.lexsort((values.imag, values.real.round(4)))
    return np.take_along_axis(values, order, -1), np.take_along_axis(abs(vectors), order[..., None, :], -1)


# The part of each result that the input determines: signs are up to the library.
DETERMINED = {
    "qr": lambda q, r: (abs(q), abs(r)), "svd": lambda u, s, v: (abs(u), s, abs(v)),
    "eigh": lambda values, vectors: (values, abs(vectors)),
    "eig": lambda values, vectors: in_order(values, vectors) if values.ndim == 1 else tuple(
        map(np.stack, zip(*[in_order(*both) for both in zip(values, vectors)]))),
}  # fmt: skip


# ---- digests ---------------------------------------------------------------------------------------------------------


def total(array):
    """(weighted sum of the elements, tolerance for another machine)."""
    if array.dtype.kind == "c":
        array = array[..., None].view(f"f{array.itemsize // 2}")
    weights = 128 + (np.arange(1, array.size + 1) * 2654435769 % 2**32 >> 25)
    numbers = array.reshape(-1)
    if array.dtype.kind in "biu":
        return int((numbers.astype("int64") * weights).sum()), 0
    numbers = np.nan_to_num(numbers.astype("float64"), nan=3.0, posinf=5.0, neginf=-7.0)
    noise = (TOLERANCE_OF_HALF if array.itemsize == 2 else TOLERANCE) * abs(numbers) + NOISE[array.itemsize]
    return float((numbers * weights).sum()), float((noise * weights).sum())


def kind(array):
    return f"{array.dtype.str[1:]}[{','.join(map(str, array.shape))}]"


def word(x):
    """Text of an example's input, without the name of the function that makes its layout."""
    if not isinstance(x, Maker):
        return repr(x)
    return f"{x.dtype}{x.shape} {x.low} {x.high} {x.distinct} {'layout' if x.layout else None}"


def key(example):
    """Key of four characters of an example; other inputs or attrs give another key."""
    attrs = [f"{name}={value!r}" for name, value in sorted(example.attrs.items())]
    return f"{zlib.crc32('; '.join([*map(word, example.inputs), *attrs]).encode()) & 0xFFFF:04x}"


def results(op):
    """Dictionary from key to results, for each example of an op."""
    found = {}
    for example in [*cases(op), *[EXAMPLES[name] for name in EXAMPLES if name == op.name]]:
        whole = all(not isinstance(x, np.ndarray) for x in example.inputs)
        inputs = tensors(example.arrays()) if whole else [from_numpy(x) for x in example.inputs]
        arrays = [t.numpy() for t in many(apply(op, *inputs, **example.attrs))]
        found[key(example)] = DETERMINED[op.name](*arrays) if op.name in DETERMINED else arrays
    return found


def signature(op):
    """Inputs, stored attrs and outputs of an op."""
    stored = [name for name in op.attrs if name not in NOT_STORED]
    attrs = f"; {', '.join(stored)}" if stored else ""
    return f"({', '.join(op.inputs)}{attrs}) -> {', '.join(op.outputs)}"


# ---- the file --------------------------------------------------------------------------------------------------------

PARTS = re.compile(r"(\w+)@(\d+)(\(.*?\) -> [^|]*)((?: \| [^|]*)*)")


def line(op, found, kept=None):
    """Line of an op. kept: key -> text that stays unchanged."""
    texts = {
        k: ", ".join(
            f"{kind(array)} {total(array)[0]:.5g}"
            if array.dtype.kind not in "biu"
            else f"{kind(array)} {total(array)[0]}"
            for array in arrays
        )
        for k, arrays in found.items()
    }
    parts = [f"{k} {text}" for k, text in (texts | {k: v for k, v in (kept or {}).items() if k in texts}).items()]
    return " | ".join([f"{op.name}@{op.version}{signature(op)}", *parts])


def read(text):
    """Dictionary from name to (version, signature, key -> text of results), from the lines."""
    rows = {}
    for name, version, said, examples in [PARTS.fullmatch(row).groups() for row in text.splitlines()]:
        rows[name] = int(version), said, dict(part.split(" ", 1) for part in examples.split(" | ")[1:])
    return rows


def changes(op, found, said, texts):
    """Description of all changes."""
    if said != signature(op):
        yield f"its signature was {said}, and is {signature(op)}"
    for k in [k for k in texts if k in found]:
        was, now = texts[k].split(", "), [(kind(array), *total(array)) for array in found[k]]
        same = [
            text.split(" ")[0] == this and abs(float(text.split(" ")[1]) - sum_) <= margin
            for text, (this, sum_, margin) in zip(was, now)
        ]
        if len(was) != len(now) or not all(same):
            yield f"example {k} gave {texts[k]}, and gives {line(op, {k: found[k]}).partition(f' | {k} ')[2]}"


def problem_of(op, found, rows):
    """None, or a description of what is wrong with an op, and whether `--update-golden` fixes it."""
    if op.name not in rows:
        return f"{op.name} has no line in {GOLDEN.name}: write it with --update-golden", True
    version, said, texts = rows[op.name]
    if op.version > version:
        return f"{op.name} is of version {op.version} now: write its line with --update-golden", True
    if op.version < version:
        return f"{op.name} was of version {version}, and versions only rise: define(..., version={version + 1})", False
    if wrong := list(changes(op, found, said, texts)):
        what = f"{op.name} of version {version} is not what it was: {'; '.join(wrong)}"
        return (
            f"{what}. Saved graphs count on it. Is the change meant, say define(..., version={version + 1}), give "
            f"CONVERTERS of minflow/deploy/versions.py a function for ({op.name!r}, {version}) if nodes can be "
            "converted, and run this with --update-golden"
        ), False
    return None if list(texts) == list(found) else (f"{op.name} has other examples: --update-golden writes them", True)


@pytest.fixture(scope="module")
def found():
    """Dictionary from op to the results of its examples."""
    return {op: results(op) for _, op in sorted(OPS.items()) if not op.custom and op.name not in GLOBAL_OPS}


@pytest.fixture
def rows():
    return read(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}


def test_no_op_changes_without_a_new_version(found, rows, request):
    wrong = [answer for op in found if (answer := problem_of(op, found[op], rows))]
    wrong += [
        (f"{name} is gone, and saved graphs use it: keep it, or take its line from {GOLDEN.name} by hand", False)
        for name in sorted(rows.keys() - {op.name for op in found})
    ]
    if request.config.getoption("--update-golden"):
        wrong = [answer for answer in wrong if not answer[1]]
        if not wrong:
            kept = {name: texts for name, (version, _, texts) in rows.items() if OPS[name].version == version}
            GOLDEN.write_text("".join(f"{line(op, found[op], kept.get(op.name))}\n" for op in found), encoding="utf-8")
    assert not wrong, "\n".join(text for text, _ in wrong)


def test_every_op_has_results(found):
    assert not [op.name for op in found if len(found[op]) != len(op.examples) + (op.name in EXAMPLES)]
    assert all(found.values())


# ---- which changes are detected --------------------------------------------------------------------------------------


def turned(array):
    return ~array if array.dtype == bool else -array


@pytest.mark.parametrize(
    "change",
    [turned, lambda array: array[..., None], lambda array: array.real.astype("float16")],
    ids=["sign", "shape", "dtype"],
)
def test_changed_result_is_detected_in_every_op(found, rows, change):
    blind = [
        op.name
        for op in found
        if problem_of(op, {k: [change(array) for array in arrays] for k, arrays in found[op].items()}, rows) is None
    ]
    assert not blind


def test_swapped_elements_are_detected(found, rows):
    def swapped(array):
        flat = array.reshape(-1)
        return np.concatenate([flat[1:2], flat[:1], flat[2:]]).reshape(array.shape)

    noticed = {
        op.name
        for op in found
        if problem_of(op, {k: [swapped(array) for array in arrays] for k, arrays in found[op].items()}, rows)
    }
    assert {"cat", "flip", "matmul", "conv2d", "sort", "uniform", "randperm", "nonzero"} <= noticed


def test_rounding_of_another_machine_is_tolerated(found, rows):
    chances = np.random.default_rng(1)

    def near(array):
        if array.dtype.kind not in "fc":
            return array
        error = chances.uniform(-4, 4, array.shape) * np.finfo(array.dtype).eps
        with np.errstate(all="ignore"):
            return (array + error * (abs(np.nan_to_num(array)) + 0.1)).astype(array.dtype)

    for op in found:
        assert not problem_of(op, {k: [near(array) for array in arrays] for k, arrays in found[op].items()}, rows)


def test_changed_kernel_is_reported(monkeypatch, rows):
    op = OPS["sub"]
    monkeypatch.setitem(CALLS, op, lambda a, b, out=None: np.subtract(b, a, out=out))
    text, mended = problem_of(op, results(op), rows)
    assert (
        re.search(
            r"sub of version 1 is not what it was: example \w{4} gave f8\[3,4\] -?[\d.]+, and gives f8\["
            r".*version=2.*CONVERTERS.*\('sub', 1\).*--update-golden",
            text,
        )
        and not mended
    )
    monkeypatch.setitem(vars(op), "version", 2)
    assert problem_of(op, results(op), rows) == ("sub is of version 2 now: write its line with --update-golden", True)


def test_changed_signature_is_reported(monkeypatch, found, rows):
    op = OPS["sum"]
    monkeypatch.setitem(vars(op), "attrs", ["dim", "keepdims"])
    text, mended = problem_of(op, found[op], rows)
    assert "its signature was (x; axis, keepdims) -> sum, and is (x; dim, keepdims) -> sum. Saved" in text
    assert not mended


def test_update_golden_writes_the_table(monkeypatch, found, rows):
    op = OPS["sum"]
    version, said, texts = rows["sum"]
    assert problem_of(op, found[op], {})[1] and "no line" in problem_of(op, found[op], {})[0]
    assert problem_of(op, found[op], {"sum": (3, said, texts)}) == (
        "sum was of version 3, and versions only rise: define(..., version=4)",
        False,
    )
    first, *others = texts
    fewer = {"sum": (version, said, {k: texts[k] for k in others})}
    assert problem_of(op, found[op], fewer) == ("sum has other examples: --update-golden writes them", True)
    assert read(line(op, found[op], texts)) == {"sum": rows["sum"]}
    assert line(op, found[op], {first: "f8[] 7"}).count("7 |") == 1, "recorded lines do not change"
