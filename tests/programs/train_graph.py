"""Train MobileNetV2 on CIFAR-10 as a static graph: forward, backward and the optimizer's step in one call."""

import minflow as flow
from minflow import nn
from minflow.vision import datasets, models, transforms

device = "cuda" if flow.cuda.is_available() else "cpu"
flow.manual_seed(0)

images = datasets.CIFAR10(root="data", train=True, transform=transforms.ToTensor(), download=True)
loader = flow.utils.data.DataLoader(images, 64, shuffle=True, drop_last=True)

model = models.mobilenet_v2().to(device)
model.classifer = nn.Sequential(nn.Dropout(0.2), nn.Linear(model.last_channel, 10))  # sic: see train_eager.py
model.train()
optimizer = flow.optim.SGD(model.parameters(), lr=1e-3)


class TrainingStep(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.loss_fn = nn.CrossEntropyLoss().to(device)
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


step = TrainingStep()
before = repr(step)
step.debug(1)

losses, seen = [], 0
for x, y in loader:
    loss = step(x.to(device), y.to(device))
    losses.append(loss.item())
    seen += len(y)
    print(f"{seen:5d} of {len(images)}: loss {loss:.4f}")
after = repr(step)
