"""A variational autoencoder of small black and white images (Kingma & Welling 2014)."""

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class VAE(nn.Module):
    def __init__(self, pixels=64, hidden=32, latent=4):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(pixels, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, pixels)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def main(prepare):
    rng = np.random.default_rng(0)
    images = torch.from_numpy((rng.random((80, 1, 8, 8)) < rng.random((80, 1, 1, 1))).astype(np.float32))
    loader = DataLoader(TensorDataset(images), batch_size=16, shuffle=False)
    model = prepare(VAE().to(device))
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for epoch in range(4):
        model.train()
        for batch_idx, (data,) in enumerate(loader):
            data = data.to(device)
            optimizer.zero_grad()
            recon_batch, mu, logvar = model(data)
            loss = loss_function(recon_batch, data, mu, logvar)
            loss.backward()
            losses.append(loss.item() / len(data))
            optimizer.step()
    model.eval()
    with torch.no_grad():
        sample = model.decode(torch.zeros(2, 4).to(device)).cpu()
    return losses + [sample.mean().item()]
