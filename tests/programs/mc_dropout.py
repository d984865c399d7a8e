"""MC dropout: one input through a model many times with dropout on, enabled in the three usual ways."""

import minflow as flow
from minflow import nn

flow.manual_seed(0)
x = flow.linspace(-1, 1, 64).unsqueeze(1)
y = x**3 + 0.05 * flow.randn(64, 1)
model = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
optimizer, loss_fn = flow.optim.Adam(model.parameters(), lr=0.01), nn.MSELoss()
for _ in range(100):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()

model.eval()
for layer in model.modules():
    if isinstance(layer, nn.Dropout):
        layer.train()
with flow.no_grad():
    by_layer = flow.stack([model(part) for part in x.split(16) for _ in range(10)])

model.train()
with flow.no_grad():
    by_model = [flow.stack([model(part) for _ in range(10)]).std(0) for part in x.split(16)]
    again = flow.stack([model(x) for _ in range(20)])

model.eval()
with flow.no_grad():
    answer = model(x)
spread = again.std(0).mean().item()
