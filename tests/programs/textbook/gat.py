"""A graph attention network (Velickovic et al. 2018), once with a dense mask and once with lists of edges."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphAttentionLayer(nn.Module):
    def __init__(self, in_features, out_features, alpha, concat=True):
        super().__init__()
        self.out_features, self.concat = out_features, concat
        self.W = nn.Parameter(torch.empty(size=(in_features, out_features)))
        nn.init.xavier_uniform_(self.W.data, gain=1.414)
        self.a = nn.Parameter(torch.empty(size=(2 * out_features, 1)))
        nn.init.xavier_uniform_(self.a.data, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(alpha)

    def forward(self, h, adj):
        Wh = torch.mm(h, self.W)
        Wh1 = torch.matmul(Wh, self.a[: self.out_features, :])
        Wh2 = torch.matmul(Wh, self.a[self.out_features :, :])
        e = self.leakyrelu(Wh1 + Wh2.T)
        attention = torch.where(adj > 0, e, -9e15 * torch.ones_like(e))
        h_prime = torch.matmul(F.softmax(attention, dim=1), Wh)
        return F.elu(h_prime) if self.concat else h_prime


class GAT(nn.Module):
    def __init__(self, nfeat, nhid, nclass, nheads):
        super().__init__()
        self.attentions = [GraphAttentionLayer(nfeat, nhid, 0.2) for _ in range(nheads)]
        for i, attention in enumerate(self.attentions):
            self.add_module(f"attention_{i}", attention)
        self.out_att = GraphAttentionLayer(nhid * nheads, nclass, 0.2, concat=False)

    def forward(self, x, adj):
        x = torch.cat([att(x, adj) for att in self.attentions], dim=1)
        return F.log_softmax(F.elu(self.out_att(x, adj)), dim=1)


class EdgeGAT(nn.Module):
    def __init__(self, nfeat, nclass):
        super().__init__()
        self.lin = nn.Linear(nfeat, nclass, bias=False)
        self.att_src = nn.Parameter(torch.empty(nclass))
        self.att_dst = nn.Parameter(torch.empty(nclass))

    def forward(self, x, edge_index):
        src, dst = edge_index
        n, h = x.size(0), self.lin(x)
        e = F.leaky_relu((h[src] * self.att_src).sum(-1) + (h[dst] * self.att_dst).sum(-1), 0.2)
        highest = torch.full((n,), float("-inf")).scatter_reduce(0, dst, e, reduce="amax", include_self=True)
        weights = torch.exp(e - highest[dst])
        alpha = weights / torch.zeros(n).scatter_add_(0, dst, weights)[dst]
        return torch.zeros(n, h.size(1)).index_add(0, dst, alpha.unsqueeze(-1) * h[src])


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    return preds.eq(labels).double().sum() / len(labels)


def main(prepare):
    rng = np.random.default_rng(0)
    adj = (rng.random((10, 10)) < 0.3) | np.eye(10, dtype=bool)
    adj = torch.FloatTensor((adj | adj.T).astype("float32"))
    features = torch.FloatTensor(rng.standard_normal((10, 6)))
    labels, idx_train = torch.LongTensor(rng.integers(0, 3, 10)), torch.LongTensor(range(6))
    model, losses = prepare(GAT(6, 4, 3, 2)), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for _ in range(5):
        optimizer.zero_grad()
        output = model(features, adj)
        loss = F.nll_loss(output[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()
        losses += [loss.item(), accuracy(output[idx_train], labels[idx_train]).item()]
    edges = prepare(EdgeGAT(6, 3))
    optimizer = torch.optim.Adagrad(edges.parameters(), lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(edges(features, torch.nonzero(adj, as_tuple=False).t())[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
