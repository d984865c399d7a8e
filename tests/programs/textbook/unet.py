"""Segmentation by a U-Net (Ronneberger, Fischer & Brox 2015), with a Dice loss and the scores of a confusion matrix."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        mid_channels = mid_channels or out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1), nn.ReLU(inplace=True),
            nn.BatchNorm2d(mid_channels),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1), nn.ReLU(inplace=True),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, bilinear):
        super().__init__()
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, 4)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 16 // factor))
        self.up1 = Up(16, 8 // factor, bilinear)
        self.up2 = Up(8, 4, bilinear)
        self.outc = nn.Conv2d(4, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        return self.outc(self.up2(self.up1(x3, x2), x1))


def dice_loss(input, target, epsilon=1e-6):
    inter = 2 * (input * target).sum(dim=(-1, -2))
    sets_sum = input.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return 1 - ((inter + epsilon) / (sets_sum + epsilon)).mean()


def main(prepare):
    images = torch.randn(2, 3, 14, 14)
    true_masks = (images[:, 0] > 0).long() + (images[:, 1] > 0.5).long()
    losses = []
    for bilinear in (True, False):
        model = prepare(UNet(3, 3, bilinear)).to(memory_format=torch.channels_last)
        optimizer = optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, weight_decay=1e-8, foreach=True)
        scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=5)
        grad_scaler = torch.amp.GradScaler("cuda", enabled=False)
        for _ in range(3):
            images = images.to(device="cpu", dtype=torch.float32, memory_format=torch.channels_last)
            with torch.autocast("cpu", enabled=False):
                masks_pred = model(images)
                one_hot = F.one_hot(true_masks, 3).permute(0, 3, 1, 2).float()
                loss = nn.CrossEntropyLoss()(masks_pred, true_masks)
                loss += dice_loss(F.softmax(masks_pred, dim=1).float(), one_hot)
            optimizer.zero_grad(set_to_none=True)
            grad_scaler.scale(loss).backward()
            grad_scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            grad_scaler.step(optimizer)
            grad_scaler.update()
            scheduler.step(-loss.item())
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            predicted = model(images).argmax(dim=1)
        confusion = torch.bincount(3 * true_masks.flatten() + predicted.flatten(), minlength=9).reshape(3, 3)
        inter = torch.diag(confusion)
        losses += (inter / (confusion.sum(0) + confusion.sum(1) - inter).clamp(min=1)).tolist()
    return losses
