"""Random programs of statements: regressions that they found, and every kind of difference is detected.

The outcomes in FOUND were recorded from PyTorch.
"""

import re

import pytest

import minflow
from tests.fuzz import statements

LEAF = "t0 = L.tensor([[1.0, -2.0, 3.0]], requires_grad=True)"
LAYER = "m0 = Extra()"
# lines, an expression, its value or the error text
FOUND = [
    (
        [LEAF, "with L.no_grad(): t0.t_()", "(t0 * 2).sum().backward()"],
        "[t0.is_leaf, t0.grad.tolist()]",
        [True, [[2.0], [2.0], [2.0]]],
    ),
    ([LAYER, "m0._apply(lambda t: t * 3)"], "[m0.w.tolist(), m0.b.tolist()]", [[3.0, -6.0, 1.5], [1.5, 0.0, -3.0]]),
    ([LAYER, "m0.w.grad = L.ones(3)", "m0._apply(lambda t: t * 3)"], "m0.w.grad.tolist()", [3.0, 3.0, 3.0]),
    (["m0 = Applied()", "m0.share_memory()"], "m0.extra", 2.0),
    ([LAYER, "m0.w.grad = L.ones(3)", "m1 = copy.deepcopy(m0)"], "m1.w.grad", None),
    (
        [LEAF, "t1 = L.ones(3, requires_grad=True)", "t2 = Double.apply(t0)", "t2.sum().backward(inputs=[t1])"],
        "[log, t1.grad]",
        [[], None],
    ),
    (
        [LEAF, "t1 = t0 * 2", "t2 = t1 * t1", "t1.sum().backward()", "t3, = L.autograd.grad(t2.sum(), t1)"],
        "t3.tolist()",
        [[4.0, -8.0, 12.0]],
    ),
    (["t0 = L.ones(1)", "t0.retain_grad()"], "", "retain_grad"),
    ([LAYER, "del m0.z"], "", "no attribute 'z'"),
    ([LEAF, "t1 = t0 * 2", "t1.data = L.ones(3)"], "", "must keep its shape and dtype"),  # PyTorch: only in backward
]


@pytest.mark.parametrize("program", FOUND, ids=lambda program: program[0][-1])
def test_regressions_found_by_random_programs(program):
    lines, expression, value = program
    space = statements.space_of(minflow)
    if not expression:
        with pytest.raises(minflow.MinflowError, match=re.escape(value)):
            exec("\n".join(lines), space)
        return
    exec("\n".join(lines), space)
    assert eval(expression, space) == value


def test_every_kind_of_statement_can_be_drawn():
    drawn = "\n".join(line for seed in range(600) for line in statements.draw(seed))
    for lines in statements.STATEMENTS.values():
        for line in lines:
            words = [re.escape(part) for part in re.split(r"\{\w\}", line.replace("{{", "{").replace("}}", "}"))]
            assert re.search(r"\S+".join(words), drawn), line
    assert statements.draw(1) == statements.draw(1) != statements.draw(2)


class Wrong:
    """minflow with `ones` and `zeros` swapped: the runner compares it with minflow itself."""

    def __getattr__(self, name):
        return getattr(minflow, {"ones": "zeros", "zeros": "ones"}.get(name, name))


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        ("t3 = L.ones(3)", "value"),
        ("t3 = t0 if L.ones(1) else t0[0]", "shape"),
        ("log.append(L.ones(2)[0])", "value"),
        ("L.zeros(1) or missing", "raw"),
        ("L.ones(1) or missing", "accepted"),
        ("L.zeros(1) or t0[9]", "refused"),
    ],
)
def test_difference_is_found_and_minimized(last, kind):
    lines = [*statements.START, "t1.mul_(2)", "m0 = Extra()", last, "t0.sum().backward()"]
    assert statements.fault([*lines[:-2], lines[-1]], Wrong()) is None
    found = statements.fault(lines, Wrong())
    assert found.kind == kind
    least = statements.minimized(found, Wrong())
    assert least.lines[-1] == last and len(least.lines) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("share", range(10))
def test_many_random_programs(share):
    torch = pytest.importorskip("torch")
    for seed in range(share * 200, share * 200 + 200):
        found = statements.fault(statements.draw(seed), torch)
        if found is not None and found.kind != "refused":
            found = statements.minimized(found, torch)
            pytest.fail(f"{found.kind}\n{statements.source(found.lines)}\n# {found.ours}\n# PyTorch: {found.theirs}")
