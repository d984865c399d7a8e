"""Modules in job functions: changes between two calls take effect, as in eager mode and in nn.Graph."""

import numpy as np
import pytest
from builders import job_of as any_job_of

import minflow as flow
from minflow import nn, typing as tp

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
    return any_job_of(lambda x: model(x), X, name="predict")


@pytest.mark.parametrize("change", list(CHANGES))
def test_module_changes_take_effect_in_a_job(change):
    model = Scaled().eval()
    job = job_of(model)
    before = job(X)
    assert np.array_equal(before, model(flow.tensor(X)).numpy()) and np.array_equal(job(X), before)
    CHANGES[change](model)
    after = job(X)
    assert np.array_equal(after, model(flow.tensor(X)).numpy()) and not np.array_equal(after, before)


def test_train_and_eval_mode_have_separate_plans():
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


# ---- the environment of a job function -------------------------------------------------------------------------------


rate, scale, K = [2.0], flow.tensor(2.0), [3.0]
seen = []


def keep(values: tp.Numpy):
    seen.append(values)


def test_untracked_state_warns_once():
    limit, log = 4.0, []

    def helper(x):
        return x * limit

    @flow.global_function(type="predict")
    def predict(x: tp.ListNumpy.Placeholder((2, 4))) -> tp.ListNumpy:
        flow.watch(x, keep)
        flow.watch(x, lambda values: log.append(values))
        return helper(x) * rate[0] + K[0]

    with pytest.warns(
        flow.MinflowWarning, match=r"job predict: the function uses .* not again at each call"
    ) as records:
        for n in (2, 2, 1):
            assert np.array_equal(predict([X[:n]])[0], X[:n] * 8 + 3)
    assert len(records) == 1 and records[0].filename == __file__ and len(seen) == len(log) == 3
    text = str(records[0].message)
    assert "rate ([2.0])" in text and not any(f"{name} (" in text for name in ("limit", "seen", "log", "K", "scale"))
    limit = 2.0
    assert np.array_equal(predict([X])[0], X * 4 + 3)  # a variable of an enclosing function is tracked


def test_rebound_variable_takes_effect_in_a_job(monkeypatch):
    predict = job_of(lambda x: x * scale)
    assert np.array_equal(predict(X), X * 2)
    monkeypatch.setitem(globals(), "scale", flow.tensor(5.0))
    assert np.array_equal(predict(X), X * 5) and np.array_equal(predict(X), X * 5)
    scale.data = flow.tensor(7.0)
    assert np.array_equal(predict(X), X * 7)
    scale.add_(1)
    assert np.array_equal(predict(X), X * 8) and len(predict.plans) == 2  # the old storage has been freed


def test_default_dtype_is_part_of_the_plan_key():
    predict = job_of(lambda x: flow.zeros(3))
    assert predict(X).dtype == np.float32
    flow.set_default_dtype(flow.float64)
    try:
        assert predict(X).dtype == np.float64
    finally:
        flow.set_default_dtype(flow.float32)
    assert predict(X).dtype == np.float32 and len(predict.plans) == 2


def test_tracked_state_does_not_warn():
    model = Scaled().eval()
    predict = job_of(lambda x: model(x) * scale + K[0])
    assert predict(X).shape == (2, 4) and predict.noticed == set()


def test_list_written_by_the_function_does_not_rebuild():
    built = []

    @flow.global_function()
    def written_job(x: tp.ListNumpy.Placeholder((8, 4))) -> tp.Numpy:
        built.append(1)
        return x * 2

    for i in range(8):
        written_job([np.ones((2 + i % 2, 4), "f")])
    assert len(built) <= 4  # two shapes; each once more until the writer is known


def masked(x):
    y = x * 2
    y[y < 6] = 0.5
    return y


def written(x):
    y = x * 2
    z = y
    z += 1
    z[0] *= 3
    return y


def named(x):
    values, order = flow.sort(-x, dim=-1)
    return values + flow.argmax(x, dim=-1, keepdim=True) + order + flow.transpose(x, 0, 1).sum()


FORWARD = {
    "comparisons": lambda x: ((x > 3) + (x > 5)).float() + (~(x < 2)).float() + (x == 4),
    "a mask": masked,
    "writes": written,
    "names": named,
    "gather": lambda x: flow.gather(x, 1, flow.tensor([[0, 1], [2, 3]])).sum() + x,
    "losses": lambda x: nn.MSELoss()(x, x * 2) + nn.functional.mse_loss(x, x * 3) + x,
}


@pytest.mark.parametrize("name", FORWARD)
def test_names_and_operators_in_a_module_are_modern_in_a_job(name):
    model = type("Model", (nn.Module,), {"forward": lambda self, x: FORWARD[name](x)})()
    found = job_of(model)(X)
    wanted = model(flow.tensor(X)).numpy()
    assert found.dtype == wanted.dtype and np.array_equal(found, wanted)


def test_comparison_in_a_job_function_is_int8_but_a_mask_as_index():
    def mask(x):
        y = masked(x)
        y[(x > 6,)] = 7.0
        return y

    wanted = np.where(X > 6, np.float32(7), np.where(X < 3, np.float32(0.5), X * 2))
    assert np.array_equal(any_job_of(mask, X)(X), wanted)
    assert any_job_of(lambda x: x > 3, X)(X).dtype == np.int8


KEEPS = {
    "attribute": lambda m, x: setattr(m, "last", x * 2),
    "list": lambda m, x: m.table.append(x),
    "dict": lambda m, x: m.named.update(x=x.sum()),
    "item": lambda m, x: m.table.__setitem__(1, x),
}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("how", KEEPS)
def test_no_blob_remains_in_a_module(how, fails):
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.named = [1.0, flow.ones(4)], {}

        def forward(self, x):
            KEEPS[how](self, x)
            if fails:
                raise ValueError("no")
            return x + 1

    model = nn.Sequential(Keeps())
    kind, text = (ValueError, "no") if fails else (flow.JobError, "job predict leaves a Blob in Sequential.0.")
    with pytest.raises(kind, match=text):
        job_of(model)(X)
    kept = [*vars(model[0]).values(), *model[0].table, *model[0].named.values()]
    assert not any(isinstance(x, flow.Tensor) and x.is_lazy for x in kept)
