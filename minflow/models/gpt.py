"""GPT: a decoder-only transformer that predicts the next token at each position of a text.

Sources: Radford et al. 2019 (GPT-2), section 2.3; attention as in Vaswani et al. 2017, section 3.2. Parameters have the
names of nanoGPT. Read next: `../nn/functional/attention.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .. import nn
from ..core.base.errors import OutOfRangeError, ShapeError
from ..core.base.placement import broadcast
from ..core.functions import cat, multinomial, topk
from ..core.functions.creation import arange
from ..core.grad.modes import no_grad
from ..core.source_location import fail
from ..core.tensor import Tensor
from ..nn import functional as F


@dataclass
class GPTConfig:
    """Sizes of a GPT.

    block_size: the longest text, in tokens. vocab_size: number of distinct tokens. n_layer: number of blocks. n_head:
    heads of each block. n_embd: features per token, a multiple of n_head. bias: True if linear layers and norms have a
    bias. The defaults are those of GPT-2 (124 million parameters); a model for a lesson has 4 layers of 4 heads and 64
    features.
    """

    block_size: int = 1024
    vocab_size: int = 50257
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    dropout: float = 0.0
    bias: bool = True


class CausalSelfAttention(nn.Module):
    """Each position attends to itself and to earlier ones: float (N, T, n_embd) to the same shape."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        if config.n_embd % config.n_head:
            what = f"GPT: n_embd is {config.n_embd}, and n_head {config.n_head} does not divide it"
            fail(ShapeError, what, "each head has n_embd / n_head numbers")
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head, self.dropout = config.n_head, config.dropout

    def forward(self, x: Tensor) -> Tensor:
        n, t, c = x.shape
        q, k, v = (
            part.view(n, t, self.n_head, c // self.n_head).transpose(1, 2) for part in self.c_attn(x).split(c, dim=2)
        )
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).reshape(n, t, c)))


class MLP(nn.Module):
    """Two linear layers with a GELU between them, applied to each position by itself."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.gelu = nn.GELU()
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Logits of the next token: model(idx, targets) returns (logits, loss).

    idx: int (N, T), T at most block_size. targets: int (N, T), the tokens that follow, -1 for those to ignore; logits
    are then float (N, T, vocab_size) and loss is their mean cross entropy. Without targets, logits are (N, 1,
    vocab_size), of the last position only, and loss is None. The head shares its weight with the token embedding.
    Raises ShapeError for longer texts.
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocab_size, config.n_embd),
                "wpe": nn.Embedding(config.block_size, config.n_embd),
                "drop": nn.Dropout(config.dropout),
                "h": nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
                "ln_f": nn.LayerNorm(config.n_embd, bias=config.bias),
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)
        for name, weight in self.named_parameters():
            if name.endswith("c_proj.weight"):  # the residual stream is the sum of 2 * n_layer of these
                nn.init.normal_(weight, 0.0, 0.02 / math.sqrt(2 * config.n_layer))

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, 0.0, 0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def get_num_params(self, non_embedding: bool = True) -> int:
        """Number of trained elements, by convention without the position embeddings unless non_embedding is False."""
        count = sum(p.numel() for p in self.parameters())
        return count - self.transformer.wpe.weight.numel() if non_embedding else count

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        t = idx.shape[1]
        if t > self.config.block_size:
            what = f"GPT: the text has {t} tokens, block_size is {self.config.block_size}"
            fail(ShapeError, what, "idx[:, -config.block_size:]", idx=idx)
        parts = self.transformer
        positions = arange(t, device=idx.device)
        if idx.is_global:
            positions = positions.to_global(idx.placement, [broadcast] * len(idx.sbp))
        x = parts.drop(parts.wte(idx) + parts.wpe(positions))
        for block in parts.h:
            x = block(x)
        x = parts.ln_f(x)
        if targets is None:
            return self.lm_head(x[:, -1:]), None
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.reshape(-1), ignore_index=-1)

    def generate(self, idx: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
        """Append max_new_tokens tokens, each sampled from the model's distribution: int (N, T) -> (N, T +
        max_new_tokens).

        temperature: below 1 prefers likely tokens, above 1 unlikely ones. top_k: sample from the k most likely tokens
        only. Runs eagerly, without gradients; call `model.eval()` first. Raises OutOfRangeError unless temperature > 0.
        """
        if not temperature > 0:
            what = f"generate: temperature must be above 0, got {temperature!r}"
            fail(OutOfRangeError, what, "temperature=1.0; top_k=1 takes the most likely token")
        with no_grad():
            for _ in range(max_new_tokens):
                logits, _ = self(idx[:, -self.config.block_size :])
                logits = logits[:, -1] / temperature
                if top_k is not None:
                    least, _ = topk(logits, min(top_k, logits.shape[-1]))
                    logits = logits.masked_fill(logits < least[:, -1:], -math.inf)
                idx = cat([idx, multinomial(F.softmax(logits, dim=-1), num_samples=1)], 1)
        return idx
