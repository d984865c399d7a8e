"""Trees, signal windows, flex_attention and conversions of probabilities against PyTorch."""

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import pytest

import minflow as flow
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch
Point = namedtuple("Point", "x y")
TREES = [
    1,
    [],
    {"b": [1, (2, None)], "a": 3},
    OrderedDict(b=1, a=[2]),
    Point(1, [2, 3]),
    deque([1, 2], maxlen=3),
    defaultdict(list, {"k": [1, {"z": 2}]}),
    (((),), [[]], {}),
]


@pytest.mark.parametrize("tree", TREES, ids=range(len(TREES)))
def test_trees(tree):
    results = []
    for library in ("minflow", "torch"):
        pytree = importlib.import_module(f"{library}.utils._pytree")
        leaves, spec = pytree.tree_flatten(tree)
        again = pytree.tree_unflatten(leaves, spec)
        assert type(again) is type(tree) and again == tree
        mapped = pytree.tree_map(lambda *pair: pair, tree, again)
        only = pytree.tree_map_only(int, lambda i: i + 1, tree)
        short = pytree.tree_leaves(tree, is_leaf=lambda it: isinstance(it, list))
        named = [(pytree.keystr(path), leaf) for path, leaf in pytree.tree_flatten_with_path(tree)[0]]
        paths = pytree.tree_map_with_path(lambda path, leaf: (len(path), leaf), tree)
        every = pytree.tree_all(lambda i: i, tree), pytree.tree_any(lambda i: i is None, tree)
        sizes = spec.num_leaves, spec.num_nodes, spec.num_children, spec.is_leaf()
        results.append((leaves, mapped, only, short, named, paths, every, sizes, spec == pytree.tree_structure(tree)))
    assert results[0] == results[1]


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("M", [0, 1, 2, 7, 8])
@pytest.mark.parametrize(
    "name, options",
    [
        *[(name, {}) for name in "bartlett blackman cosine exponential gaussian hamming hann kaiser nuttall".split()],
        ("general_hamming", {"alpha": 0.6}),
        ("general_cosine", {"a": [0.4, 0.3, 0.2, 0.1]}),
        ("kaiser", {"beta": 3.0}),
        ("gaussian", {"std": 2.0}),
        ("exponential", {"tau": 3.0}),
    ],
)
def test_windows(name, options, M, sym):
    ours = getattr(flow.signal.windows, name)(M, sym=sym, dtype=flow.float64, **options)
    theirs = getattr(torch.signal.windows, name)(M, sym=sym, dtype=torch.float64, **options)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)


def alibi(score, batch, head, q_idx, kv_idx):
    return score + (kv_idx - q_idx) * 0.5 ** (head + 1)


def window(batch, head, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx <= 2)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("gqa", [True, False])
def test_flex_attention(masked, gqa):
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=(2, 2 if gqa and i else 4, 6, 8)).astype("f") for i in range(3)]
    results = []
    for name, library in (("minflow", flow), ("torch", torch)):  # PyTorch has no backward of it on a CPU
        flex = importlib.import_module(f"{name}.nn.attention.flex_attention")
        q, k, v = map(library.tensor, arrays)
        mask = flex.create_block_mask(window, None, None, 6, 6, device="cpu") if masked else None
        results.append(flex.flex_attention(q, k, v, score_mod=alibi, block_mask=mask, enable_gqa=gqa, return_lse=True))
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)


def test_probabilities():
    p = np.array([[0.1, 0.9, 0.0], [1.0, 0.5, 0.2]], "f")
    for binary in (True, False):
        for name in ("probs_to_logits", "logits_to_probs"):
            ours = getattr(flow.distributions.utils, name)(flow.tensor(p), binary)
            theirs = getattr(torch.distributions.utils, name)(torch.tensor(p), binary)
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
    ours = flow.distributions.utils.broadcast_all(flow.ones(2, 1), 3)
    theirs = torch.distributions.utils.broadcast_all(torch.ones(2, 1), 3)
    assert [x.tolist() for x in ours] == [x.tolist() for x in theirs]
