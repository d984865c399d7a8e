"""A long tape shows its last ops; the size of the layout is bounded."""

import pytest

import minflow as flow
from minflow.views.records import tape as records
from minflow.views.show import picture


def program(steps, leaf_every):
    x = flow.ones(3, requires_grad=True)
    y, leaves = x * 1.0, 1
    for i in range(steps - 1):
        if leaf_every and i % leaf_every == 0:
            y, leaves = y * flow.ones(3, requires_grad=True), leaves + 1
        else:
            y = y + x if i % 7 == 0 else y * 0.5
    return y, leaves


@pytest.mark.parametrize("leaf_every", [0, 5])
def test_early_part_is_one_box(leaf_every, monkeypatch):
    monkeypatch.setattr(records, "MAX_NODES", 50)
    y, leaves = program(300, leaf_every)
    record = records.tape_record(y, title="t")
    box, *rest = record.nodes
    assert box.label == "earlier operations" and box.kind == "folded"
    assert len(record.nodes) <= 50 + 2 + leaves - box.hidden
    assert box.count + sum(n.kind == "op" for n in rest) == 300
    assert box.hidden + sum(n.kind == "leaf" for n in rest) == leaves
    ids = {n.id: n for n in record.nodes}
    for node in rest:
        for x in node.inputs:
            if x.ref:
                assert x.text == ids[x.ref].outs[x.index]
    view = picture(y, names={})
    assert f"300 operations, {leaves} lea" in view.text and "earlier operations" in view.dot and len(view.dot) < 20_000


def test_layout_size_is_bounded():
    texts = []
    for steps in (6_000, 12_000):
        view = picture(program(steps, 0)[0], names={})
        assert len(view.record.nodes) <= records.MAX_NODES + 2
        texts.append((len(view.text), len(view.dot)))
    assert abs(texts[0][0] - texts[1][0]) < 100 and abs(texts[0][1] - texts[1][1]) < 100
