"""Denoising diffusion (Ho, Jain & Abbeel 2020) with a small U-Net: training, then drawing step by step."""

import math

import torch
import torch.nn.functional as F
from torch import nn

T = 12
betas = torch.linspace(0.0001, 0.02, T)
alphas = 1.0 - betas
alphas_cumprod = torch.cumprod(alphas, axis=0)
alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
posterior_variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)


def extract(a, t, x_shape):
    batch_size = t.shape[0]
    out = a.gather(-1, t.cpu())
    return out.reshape(batch_size, *((1,) * (len(x_shape) - 1))).to(t.device)


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        half_dim = self.dim // 2
        embeddings = math.log(10000) / (half_dim - 1)
        embeddings = torch.exp(torch.arange(half_dim, device=time.device) * -embeddings)
        embeddings = time[:, None] * embeddings[None, :]
        return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)


class Block(nn.Module):
    def __init__(self, in_ch, out_ch, time_emb_dim, up=False):
        super().__init__()
        self.time_mlp = nn.Linear(time_emb_dim, out_ch)
        self.conv1 = nn.Conv2d(2 * in_ch if up else in_ch, out_ch, 3, padding=1)
        self.transform = nn.ConvTranspose2d(out_ch, out_ch, 4, 2, 1) if up else nn.Conv2d(out_ch, out_ch, 4, 2, 1)
        self.norm = nn.GroupNorm(2, out_ch)
        self.act = nn.SiLU()

    def forward(self, x, t):
        h = self.norm(self.act(self.conv1(x)))
        time_emb = self.act(self.time_mlp(t))
        return self.transform(h + time_emb[(...,) + (None,) * 2])


class LinearAttention(nn.Module):
    def __init__(self, dim, heads=2, dim_head=3):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Conv2d(dim, heads * dim_head * 3, 1, bias=False)
        self.to_out = nn.Conv2d(heads * dim_head, dim, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = map(lambda t: t.reshape(b, self.heads, -1, h * w), self.to_qkv(x).chunk(3, dim=1))
        q, k = q.softmax(dim=-2), k.softmax(dim=-1)
        context = torch.einsum("b h d n, b h e n -> b h d e", k, v)
        out = torch.einsum("b h d e, b h d n -> b h e n", context, q)
        return self.to_out(out.reshape(b, -1, h, w)) + x


class SimpleUnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time_mlp = nn.Sequential(SinusoidalPositionEmbeddings(8), nn.Linear(8, 8), nn.ReLU())
        self.conv0 = nn.Conv2d(1, 4, 3, padding=1)
        self.downs = nn.ModuleList([Block(4, 6, 8), Block(6, 8, 8)])
        self.mid = LinearAttention(8)
        self.ups = nn.ModuleList([Block(8, 6, 8, up=True), Block(6, 4, 8, up=True)])
        self.output = nn.Conv2d(4, 1, 1)

    def forward(self, x, timestep):
        t = self.time_mlp(timestep)
        x = self.conv0(x)
        residual_inputs = []
        for down in self.downs:
            x = down(x, t)
            residual_inputs.append(x)
        x = self.mid(x)
        for up in self.ups:
            x = up(torch.cat((x, residual_inputs.pop()), dim=1), t)
        return self.output(x)


def q_sample(x_start, t, noise):
    return (extract(torch.sqrt(alphas_cumprod), t, x_start.shape) * x_start
            + extract(torch.sqrt(1.0 - alphas_cumprod), t, x_start.shape) * noise)


@torch.no_grad()
def p_sample(model, x, t, t_index):
    noise_part = extract(betas, t, x.shape) / extract(torch.sqrt(1.0 - alphas_cumprod), t, x.shape)
    model_mean = extract(torch.sqrt(1.0 / alphas), t, x.shape) * (x - noise_part * model(x, t))
    if t_index == 0:
        return model_mean
    return model_mean + torch.sqrt(extract(posterior_variance, t, x.shape)) * torch.randn_like(x)


def main(prepare):
    model = prepare(SimpleUnet())
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    ema = {name: value.clone() for name, value in model.state_dict().items()}
    losses = []
    for step in range(6):
        images = torch.tanh(torch.randn(4, 1, 8, 8))
        t = torch.tensor([step, 3, 7, T - 1], device=images.device).long()
        noise = torch.randn_like(images)
        loss = F.smooth_l1_loss(noise, model(q_sample(images, t, noise), t))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with torch.no_grad():
            for name, value in model.state_dict().items():
                ema[name].mul_(0.9).add_(value, alpha=0.1)
    model.load_state_dict(ema)
    img = torch.randn((2, 1, 8, 8))
    for i in reversed(range(T)):
        img = p_sample(model, img, torch.full((2,), i, device="cpu", dtype=torch.long), i)
    return [*losses, img.mean().item(), img.std().item()]
