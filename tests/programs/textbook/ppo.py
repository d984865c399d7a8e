"""Proximal policy optimization (Schulman et al. 2017, eq. 7) of a categorical policy on a small world of its own."""

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

gamma, eps_clip, K_epochs = 0.95, 0.2, 4


class World:
    """A point that an action pushes to the left or the right, and that should stay near 0."""

    def __init__(self):
        self.rng = np.random.default_rng(3)

    def reset(self):
        self.x, self.t = self.rng.standard_normal(4).astype("float32"), 0
        return self.x

    def step(self, action):
        noise = 0.05 * self.rng.standard_normal(4)
        self.x, self.t = (0.9 * self.x + 0.1 * (2 * action - 1) + noise).astype("float32"), self.t + 1
        return self.x, float(1 - abs(self.x[0])), self.t >= 12


class Memory:
    def __init__(self):
        self.actions, self.states, self.logprobs, self.rewards, self.is_terminals = [], [], [], [], []


class ActorCritic(nn.Module):
    def __init__(self, state_dim, action_dim, n_latent_var):
        super().__init__()
        self.action_layer = nn.Sequential(
            nn.Linear(state_dim, n_latent_var), nn.Tanh(), nn.Linear(n_latent_var, action_dim), nn.Softmax(dim=-1)
        )
        self.value_layer = nn.Sequential(nn.Linear(state_dim, n_latent_var), nn.Tanh(), nn.Linear(n_latent_var, 1))

    def act(self, state, memory):
        state = torch.from_numpy(state).float()
        dist = Categorical(self.action_layer(state))
        action = torch.multinomial(dist.probs, 1, replacement=True).squeeze()
        memory.states.append(state)
        memory.actions.append(action)
        memory.logprobs.append(dist.log_prob(action))
        return action.item()

    def evaluate(self, state, action):
        dist = Categorical(self.action_layer(state))
        return dist.log_prob(action), torch.squeeze(self.value_layer(state)), dist.entropy()


def main(prepare):
    env, memory = World(), Memory()
    policy, policy_old = prepare(ActorCritic(4, 2, 16)), ActorCritic(4, 2, 16)
    policy_old.load_state_dict(policy.state_dict())
    optimizer = torch.optim.Adam([
        {"params": policy.action_layer.parameters(), "lr": 3e-3},
        {"params": policy.value_layer.parameters(), "lr": 1e-2},
    ])
    MseLoss, losses = nn.MSELoss(), []
    for _ in range(2):
        state = env.reset()
        for _ in range(24):
            with torch.no_grad():
                action = policy_old.act(state, memory)
            state, reward, done = env.step(action)
            memory.rewards.append(reward)
            memory.is_terminals.append(done)
            if done:
                state = env.reset()
        rewards, discounted_reward = [], 0
        for reward, is_terminal in zip(reversed(memory.rewards), reversed(memory.is_terminals)):
            discounted_reward = reward + gamma * (0 if is_terminal else discounted_reward)
            rewards.insert(0, discounted_reward)
        rewards = torch.tensor(rewards, dtype=torch.float32)
        rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-5)
        old_states = torch.stack(memory.states).detach()
        old_actions = torch.stack(memory.actions).detach()
        old_logprobs = torch.stack(memory.logprobs).detach()
        for _ in range(K_epochs):
            logprobs, state_values, dist_entropy = policy.evaluate(old_states, old_actions)
            ratios = torch.exp(logprobs - old_logprobs.detach())
            advantages = rewards - state_values.detach()
            surr1 = ratios * advantages
            surr2 = torch.clamp(ratios, 1 - eps_clip, 1 + eps_clip) * advantages
            loss = -torch.min(surr1, surr2) + 0.5 * MseLoss(state_values, rewards) - 0.01 * dist_entropy
            optimizer.zero_grad()
            loss.mean().backward()
            optimizer.step()
            losses.append(loss.mean().item())
        policy_old.load_state_dict(policy.state_dict())
        memory = Memory()
    return losses
