"""Which rank of how many this process is. One process alone is rank 0 of 1."""

from __future__ import annotations


def get_rank() -> int:
    """The number of this process."""
    return 0


def get_local_rank() -> int:
    """The number of this process on this machine."""
    return 0


def get_world_size() -> int:
    """How many processes work together."""
    return 1


def get_node_size() -> int:
    """How many machines work together."""
    return 1
