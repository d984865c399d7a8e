"""Mistakes as learners write them: a description, the class of the error, what its text must contain, and the program.

The line that the error must name is marked with `# <-`. Texts are matched on values, names and hints, not on wording.
"""

import warnings

HEAD = """
import numpy as np
import minflow as flow
from minflow import nn
import minflow.nn.functional as F
"""


def run(program: str, tmp_path) -> None:
    """Run a program as a script lesson.py."""
    file = tmp_path / "lesson.py"
    file.write_text(HEAD + program)
    exec(compile(file.read_text(), str(file), "exec"), {"__name__": "__main__"})


def warned(program: str, tmp_path) -> list[warnings.WarningMessage]:
    """Run a program. Return its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(program, tmp_path)
    return caught


ERRORS = [
    (
        "broadcast",
        "ShapeError",
        ["3", "4", "a  float32[2, 3]", "b  float32[2, 4]"],
        """
x, y = flow.ones(2, 3), flow.ones(2, 4)
z = x + y  # <-
""",
    ),
    (
        "broadcast inside a layer",
        "ShapeError",
        ["block.shift", "float32[5]", "float32[2, 3]", "in Net.block"],
        """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(flow.zeros(5))

    def forward(self, x):
        return x + self.shift  # <-

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x)

Net()(flow.ones(2, 3))
""",
    ),
    (
        "inner sizes of matmul",
        "ShapeError",
        ["784", "512", "a  float32[64, 784]", "b  float32[512, 784]", ".T"],
        """
x, w = flow.ones(64, 784), flow.ones(512, 784)
x @ w  # <-
""",
    ),
    (
        "images not flattened",
        "ShapeError",
        ["fc1.weight", "float32[10, 784]", "float32[64, 28, 28]", "in Net.fc1", "28 * 28 = 784"],
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 10)

    def forward(self, x):
        return self.fc1(x)  # <-

Net()(flow.ones(64, 28, 28))
""",
    ),
    (
        "wrong in_features",
        "ShapeError",
        ["100", "784", "nn.Linear(100"],
        """
layer = nn.Linear(784, 10)
layer(flow.ones(4, 100))  # <-
""",
    ),
    (
        "channels last",
        "ShapeError",
        ["28", "permute(0, 3, 1, 2)", "float32[8, 28, 28, 3]"],
        """
conv = nn.Conv2d(3, 16, 3)
conv(flow.ones(8, 28, 28, 3))  # <-
""",
    ),
    (
        "wrong channels",
        "ShapeError",
        ["1", "3", "float32[8, 1, 28, 28]"],
        """
conv = nn.Conv2d(3, 16, 3)
conv(flow.ones(8, 1, 28, 28))  # <-
""",
    ),
    (
        "image smaller than the filter",
        "ShapeError",
        ["5x5", "3x3"],
        """
conv = nn.Conv2d(1, 2, 5)
conv(flow.ones(1, 1, 3, 3))  # <-
""",
    ),
    (
        "float labels",
        "DTypeError",
        ["float32", ".long()", "target"],
        """
loss = nn.CrossEntropyLoss()
loss(flow.ones(4, 3), flow.tensor([0.0, 1.0, 2.0, 0.0]))  # <-
""",
    ),
    (
        "labels out of range",
        "OutOfRangeError",
        ["1 to 3", "3 classes", "target - 1"],
        """
loss = nn.CrossEntropyLoss()
loss(flow.ones(3, 3), flow.tensor([1, 2, 3]))  # <-
""",
    ),
    (
        "labels with an extra axis",
        "ShapeError",
        ["[4, 1]", "[4]", "squeeze(1)"],
        """
loss = nn.CrossEntropyLoss()
loss(flow.ones(4, 3), flow.zeros(4, 1).long())  # <-
""",
    ),
    (
        "labels and predictions swapped",
        "DTypeError",
        ["int64", "predictions first"],
        """
F.cross_entropy(flow.tensor([[0], [1]]), flow.ones(2, 3))  # <-
""",
    ),
    (
        "float index of an embedding",
        "DTypeError",
        ["float32", "long()"],
        """
nn.Embedding(10, 4)(flow.ones(3))  # <-
""",
    ),
    (
        "index out of range of an embedding",
        "OutOfRangeError",
        ["10", "0 to 9"],
        """
nn.Embedding(10, 4)(flow.tensor([1, 10]))  # <-
""",
    ),
    (
        "index out of range",
        "OutOfRangeError",
        ["7", "axis 0", "3"],
        """
x = flow.ones(3, 4)
x[7]  # <-
""",
    ),
    (
        "axis out of range",
        "OutOfRangeError",
        ["2", "float32[3, 4]"],
        """
flow.ones(3, 4).sum(2)  # <-
""",
    ),
    (
        "integers into a float layer",
        "DTypeError",
        ["int64", "float"],
        """
nn.Linear(3, 2)(flow.ones(4, 3).long())  # <-
""",
    ),
    (
        "mean of integers",
        "DTypeError",
        ["int64", "float()"],
        """
flow.tensor([1, 2, 3]).mean()  # <-
""",
    ),
    (
        "backward of many numbers",
        "GradError",
        ["3 elements", "float32[3]", ".sum() or .mean()"],
        """
x = flow.ones(3, requires_grad=True)
(x * 2).backward()  # <-
""",
    ),
    (
        "backward without grad",
        "GradError",
        ["requires_grad=True", "float32[]"],
        """
loss = flow.ones(3).sum()
loss.backward()  # <-
""",
    ),
    (
        "backward twice",
        "GradError",
        ["lesson.py:8", "retain_graph=True"],
        """
x = flow.ones(3, requires_grad=True)
loss = (x * x).sum()
loss.backward()
loss.backward()  # <-
""",
    ),
    (
        "saved value changed in place",
        "GradError",
        ["exp", "lesson.py:10", "clone()"],
        """
x = flow.ones(3, requires_grad=True)
y = x.exp()
loss = y.sum()
y += 1
loss.backward()
""",
    ),
    (
        "leaf updated outside no_grad",
        "GradError",
        ["leaf", "float32[3]", "no_grad"],
        """
w = flow.ones(3, requires_grad=True)
w -= 0.1  # <-
""",
    ),
    (
        "history cut by a Python number",
        "GradError",
        [".item()", "requires_grad=True"],
        """
w = flow.ones(3, requires_grad=True)
total = 0.0
for i in range(3):
    total += (w * i).sum().item()
loss = flow.tensor(total)
loss.backward()  # <-
""",
    ),
    (
        "missing super().__init__()",
        "ModuleError",
        ["super().__init__()", "Net"],
        """
class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(2, 2)  # <-

Net()
""",
    ),
    (
        "a misspelled forward",
        "ModuleError",
        ["foward", "forward"],
        """
class Net(nn.Module):
    def foward(self, x):
        return x

Net()(flow.ones(2))  # <-
""",
    ),
    (
        "a class in a Sequential",
        "ModuleError",
        ["ReLU", "nn.ReLU()"],
        """
nn.Sequential(nn.Linear(2, 2), nn.ReLU)  # <-
""",
    ),
    (
        "optimizer of a model without parameters",
        "OptimError",
        ["SGD: optimizer got an empty parameter list", "ModuleList"],
        """
flow.optim.SGD(nn.ReLU().parameters(), lr=0.1)  # <-
""",
    ),
    (
        "one number per channel in BatchNorm",
        "ShapeError",
        ["eval()"],
        """
nn.BatchNorm1d(4)(flow.ones(1, 4))  # <-
""",
    ),
    (
        "bool of many numbers",
        "ShapeError",
        ["2 elements", ".any() or .all()"],
        """
if flow.tensor([1.0, 2.0]):  # <-
    pass
""",
    ),
    (
        "item of many numbers",
        "ShapeError",
        ["2 elements", "tolist"],
        """
flow.tensor([1.0, 2.0]).item()  # <-
""",
    ),
    (
        "ragged lists",
        "ShapeError",
        ["lengths differ"],
        """
flow.tensor([[1, 2], [3]])  # <-
""",
    ),
    (
        "reshape to another size",
        "ShapeError",
        ["6", "(4, 2)"],
        """
flow.ones(2, 3).reshape(4, 2)  # <-
""",
    ),
    (
        "a state_dict that does not fit",
        "StateError",
        ["fc.bias", "extra", "must be [2, 3], got [5, 5]"],
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

Net().load_state_dict({"fc.weight": flow.ones(5, 5), "extra": flow.ones(1)})  # <-
""",
    ),
    (
        "integers cannot hold a float",
        "DTypeError",
        ["float32", "int64"],
        """
count = flow.tensor([1, 2])
count += 0.5  # <-
""",
    ),
    (
        "cat of different sizes",
        "ShapeError",
        ["(2, 3)", "(2, 4)", "axis 0"],
        """
flow.cat([flow.ones(2, 3), flow.ones(2, 4)], 0)  # <-
""",
    ),
    (
        "a device that is not there",
        "DeviceError",
        ["cuda", "is_available()"],
        """
flow.ones(2).to("cuda")
""",
    ),
    (
        "a gradient of integers",
        "GradError",
        ["int64", "float()"],
        """
flow.tensor([1, 2], requires_grad=True)  # <-
""",
    ),
]

WARNINGS = [
    (
        "layers hidden in a list",
        ["self.layers is a Python list", "2 of Linear", "ModuleList"],
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]

parameters = list(Net().parameters())  # <-
""",
    ),
    (
        "softmax before cross-entropy",
        ["softmax", "logits"],
        """
logits = nn.Linear(4, 3)(flow.ones(2, 4))
F.cross_entropy(flow.softmax(logits, 1), flow.tensor([0, 1]))  # <-
""",
    ),
    (
        "log_softmax before cross-entropy",
        ["log_softmax", "NLLLoss"],
        """
logits = nn.Linear(4, 3)(flow.ones(2, 4))
F.cross_entropy(F.log_softmax(logits, 1), flow.tensor([0, 1]))  # <-
""",
    ),
    (
        "(N,) against (N, 1)",
        ["float32[8, 1]", "float32[8]"],
        """
F.mse_loss(nn.Linear(4, 1)(flow.ones(8, 4)), flow.ones(8))  # <-
""",
    ),
    (
        "float64 inputs",
        ["float64", "float32"],
        """
x = flow.from_numpy(np.ones((2, 4)))
nn.Linear(4, 3)(x)  # <-
""",
    ),
    (
        "a used gradient, used again",
        ["SGD.step", "weight", "zero_grad", "filterwarnings"],
        """
model = nn.Linear(2, 1)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(flow.ones(4, 2)).sum()
    loss.backward()
    optimizer.step()  # <-
""",
    ),
]
