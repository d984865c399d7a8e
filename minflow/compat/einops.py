"""einops layers as minflow modules: `from einops.layers.minflow import Rearrange, Reduce, EinMix`.

They are the classes of einops, with our `nn.Module` as base class. Read next: `einops_backend.py`, the functions.
"""

from __future__ import annotations

from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

from ..core import functions as F
from ..nn.module import Module
from ..nn.parameter import Parameter


class Rearrange(RearrangeMixin, Module):
    """`einops.rearrange` as a layer: `Rearrange("b c h w -> b (c h w)")`."""

    def forward(self, input):
        return self._apply_recipe(input)


class Reduce(ReduceMixin, Module):
    """`einops.reduce` as a layer: `Reduce("b c h w -> b c", "mean")`."""

    def forward(self, input):
        return self._apply_recipe(input)


class EinMix(_EinmixMixin, Module):
    """A linear layer over named axes: `EinMix("b t c -> b t k", weight_shape="c k", c=3, k=5)`."""

    def _create_parameters(self, weight_shape, weight_bound, bias_shape, bias_bound):
        def uniform(shape, bound):
            return Parameter(F.creation.empty(shape).uniform_(-bound, bound))

        self.weight = uniform(weight_shape, weight_bound)
        self.register_parameter("bias", None if bias_shape is None else uniform(bias_shape, bias_bound))

    def _create_rearrange_layers(
        self, pre_reshape_pattern, pre_reshape_lengths, post_reshape_pattern, post_reshape_lengths
    ):
        def layer(pattern, lengths):
            return None if pattern is None else Rearrange(pattern, **lengths)

        self.pre_rearrange = layer(pre_reshape_pattern, pre_reshape_lengths)
        self.post_rearrange = layer(post_reshape_pattern, post_reshape_lengths)

    def forward(self, input):
        if self.pre_rearrange is not None:
            input = self.pre_rearrange(input)
        result = F.einsum(self.einsum_pattern, input, self.weight)
        if self.bias is not None:
            result = result + self.bias
        return result if self.post_rearrange is None else self.post_rearrange(result)
