"""Three sequence models, as textbooks write them: characters, nanoGPT, sentences of any length.

Each function returns (model, optimizer, function of the loss of a batch, batch). Only the imports name minflow.
"""

import math

import minflow as torch
import minflow.nn as nn
import minflow.nn.functional as F
from minflow.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


def fill(model):
    """Set reproducible weights without random numbers."""
    model = model.double()
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            p.copy_((torch.arange(p.numel(), dtype=torch.float64) * 0.7 + k).sin().reshape(p.shape) * 0.3)
    return model


class CharLSTM(nn.Module):
    def __init__(self, vocab, embed, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, embed)
        self.lstm = nn.LSTM(embed, hidden, num_layers=2, batch_first=True, dropout=0.0)
        self.fc = nn.Linear(hidden, vocab)

    def forward(self, x, state=None):
        out, state = self.lstm(self.embed(x), state)
        return self.fc(out), state


def char_lstm():
    text = "hello world, how are you? hello moon, how far are you?"
    chars = sorted(set(text))
    data = torch.tensor([chars.index(c) for c in text])
    x = torch.stack([data[i : i + 12] for i in range(0, 40, 10)])
    y = torch.stack([data[i + 1 : i + 13] for i in range(0, 40, 10)])
    model = fill(CharLSTM(len(chars), 5, 8))
    criterion = nn.CrossEntropyLoss()

    def loss_of(x, y):
        logits, _ = model(x)
        return criterion(logits.view(-1, logits.size(-1)), y.view(-1))

    return model, torch.optim.Adam(model.parameters(), lr=0.02), loss_of, (x, y)


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.n_head, self.n_embd = n_head, n_embd
        self.register_buffer(
            "bias", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size), persistent=False
        )

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class MLP(nn.Module):
    def __init__(self, n_embd):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd)
        self.gelu = nn.GELU()
        self.c_proj = nn.Linear(4 * n_embd, n_embd)

    def forward(self, x):
        return self.c_proj(self.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head, block_size)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = MLP(n_embd)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class NanoGPT(nn.Module):
    def __init__(self, vocab_size, block_size, n_layer, n_head, n_embd):
        super().__init__()
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(vocab_size, n_embd),
                wpe=nn.Embedding(block_size, n_embd),
                drop=nn.Dropout(0.0),
                h=nn.ModuleList([Block(n_embd, n_head, block_size) for _ in range(n_layer)]),
                ln_f=nn.LayerNorm(n_embd),
            )
        )
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        _b, t = idx.size()
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        if targets is None:
            return logits[:, [-1], :], None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


def nanogpt():
    data = torch.tensor([(i * i + 3 * i) % 11 for i in range(40)])
    x = torch.stack([data[i : i + 8] for i in (0, 9, 17)])
    y = torch.stack([data[i + 1 : i + 9] for i in (0, 9, 17)])
    model = fill(NanoGPT(11, 8, 2, 2, 12))
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    return model, torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95)), lambda x, y: model(x, y)[1], (x, y)


class SentenceClassifier(nn.Module):
    def __init__(self, vocab, embed, hidden, classes, packed=True):
        super().__init__()
        self.embedding = nn.Embedding(vocab, embed, padding_idx=0)
        self.gru = nn.GRU(embed, hidden, batch_first=True)
        self.fc = nn.Linear(2 * hidden, classes)
        self.packed = packed

    def forward(self, tokens, lengths):
        x = self.embedding(tokens)
        if self.packed:
            x = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out, last = self.gru(x)
            out, lengths = pad_packed_sequence(out, batch_first=True)
            last = last[-1]
        else:  # a graph cannot read lengths to pack by: a mask leaves out padded positions
            out, _ = self.gru(x)
            out = out * (torch.arange(out.shape[1]) < lengths.unsqueeze(1)).unsqueeze(2)
            last = out[torch.arange(out.shape[0]), lengths - 1]
        mean = out.sum(1) / lengths.unsqueeze(1)
        return self.fc(torch.cat([last, mean], dim=1))


def sentences(packed=True):
    rows = [[3, 1, 4], [1, 5], [2, 6, 5, 3, 5], [7], [2, 2, 4, 4]]
    tokens = pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    lengths, labels = torch.tensor([len(row) for row in rows]), torch.tensor([0, 1, 2, 1, 0])
    model = fill(SentenceClassifier(8, 4, 6, 3, packed))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)

    def loss_of(tokens, lengths, labels):
        return nn.CrossEntropyLoss()(model(tokens, lengths), labels)

    return model, optimizer, loss_of, (tokens, lengths, labels)
