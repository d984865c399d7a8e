"""Predict with a graph: the same modules, read by a graph that has no optimizer."""

import minflow as flow
from minflow import nn
from minflow.vision import datasets, models, transforms

flow.manual_seed(0)
images = datasets.CIFAR10(root="data", train=False, transform=transforms.ToTensor(), download=True)
loader = flow.utils.data.DataLoader(images, 32)
model = models.mobilenet_v2(num_classes=10)


class Prediction(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


predict = Prediction()

# In training mode, as the model is after training: a call moves the running averages of batch norm.
x, _ = next(iter(loader))
in_training = predict(x)

model.eval()
right, answers, expected = 0, [], []
with flow.no_grad():
    for x, y in loader:
        answers.append(predict(x))
        expected.append(model(x))
        right += int((answers[-1].argmax(1) == y).sum())
print(f"{right} of {len(images)} right")
