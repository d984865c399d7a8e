"""Save a training run of a graph, and resume it elsewhere with identical results."""

import shutil
from pathlib import Path

import minflow as flow
from minflow import nn
from minflow.vision import datasets, models, transforms

FOLDER = "checkpoint"
images = datasets.CIFAR10(root="data", train=True, transform=transforms.ToTensor(), download=True)
batches = list(flow.utils.data.DataLoader(images, 16, drop_last=True))[:4]


class TrainingStep(nn.Graph):
    def __init__(self, model, optimizer, schedule):
        super().__init__()
        self.model = model
        self.loss_fn = nn.CrossEntropyLoss()
        self.add_optimizer(optimizer, lr_sch=schedule)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


class Run:
    """A model with new weights, its optimizer, and the graph of its step."""

    def __init__(self, seed):
        flow.manual_seed(seed)
        self.model = models.mobilenet_v2()
        self.model.classifer = nn.Sequential(nn.Dropout(0.2), nn.Linear(self.model.last_channel, 10))  # sic
        self.model.train()
        self.optimizer = flow.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
        schedule = flow.optim.lr_scheduler.StepLR(self.optimizer, step_size=3, gamma=0.1)
        self.step = TrainingStep(self.model, self.optimizer, schedule)
        self.losses = []

    def train(self, some):
        self.losses += [self.step(x, y) for x, y in some]


whole = Run(seed=0)
whole.train(batches[:2])
if Path(FOLDER).exists():
    shutil.rmtree(FOLDER)
flow.save(whole.step.state_dict(), FOLDER)
whole.train(batches[2:])

at_once = Run(seed=1)  # takes over the state before compiling
at_once.step.load_state_dict(flow.load(FOLDER))
at_once.train(batches[2:])

later = Run(seed=2)  # has already made a step
later.step(*batches[0])
later.step.load_state_dict(flow.load(FOLDER))
later.train(batches[2:])

for name, run in (("uninterrupted", whole), ("resumed before the first call", at_once), ("resumed after it", later)):
    print(f"{name:30}", *[f"{loss:.6f}" for loss in run.losses])
