"""Translation by a GRU whose decoder looks at the source through additive attention (Bahdanau, Cho & Bengio 2015)."""

import numpy as np
import torch
from torch import nn


def sequence_mask(X, valid_len, value=0):
    maxlen = X.size(1)
    mask = torch.arange((maxlen), dtype=torch.float32, device=X.device)[None, :] < valid_len[:, None]
    X[~mask] = value
    return X


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)
    shape = X.shape
    if valid_lens.dim() == 1:
        valid_lens = torch.repeat_interleave(valid_lens, shape[1])
    else:
        valid_lens = valid_lens.reshape(-1)
    X = sequence_mask(X.reshape(-1, shape[-1]), valid_lens, value=-1e6)
    return nn.functional.softmax(X.reshape(shape), dim=-1)


class AdditiveAttention(nn.Module):
    def __init__(self, num_hiddens, **kwargs):
        super().__init__(**kwargs)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)

    def forward(self, queries, keys, values, valid_lens):
        queries, keys = self.W_q(queries), self.W_k(keys)
        features = torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1))
        scores = self.w_v(features).squeeze(-1)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.attention_weights, values)


class Encoder(nn.Module):
    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = nn.GRU(embed_size, num_hiddens, num_layers)

    def forward(self, X):
        return self.rnn(self.embedding(X).permute(1, 0, 2))


class Decoder(nn.Module):
    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers):
        super().__init__()
        self.attention = AdditiveAttention(num_hiddens)
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = nn.GRU(embed_size + num_hiddens, num_hiddens, num_layers)
        self.dense = nn.Linear(num_hiddens, vocab_size)

    def init_state(self, enc_outputs, enc_valid_lens):
        outputs, hidden_state = enc_outputs
        return (outputs.permute(1, 0, 2), hidden_state, enc_valid_lens)

    def forward(self, X, state):
        enc_outputs, hidden_state, enc_valid_lens = state
        X = self.embedding(X).permute(1, 0, 2)
        outputs = []
        for x in X:
            query = torch.unsqueeze(hidden_state[-1], dim=1)
            context = self.attention(query, enc_outputs, enc_outputs, enc_valid_lens)
            x = torch.cat((context, torch.unsqueeze(x, dim=1)), dim=-1)
            out, hidden_state = self.rnn(x.permute(1, 0, 2), hidden_state)
            outputs.append(out)
        outputs = self.dense(torch.cat(outputs, dim=0))
        return outputs.permute(1, 0, 2), [enc_outputs, hidden_state, enc_valid_lens]


class MaskedSoftmaxCELoss(nn.CrossEntropyLoss):
    def forward(self, pred, label, valid_len):
        weights = sequence_mask(torch.ones_like(label), valid_len)
        self.reduction = "none"
        unweighted_loss = super().forward(pred.permute(0, 2, 1), label)
        return (unweighted_loss * weights).mean(dim=1)


def grad_clipping(net, theta):
    params = [p for p in net.parameters() if p.requires_grad]
    norm = torch.sqrt(sum(torch.sum((p.grad**2)) for p in params))
    if norm > theta:
        for param in params:
            param.grad[:] *= theta / norm


def main(prepare):
    rng = np.random.default_rng(1)
    net = prepare(nn.ModuleDict({"encoder": Encoder(12, 6, 8, 2), "decoder": Decoder(12, 6, 8, 2)}))
    encoder, decoder = net["encoder"], net["decoder"]
    X, Y = [torch.from_numpy(rng.integers(2, 12, (4, n))) for n in (7, 5)]
    X_valid_len, Y_valid_len = torch.tensor([7, 5, 3, 2]), torch.tensor([5, 4, 2, 3])
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    loss, losses = MaskedSoftmaxCELoss(), []
    bos = torch.tensor([1] * Y.shape[0]).reshape(-1, 1)
    for _ in range(8):
        optimizer.zero_grad()
        dec_input = torch.cat([bos, Y[:, :-1]], 1)
        Y_hat, _ = decoder(dec_input, decoder.init_state(encoder(X), X_valid_len))
        l = loss(Y_hat, Y, Y_valid_len)  # noqa: E741
        l.sum().backward()
        grad_clipping(net, 1)
        optimizer.step()
        losses.append(l.sum().item())
    net.eval()
    dec_X, state = torch.unsqueeze(torch.tensor([1], dtype=torch.long), dim=0), None
    state = decoder.init_state(encoder(X[:1]), X_valid_len[:1])
    for _ in range(4):
        scores, state = decoder(dec_X, state)
        dec_X = scores.argmax(dim=2)
        losses.append(dec_X.squeeze(dim=0).type(torch.int32).item())
    return [*losses, *decoder.attention.attention_weights.flatten().tolist()]
