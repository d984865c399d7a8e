"""Programs catch mistakes by the kinds that PyTorch raises for them."""

import pytest

import minflow as flow
from minflow import nn


@pytest.mark.parametrize("kind, mistake", [
    (RuntimeError, lambda: flow.ones(2, 3) @ flow.ones(2, 3)),
    (RuntimeError, lambda: flow.ones(2) + flow.ones(3)),
    (RuntimeError, lambda: nn.Linear(3, 2)(flow.ones(1, 4))),
    (RuntimeError, lambda: nn.Linear(3, 2)(flow.ones(1, 3, dtype=flow.int64))),
    (RuntimeError, lambda: flow.tensor([1, 2]).requires_grad_()),
    (RuntimeError, lambda: flow.arange(6).view(4)),
    (ValueError, lambda: nn.CrossEntropyLoss()(flow.ones(2, 3), flow.tensor([0, 1, 2]))),
    (ValueError, lambda: nn.BatchNorm2d(3)(flow.ones(2, 3))),
    (ValueError, lambda: nn.Dropout(1.5)),
    (ValueError, lambda: flow.distributions.Normal(0.0, -1.0)),
    (IndexError, lambda: nn.Embedding(3, 2)(flow.tensor([3]))),
    (IndexError, lambda: flow.ones(2).sum(1)),
    (TypeError, lambda: flow.ones(2) + "1"),
])
def test_a_mistake_is_of_the_kind_that_is_caught(kind, mistake):
    with pytest.raises(kind):
        mistake()
