"""A conditional Wasserstein GAN with a gradient penalty (Gulrajani et al. 2017): backward through a backward."""

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn
from torch.autograd import Variable

n_classes, latent_dim, img_shape, lambda_gp = 3, 4, (1, 4, 4), 10
Tensor = torch.FloatTensor
LongTensor = torch.LongTensor


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.label_emb = nn.Embedding(n_classes, n_classes)

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat, 0.8))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(
            *block(latent_dim + n_classes, 8, normalize=False), *block(8, 12), nn.Linear(12, int(np.prod(img_shape))),
            nn.Tanh(),
        )

    def forward(self, noise, labels):
        img = self.model(torch.cat((self.label_emb(labels), noise), -1))
        return img.view(img.size(0), *img_shape)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.label_embedding = nn.Embedding(n_classes, n_classes)
        self.model = nn.Sequential(
            nn.Linear(n_classes + int(np.prod(img_shape)), 12), nn.LayerNorm(12), nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(12, 6), nn.SiLU(), nn.Linear(6, 1),
        )

    def forward(self, img, labels):
        return self.model(torch.cat((img.view(img.size(0), -1), self.label_embedding(labels)), -1))


def compute_gradient_penalty(D, real_samples, fake_samples, labels):
    alpha = Tensor(np.random.default_rng(2).random((real_samples.size(0), 1, 1, 1)))
    interpolates = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = D(interpolates, labels)
    fake = Variable(Tensor(real_samples.shape[0], 1).fill_(1.0), requires_grad=False)
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=fake,
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    gradients = gradients.view(gradients.size(0), -1)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def main(prepare):
    generator, discriminator = prepare(Generator()), prepare(Discriminator())
    optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.9))
    optimizer_D = torch.optim.RMSprop(discriminator.parameters(), lr=1e-3)
    rng, losses = np.random.default_rng(1), []
    for i in range(6):
        real_imgs = Variable(torch.from_numpy(rng.uniform(-1, 1, (5, *img_shape))).type(Tensor))
        labels = Variable(LongTensor(rng.integers(0, n_classes, 5)))
        z = Variable(Tensor(rng.normal(0, 1, (5, latent_dim))))
        optimizer_D.zero_grad()
        fake_imgs = generator(z, labels)
        gradient_penalty = compute_gradient_penalty(discriminator, real_imgs.data, fake_imgs.data, labels.data)
        real_validity, fake_validity = discriminator(real_imgs, labels), discriminator(fake_imgs.detach(), labels)
        d_loss = -torch.mean(real_validity) + torch.mean(fake_validity) + lambda_gp * gradient_penalty
        d_loss.backward()
        optimizer_D.step()
        optimizer_G.zero_grad()
        if i % 2 == 0:
            g_loss = -torch.mean(discriminator(fake_imgs, labels))
            g_loss.backward()
            optimizer_G.step()
        losses += [gradient_penalty.item(), d_loss.item(), g_loss.item()]
    return losses
