"""A GAN: two models, two optimizers; the generator makes examples under no_grad in training mode, and shows some at
the end.
"""

import minflow as flow
from minflow import nn

flow.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(16, 1))
of_generator = flow.optim.Adam(generator.parameters(), lr=0.01, betas=(0.5, 0.999))
of_critic = flow.optim.Adam(critic.parameters(), lr=0.01, betas=(0.5, 0.999))
loss_fn, shown, losses = nn.BCEWithLogitsLoss(), [], []
fixed = flow.randn(8, 4)

for step in range(80):
    real = flow.randn(32, 2) * 0.5 + 2
    with flow.no_grad():
        fake = generator(flow.randn(32, 4))
    of_critic.zero_grad()
    loss = loss_fn(critic(real), flow.ones(32, 1)) + loss_fn(critic(fake), flow.zeros(32, 1))
    loss.backward()
    of_critic.step()
    of_generator.zero_grad()  # the critic's gradients are ignored: zero_grad clears them at its next step
    loss = loss_fn(critic(generator(flow.randn(32, 4))), flow.ones(32, 1))
    loss.backward()
    of_generator.step()
    losses.append(loss.item())
    if step % 10 == 0:
        with flow.no_grad():
            shown.append(generator(fixed))

generator.eval()
with flow.no_grad():
    made = flow.cat([generator(flow.randn(16, 4)) for _ in range(3)])
