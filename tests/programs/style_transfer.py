"""Style transfer: an image is trained through a frozen network, and through one that its author forgot to freeze."""

import minflow as flow
from minflow import nn

flow.manual_seed(0)
features = nn.Sequential(
    nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU()
).eval()
content, style = flow.rand(1, 3, 16, 16), flow.rand(1, 3, 16, 16)


def gram(x):
    rows = x.flatten(2)[0]
    return rows @ rows.T / rows.numel()


with flow.no_grad():
    wanted, texture = features(content), gram(features(style))
image = content.clone().requires_grad_(True)
optimizer, losses = flow.optim.Adam([image], lr=0.05), []
for _ in range(80):  # the network's own parameters get gradients that are not used
    optimizer.zero_grad()
    seen = features(image)
    loss = nn.functional.mse_loss(seen, wanted) + 100 * nn.functional.mse_loss(gram(seen), texture)
    loss.backward()
    optimizer.step()
    with flow.no_grad():
        image.clamp_(0, 1)
    losses.append(loss.item())
