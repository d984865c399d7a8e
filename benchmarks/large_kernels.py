"""Programs dominated by kernels, in the style of public tutorials, the same in minflow and in PyTorch.

Each is a function of the library, as in `small_ops.py`. A round includes the construction of the model, because large
layers take as long to initialize as a training step. Run them by `programs.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

# ---- image networks --------------------------------------------------------------------------------------------------


def steps(torch, model, batch: Callable, loss_of: Callable, make_optimizer: Callable, count: int) -> float:
    """Train a model for some steps; return the sum of the losses."""
    optimizer, total = make_optimizer(model.parameters()), 0.0
    for _ in range(count):
        loss = loss_of(model, *batch())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def classify(torch, make_model: Callable, shape: tuple[int, ...], count: int, **options) -> Callable[[], float]:
    """Train a classifier of ten classes by SGD with momentum on random images."""
    batch = lambda: (torch.randn(*shape), torch.randint(0, 10, (shape[0],)))
    loss_of = lambda model, x, y: torch.nn.functional.cross_entropy(model(x), y, **options)
    optimizer = lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=5e-4)
    return lambda: steps(torch, make_model(), batch, loss_of, optimizer, count)


def densenet(torch) -> Callable[[], float]:
    """DenseNet-BC of growth 12 with lists of features, on 4 images of 64 x 64."""
    nn, F = torch.nn, torch.nn.functional

    class Layer(nn.Module):
        def __init__(self, width, growth):
            super().__init__()
            self.norm1, self.relu1 = nn.BatchNorm2d(width), nn.ReLU(inplace=True)
            self.conv1 = nn.Conv2d(width, 4 * growth, kernel_size=1, bias=False)
            self.norm2, self.relu2 = nn.BatchNorm2d(4 * growth), nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(4 * growth, growth, kernel_size=3, padding=1, bias=False)

        def forward(self, features):
            out = self.conv1(self.relu1(self.norm1(torch.cat(features, 1))))
            return F.dropout(self.conv2(self.relu2(self.norm2(out))), p=0.1, training=self.training)

    class Block(nn.ModuleDict):
        def __init__(self, layers, width, growth):
            super().__init__()
            for i in range(layers):
                self.add_module(f"layer{i}", Layer(width + i * growth, growth))

        def forward(self, x):
            features = [x]
            for layer in self.values():
                features.append(layer(features))
            return torch.cat(features, 1)

    def make():
        growth, width = 12, 24
        layers = [nn.Conv2d(3, width, 3, stride=2, padding=1, bias=False)]
        for depth in (4, 4, 6):
            layers.append(Block(depth, width, growth))
            width += depth * growth
            layers += [nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.Conv2d(width, width // 2, 1, bias=False)]
            width //= 2
            layers.append(nn.AvgPool2d(2))
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))

    return classify(torch, make, (4, 3, 64, 64), 5)


def vgg(torch) -> Callable[[], float]:
    """VGG-11 with batch norm, on 8 images of 32 x 32."""
    nn = torch.nn

    def make():
        layers, channels = [], 3
        for width in (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"):
            if width == "M":
                layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            else:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                channels = width
        dense = [nn.Linear(512, 1024), nn.ReLU(True), nn.Dropout(), nn.Linear(1024, 10)]
        model = nn.Sequential(*layers, nn.Flatten(), *dense)
        for m in model.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
        return model

    return classify(torch, make, (8, 3, 32, 32), 4)


def mobilenet(torch) -> Callable[[], float]:
    """Inverted residuals: depthwise convolutions, squeeze and excitation, hard swish; 16 images of 32 x 32."""
    nn, F = torch.nn, torch.nn.functional

    class HardSwish(nn.Module):
        def forward(self, x):
            return x * F.relu6(x + 3) / 6

    class SqueezeExcitation(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Sequential(
                nn.Linear(width, width // 4), nn.ReLU(True), nn.Linear(width // 4, width), nn.Sigmoid()
            )

        def forward(self, x):
            b, c, _, _ = x.size()
            return x * self.fc(self.pool(x).view(b, c)).view(b, c, 1, 1).expand_as(x)

    class InvertedResidual(nn.Module):
        def __init__(self, width, hidden, out, kernel, stride):
            super().__init__()
            self.identity = stride == 1 and width == out
            depthwise = nn.Conv2d(hidden, hidden, kernel, stride, kernel // 2, groups=hidden, bias=False)
            self.conv = nn.Sequential(
                nn.Conv2d(width, hidden, 1, bias=False), nn.BatchNorm2d(hidden), HardSwish(),
                depthwise, nn.BatchNorm2d(hidden), SqueezeExcitation(hidden), HardSwish(),
                nn.Conv2d(hidden, out, 1, bias=False), nn.BatchNorm2d(out),
            )  # fmt: skip

        def forward(self, x):
            return x + self.conv(x) if self.identity else self.conv(x)

    def make():
        blocks = [(16, 32, 16, 3, 1), (16, 48, 24, 3, 2), (24, 72, 24, 3, 1), (24, 96, 40, 5, 2), (40, 120, 40, 5, 1)]
        stem = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), HardSwish()]
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(40, 10)]
        return nn.Sequential(*stem, *[InvertedResidual(*sizes) for sizes in blocks], *head)

    return classify(torch, make, (16, 3, 32, 32), 5, label_smoothing=0.1)


def unet(torch) -> Callable[[], float]:
    """U-Net with cross entropy and dice loss, on 2 images of 64 x 96."""
    nn, F = torch.nn, torch.nn.functional

    def double_conv(width, out):
        layers = []
        for channels in (width, out):
            layers += [nn.Conv2d(channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers)

    class UNet(nn.Module):
        def __init__(self, width=8):
            super().__init__()
            widths = [width * 2**i for i in range(4)]
            self.first = double_conv(3, width)
            self.down = nn.ModuleList([double_conv(a, 2 * a) for a in widths[:-1]])
            self.up = nn.ModuleList([nn.ConvTranspose2d(2 * a, a, 2, stride=2) for a in widths[-2::-1]])
            self.join = nn.ModuleList([double_conv(2 * a, a) for a in widths[-2::-1]])
            self.last = nn.Conv2d(width, 2, 1)

        def forward(self, x):
            kept = [self.first(x)]
            for down in self.down:
                kept.append(down(F.max_pool2d(kept[-1], 2)))
            x = kept.pop()
            for up, join in zip(self.up, self.join):
                x = join(torch.cat([kept.pop(), up(x)], dim=1))
            return self.last(x)

    def loss_of(model, x, mask):
        out = model(x)
        p, target = F.softmax(out, dim=1), F.one_hot(mask, 2).permute(0, 3, 1, 2).float()
        both = 2 * (p * target).sum(dim=(-1, -2))
        dice = (both + 1e-6) / (p.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2)) + 1e-6)
        return F.cross_entropy(out, mask) + 1 - dice.mean()

    def batch():
        x = torch.rand(2, 3, 64, 96)
        return x, (x.mean(1) > 0.5).long()

    optimizer = lambda parameters: torch.optim.RMSprop(parameters, lr=1e-4, weight_decay=1e-8, momentum=0.9)
    return lambda: steps(torch, UNet(), batch, loss_of, optimizer, 5)


def dcgan(torch) -> Callable[[], float]:
    """DCGAN of width 16, 16 images of 64 x 64."""
    nn = torch.nn

    def initialize(m):
        if isinstance(m, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(m.weight.data, 0.0, 0.02)
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.normal_(m.weight.data, 1.0, 0.02)

    def generator():
        layers = [nn.ConvTranspose2d(100, 128, 4, 1, 0, bias=False), nn.BatchNorm2d(128), nn.ReLU(True)]
        for width in (128, 64, 32):
            up = nn.ConvTranspose2d(width, width // 2, 4, 2, 1, bias=False)
            layers += [up, nn.BatchNorm2d(width // 2), nn.ReLU(True)]
        return nn.Sequential(*layers, nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False), nn.Tanh())

    def discriminator():
        layers = [nn.Conv2d(3, 16, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        for width in (16, 32, 64):
            down = nn.Conv2d(width, width * 2, 4, 2, 1, bias=False)
            layers += [down, nn.BatchNorm2d(width * 2), nn.LeakyReLU(0.2, inplace=True)]
        return nn.Sequential(*layers, nn.Conv2d(128, 1, 4, 1, 0, bias=False), nn.Sigmoid())

    def one_round():
        G, D, criterion = generator().apply(initialize), discriminator().apply(initialize), nn.BCELoss()
        adam = lambda model: torch.optim.Adam(model.parameters(), lr=0.0002, betas=(0.5, 0.999))
        optimizer_G, optimizer_D = adam(G), adam(D)
        for _ in range(4):
            D.zero_grad()
            label = torch.full((16,), 1.0)
            criterion(D(torch.randn(16, 3, 64, 64)).view(-1), label).backward()
            fake = G(torch.randn(16, 100, 1, 1))
            label.fill_(0.0)
            criterion(D(fake.detach()).view(-1), label).backward()
            optimizer_D.step()
            G.zero_grad()
            label.fill_(1.0)
            loss = criterion(D(fake).view(-1), label)
            loss.backward()
            optimizer_G.step()
        return loss.item()

    return one_round


# ---- vectors ---------------------------------------------------------------------------------------------------------


def vqvae(torch) -> Callable[[], float]:
    """VQ-VAE whose codebook is a moving average, on 16 images of 32 x 32."""
    nn, F = torch.nn, torch.nn.functional

    class VectorQuantizer(nn.Module):
        def __init__(self, size=256, width=32, decay=0.99):
            super().__init__()
            self.size, self.width, self.decay = size, width, decay
            self.embedding = nn.Embedding(size, width)
            self.embedding.weight.data.normal_()
            self.register_buffer("counts", torch.zeros(size))
            self.register_buffer("sums", self.embedding.weight.data.clone())

        def forward(self, x):
            x = x.permute(0, 2, 3, 1).contiguous()
            flat, codes = x.view(-1, self.width), self.embedding.weight
            distances = (flat**2).sum(dim=1, keepdim=True) + (codes**2).sum(dim=1) - 2 * flat @ codes.t()
            index = torch.argmin(distances, dim=1).unsqueeze(1)
            one_hot = torch.zeros(index.shape[0], self.size).scatter_(1, index, 1)
            quantized = (one_hot @ codes).view(x.shape)
            with torch.no_grad():
                self.counts.mul_(self.decay).add_(one_hot.sum(0), alpha=1 - self.decay)
                self.sums.mul_(self.decay).add_(one_hot.t() @ flat, alpha=1 - self.decay)
                total = self.counts.sum()
                weights = (self.counts + 1e-5) / (total + self.size * 1e-5) * total
                codes.data.copy_(self.sums / weights.unsqueeze(1))
            loss = 0.25 * F.mse_loss(quantized.detach(), x)
            quantized = x + (quantized - x).detach()
            return loss, quantized.permute(0, 3, 1, 2).contiguous()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(
                nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 32, 1)
            )
            self.quantizer = VectorQuantizer()
            self.decoder = nn.Sequential(
                nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(),
                nn.ConvTranspose2d(32, 3, 4, 2, 1),
            )  # fmt: skip

        def forward(self, x):
            loss, quantized = self.quantizer(self.encoder(x))
            return loss + F.mse_loss(self.decoder(quantized), x) / 0.06

    batch = lambda: (torch.rand(16, 3, 32, 32) - 0.5,)
    optimizer = lambda parameters: torch.optim.Adam(parameters, lr=1e-3)
    return lambda: steps(torch, Model(), batch, lambda model, x: model(x), optimizer, 8)


def clusters(torch) -> Callable[[], float]:
    """k-means and expectation maximization of a Gaussian mixture, on 3,000 points of 8 coordinates."""
    x = torch.cat([torch.randn(500, 8) + 3 * i for i in range(6)])

    def kmeans(k):
        centers = x[torch.randperm(len(x))[:k]]
        for _ in range(10):
            label = ((x[:, None] - centers[None]) ** 2).sum(-1).argmin(1)
            sums = torch.zeros(k, 8).scatter_add_(0, label[:, None].expand(-1, 8), x)
            centers = sums / torch.bincount(label, minlength=k).clamp(min=1)[:, None]
        return centers

    def mixture(k):
        mean, variance, weight, points = torch.randn(1, k, 8), torch.ones(1, k, 8), torch.ones(1, k, 1) / k, x[:, None]
        for _ in range(10):
            inverse = torch.rsqrt(variance)
            square = ((mean * mean + points * points - 2 * points * mean) * inverse**2).sum(2, keepdim=True)
            log_p = -0.5 * (8 * math.log(2 * math.pi) + square) + inverse.log().sum(2, keepdim=True) + weight.log()
            norm = torch.logsumexp(log_p, dim=1, keepdim=True)
            share = torch.exp(log_p - norm)
            count = share.sum(0, keepdim=True) + 1e-6
            mean = (share * points).sum(0, keepdim=True) / count
            variance = (share * (points - mean) ** 2).sum(0, keepdim=True) / count + 1e-4
            weight = count / len(x)
        return norm.mean()

    return lambda: kmeans(10).sum().item() + mixture(8).item()


def point_cloud(torch) -> Callable[[], float]:
    """DGCNN: nearest neighbors by products and topk, edge features by indexing; farthest points, chamfer distance."""
    nn, F = torch.nn, torch.nn.functional

    def edges(x, k=10):
        b, c, n = x.size()
        square = torch.sum(x**2, dim=1, keepdim=True)
        index = (2 * x.transpose(2, 1) @ x - square - square.transpose(2, 1)).topk(k=k, dim=-1)[1]
        index = (index + torch.arange(b).view(-1, 1, 1) * n).view(-1)
        x = x.transpose(2, 1).contiguous()
        near = x.view(b * n, c)[index, :].view(b, n, k, c)
        x = x.view(b, n, 1, c).repeat(1, 1, k, 1)
        return torch.cat((near - x, x), dim=3).permute(0, 3, 1, 2).contiguous()

    def farthest(points, count):
        b, n, _ = points.shape
        index, distance = torch.zeros(b, count, dtype=torch.long), torch.ones(b, n) * 1e10
        last, batch = torch.randint(0, n, (b,)), torch.arange(b)
        for i in range(count):
            index[:, i] = last
            new = torch.sum((points - points[batch, last, :].view(b, 1, 3)) ** 2, -1)
            nearer = new < distance
            distance[nearer] = new[nearer]
            last = torch.max(distance, -1)[1]
        return index

    class DGCNN(nn.Module):
        def __init__(self):
            super().__init__()
            conv = lambda width, out: nn.Sequential(
                nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out), nn.LeakyReLU(0.2)
            )
            self.conv1, self.conv2 = conv(6, 32), conv(64, 64)
            self.linear = nn.Linear(2 * 96, 10)

        def forward(self, x):
            x1 = self.conv1(edges(x)).max(dim=-1)[0]
            x2 = self.conv2(edges(x1)).max(dim=-1)[0]
            x = torch.cat((x1, x2), dim=1)
            return self.linear(torch.cat((F.adaptive_max_pool1d(x, 1), F.adaptive_avg_pool1d(x, 1)), 1).flatten(1))

    def batch():
        points = torch.rand(4, 512, 3)
        index = farthest(points, 16)
        return points, torch.gather(points, 1, index[..., None].expand(-1, -1, 3)), torch.randint(0, 10, (4,))

    def loss_of(model, points, sampled, label):
        distance = torch.cdist(points, sampled)
        chamfer = distance.min(2)[0].mean() + distance.min(1)[0].mean()
        return F.cross_entropy(model(points[:, :256].permute(0, 2, 1)), label) + chamfer

    optimizer = lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    return lambda: steps(torch, DGCNN(), batch, loss_of, optimizer, 4)


# ---- arrays ----------------------------------------------------------------------------------------------------------


def grids(torch) -> Callable[[], float]:
    """Loops of elementwise operations: a Mandelbrot set, the game of life, reaction and diffusion."""
    F = torch.nn.functional

    def mandelbrot(height, width):
        y, x = torch.meshgrid(torch.linspace(-1.3, 1.3, height), torch.linspace(-2, 1, width), indexing="ij")
        real, imaginary, count = torch.zeros_like(x), torch.zeros_like(x), torch.zeros_like(x)
        for _ in range(20):
            real, imaginary = real * real - imaginary * imaginary + x, 2 * real * imaginary + y
            count = count + (real * real + imaginary * imaginary < 4.0).float()
            real, imaginary = torch.clamp(real, -10, 10), torch.clamp(imaginary, -10, 10)
        return count

    def life(board):
        kernel = torch.tensor([[1.0, 1, 1], [1, 0, 1], [1, 1, 1]]).view(1, 1, 3, 3)
        for _ in range(20):
            near = F.conv2d(F.pad(board, (1, 1, 1, 1), mode="circular"), kernel)
            board = torch.where((near == 3) | ((board > 0) & (near == 2)), 1.0, 0.0)
        return board

    def laplacian(x):
        return torch.roll(x, 1, 0) + torch.roll(x, -1, 0) + torch.roll(x, 1, 1) + torch.roll(x, -1, 1) - 4 * x

    def gray_scott(n):
        u, v = torch.ones(n, n), torch.zeros(n, n)
        v[n // 2 - 5 : n // 2 + 5, n // 2 - 5 : n // 2 + 5] = 0.25
        for _ in range(30):
            change = u * v * v
            u += 0.16 * laplacian(u) - change + 0.06 * (1 - u)
            v += 0.08 * laplacian(v) + change - 0.122 * v
        return v

    def one_round():
        board = (torch.rand(1, 1, 128, 128) > 0.5).float()
        return sum(x.sum().item() for x in (mandelbrot(200, 300), life(board), gray_scott(128)))

    return one_round


def orders(torch) -> Callable[[], float]:
    """Sorting, cumulative sums and scattering: average precision, nucleus sampling, means of segments, Lovasz loss."""

    def average_precision(scores, labels):
        hits = torch.gather(labels, 1, torch.argsort(scores, dim=1, descending=True))
        precision = torch.cumsum(hits, 1) / torch.arange(1, scores.shape[1] + 1)
        return ((precision * hits).sum(1) / hits.sum(1).clamp(min=1)).mean()

    def nucleus(logits):
        ordered, index = torch.sort(logits, descending=True)
        remove = torch.cumsum(torch.softmax(ordered, dim=-1), dim=-1) > 0.9
        remove[..., 1:] = remove[..., :-1].clone()
        remove[..., 0] = False
        logits = logits.masked_fill(remove.scatter(1, index, remove), -math.inf)
        return torch.multinomial(torch.softmax(logits, dim=-1), 1)

    def segment_means(x, segment):
        sums = torch.zeros(100, x.shape[1]).index_add_(0, segment, x)
        counts = torch.zeros(100).scatter_add_(0, segment, torch.ones(len(x)))
        return sums / counts.clamp(min=1)[:, None]

    def lovasz(errors, wrong):
        errors, index = torch.sort(errors, descending=True)
        wrong = wrong[index]
        missed = wrong.sum() - wrong.cumsum(0)
        jaccard = 1.0 - missed / (wrong.sum() + (1 - wrong).cumsum(0))
        jaccard[1:] = jaccard[1:] - jaccard[:-1]
        return torch.dot(torch.relu(errors), jaccard)

    def one_round():
        total = average_precision(torch.rand(32, 1000), (torch.rand(32, 1000) > 0.9).float()).item()
        total += nucleus(torch.randn(16, 5000)).float().mean().item() / 1e4
        x, segment = torch.randn(20000, 16), torch.randint(0, 100, (20000,))
        total += segment_means(x, segment).sum().item()
        ordered = x[torch.sort(segment)[1]]
        total += ordered.cumsum(0)[-1].sum().item() / 1e4 + torch.unique_consecutive(segment).numel() / 1e4
        bins = torch.bucketize(x[:, 0].contiguous(), torch.linspace(-3, 3, 65))
        total += torch.bincount(bins, minlength=66).float().std().item() / 1e4 + x.topk(3, dim=1)[0].mean().item()
        weights = torch.rand(20000, requires_grad=True)
        wrong = (segment > 50).float()
        lovasz((weights - wrong).abs(), wrong).backward()
        return total + weights.grad.abs().sum().item()

    return one_round


PROGRAMS: dict[str, Callable] = {
    "densenet": densenet,
    "vgg": vgg,
    "mobilenet": mobilenet,
    "unet": unet,
    "dcgan": dcgan,
    "vqvae": vqvae,
    "clusters": clusters,
    "point_cloud": point_cloud,
    "grids": grids,
    "orders": orders,
}
