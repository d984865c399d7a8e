"""The tape of a learner's own engine is drawn like ours."""

import numpy as np
import pytest

import minflow as flow
from minflow.views.records import foreign_tape
from minflow.views.show import picture


class Value:
    def __init__(self, data, inputs=(), op=""):
        self.data, self.inputs, self.op, self.grad = data, inputs, op, None

    def __mul__(self, other):
        return Value(self.data * getattr(other, "data", other), (self, other), "mul")


def test_foreign_tape_shows_names_values_and_gradients():
    a = Value(2.0)
    b = a * a
    c = b * 3.0
    a.grad = 12.0
    view = picture(c, names={"a": a, "b": b, "c": c, "other": 5})
    assert (
        view.text
        == """\
tape of c Value: 2 operations, 1 leaf
mul -> float
│  value c = 12
│  grad none yet
├─ mul -> float
│  │  value b = 4
│  │  grad none yet
│  ├─ [1] leaf a float
│  │     value 2
│  │     grad 12
│  └─ a  see [1]
└─ 3"""
    )
    assert view.svg.count("grad 12") == 1 and "mul" in view.dot


def test_names_come_from_the_caller(capsys):
    mine = Value(np.ones((2, 3)))
    flow.show(mine * mine)
    assert "leaf mine float64[2, 3]" in capsys.readouterr().out


def test_deep_foreign_tape(monkeypatch):
    last = Value(1.0)
    for _ in range(5000):
        last = last * 1.0
    assert "tape of a Value: 5000 operations" in picture(last, names={}).text.replace(",", "")
    monkeypatch.setattr(foreign_tape, "MAX_NODES", 50)
    record = foreign_tape.foreign_record(last)
    assert len(record.nodes) == 50 and record.note == "and 4,951 earlier values"


def test_objects_without_values():
    odd = Value("text", (Value([]), Value(object())))
    assert "value str" in picture(odd, names={}).text
    with pytest.raises(flow.DTypeError, match="has no picture"):
        picture(type("Other", (), {"data": 1, "grad": 0})(), names={})
