"""Programs for several ranks, each a function that asserts. They run on virtual ranks; this script, on processes."""

import contextlib
import copy
import sys

import numpy as np

import minflow as flow
from minflow import distributed as dist, nn
from minflow.nn.parallel import DistributedDataParallel
from minflow.utils.data import DataLoader, DistributedSampler, TensorDataset
from tests.distributed.graph_programs import (
    graphs_train_global_tensors,
    pipelines_equal_one_rank,
    prepared_modules_train_in_graphs,
)

FLOAT, INT = (flow.float32, flow.float64, flow.float16, flow.bfloat16), (flow.int32, flow.int64, flow.uint8)


def of_rank(rank, dtype=flow.float32):
    """A tensor that differs on each rank."""
    return (flow.arange(6).reshape(2, 3) + rank).to(dtype)


def all_reduce_combines_all_ranks():
    size, rank = dist.get_world_size(), dist.get_rank()
    for dtype in (*FLOAT, *INT):
        parts = [of_rank(r, dtype).float().numpy() for r in range(size)]
        expected = {
            "SUM": sum(parts), "PRODUCT": np.prod(parts, 0), "MIN": np.min(parts, 0), "MAX": np.max(parts, 0),
        }  # fmt: skip
        for op, wanted in expected.items():
            t = of_rank(rank, dtype)
            assert dist.all_reduce(t, op=getattr(dist.ReduceOp, op)) is None
            wanted = wanted % 256 if dtype is flow.uint8 else wanted
            rounding = 2.0**-7 if dtype in (flow.float16, flow.bfloat16) else 0
            assert t.dtype is dtype and np.allclose(t.float().numpy(), wanted, rtol=rounding, atol=0), (dtype, op)
    t = of_rank(rank)
    assert dist.all_reduce(t, op=dist.ReduceOp.AVG, async_op=True).wait()
    assert np.allclose(t.numpy(), of_rank(0).numpy() + (size - 1) / 2)
    bits = flow.tensor([1 << rank, 3])
    dist.all_reduce(bits, op=dist.ReduceOp.BOR)
    assert bits.tolist() == [(1 << size) - 1, 3]


def tensors_move_between_ranks():
    size, rank = dist.get_world_size(), dist.get_rank()
    last = size - 1
    t = of_rank(rank)
    dist.broadcast(t, src=last)
    assert t.tolist() == of_rank(last).tolist()
    t = of_rank(rank)
    dist.reduce(t, dst=last)
    assert t.tolist() == (sum(of_rank(r) for r in range(size)) if rank == last else of_rank(rank)).tolist()
    gathered = [flow.zeros(2, 3) for _ in range(size)]
    dist.all_gather(gathered, of_rank(rank))
    assert [g.tolist() for g in gathered] == [of_rank(r).tolist() for r in range(size)]
    together = flow.zeros(2 * size, 3)
    dist.all_gather_into_tensor(together, of_rank(rank))
    assert together.tolist() == flow.cat([of_rank(r) for r in range(size)]).tolist()
    places = [flow.zeros(2, 3) for _ in range(size)] if rank == last else None
    dist.gather(of_rank(rank), places, dst=last)
    assert places is None or [p.tolist() for p in places] == [of_rank(r).tolist() for r in range(size)]
    mine = flow.zeros(2, 3)
    dist.scatter(mine, [of_rank(r) for r in range(size)] if rank == last else None, src=last)
    assert mine.tolist() == of_rank(rank).tolist()
    dist.reduce_scatter(mine, [of_rank(10 * part + rank) for part in range(size)])
    assert mine.tolist() == sum(of_rank(10 * rank + r) for r in range(size)).tolist()
    part = flow.zeros(1, 3)
    dist.reduce_scatter_tensor(part, flow.arange(3.0 * size).reshape(size, 3) * (rank + 1))
    assert (
        part.tolist() == (flow.arange(3.0 * size).reshape(size, 3)[rank : rank + 1] * sum(range(1, size + 1))).tolist()
    )
    received = [flow.zeros(2, 3) for _ in range(size)]
    dist.all_to_all(received, [of_rank(10 * rank + to) for to in range(size)])
    assert [r.tolist() for r in received] == [of_rank(10 * r + rank).tolist() for r in range(size)]
    rows = flow.zeros(size, 2)
    dist.all_to_all_single(rows, flow.full((size, 2), float(rank)))
    assert rows.tolist() == [[float(r)] * 2 for r in range(size)]
    rows = flow.zeros(size * (rank + 1))  # rank r sends i + 1 elements to rank i
    sizes = list(range(1, size + 1))
    dist.all_to_all_single(rows, flow.full((sum(sizes),), float(rank)), [rank + 1] * size, sizes)
    assert rows.tolist() == [r for r in range(size) for _ in range(rank + 1)]


def a_ring_of_sends():
    size, rank = dist.get_world_size(), dist.get_rank()
    dist.send(of_rank(rank), (rank + 1) % size, tag=3)
    t = flow.zeros(2, 3)
    assert dist.recv(t, (rank - 1) % size, tag=3) == (rank - 1) % size
    assert t.tolist() == of_rank((rank - 1) % size).tolist()
    flow.comm.send(of_rank(rank, flow.int32)[:1], (rank + 1) % size)
    t = flow.comm.recv((rank - 1) % size)
    assert t.dtype is flow.int32 and t.tolist() == of_rank((rank - 1) % size)[:1].tolist()


def sends_and_receives_begin_before_they_complete():
    """All ranks send first: large arrays wait until the receiver takes them."""
    size, rank = dist.get_world_size(), dist.get_rank()
    to, source = (rank + 1) % size, (rank - 1) % size
    for count in (0, 3, 300_000):
        mine, first, second = flow.full((count,), float(rank)), flow.zeros(count), flow.zeros(count)
        works = [dist.isend(mine, to), dist.isend(mine + 0.5, to)]
        receives = [dist.irecv(first, source), dist.irecv(second, source)]
        assert all([work.wait() for work in works])
        assert all([work.wait() for work in receives[::-1]])
        assert first.tolist() == [float(source)] * count and second.tolist() == [source + 0.5] * count
    operations = [
        dist.P2POp(dist.isend, flow.tensor(rank), to),
        dist.P2POp(dist.irecv, found := flow.tensor(9), source),
    ]
    assert all([work.is_completed() for work in dist.batch_isend_irecv(operations)]) and found.item() == source


def received_arrays_have_the_shape_and_dtype_that_were_sent():
    rank, size = dist.get_rank(), dist.get_world_size()
    for wrong in (flow.zeros(2), flow.zeros(4), flow.zeros(3, dtype=flow.int32)):
        dist.isend(flow.ones(3), (rank + 1) % size)
        try:
            dist.recv(wrong, (rank - 1) % size)
        except flow.RankError as error:
            assert "has sent an array of another shape or dtype" in str(error) and "float32[3]" in str(error)
        else:
            raise AssertionError(f"received into {wrong}")


def objects_are_copied():
    size, rank = dist.get_world_size(), dist.get_rank()
    mine, found = {"rank": rank}, [None] * size
    dist.all_gather_object(found, mine)
    assert found == [{"rank": r} for r in range(size)] and found[rank] is not mine
    words = ["a", 1] if rank == 0 else [None, None]
    dist.broadcast_object_list(words)
    assert words == ["a", 1]
    out = [None]
    dist.scatter_object_list(out, list(range(size)) if rank == 0 else None)
    assert out == [rank]


def groups_have_ranks_of_their_own():
    size, rank = dist.get_world_size(), dist.get_rank()
    chosen = list(range(size))[::-2]  # the last one, and every second one before it
    group = dist.new_group(chosen)
    t = flow.tensor([float(rank)])
    dist.all_reduce(t, group=group)
    if rank in chosen:
        assert dist.get_rank(group) == chosen.index(rank) == dist.get_group_rank(group, rank)
        assert dist.get_process_group_ranks(group) == chosen and t.item() == sum(chosen)
    else:
        assert dist.get_rank(group) == -1 == dist.get_world_size(group) and t.item() == rank
    dist.barrier()


def views_and_parameters_are_written_in_place():
    rank, size = dist.get_rank(), dist.get_world_size()
    whole = flow.zeros(3, 2)
    row = whole[1]
    row.fill_(float(rank))
    dist.all_reduce(row)
    assert whole.tolist() == [[0, 0], [sum(range(size))] * 2, [0, 0]]
    weight = nn.Parameter(flow.full((2,), float(rank)))
    dist.broadcast(weight, src=size - 1)
    assert weight.tolist() == [size - 1.0] * 2 and weight.requires_grad


class Net(nn.Module):
    """With a buffer, a frozen parameter and a parameter that half of the calls leave out."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)
        self.spare = nn.Linear(8, 1)
        self.frozen = nn.Parameter(flow.ones(3), requires_grad=False)

    def forward(self, x, spare=False):
        return (self.spare if spare else self.last)(self.first(x).tanh())


def data_parallel_training_equals_one_rank():
    size, rank = dist.get_world_size(), dist.get_rank()
    rng = np.random.default_rng(0)
    x, y = [flow.tensor(rng.standard_normal((12 * size, n))) for n in (4, 1)]

    def trained(model, loader, steps_of):
        optimizer = flow.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.05)
        for _ in range(3):
            for part, target in loader:
                optimizer.zero_grad()
                steps_of(model, part, target)
                optimizer.step()
        return model

    def step(model, part, target):
        ((model(part) - target) ** 2).mean().backward()

    flow.manual_seed(0)
    alone = trained(Net().double(), [(x[i::3], y[i::3]) for i in range(3)], step)
    flow.manual_seed(rank)  # rank 0 has the weights of `alone`, the others get them from it
    own = Net().double()
    model = DistributedDataParallel(own, find_unused_parameters=True, bucket_cap_mb=1e-4)
    assert model is own and model.module is own and isinstance(model, DistributedDataParallel)
    assert len(own.reducer.buckets) != 1 or size == 1
    parts = [(x[i::3][rank::size], y[i::3][rank::size]) for i in range(3)]
    trained(model, parts, step)
    for (name, p), q in zip(model.named_parameters(), alone.parameters()):
        assert np.abs(p.detach().numpy() - q.detach().numpy()).max() < 1e-12, name
    assert model.spare.weight.grad is None


def gradients_add_up_without_sync():
    size, rank = dist.get_world_size(), dist.get_rank()
    model = DistributedDataParallel(nn.Linear(2, 1, bias=False))
    x = flow.full((1, 2), float(rank + 1))
    with model.no_sync():
        model(x).sum().backward()
    assert model.weight.grad.tolist() == [[rank + 1.0] * 2]
    model(x).sum().backward()
    assert np.allclose(model.weight.grad.numpy(), 2 * sum(range(1, size + 1)) / size)


def a_failed_backward_leaves_the_next_one_complete():
    size, rank = dist.get_world_size(), dist.get_rank()
    layers = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1, bias=False))
    model = DistributedDataParallel(layers, bucket_cap_mb=1e-6)  # a bucket for each parameter
    x = flow.full((1, 2), float(rank + 1))
    hidden = model[0](x)
    hidden.register_hook(lambda g: 1 / 0)
    with contextlib.suppress(ZeroDivisionError):
        model[1](hidden).sum().backward()
    model.zero_grad()
    model(x).sum().backward()
    mean = flow.full((1, 2), sum(range(1, size + 1)) / size)
    assert np.allclose(model[1].weight.grad.numpy(), model[0](mean).detach().numpy())
    assert np.allclose(model[0].bias.grad.numpy(), model[1].weight.detach().numpy()[0])


def parameters_are_those_of_rank_0_unless_told_otherwise():
    flow.manual_seed(dist.get_rank())
    layer = nn.Linear(2, 1)
    mine = layer.weight.tolist()
    DistributedDataParallel(layer, broadcast_parameters=False, bucket_size=2)
    assert layer.weight.tolist() == mine
    flow.manual_seed(0)
    assert DistributedDataParallel(layer).weight.tolist() == nn.Linear(2, 1).weight.tolist()


def buffers_are_those_of_rank_0():
    flow.manual_seed(dist.get_rank())
    model = DistributedDataParallel(nn.BatchNorm1d(3, affine=False, track_running_stats=True))
    model.running_mean.fill_(float(dist.get_rank()))
    model.train()
    model(flow.zeros(4, 3))
    assert model.running_mean.tolist() == [0.0] * 3
    model.eval()
    model.running_mean.fill_(float(dist.get_rank()))
    model(flow.zeros(4, 3))
    assert model.running_mean.tolist() == [float(dist.get_rank())] * 3


def batch_statistics_are_those_of_all_ranks():
    size, rank = dist.get_world_size(), dist.get_rank()
    counts = [2, 1, 0, 3][:size]
    begin = sum(counts[:rank])
    mine = slice(begin, begin + counts[rank])
    flow.manual_seed(0)
    for layer, rest, momentum in ((nn.BatchNorm1d, (), 0.1), (nn.BatchNorm2d, (2, 3), None)):
        alone = layer(4, momentum=momentum, dtype=flow.float64)
        nn.init.normal_(alone.weight), nn.init.normal_(alone.bias)
        sync = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(alone))
        whole = 1000 + flow.randn(sum(counts), 4, *rest, dtype=flow.float64)
        factor = flow.randn_like(whole)
        results = []
        for model, part in ((alone, slice(None)), (sync, mine)):
            x = whole[part].clone().requires_grad_()
            for _ in range(2):  # running statistics
                out = model(x)
            (g,) = flow.autograd.grad((out**3 * factor[part]).sum(), x, create_graph=True)
            ((g * factor[part]).sum() + out.square().sum()).backward()
            results.append([out, g, x.grad])
        for wanted, found in zip(*results):
            assert np.abs((wanted[mine] - found).detach().numpy()).max(initial=0) < 1e-12 * wanted.abs().max().item()
        for p, q in zip(alone.parameters(), sync.parameters()):
            dist.all_reduce(q.grad)
            assert np.allclose(q.grad.numpy(), p.grad.numpy(), rtol=1e-12, atol=1e-12 * p.grad.abs().max().item())
        for p, q in zip(alone.buffers(), sync.buffers()):
            assert np.allclose(q.numpy(), p.numpy(), rtol=1e-12, atol=0)
        alone.eval(), sync.eval()
        assert np.allclose(sync(whole).detach().numpy(), alone(whole).detach().numpy(), rtol=1e-12, atol=1e-12)
        half = nn.SyncBatchNorm(4).half()(whole[mine].half() - 1000)
        expected = nn.BatchNorm2d(4)((whole.half() - 1000).float().reshape(sum(counts), 4, -1, 1)).reshape(whole.shape)
        assert half.dtype is flow.float16 and np.allclose(
            half.detach().float().numpy(), expected[mine].detach().numpy(), rtol=1e-3, atol=1e-3
        )


def batch_norms_train_in_parallel():
    size, rank = dist.get_world_size(), dist.get_rank()
    flow.manual_seed(0)
    alone = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 1)).double()
    model = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(alone)))
    x = flow.randn(4 * size, 3, dtype=flow.float64)
    for net, part in ((alone, x), (model, x[4 * rank : 4 * rank + 4])):
        optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(10):
            optimizer.zero_grad()
            (net(part) - part.prod(1, keepdim=True)).square().mean().backward()
            optimizer.step()
    for name, wanted in alone.state_dict().items():
        assert np.allclose(model.state_dict()[name].numpy(), wanted.numpy(), rtol=1e-12, atol=1e-12), name


def samplers_divide_the_data():
    size, rank = dist.get_world_size(), dist.get_rank()
    data = TensorDataset(flow.arange(4 * size))
    sampler = DistributedSampler(data)
    sampler.set_epoch(2)
    assert (sampler.num_replicas, sampler.rank) == (size, rank) == (flow.env.get_world_size(), flow.env.get_rank())
    mine = [int(n) for (batch,) in DataLoader(data, batch_size=2, sampler=sampler) for n in batch]
    found = [None] * size
    dist.all_gather_object(found, mine)
    assert sorted(n for numbers in found for n in numbers) == list(range(4 * size)) and len(mine) == 4


def new_global_tensors_have_the_elements_of_one_rank():
    placement, size = flow.placement.all("cpu"), dist.get_world_size()
    for sbp in (flow.sbp.split(0), flow.sbp.broadcast, flow.sbp.partial_sum):
        flow.manual_seed(5)
        whole = [flow.randn(7, 3), flow.arange(5.0)]
        flow.manual_seed(5)
        parts = [flow.randn(7, 3, placement=placement, sbp=sbp), flow.arange(5.0, placement=placement, sbp=sbp)]
        for x, y in zip(whole, parts):
            assert y.placement is placement and np.array_equal(y.numpy(), x.numpy())
        assert sbp != flow.sbp.split(0) or len(parts[0].to_local()) in (7 // size, 7 // size + 1)


def ranks_outside_of_a_placement_take_the_structure_of_a_state_dict():
    first = flow.placement("cpu", [0])
    state = nn.Linear(2, 3).state_dict() if dist.get_rank() == 0 else None
    made = flow.utils.global_view.to_global(state, first, flow.sbp.broadcast)
    assert made["weight"].shape == (3, 2) and made["bias"].placement is first
    assert len(made["weight"].to_local()) == (3 if dist.get_rank() == 0 else 0)


PROGRAMS = [f for f in list(vars().values()) if callable(f) and getattr(f, "__module__", "") == __name__ and
            not isinstance(f, type) and f is not of_rank]  # fmt: skip
PROGRAMS += [graphs_train_global_tensors, pipelines_equal_one_rank, prepared_modules_train_in_graphs]

if __name__ == "__main__":
    dist.init_process_group(timeout=60)
    for program in PROGRAMS:
        program()
        dist.barrier()
    print(f"{len(PROGRAMS)} programs passed on rank {dist.get_rank()} of {sys.argv[1]}")
    assert dist.get_world_size() == int(sys.argv[1])
