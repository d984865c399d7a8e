"""Datasets, samplers and the DataLoader that makes batches of them, with PyTorch's names.

With any number and kind of workers, a loader gives the same batches in the same order, bit for bit: a sample draws
its random numbers from (seed, "loader", epoch, sample index). Uses tensors; independent of files and models.
Read next: `loader.py`, then `fetch.py` (one batch) and `workers.py` (threads and processes).
"""

from ...core.messages.suggestions import name_hints as _name_hints
from .collate import default_collate, default_convert
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .fetch import WorkerInfo, get_worker_info
from .loader import DataLoader
from .sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
           "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
           "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "WorkerInfo",
           "default_collate", "default_convert", "get_worker_info", "random_split"]  # fmt: skip

__getattr__ = _name_hints("flow.utils.data", globals())
