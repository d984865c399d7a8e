"""Scaled gradients: GradScaler as in PyTorch programs, and a custom float16 scaler that meets infinity."""

import minflow as flow
from minflow import nn
from minflow.amp import GradScaler, autocast

flow.manual_seed(0)
x, y = flow.randn(64, 6), flow.arange(64) % 3
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer, scaler, losses = flow.optim.SGD(model.parameters(), lr=0.1), GradScaler(), []
for _ in range(20):
    optimizer.zero_grad()
    with autocast(enabled=False):
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())

half = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).half()
optimizer, scale, skipped = flow.optim.SGD(half.parameters(), lr=0.05), 2.0**16, 0
for _ in range(20):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(half(x.half()), flow.zeros(64, 3).half())
    (loss * scale).backward()
    if all(flow.isfinite(p.grad).all() for p in half.parameters()):
        for p in half.parameters():
            p.grad /= scale
        optimizer.step()
    else:
        scale, skipped = scale / 2, skipped + 1
