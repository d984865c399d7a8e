"""Skip-grams with negative samples (Mikolov et al. 2013)."""

from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.utils.data import DataLoader, Dataset

TEXT = """the cat sat on the mat the dog sat on the rug the cat saw the dog and the dog saw the cat
a king and a queen sat in the house the king saw the queen and the queen saw the king""".split()


class SkipGrams(Dataset):
    def __init__(self, words, window=2):
        vocabulary = Counter(words)
        self.ids = {word: i for i, (word, _) in enumerate(vocabulary.most_common())}
        frequency = torch.tensor([vocabulary[word] for word in self.ids], dtype=torch.float)
        self.weights = frequency.pow(0.75) / frequency.pow(0.75).sum()
        self.pairs = [(self.ids[word], self.ids[words[j]]) for i, word in enumerate(words)
                      for j in range(max(0, i - window), min(len(words), i + window + 1)) if j != i]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        center, context = self.pairs[index]
        return torch.tensor(center), torch.tensor(context)


class SkipGramNegSampling(nn.Module):
    def __init__(self, vocab_size, projection_dim):
        super(SkipGramNegSampling, self).__init__()
        self.embedding_v = nn.Embedding(vocab_size, projection_dim, sparse=False)
        self.embedding_u = nn.Embedding(vocab_size, projection_dim)
        self.logsigmoid = nn.LogSigmoid()
        initrange = (2.0 / (vocab_size + projection_dim)) ** 0.5
        self.embedding_v.weight.data.uniform_(-initrange, initrange)
        self.embedding_u.weight.data.uniform_(-0.0, 0.0)

    def forward(self, center_words, target_words, negative_words):
        center_embeds = self.embedding_v(center_words).unsqueeze(1)  # B x 1 x D
        target_embeds = self.embedding_u(target_words).unsqueeze(1)  # B x 1 x D
        neg_embeds = -self.embedding_u(negative_words)  # B x K x D
        positive_score = target_embeds.bmm(center_embeds.transpose(1, 2)).squeeze(2)  # B x 1
        negative_score = torch.sum(neg_embeds.bmm(center_embeds.transpose(1, 2)).squeeze(2), 1).view(
            negative_words.size(0), -1)
        return -torch.mean(self.logsigmoid(positive_score) + self.logsigmoid(negative_score))


def main(prepare):
    data = SkipGrams(TEXT)
    loader = DataLoader(data, batch_size=32, shuffle=False, drop_last=True, num_workers=0)
    model = prepare(SkipGramNegSampling(len(data.ids), 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for epoch in range(4):
        for center, context in loader:
            center, context = Variable(center), Variable(context)
            negatives = torch.multinomial(data.weights, 32 * 3, replacement=True).view(32, 3)
            loss = model(center, context, negatives)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.data.tolist())
    cat, dog = (model.embedding_v(torch.LongTensor([data.ids[word]])) for word in ("cat", "dog"))
    return losses + [F.cosine_similarity(cat, dog).item()]
