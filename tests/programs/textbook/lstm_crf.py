"""Tags of words by a bidirectional LSTM and a conditional random field (Huang, Xu & Yu 2015), packed, with Viterbi."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

START_TAG, STOP_TAG = 3, 4


class BiLSTM_CRF(nn.Module):
    def __init__(self, vocab_size, tagset_size, embedding_dim, hidden_dim):
        super().__init__()
        self.tagset_size = tagset_size
        self.word_embeds = nn.Embedding(vocab_size, embedding_dim, padding_idx=0)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim // 2, num_layers=1, bidirectional=True, batch_first=True)
        self.hidden2tag = nn.Linear(hidden_dim, tagset_size)
        self.transitions = nn.Parameter(torch.randn(tagset_size, tagset_size))

    def _get_lstm_features(self, sentences, lengths):
        packed = pack_padded_sequence(self.word_embeds(sentences), lengths, batch_first=True, enforce_sorted=False)
        lstm_out, _ = self.lstm(packed)
        lstm_out, lengths = pad_packed_sequence(lstm_out, batch_first=True)
        return [feats[:n] for feats, n in zip(self.hidden2tag(lstm_out), lengths)]

    def _forward_alg(self, feats):
        forward_var = torch.full((1, self.tagset_size), -10000.0)
        forward_var[0][START_TAG] = 0.0
        for feat in feats:
            alphas_t = []
            for next_tag in range(self.tagset_size):
                emit_score = feat[next_tag].view(1, -1).expand(1, self.tagset_size)
                next_tag_var = forward_var + self.transitions[next_tag].view(1, -1) + emit_score
                alphas_t.append(torch.logsumexp(next_tag_var, 1).view(1))
            forward_var = torch.cat(alphas_t).view(1, -1)
        return torch.logsumexp(forward_var + self.transitions[STOP_TAG], 1)

    def _score_sentence(self, feats, tags):
        score = torch.zeros(1)
        tags = torch.cat([torch.tensor([START_TAG], dtype=torch.long), tags])
        for i, feat in enumerate(feats):
            score = score + self.transitions[tags[i + 1], tags[i]] + feat[tags[i + 1]]
        return score + self.transitions[STOP_TAG, tags[-1]]

    def viterbi_decode(self, feats):
        backpointers, forward_var = [], torch.full((1, self.tagset_size), -10000.0)
        forward_var[0][START_TAG] = 0
        for feat in feats:
            best, indices = (forward_var + self.transitions).max(dim=1)
            forward_var = (best + feat).view(1, -1)
            backpointers.append(indices.tolist())
        path_score, best_tag = (forward_var + self.transitions[STOP_TAG]).squeeze(0).max(0)
        path = [best_tag.item()]
        for pointers in reversed(backpointers):
            path.append(pointers[path[-1]])
        return path_score.item(), path[-2::-1]

    def neg_log_likelihood(self, sentences, lengths, tags):
        each = zip(self._get_lstm_features(sentences, lengths), tags)
        return torch.stack([self._forward_alg(feats) - self._score_sentence(feats, t) for feats, t in each]).mean()


def main(prepare):
    sentences = [torch.tensor([1, 4, 2]), torch.tensor([3, 1, 5, 6, 2]), torch.tensor([4, 6])]
    tags = [torch.tensor([0, 1, 1]), torch.tensor([2, 0, 1, 1, 2]), torch.tensor([1, 2])]
    lengths = torch.tensor([len(s) for s in sentences])
    padded = pad_sequence(sentences, batch_first=True)
    model = prepare(BiLSTM_CRF(7, 5, 4, 6))
    model.transitions.data[START_TAG, :] = -10000
    model.transitions.data[:, STOP_TAG] = -10000
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1e-4)
    losses = []
    for _ in range(5):
        model.zero_grad()
        loss = model.neg_log_likelihood(padded, lengths, tags)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        score, path = model.viterbi_decode(model._get_lstm_features(padded, lengths)[1])
    return [*losses, score, *path]
