"""A PyTorch program for several ranks runs unchanged, on processes and on virtual ranks."""

import importlib.util
import re

import pytest

from tests.processes import python

PROGRAM = """
import os
from os import environ
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(20):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def build():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()


def main():
    dist.init_process_group(backend="gloo", init_method="env://")
    rank, world_size = int(os.environ["RANK"]), int(os.environ.get("WORLD_SIZE", 1))
    assert (rank, world_size) == (dist.get_rank(), dist.get_world_size())
    assert os.getenv("LOCAL_RANK") == str(rank) == environ["LOCAL_RANK"]
    torch.manual_seed(0)
    x = torch.randn(8, 3, dtype=torch.float64)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    alone, model = build(), build()
    model.load_state_dict(alone.state_dict())
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, shuffle=False)
    found = train(DDP(model), DataLoader(data, batch_size=8 // world_size, sampler=sampler))
    wanted = train(alone, DataLoader(data, batch_size=8))
    error = max((a - b).abs().max().item() for a, b in zip(found, wanted))
    assert error < 1e-12, error
    print(f"rank {rank} of {world_size} of {torch.__name__}: {sys.argv[1:]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""
mpi = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed (extra mpi)")
COMMANDS = {
    "compat.launch": ["minflow.compat.launch", "--torch", "--nproc_per_node", "2"],
    "oneflow": ["minflow.compat", "--torch", "-m", "oneflow.distributed.launch", "--nproc_per_node=2"],
    "torch": ["minflow.compat", "--torch", "-m", "torch.distributed.launch", "--nproc-per-node", "2"],
    "launch": ["minflow", "launch", "--torch", "-n", "2"],
}


@pytest.mark.parametrize("how", ["--virtual", pytest.param("", marks=mpi)])
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_data_parallel_program_of_pytorch(tmp_path, words, how):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = python("-m", *words, *[how] * bool(how), tmp_path / "program.py", "--lr", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.findall(r"rank (\d) of 2 of minflow: \['--lr', '3'\]", done.stdout)
    assert sorted(said) == ["0", "1"], done.stdout


def test_without_compat_a_program_gets_no_other_names(tmp_path):
    (tmp_path / "program.py").write_text("import oneflow")
    done = python("-m", "minflow", "launch", "--virtual", tmp_path / "program.py")
    assert done.returncode and "No module named 'oneflow'" in done.stderr
    done = python("-m", "minflow", "launch", "--virtual", "--compat", tmp_path / "program.py")
    assert done.returncode == 0, done.stderr
