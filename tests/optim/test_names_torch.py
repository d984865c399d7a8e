"""Public names of base classes that PyTorch's do not have: each would hide a program's attribute of this name."""

import pytest

import minflow as flow

torch = pytest.importorskip("torch")

GLOBAL = {"to_global", "to_local"}
OTHERS = {  # of OneFlow, or promised by our documentation
    "Tensor": GLOBAL
    | {"batch_gather", "cast", "celu", "gelu", "global_to_global", "in_top_k", "is_global", "is_lazy", "is_local"}
    | {"local_to_global", "mish", "nms", "placement", "quick_gelu", "sbp", "selu", "silu", "softplus", "softsign"}
    | {"square_relu"},
    "optim.Optimizer": {"clip_grad"},
    "optim.SGD": {"clip_grad"},
    "optim.Adam": {"clip_grad"},
    "optim.LBFGS": {"clip_grad"},
    "optim.lr_scheduler.LRScheduler": {"last_step"},
    "optim.lr_scheduler.StepLR": {"last_step"},
    "optim.lr_scheduler.SequentialLR": {"last_step"},
    "optim.lr_scheduler.ReduceLROnPlateau": {"last_step"},
    "utils.data.Dataset": set(),
    "utils.data.Sampler": set(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_no_further_public_names(name):
    mine, theirs = [eval(f"lib.{name}", {"lib": lib}) for lib in (flow, torch)]
    assert {n for n in set(dir(mine)) - set(dir(theirs)) if n[0] != "_"} == OTHERS[name]


def test_attributes_of_programs_do_not_meet_ours():
    x = flow.ones(2, requires_grad=True)
    assert not any(hasattr(x, name) for name in ("value", "label", "needs", "hooks", "alias", "gradient"))
    x.label, x.value, x.hooks, x.needs = 3, 4, [], False
    (x * x).sum().backward()
    assert (x.label, x.value, x.hooks, x.grad.tolist()) == (3, 4, [], [2, 2])

    class Mine(flow.optim.SGD):
        def __init__(self, params, lr):
            super().__init__(params, lr)
            self.names, self.rule, self.check, self.steps, self.parameters, self.first = ["w"], 1, 2, 0, params, True

        def step(self, closure=None):
            self.steps += 1
            return super().step(closure)

    optimizer = Mine([x], 0.5)
    optimizer.step()
    assert x.tolist() == [0, 0] and optimizer.steps == 1 and optimizer.state_dict()["param_groups"][0]["lr"] == 0.5
