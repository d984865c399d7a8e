"""Programs of many small operations, in the style of public tutorials, the same in minflow and in PyTorch.

Each is a function of the library, used as `torch`, that returns a function of one round: some training steps, after
which it returns a number that both libraries agree on approximately. Run them by `programs.py`.
"""

from __future__ import annotations

import math
import random
from collections import deque, namedtuple
from collections.abc import Callable

import numpy as np

# ---- text ------------------------------------------------------------------------------------------------------------


def seq2seq(torch) -> Callable[[], float]:
    """Translation with additive attention: a GRU decoder in a Python loop, batches of 32 sentences of ten words."""
    nn, F = torch.nn, torch.nn.functional
    vocabulary, hidden, length, batch = 300, 128, 10, 32

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, hidden)
            self.gru = nn.GRU(hidden, hidden, batch_first=True)
            self.dropout = nn.Dropout(0.1)

        def forward(self, words):
            return self.gru(self.dropout(self.embedding(words)))

    class BahdanauAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.Wa = nn.Linear(hidden, hidden)
            self.Ua = nn.Linear(hidden, hidden)
            self.Va = nn.Linear(hidden, 1)

        def forward(self, query, keys):
            scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
            weights = F.softmax(scores, dim=-1)
            return torch.bmm(weights, keys), weights

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, hidden)
            self.attention = BahdanauAttention()
            self.gru = nn.GRU(2 * hidden, hidden, batch_first=True)
            self.out = nn.Linear(hidden, vocabulary)
            self.dropout = nn.Dropout(0.1)

        def forward(self, encoded, state, target):
            word = torch.zeros(encoded.size(0), 1, dtype=torch.long)
            outputs, attentions = [], []
            for i in range(length):
                output, state, weights = self.step(word, state, encoded)
                outputs.append(output)
                attentions.append(weights)
                if i % 2:
                    word = target[:, i].unsqueeze(1)
                else:
                    _, best = output.topk(1)
                    word = best.squeeze(-1).detach()
            return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), state, torch.cat(attentions, dim=1)

        def step(self, word, state, encoded):
            embedded = self.dropout(self.embedding(word))
            context, weights = self.attention(state.permute(1, 0, 2), encoded)
            output, state = self.gru(torch.cat((embedded, context), dim=2), state)
            return self.out(output), state, weights

    encoder, decoder = Encoder(), Decoder()
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=0.001)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=0.001)
    criterion = nn.NLLLoss()
    words = torch.from_numpy(np.random.default_rng(0).integers(0, vocabulary, (20, batch, length)))

    def one_round():
        total = 0.0
        for source in words:
            target = (source + 1) % vocabulary
            encoder_optimizer.zero_grad()
            decoder_optimizer.zero_grad()
            encoded, state = encoder(source)
            outputs, _, _ = decoder(encoded, state, target)
            loss = criterion(outputs.view(-1, outputs.size(-1)), target.view(-1))
            loss.backward()
            encoder_optimizer.step()
            decoder_optimizer.step()
            total += loss.item()
        return total / len(words)

    return one_round


def char_lstm(torch) -> Callable[[], float]:
    """A character model whose LSTM cell is written out, one step a character, with clipped gradients."""
    nn = torch.nn
    vocabulary, hidden, length, batch = 65, 64, 25, 16

    class LSTMCell(nn.Module):
        def __init__(self, inputs, hidden):
            super().__init__()
            self.weight_x = nn.Parameter(torch.randn(inputs, 4 * hidden) / math.sqrt(inputs))
            self.weight_h = nn.Parameter(torch.randn(hidden, 4 * hidden) / math.sqrt(hidden))
            self.bias = nn.Parameter(torch.zeros(4 * hidden))

        def forward(self, x, state):
            h, c = state
            gates = x @ self.weight_x + h @ self.weight_h + self.bias
            i, f, g, o = gates.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

    class CharRNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, hidden)
            self.cells = nn.ModuleList([LSTMCell(hidden, hidden) for _ in range(2)])
            self.head = nn.Linear(hidden, vocabulary)

        def forward(self, text, states):
            embedded, outputs = self.embedding(text), []
            for t in range(text.shape[1]):
                x = embedded[:, t]
                for k, cell in enumerate(self.cells):
                    states[k] = cell(x, states[k])
                    x = states[k][0]
                outputs.append(self.head(x))
            return torch.stack(outputs, 1), states

    model = CharRNN()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    text = torch.from_numpy(np.random.default_rng(0).integers(0, vocabulary, 8 * batch * length + 1))

    def one_round():
        total = 0.0
        states = [(torch.zeros(batch, hidden), torch.zeros(batch, hidden)) for _ in range(2)]
        for step in range(8):
            piece = text[step * batch * length : (step + 1) * batch * length + 1]
            inputs, targets = piece[:-1].view(batch, length), piece[1:].view(batch, length)
            states = [(h.detach(), c.detach()) for h, c in states]
            logits, states = model(inputs, states)
            loss = criterion(logits.reshape(-1, vocabulary), targets.reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        return total / 8

    return one_round


def gpt(torch) -> Callable[[], float]:
    """A GPT of two blocks of width 32 on eight lines of 32 characters, with AdamW and two groups of parameters."""
    nn, F = torch.nn, torch.nn.functional
    vocabulary, width, heads, length, batch = 65, 32, 4, 32, 8

    class CausalSelfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.attn_dropout, self.resid_dropout = nn.Dropout(0.1), nn.Dropout(0.1)
            self.register_buffer("bias", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = self.c_attn(x).split(width, dim=2)
            k = k.view(B, T, heads, C // heads).transpose(1, 2)
            q = q.view(B, T, heads, C // heads).transpose(1, 2)
            v = v.view(B, T, heads, C // heads).transpose(1, 2)
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            y = self.attn_dropout(F.softmax(att, dim=-1)) @ v
            return self.resid_dropout(self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C)))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attn = CausalSelfAttention()
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
            )

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.h = nn.ModuleList([Block() for _ in range(2)])
            self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, idx, targets):
            pos = torch.arange(0, idx.size(1), dtype=torch.long)
            x = self.wte(idx) + self.wpe(pos)
            for block in self.h:
                x = block(x)
            logits = self.lm_head(self.ln_f(x))
            return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    model = GPT()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))
    data = np.random.default_rng(0).integers(0, vocabulary, 4000).astype(np.uint16)

    def get_batch():
        ix = torch.randint(len(data) - length, (batch,))
        x = torch.stack([torch.from_numpy((data[i : i + length]).astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy((data[i + 1 : i + 1 + length]).astype(np.int64)) for i in ix])
        return x, y

    def one_round():
        for step in range(30):
            for group in optimizer.param_groups:
                group["lr"] = 1e-3 * 0.5 * (1.0 + math.cos(math.pi * step / 30))
            x, y = get_batch()
            _, loss = model(x, y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return loss.item()

    return one_round


# ---- reinforcement learning ------------------------------------------------------------------------------------------


class CartPole:
    """The cart and pole of Barto, Sutton and Anderson (1983), integrated by Euler's method in steps of 0.02 s."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def reset(self) -> np.ndarray:
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        return self.state.astype(np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        x, speed, angle, turn = self.state
        force = 10.0 if action == 1 else -10.0
        cos, sin = math.cos(angle), math.sin(angle)
        pushed = (force + 0.05 * turn**2 * sin) / 1.1
        turned = (9.8 * sin - cos * pushed) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        moved = pushed - 0.05 * turned * cos / 1.1
        self.state = np.array([x + 0.02 * speed, speed + 0.02 * moved, angle + 0.02 * turn, turn + 0.02 * turned])
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 12 * math.pi / 180
        return self.state.astype(np.float32), 1.0, bool(done)


def reinforce(torch) -> Callable[[], float]:
    """REINFORCE: a categorical policy on CartPole, an episode of at most 60 steps a training step."""
    nn, F = torch.nn, torch.nn.functional
    Categorical = torch.distributions.Categorical

    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.affine1 = nn.Linear(4, 128)
            self.dropout = nn.Dropout(p=0.6)
            self.affine2 = nn.Linear(128, 2)
            self.saved_log_probs, self.rewards = [], []

        def forward(self, x):
            x = F.relu(self.dropout(self.affine1(x)))
            return F.softmax(self.affine2(x), dim=1)

    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    eps = np.finfo(np.float32).eps.item()
    env = CartPole(0)

    def select_action(state):
        probs = policy(torch.from_numpy(state).float().unsqueeze(0))
        m = Categorical(probs)
        action = m.sample()
        policy.saved_log_probs.append(m.log_prob(action))
        return action.item()

    def finish_episode():
        R, policy_loss, returns = 0, [], deque()
        for r in policy.rewards[::-1]:
            R = r + 0.99 * R
            returns.appendleft(R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + eps)
        for log_prob, R in zip(policy.saved_log_probs, returns):
            policy_loss.append(-log_prob * R)
        optimizer.zero_grad()
        policy_loss = torch.cat(policy_loss).sum()
        policy_loss.backward()
        optimizer.step()
        del policy.rewards[:]
        del policy.saved_log_probs[:]

    def one_round():
        for _ in range(8):
            state, steps = env.reset(), 0
            while steps < 60:  # an episode that fails begins again: the same number of steps in both libraries
                state, reward, done = env.step(select_action(state))
                policy.rewards.append(reward)
                steps += 1
                if done:
                    state = env.reset()
            finish_episode()
        return 0.0

    return one_round


def actor_critic(torch) -> Callable[[], float]:
    """Actor-critic with a shared body: a smooth L1 loss of the value, one backward an episode."""
    nn, F = torch.nn, torch.nn.functional
    Categorical = torch.distributions.Categorical
    SavedAction = namedtuple("SavedAction", ["log_prob", "value"])

    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.affine1 = nn.Linear(4, 128)
            self.action_head = nn.Linear(128, 2)
            self.value_head = nn.Linear(128, 1)

        def forward(self, x):
            x = F.relu(self.affine1(x))
            return F.softmax(self.action_head(x), dim=-1), self.value_head(x)

    model = Policy()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    env = CartPole(1)

    def one_round():
        for _ in range(6):
            state, saved, rewards = env.reset(), [], []
            while len(rewards) < 60:
                probs, value = model(torch.from_numpy(state).float())
                m = Categorical(probs)
                action = m.sample()
                saved.append(SavedAction(m.log_prob(action), value))
                state, reward, done = env.step(action.item())
                rewards.append(reward)
                if done:
                    state = env.reset()
            R, returns, policy_losses, value_losses = 0, [], [], []
            for r in rewards[::-1]:
                R = r + 0.99 * R
                returns.insert(0, R)
            returns = torch.tensor(returns)
            returns = (returns - returns.mean()) / (returns.std() + 1e-7)
            for (log_prob, value), R in zip(saved, returns):
                advantage = R - value.item()
                policy_losses.append(-log_prob * advantage)
                value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
            optimizer.zero_grad()
            loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
            loss.backward()
            optimizer.step()
        return 0.0

    return one_round


def q_learning(torch) -> Callable[[], float]:
    """Deep Q-learning on CartPole: replay memory, a target network that follows softly, clipped gradients."""
    nn, F = torch.nn, torch.nn.functional
    Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))

    class DQN(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer1, self.layer2, self.layer3 = nn.Linear(4, 128), nn.Linear(128, 128), nn.Linear(128, 2)

        def forward(self, x):
            return self.layer3(F.relu(self.layer2(F.relu(self.layer1(x)))))

    policy_net, target_net = DQN(), DQN()
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-4, amsgrad=True)
    memory, env, draw = deque(maxlen=1000), CartPole(2), random.Random(0)

    def optimize_model():
        if len(memory) < 64:
            return
        batch = Transition(*zip(*draw.sample(memory, 64)))
        mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
        non_final = torch.cat([s for s in batch.next_state if s is not None])
        states, actions, rewards = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
        values = policy_net(states).gather(1, actions)
        next_values = torch.zeros(64)
        with torch.no_grad():
            next_values[mask] = target_net(non_final).max(1).values
        expected = (next_values * 0.99) + rewards
        loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()

    def one_round():
        state = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
        for _ in range(150):
            if draw.random() > 0.2:
                with torch.no_grad():
                    action = policy_net(state).max(1).indices.view(1, 1)
            else:
                action = torch.tensor([[draw.randrange(2)]], dtype=torch.long)
            observation, reward, done = env.step(action.item())
            next_state = None if done else torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
            memory.append(Transition(state, action, next_state, torch.tensor([reward])))
            state = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0) if done else next_state
            optimize_model()
            target, policy = target_net.state_dict(), policy_net.state_dict()
            for key in policy:
                target[key] = policy[key] * 0.005 + target[key] * (1 - 0.005)
            target_net.load_state_dict(target)
        return 0.0

    return one_round


# ---- generative models and meta-learning -----------------------------------------------------------------------------


def gan(torch) -> Callable[[], float]:
    """A GAN of two small perceptrons on points of a circle, two Adam optimizers."""
    nn = torch.nn
    generator = nn.Sequential(
        nn.Linear(8, 64), nn.BatchNorm1d(64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 2)
    )
    discriminator = nn.Sequential(
        nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1),
        nn.Sigmoid(),
    )  # fmt: skip
    criterion = nn.BCELoss()
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    angles = torch.rand(2048) * 2 * math.pi
    dataset = torch.utils.data.TensorDataset(torch.stack([torch.cos(angles), torch.sin(angles)], dim=1))
    loader = torch.utils.data.DataLoader(dataset, batch_size=32, shuffle=True)

    def one_round():
        for (points,) in loader:
            count = points.size(0)
            real, fake = torch.ones(count, 1), torch.zeros(count, 1)
            optimizer_d.zero_grad()
            loss_real = criterion(discriminator(points), real)
            loss_real.backward()
            made = generator(torch.randn(count, 8))
            loss_fake = criterion(discriminator(made.detach()), fake)
            loss_fake.backward()
            optimizer_d.step()
            optimizer_g.zero_grad()
            loss = criterion(discriminator(made), real)
            loss.backward()
            optimizer_g.step()
        return loss.item()

    return one_round


def vae(torch) -> Callable[[], float]:
    """A variational autoencoder of images of 14x14 pixels in batches of 32, from a loader."""
    nn, F = torch.nn, torch.nn.functional

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc21, self.fc22 = nn.Linear(196, 128), nn.Linear(128, 16), nn.Linear(128, 16)
            self.fc3, self.fc4 = nn.Linear(16, 128), nn.Linear(128, 196)

        def encode(self, x):
            h1 = F.relu(self.fc1(x))
            return self.fc21(h1), self.fc22(h1)

        def reparameterize(self, mu, logvar):
            std = torch.exp(0.5 * logvar)
            return mu + torch.randn_like(std) * std

        def forward(self, x):
            mu, logvar = self.encode(x.view(-1, 196))
            h3 = F.relu(self.fc3(self.reparameterize(mu, logvar)))
            return torch.sigmoid(self.fc4(h3)), mu, logvar

    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    images = torch.from_numpy(np.random.default_rng(0).random((2048, 1, 14, 14), np.float32))
    dataset = torch.utils.data.TensorDataset(images, torch.zeros(2048, dtype=torch.long))
    loader = torch.utils.data.DataLoader(dataset, batch_size=32, shuffle=True)

    def one_round():
        total = 0.0
        for data, _ in loader:
            optimizer.zero_grad()
            recon, mu, logvar = model(data)
            bce = F.binary_cross_entropy(recon, data.view(-1, 196), reduction="sum")
            loss = bce - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
            loss.backward()
            total += loss.item()
            optimizer.step()
        return total / len(dataset)

    return one_round


def maml(torch) -> Callable[[], float]:
    """Model-agnostic meta-learning of sine waves: two inner steps with a second derivative, four tasks a step."""
    F = torch.nn.functional
    rng = np.random.default_rng(0)
    sizes = [(40, 1), (40,), (40, 40), (40,), (1, 40), (1,)]
    params = [torch.from_numpy(rng.standard_normal(s).astype("f4") * 0.2).requires_grad_() for s in sizes]
    optimizer = torch.optim.Adam(params, lr=1e-3)

    def forward(x, weights):
        x = F.relu(F.linear(x, weights[0], weights[1]))
        x = F.relu(F.linear(x, weights[2], weights[3]))
        return F.linear(x, weights[4], weights[5])

    def task():
        amplitude, phase = rng.uniform(0.1, 5.0), rng.uniform(0, math.pi)
        x = rng.uniform(-5, 5, (20, 1)).astype("f4")
        y = (amplitude * np.sin(x + phase)).astype("f4")
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        return (x[:10], y[:10]), (x[10:], y[10:])

    def one_round():
        total = 0.0
        for _ in range(20):
            losses = []
            for _ in range(4):
                (x, y), (x_test, y_test) = task()
                weights = params
                for _ in range(2):
                    loss = F.mse_loss(forward(x, weights), y)
                    grads = torch.autograd.grad(loss, weights, create_graph=True)
                    weights = [w - 0.01 * g for w, g in zip(weights, grads)]
                losses.append(F.mse_loss(forward(x_test, weights), y_test))
            optimizer.zero_grad()
            meta_loss = torch.stack(losses).mean()
            meta_loss.backward()
            optimizer.step()
            total += meta_loss.item()
        return total / 20

    return one_round


PROGRAMS = {
    program.__name__: program
    for program in (seq2seq, char_lstm, gpt, reinforce, actor_critic, q_learning, gan, vae, maml)
}
