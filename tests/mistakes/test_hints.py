"""Apply the hint of an error, and the expectation on its card, to the program, which must then run.

The calls are drawn at random from those that a learner writes, with shapes and dtypes that often do not fit.
"""

import ast
import re
import warnings
from random import Random

import pytest

import minflow as flow
import minflow.nn.functional as F
from minflow import nn
from minflow.core.base.errors import MinflowError
from minflow.core.source_location import warned_lines
from minflow.core.tensor import Tensor
from minflow.diagnosis.card_record import card_of

SIZES = (1, 2, 3, 4, 6, 8, 12)
SPACE = {"flow": flow, "nn": nn, "F": F}

# Functions, and the names of their arguments; a layer is constructed for each run, with random sizes.
CALLS = {
    "add": ("a + b", "a b"), "mul": ("a * b", "a b"), "where": ("flow.where(a > 0, a, b)", "a b"),
    "maximum": ("flow.maximum(a, b)", "a b"),
    "matmul": ("a @ b", "a b"), "bmm": ("flow.bmm(a, b)", "a b"), "mm": ("flow.mm(a, b)", "a b"),
    "dot": ("flow.dot(a, b)", "a b"),
    "linear": ("layer(input)", "nn.Linear(p, q)"), "conv": ("layer(input)", "nn.Conv2d(p, q, 1)"),
    "batch_norm1": ("layer(input)", "nn.BatchNorm1d(p)"), "batch_norm2": ("layer(input)", "nn.BatchNorm2d(p)"),
    "layer_norm": ("layer(input)", "nn.LayerNorm(p)"), "embedding": ("layer(input)", "nn.Embedding(99, p)"),
    "max_pool": ("layer(input)", "nn.MaxPool2d(1)"), "avg_pool": ("layer(input)", "nn.AvgPool2d(1)"),
    "adaptive": ("layer(input)", "nn.AdaptiveAvgPool2d(1)"),
    "in a model": ("layer(input)", "nn.Sequential(nn.ReLU(), nn.Linear(p, q))"),
    "mse": ("F.mse_loss(input, target)", "input target"), "l1": ("F.l1_loss(input, target)", "input target"),
    "bce": ("F.binary_cross_entropy_with_logits(input, target)", "input target"),
    "cross_entropy": ("F.cross_entropy(input, target)", "input target"),
    "nll": ("F.nll_loss(input, target)", "input target"),
    "reshape": ("x.reshape(p, q)", "x"), "transpose": ("x.transpose(0, p)", "x"), "cat": ("flow.cat([a, b], 0)", "a b"),
    "stack": ("flow.stack([a, b])", "a b"), "index": ("x[p, q]", "x"), "sum": ("x.sum(p)", "x"),
    "mean": ("x.mean()", "x"),
    "softmax": ("F.softmax(x, p)", "x"), "permute": ("x.permute(1, 0)", "x"), "t": ("x.t()", "x"),
    "expand": ("x.expand(p, q)", "x"),
    "gather": ("flow.gather(x, 0, index)", "x index"), "take": ("x[index]", "x index"), "std": ("x.std()", "x"),
    "copy": ("x.copy_(b)", "x b"), "iadd": ("x.add_(b)", "x b"), "view": ("x.transpose(0, 1).view(-1)", "x"),
    "item": ("x.item()", "x"),
    "backward": ("(x * 1).requires_grad_().backward()", "x"), "addmm": ("flow.addmm(b, x, a)", "x a b"),
    "lerp": ("x.lerp(a, b)", "x a b"),
}  # fmt: skip
ALIAS = {"x": "input"}  # as some hints call the input of a layer


def tensor(draw: Random, ndim: int) -> Tensor:
    shape = [draw.choice(SIZES) for _ in range(ndim)]
    dtype = draw.choice(("float", "float", "float", "long", "bool"))
    return (
        flow.zeros(*shape)
        if dtype == "float"
        else flow.zeros(*shape, dtype=flow.int64 if dtype == "long" else flow.bool)
    )


def program(draw: Random, name: str) -> tuple[str, dict]:
    """Return the source of a call with values, and the objects that its names refer to."""
    call, given = CALLS[name]
    numbers = {letter: draw.choice(SIZES) for letter in "pq"}

    def filled(text: str) -> str:
        return re.sub(r"\b[pq]\b", lambda m: str(numbers[m[0]]), text)

    if given.startswith("nn."):
        return call, {"layer": eval(filled(given), SPACE), "input": tensor(draw, draw.randint(0, 5))}
    ndim = draw.randint(0, 4)
    return filled(call), {n: tensor(draw, max(0, min(4, ndim + draw.choice((0, 0, -1, 1))))) for n in given.split()}


def run(call: str, names: dict):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(call, SPACE, {k: v.clone() if isinstance(v, Tensor) else v for k, v in names.items()})


def fragments(hint: str, names: dict) -> list[str]:
    """Return the longest parts of a hint that are Python expressions in the program's names."""
    words, found, end = hint.split(" "), [], 0
    for i in range(len(words)):
        for j in range(len(words), max(i, end), -1):
            text = " ".join(words[i:j]).rstrip(",;:.")
            try:
                tree = ast.parse(text, mode="eval").body
            except SyntaxError:
                continue
            used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
            code = isinstance(tree, ast.Call | ast.Subscript | ast.BinOp) or (
                isinstance(tree, ast.Attribute) and tree.attr in ("T", "mT")
            )
            if code and used and used <= {*names, *SPACE, *ALIAS}:
                found.append(
                    text + (" before this layer" if " ".join(words[j:]).startswith("before this layer") else "")
                )
                end = j
                break
    return found


def repaired(call: str, names: dict, means: dict, pieces: list[str]) -> None:
    """Run the program with an alternative of the hint in place of the mistake."""
    means = {short: long for short, long in ALIAS.items() if short not in names and long in names} | means
    changed, names = dict(names), {**names, **{k: names[meant] for k, meant in means.items()}}
    program = ast.parse(call, mode="eval").body
    for fragment in pieces:
        text, _, before = fragment.replace(", ...)", ", 1)").partition(" before")
        tree = ast.parse(text, mode="eval").body
        value = run(text, names)
        used = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in names]
        if isinstance(value, nn.Module) and "layer" in names:
            changed["layer"] = nn.Sequential(value, names["layer"]) if before else value
        elif isinstance(value, nn.Module):
            return run("loss(input, target)", {**names, "loss": value})
        elif isinstance(value, int | float):
            return None  # only the value was expected
        elif isinstance(tree, ast.BinOp) or form(tree) == form(program) or call == "x.t()":
            return None  # the repaired program itself
        elif used and isinstance(value, Tensor):
            changed[means.get(used[0], used[0])] = value
    return run(call, changed)


def form(tree: ast.AST) -> str:
    """Return the method that is called, or the indexing."""
    return (
        tree.func.attr if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) else type(tree).__name__
    )


def told_of(error: MinflowError) -> dict[str, str]:
    """Return the tensors that an error names, without the layer's own."""
    return {k: v.partition("  (")[0] for k, v in error.values.items() if k.isidentifier() and "[" in v}


def kind(error: MinflowError) -> tuple:
    """Return the problem without its values."""
    return type(error), re.sub(r"[^a-z_]+", " ", re.sub(r"(float|int)\d+", "", error.what))


@pytest.mark.parametrize(
    "seed, count", [pytest.param("", 40, id="40"), pytest.param(" again", 80, id="80", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", CALLS)
def test_hints_work(name, seed, count):
    draw, refused = Random(name + seed), 0
    for _ in range(count):
        call, names = program(draw, name)
        warned_lines().clear()
        try:
            run(call, names)
            continue
        except MinflowError as found:
            error = found
        refused += 1
        told = f"{call} of { ({k: getattr(v, 'spec', v) for k, v in names.items()}) }\n{error}\nexpected: "
        card = card_of(error)
        if card is not None and card.expected and "[" in card.expected:
            label, spec = card.expected.split(None, 1)
            got = dict(card.got).get(label, "")
            # an op has its own argument names
            meant = [k for k, v in names.items() if isinstance(v, Tensor) and str(v.spec) == got]
            if len(meant) == 1:
                dtype, _, shape = spec.partition("[")
                given = flow.zeros(*map(int, filter(None, shape.rstrip("]").split(", "))), dtype=getattr(flow, dtype))
                try:
                    run(call, {**names, meant[0]: given})
                except MinflowError as again:
                    if kind(again) == kind(error):
                        pytest.fail(f"{told}{card.expected}\nbut then: {again}")
        means = {}  # an inner op has its own names for the inputs
        for k, spec in told_of(error).items():
            meant = [n for n, v in names.items() if isinstance(v, Tensor) and str(v.spec) == spec]
            means[k] = k if k in meant else meant[0] if len(meant) == 1 else None
        if None in means.values():
            continue
        for alternative in re.split(r"; or |, or |; ", error.hint):
            pieces = fragments(alternative, {**names, **means})
            try:
                repaired(call, names, means, pieces)
            except Exception as again:  # another mistake of the same program may be reported next, but not the same one
                if not pieces or (isinstance(again, MinflowError) and kind(again) != kind(error)):
                    continue
                pytest.fail(f"{told}\nafter {' and '.join(pieces)!r}: {again}")
    assert refused, "no program was refused, so no hint was tried"
