"""A user's annotated program, checked by mypy (see pyproject.toml) and run by test_packaging.py.

`assert_type` fails the type checker if the type of a public name is different.
"""

from typing import assert_type

import minflow as flow
from minflow import nn, optim


class Net(nn.Module):
    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, hidden)
        self.out = nn.Linear(hidden, 3)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.out(flow.relu(self.hidden(x)))


@flow.no_grad()
def evaluate(net: Net, x: flow.Tensor) -> flow.Tensor:
    out: flow.Tensor = net(x)
    return out.to(flow.device("cpu"), flow.float32)


def train(steps: int) -> float:
    flow.manual_seed(0)
    net = Net()
    loss_of = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x: flow.Tensor = flow.randn(6, 4)
    labels = flow.tensor([0, 1, 2, 0, 1, 2])
    assert_type(labels, flow.Tensor)
    loss: flow.Tensor = flow.zeros(())
    for _ in range(steps):
        loss = loss_of(net(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with flow.no_grad():
        right: flow.Tensor = (net(x).argmax(1) == labels).float().mean()
    assert_type(evaluate(net, x), flow.Tensor)
    shape: tuple[int, ...] = x.shape
    assert shape == (6, 4) and 0 <= right.item() <= 1
    return float(loss)


def build_model() -> nn.Sequential:
    """Functions, layers, initializers and optimizers keep their types."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten())
    assert_type(model.to("cpu").eval(), nn.Sequential)
    assert_type(nn.init.zeros_(flow.ones(2)), flow.Tensor)
    images = nn.functional.max_pool2d(flow.rand(1, 1, 8, 8), 2).relu()
    assert_type(nn.functional.gelu(images), flow.Tensor)
    for name, parameter in model.named_parameters():
        assert_type(name, str)
        assert_type(parameter, nn.Parameter)
    assert_type(optim.AdamW(model.parameters(), lr=0.1), optim.AdamW)
    assert_type(optim.Adam([{"params": model.parameters()}]), optim.Adam)
    return model


if __name__ == "__main__":
    assert train(60) < train(1)
    assert build_model()(flow.rand(1, 1, 4, 4)).shape == (1, 8)
