"""Deep Q-learning (Mnih et al. 2015) in a corridor: replay memory, a target network that follows, Huber's loss."""

import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
LENGTH, BATCH_SIZE, GAMMA, TAU = 6, 16, 0.9, 0.05


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 16)
        self.layer2 = nn.Linear(16, 16)
        self.layer3 = nn.Linear(16, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


def observe(place):
    return torch.tensor([1.0 if i == place else 0.0 for i in range(LENGTH)]).unsqueeze(0)


def optimize_model(policy_net, target_net, optimizer, memory):
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    non_final_mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch, action_batch, reward_batch = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(BATCH_SIZE)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected_state_action_values = (next_state_values * GAMMA) + reward_batch
    loss = nn.SmoothL1Loss()(state_action_values, expected_state_action_values.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


def main(prepare):
    random.seed(3)
    policy_net = prepare(DQN(LENGTH, 2))
    target_net = DQN(LENGTH, 2)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
    memory, losses = ReplayMemory(100), []
    for episode in range(8):
        place = 0
        for t in range(8):
            state = observe(place)
            if random.random() > 0.5:
                with torch.no_grad():
                    action = policy_net(state).max(1).indices.view(1, 1)
            else:
                action = torch.tensor([[random.randrange(2)]], dtype=torch.long)
            place = max(0, place + (1 if action.item() == 1 else -1))
            done = place == LENGTH - 1
            memory.push(state, action, None if done else observe(place), torch.tensor([1.0 if done else -0.1]))
            if len(memory) >= BATCH_SIZE:
                losses.append(optimize_model(policy_net, target_net, optimizer, memory))
                target_dict, policy_dict = target_net.state_dict(), policy_net.state_dict()
                for key in policy_dict:
                    target_dict[key] = policy_dict[key] * TAU + target_dict[key] * (1 - TAU)
                target_net.load_state_dict(target_dict)
            if done:
                break
    return losses
