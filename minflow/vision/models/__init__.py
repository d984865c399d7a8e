"""Image models with torchvision's parameter names, so that its weights load by name. Read next: `mobilenet_v2.py`."""

from ...core.messages.suggestions import name_hints as _name_hints
from . import resnet as resnet, vgg as vgg
from .alexnet import AlexNet, alexnet
from .dcgan import DCGANDiscriminator, DCGANGenerator
from .lenet import LeNet, lenet
from .mobilenet_v2 import MobileNetV2, mobilenet_v2
from .neural_style_transfer.stylenet import NeuralStyleTransfer, neural_style_transfer
from .registry import get_model, list_models
from .resnet import ResNet, resnet18, resnet34, resnet50, resnet101, resnet152, resnext50_32x4d, wide_resnet50_2
from .squeezenet import SqueezeNet, squeezenet1_0, squeezenet1_1
from .unet import UNet
from .vgg import VGG, vgg11, vgg11_bn, vgg13, vgg13_bn, vgg16, vgg16_bn, vgg19, vgg19_bn
from .vision_transformer import VisionTransformer, vit_b_16, vit_tiny
from .weights import (
    AlexNet_Weights,
    MobileNet_V2_Weights,
    ResNet18_Weights,
    ResNet34_Weights,
    ResNet50_Weights,
    ResNet101_Weights,
    ResNet152_Weights,
    ResNeXt50_32X4D_Weights,
    SqueezeNet1_0_Weights,
    SqueezeNet1_1_Weights,
    VGG11_BN_Weights,
    VGG11_Weights,
    VGG13_BN_Weights,
    VGG13_Weights,
    VGG16_BN_Weights,
    VGG16_Weights,
    VGG19_BN_Weights,
    VGG19_Weights,
    ViT_B_16_Weights,
    Wide_ResNet50_2_Weights,
)

__all__ = [
    "AlexNet",
    "AlexNet_Weights",
    "DCGANDiscriminator",
    "DCGANGenerator",
    "LeNet",
    "MobileNetV2",
    "MobileNet_V2_Weights",
    "NeuralStyleTransfer",
    "ResNeXt50_32X4D_Weights",
    "ResNet",
    "ResNet101_Weights",
    "ResNet152_Weights",
    "ResNet18_Weights",
    "ResNet34_Weights",
    "ResNet50_Weights",
    "SqueezeNet",
    "SqueezeNet1_0_Weights",
    "SqueezeNet1_1_Weights",
    "UNet",
    "VGG",
    "VGG11_BN_Weights",
    "VGG11_Weights",
    "VGG13_BN_Weights",
    "VGG13_Weights",
    "VGG16_BN_Weights",
    "VGG16_Weights",
    "VGG19_BN_Weights",
    "VGG19_Weights",
    "ViT_B_16_Weights",
    "VisionTransformer",
    "Wide_ResNet50_2_Weights",
    "alexnet",
    "get_model",
    "lenet",
    "list_models",
    "mobilenet_v2",
    "neural_style_transfer",
    "resnet101",
    "resnet152",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnext50_32x4d",
    "squeezenet1_0",
    "squeezenet1_1",
    "vgg11",
    "vgg11_bn",
    "vgg13",
    "vgg13_bn",
    "vgg16",
    "vgg16_bn",
    "vgg19",
    "vgg19_bn",
    "vit_b_16",
    "vit_tiny",
    "wide_resnet50_2",
]

__getattr__ = _name_hints("flow.vision.models", globals())
