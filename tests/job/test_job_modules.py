"""Modules in job functions: what changes in them between two calls takes effect, as in eager and in nn.Graph."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow import typing as tp

X = np.arange(8, dtype="float32").reshape(2, 4)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.act, self.scale, self.table, self.calls = nn.Dropout(0.5), nn.ReLU(), 2.0, [1.0, 2.0], 0

    def forward(self, x):
        self.calls += 1
        return self.act(self.drop(x)) * self.scale * self.table[0]


CHANGES = {
    "scale": lambda m: setattr(m, "scale", 5.0),
    "table": lambda m: m.table.__setitem__(0, 7.0),
    "layer": lambda m: setattr(m, "act", nn.Tanh()),
    "hook": lambda m: m.act.register_forward_hook(lambda module, args, out: out + 1),
}


def job_of(model):
    @flow.global_function(type="predict")
    def predict(x: tp.Numpy.Placeholder((2, 4))) -> tp.Numpy:
        return model(x)

    return predict


@pytest.mark.parametrize("change", list(CHANGES))
def test_what_changes_in_a_module_takes_effect_in_a_job(change):
    model = Scaled().eval()
    job = job_of(model)
    before = job(X)
    assert np.array_equal(before, model(flow.tensor(X)).numpy()) and np.array_equal(job(X), before)
    CHANGES[change](model)
    after = job(X)
    assert np.array_equal(after, model(flow.tensor(X)).numpy()) and not np.array_equal(after, before)


def test_train_and_eval_have_a_plan_each_in_a_job():
    model = Scaled()
    job = job_of(model)
    model.eval()
    assert np.array_equal(job(X), X * 2)
    for _ in range(3):
        model.train(), job(X), model.eval()
        assert np.array_equal(job(X), X * 2)
    assert len(job.plans) <= 4
    plans = dict(job.plans)
    model.train(), job(X), model.eval(), job(X)
    assert dict(job.plans) == plans  # nothing is compiled again
