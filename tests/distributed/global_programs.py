"""Programs that use global tensors as users do. They run on virtual ranks; this script, on processes."""

import copy
import itertools
import pickle
import sys

import numpy as np

import minflow as flow
from minflow.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset, default_collate

B, P, S = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split
NUMBERS = np.arange(15.0).reshape(5, 3)


def placements():
    """All ranks, the first and the last one alone, and a square."""
    size = flow.env.get_world_size()
    yield flow.placement.all("cpu")
    if size > 1:
        yield from [flow.placement("cpu", [0]), flow.placement("cpu", [size - 1])]
    if size == 4:
        yield flow.placement("cpu", [[0, 1], [2, 3]])


def distributions():
    for placement in placements():
        for sbp in itertools.product([B, P, S(0), S(1)], repeat=len(placement.hierarchy)):
            yield placement, sbp


def global_of(array, placement, sbp):
    """A leaf with these elements."""
    whole = flow.tensor(array).to_global(placement, [B] * len(placement.hierarchy))
    return whole.to_global(sbp=sbp).data


def all_ranks_read_all_elements():
    for placement, sbp in distributions():
        x = global_of(NUMBERS, placement, sbp)
        assert np.array_equal(x.numpy(), NUMBERS) and np.array_equal(np.asarray(x), NUMBERS)
        x.numpy()[...] = 0  # a copy
        assert x.tolist() == NUMBERS.tolist() and x.sum().item() == NUMBERS.sum() == float(x.sum())
        assert bool((x >= 0).all()) and f"{x.mean():.1f}" == "7.0" and int(x.max()) == 14
        assert len(x) == 5 and [row.tolist() for row in x] == NUMBERS.tolist() and 3.0 in x and 99.0 not in x
        assert x in {x} and x.numel() == 15 and x.is_distributed()
        assert x.stride() == (3, 1) and x.is_contiguous() and x.storage_offset() == 0


def all_elements_are_printed():
    for placement, sbp in distributions():
        text = " ".join(repr(global_of([[1.0, 2.0]], placement, sbp).float()).split())
        x = global_of([1.0, 2.5], placement, [B] * len(sbp)).float().requires_grad_()
        assert text.startswith(f"tensor([[1., 2.]], placement={placement}, sbp=(minflow.sbp.")
        assert text.endswith(", dtype=minflow.float32)")
        text = " ".join(repr(flow.nn.Parameter(x)).split())
        assert text.startswith("Parameter containing: tensor([1.0000, 2.5000], placement=")
        assert text.endswith("dtype=minflow.float32, requires_grad=True)")
        empty = " ".join(repr(global_of(np.zeros((0, 3)), placement, sbp)).split())
        assert empty.startswith("tensor([], size=(0, 3), placement=")


def copies_have_the_same_distribution():
    for placement, sbp in distributions():
        x = global_of(NUMBERS, placement, sbp).requires_grad_()
        x.grad = global_of(NUMBERS + 1, placement, sbp)
        for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
            assert twin.spec is x.spec and twin.requires_grad and np.array_equal(twin.numpy(), NUMBERS)
        twin = copy.deepcopy(x)
        assert twin.grad.tolist() == x.grad.tolist() and twin.grad.spec is x.spec
        with flow.no_grad():
            twin.zero_()
        assert x.tolist() == NUMBERS.tolist() and twin.tolist() == np.zeros((5, 3)).tolist()


WRITES = [
    lambda x, y: x.add_(1),
    lambda x, y: x.add_(y, alpha=2),
    lambda x, y: x.mul_(y),
    lambda x, y: x.copy_(y),
    lambda x, y: x.copy_(y[0]),
    lambda x, y: x.copy_(np.ones((5, 3))),
    lambda x, y: x.fill_(7),
    lambda x, y: x.zero_(),
    lambda x, y: x.clamp_(2, 5),
    lambda x, y: x.masked_fill_(x > 3, -1),
    lambda x, y: x.apply_(lambda number: number + 1),
    lambda x, y: x.__setitem__(0, 1),
    lambda x, y: x.__setitem__((slice(None), slice(1, 3)), y[:, :2]),
    lambda x, y: x.__setitem__((Ellipsis, 0), y[:, 1]),
    lambda x, y: x.__setitem__((slice(1, 4), slice(0, None, 2)), [[1.0, 2.0]]),
    lambda x, y: x.__setitem__((-1, 2), 9),
    lambda x, y: x.__setitem__([0, 2], 5),
    lambda x, y: x.__setitem__(([0, 2], [1, 0]), np.array([3.0, 4.0])),
    lambda x, y: x.__setitem__(x > 7, 0),
    lambda x, y: x.__setitem__(NUMBERS > 7, 0),
    lambda x, y: x.__setitem__(y[:, 0] > 5, y[0]),
    lambda x, y: x.unsqueeze_(0).squeeze_(0).t_(),
]


def writes_keep_the_distribution():
    y = flow.tensor(NUMBERS[::-1].copy())
    for number, write in enumerate(WRITES):
        alone = flow.tensor(NUMBERS)
        write(alone, y)
        for placement, sbp in distributions():
            x = global_of(NUMBERS, placement, sbp)
            write(x, global_of(NUMBERS[::-1], placement, sbp[::-1]))
            assert np.array_equal(x.numpy(), alone.numpy()), (number, placement, sbp)
            assert x.placement is placement
            assert x.sbp == sbp or number == len(WRITES) - 1


READS = [
    lambda x: x[1],
    lambda x: x[1:4, 0],
    lambda x: x[:, -1:],
    lambda x: x[None, ..., 1],
    lambda x: x[[0, 2]],
    lambda x: x[range(2), :2],
    lambda x: x[np.array([3, 1]), [2, 0]],
    lambda x: x[x > 7],
    lambda x: x[NUMBERS[:, 0] > 5],
    lambda x: x[x.argmax(1)],
    lambda x: x[:, True],
]


def indices_are_those_of_the_logical_tensor():
    for number, read in enumerate(READS):
        expected = read(flow.tensor(NUMBERS))
        for placement, sbp in distributions():
            x = global_of(NUMBERS, placement, sbp).requires_grad_()
            found = read(x)
            assert found.is_global and np.array_equal(found.numpy(), expected.numpy()), (number, sbp)
            found.sum().backward()
            leaf = flow.tensor(NUMBERS, requires_grad=True)
            read(leaf).sum().backward()
            assert np.array_equal(x.grad.numpy(), leaf.grad.numpy())


def gradients_are_global():
    for placement, sbp in distributions():
        w, seen = global_of(NUMBERS, placement, sbp).requires_grad_(), []
        w.register_hook(lambda g, seen=seen: seen.append((g.is_global, g.shape)))
        w.register_post_accumulate_grad_hook(lambda w, seen=seen: seen.append(w.grad.sbp))
        x = global_of(NUMBERS + 1, placement, sbp[::-1])
        y = w * x
        y.retain_grad()
        y.register_hook(lambda g: g * 2)
        y.sum().backward()
        assert seen[0] == (True, w.shape) and seen[1] == w.grad.sbp == w.sbp and w.grad.placement is placement
        assert np.array_equal(w.grad.numpy(), 2 * (NUMBERS + 1)) and y.grad.tolist() == (0 * NUMBERS + 2).tolist()
        (w * x).sum().backward()
        assert np.array_equal(w.grad.numpy(), 3 * (NUMBERS + 1)) and w.grad.sbp == sbp
        (g,) = flow.autograd.grad((w**2).sum(), w)
        assert np.array_equal(g.numpy(), 2 * NUMBERS)
        for other in (w.detach(), w.data, w.clone(), w.float(), w.cpu()):
            assert other.is_global and other.placement is placement and np.array_equal(other.numpy(), NUMBERS)
        w.data = w.data * 2
        assert w.requires_grad and w.tolist() == (2 * NUMBERS).tolist()


def writes_are_recorded():
    """`y = w * 2`, then writes into y and a view of it, as on one rank."""

    def slopes(w, x):
        y = w * 2
        y[1:3] = x[:2] ** 2
        y[:, 0] = 1
        y.mul_(3)
        y[0, 2] += x[0, 0]
        y[3].sub_(x[1])
        y.t()[1, 2:].mul_(4)
        (y * x).sum().backward()
        return w.grad.numpy(), x.grad.numpy()

    expected = slopes(*[flow.tensor(NUMBERS + k, requires_grad=True) for k in range(2)])
    for placement, sbp in distributions():
        found = slopes(*[global_of(NUMBERS + k, placement, sbp).requires_grad_() for k in range(2)])
        assert np.array_equal(expected, found), (placement, sbp)


def make_model(seed=None):
    flow.manual_seed(flow.env.get_rank() if seed is None else seed)  # parameters of the first rank count
    first, last = flow.nn.Linear(6, 5, bias=False), flow.nn.Linear(5, 3)
    return flow.nn.Sequential(first, flow.nn.BatchNorm1d(5), flow.nn.ReLU(), last).double()


def by_shape(state, tensor):
    """Split matrices, one dim for each weight, and hold the rest whole."""
    assert any(tensor is other for other in state.values())
    return S(0) if tensor is state["0.weight"] else S(1) if tensor.ndim == 2 else B


def modules_become_global():
    placement = flow.placement.all("cpu")
    model = make_model()
    parameters, first = list(model.parameters()), make_model() if flow.env.get_rank() == 0 else None
    (model(flow.ones(4, 6, dtype=flow.float64)) ** 2).sum().backward()
    assert model.to_global(placement, B) is model
    assert all(map(lambda a, b: a is b, model.parameters(), parameters))
    for tensor in (*model.parameters(), *model.buffers()):
        assert tensor.is_global and tensor.sbp == (B,) and tensor.placement is placement
    assert all(isinstance(p, flow.nn.Parameter) and p.is_leaf and p.grad.sbp == (B,) for p in model.parameters())
    if first is not None:
        assert all(np.array_equal(p.to_local().numpy(), q.numpy()) for p, q in zip(parameters, first.parameters()))
    whole = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    model.to_global(sbp=by_shape)
    assert model[0].weight.sbp == (S(0),) == model[0].weight.grad.sbp and model[3].weight.sbp == (S(1),)
    assert model[3].bias.sbp == (B,) and all(map(lambda a, b: a is b, model.parameters(), parameters))
    assert all(np.array_equal(tensor.numpy(), whole[name]) for name, tensor in model.state_dict().items())
    model.double().float().to_local()
    assert all(t.is_local for t in model.state_dict().values()) and model[3].bias.shape == (3,)
    tied = flow.nn.Sequential(flow.nn.Linear(4, 4, bias=False), flow.nn.Linear(4, 4, bias=False))
    tied[1].weight = tied[0].weight
    tied.to_global(placement, B).to_global(sbp=lambda state, tensor: S(1))
    assert tied[1].weight is tied[0].weight and tied[0].weight.sbp == (S(1),)


def states_are_converted():
    """From each distribution, and from local tensors and arrays, into each; and back into a local model."""
    local = make_model(0)
    state = {name: tensor.clone() for name, tensor in local.state_dict().items()}
    first = {name: tensor.to_global(flow.placement("cpu", [0]), B) for name, tensor in state.items()}
    whole = {name: tensor.numpy() for name, tensor in first.items()}
    for placement in placements():
        sbp = [B] * len(placement.hierarchy)
        model = make_model(0).to_global(placement, sbp)
        model.to_global(sbp=lambda state, tensor, sbp=sbp: [by_shape(state, tensor), *sbp[1:]])
        spread = model.state_dict()
        specs = [tensor.spec for tensor in spread.values()]
        for given in (state, first, whole, {name: tensor.clone() for name, tensor in spread.items()}):
            with flow.no_grad():
                for tensor in (*model.parameters(), *model.buffers()):
                    tensor.zero_()
            model.load_state_dict(given)
            assert [tensor.spec for tensor in model.state_dict().values()] == specs
            assert all(np.array_equal(tensor.numpy(), whole[name]) for name, tensor in model.state_dict().items())
        other = make_model()
        other.load_state_dict(model.state_dict())
        assert all(t.is_local and np.array_equal(t.numpy(), whole[n]) for n, t in other.state_dict().items())


def trained(model, optimizer, steps):
    x = flow.arange(24.0, dtype=flow.float64).reshape(4, 6).sin()
    placement = model[0].weight.placement
    x = x.to_global(placement, [B] * len(placement.hierarchy))
    for _ in range(steps):
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()


def checkpoints_are_those_of_one_rank(folder):
    """A sharded model and its optimizer are saved and go on, on other placements and on one rank, bit for bit."""
    rank, path = flow.env.get_rank(), f"{folder}/checkpoint.safetensors"
    placement = flow.placement.all("cpu")
    model = make_model().to_global(placement, B).to_global(sbp=by_shape)
    optimizer = flow.optim.AdamW(model.parameters(), lr=0.01)
    trained(model, optimizer, 2)
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 2, "rank": rank}
    flow.save(saved, path, global_dst_rank=0)
    whole = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    plain = flow.load(path)
    assert plain["step"] == 2 and plain["rank"] == 0 and all(t.is_local for t in plain["model"].values())
    assert all(np.array_equal(plain["model"][name].numpy(), array) for name, array in whole.items())
    trained(model, optimizer, 2)
    for there in (placement, *placements()):
        other = make_model().to_global(there, [B] * len(there.hierarchy))
        again = flow.optim.AdamW(other.parameters(), lr=0.5)
        for given in (plain, flow.load(path, global_src_rank=flow.env.get_world_size() - 1)):
            assert all(tensor.is_global for tensor in given["model"].values()) or given is plain
            other.load_state_dict(given["model"])
            again.load_state_dict(given["optimizer"])
            for p in other.parameters():
                assert all(x.is_local or x.spec is p.spec for x in again.state[p].values())
            kept = again.state_dict()["state"]
            for number, state in saved["optimizer"]["state"].items():
                assert all(np.array_equal(plain["optimizer"]["state"][number][n].numpy(), kept[number][n].numpy())
                           for n in state)  # fmt: skip
        trained(other, again, 2)
        for name, tensor in model.state_dict().items():
            assert np.allclose(tensor.numpy(), other.state_dict()[name].numpy(), rtol=1e-12, atol=1e-12)
    flow.distributed.barrier()


def structures_are_saved_by_one_rank(folder):
    last, rank = flow.env.get_world_size() - 1, flow.env.get_rank()
    for placement, sbp in distributions():
        x = global_of(NUMBERS, placement, sbp)
        tied = flow.nn.Parameter(x)
        state = {"x": x, "again": [x, tied, tied], "local": flow.tensor([rank]), "rest": (None, "text", np.arange(3))}
        flow.save(state, f"{folder}/state", global_dst_rank=last)
        for options in ({}, {"map_location": placement}):
            found = flow.load(f"{folder}/state", global_src_rank=last, **options)
            expected = placement if options else flow.placement("cpu", [last])
            assert found["x"].placement is expected and found["x"].sbp == (B,) * len(expected.hierarchy)
            assert found["x"] is found["again"][0] and found["again"][1] is found["again"][2]
            assert isinstance(found["again"][1], flow.nn.Parameter) and found["again"][1].tolist() == NUMBERS.tolist()
            assert found["local"].tolist() == [last] and found["rest"][:2] == (None, "text")
            assert found["rest"][2].tolist() == [0, 1, 2]
        flow.distributed.barrier()


DISTRIBUTIONS = [
    lambda x: flow.distributions.Normal(x, 1.0),
    lambda x: flow.distributions.Uniform(x, x + 1),
    lambda x: flow.distributions.Bernoulli(x),
    lambda x: flow.distributions.Categorical(x),
    lambda x: flow.distributions.OneHotCategorical(x),
    lambda x: flow.distributions.Gumbel(x, 1.0),
    lambda x: flow.distributions.Poisson(x),
    lambda x: flow.distributions.Binomial(5, x),
    lambda x: flow.distributions.Laplace(x, 1.0),
    lambda x: flow.distributions.MultivariateNormal(x, covariance_matrix=flow.diag(x)),
]


def distributions_draw_as_one_rank():
    for number, make in enumerate(DISTRIBUTIONS):
        found = []
        for sbp in (None, B, S(0)):
            x = flow.tensor(np.linspace(0.2, 0.8, 6))
            x = x if sbp is None else x.to_global(flow.placement.all("cpu"), B).to_global(sbp=sbp)
            flow.manual_seed(3)
            distribution = make(x)
            drawn = distribution.sample((2,))
            assert drawn.is_global is (sbp is not None)
            found.append([drawn.numpy(), distribution.log_prob(drawn).numpy()])
        for part in found[1:]:
            assert all(map(np.allclose, part, found[0])), number


class Pipeline(flow.nn.Graph):
    """A layer on each rank, with an optimizer."""

    def __init__(self, seed):
        super().__init__()
        flow.manual_seed(seed)
        size = flow.env.get_world_size()
        self.ranks = [flow.placement("cpu", [rank]) for rank in range(size)]
        self.layers = flow.nn.ModuleList([flow.nn.Linear(4, 4).to_global(rank, B) for rank in self.ranks])
        self.add_optimizer(flow.optim.SGD(self.layers.parameters(), lr=0.1, momentum=0.9))

    def build(self, x):
        for layer, rank in zip(self.layers, self.ranks):
            x = layer(x.to_global(rank, B)).tanh()
        loss = x.square().mean()
        loss.backward()
        return loss


def parts_of_a_pipeline_are_saved_by_some_ranks(folder):
    """Each rank of a placement saves its part of all tensors, and loads it again."""
    rank, size = flow.env.get_rank(), flow.env.get_world_size()
    files, path = flow.placement("cpu", range(-(-size // 2))), f"{folder}/part{rank}"
    view = flow.utils.global_view

    def sbp_of(state, tensor):
        return B if tensor is state["System-Train-TrainStep"] or tensor.ndim < 2 else S(0)

    graph, again = Pipeline(1), Pipeline(2)
    x = flow.ones(2, 4).to_global(graph.ranks[0], B)
    first = [graph(x).item() for _ in range(3)]
    parts = view.to_local(view.to_global(graph.state_dict(), placement=files, sbp=sbp_of))
    if rank in files.ranks:
        flow.save(parts, path)
    expected = [graph(x).item() for _ in range(3)]
    mine = flow.load(path) if rank in files.ranks else None
    again.load_state_dict(view.to_global(mine, placement=files, sbp=sbp_of))
    assert [again(x).item() for _ in range(3)] == expected and expected[0] < first[0]


class Square(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * x * scale

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return g * 2 * x * scale, None


def slopes_after(change):
    """A program that computes gradients after a change of the model."""

    def program(model, x):
        change(model)
        (model(x) ** 2).mean().backward()
        return [p.grad for p in model.parameters()]

    return program


def clipped(model, x, **options):
    (model(x) ** 2).mean().backward()
    return [flow.nn.utils.clip_grad_norm_(model.parameters(), 0.01, **options), *[p.grad for p in model.parameters()]]


def checkpointed(model, x):
    (flow.utils.checkpoint.checkpoint(model, x) ** 2).mean().backward()
    return [p.grad for p in model.parameters()]


def by_a_function(model, x):
    Square.apply(model(x), x.mean(1, keepdim=True)).sum().backward()
    return [p.grad for p in model.parameters()]


def twice_differentiated(model, x):
    first = flow.autograd.grad((model(x) ** 2).mean(), list(model.parameters()), create_graph=True)
    sum((g**2).sum() for g in first).backward()
    return [p.grad for p in model.parameters()]


def as_one_vector(model, x):
    vector = flow.nn.utils.parameters_to_vector(model.parameters())
    flow.nn.utils.vector_to_parameters(vector * 2, model.parameters())
    return [vector, *model.parameters(), copy.deepcopy(model)(x)]


def seen_by_hooks(model, x):
    seen = []
    model[0].register_forward_hook(lambda module, inputs, out: seen.append(out.detach() * 2))
    model[0].register_full_backward_hook(lambda module, slopes, slope: seen.append(slope[0] * 3))
    (model(x) ** 2).mean().backward()
    return seen


def scaled(model, x):
    optimizer, scaler = flow.optim.SGD(model.parameters(), lr=0.1), flow.amp.GradScaler(init_scale=8.0)
    average = flow.optim.swa_utils.AveragedModel(model)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale((model(x) ** 2).mean()).backward()
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model)
    return [*model.parameters(), *average.parameters()]


TOOLS = [
    clipped,
    lambda model, x: clipped(model, x, norm_type=float("inf")),
    checkpointed,
    by_a_function,
    twice_differentiated,
    as_one_vector,
    seen_by_hooks,
    scaled,
    slopes_after(lambda model: flow.nn.utils.weight_norm(model[0])),
    slopes_after(lambda model: flow.nn.utils.spectral_norm(model[3])),
    slopes_after(lambda model: [flow.nn.init.xavier_normal_(p) for p in model.parameters() if p.ndim > 1]),
]


def tools_give_the_numbers_of_one_rank():
    x, placement = flow.tensor(np.sin(np.arange(24.0)).reshape(4, 6)), flow.placement.all("cpu")
    for number, tool in enumerate(TOOLS):
        expected = tool(make_model(0), x)
        for sbp in (lambda state, tensor: B, by_shape):
            model = make_model(0).to_global(placement, B).to_global(sbp=sbp)
            found = tool(model, x.to_global(placement, B).to_global(sbp=S(0)))
            for a, b in zip(found, expected, strict=True):
                assert a.is_global and np.allclose(a.detach().numpy(), b.detach().numpy(), 1e-10, 1e-12), number


class PartOfBatches(BatchSampler):
    """The recipe of docs/coming-from-oneflow.md."""

    def __iter__(self):
        for batch in super().__iter__():
            yield np.array_split(batch, flow.env.get_world_size())[flow.env.get_rank()].tolist()


def loaders_together_load_the_batches_of_one_rank():
    data = TensorDataset(flow.arange(42.0).reshape(21, 2), flow.arange(21))
    for workers, last in ((0, 1), (0, 3), (2, 1)):  # the last batch may have fewer samples than there are ranks
        flow.manual_seed(3)
        loaded = list(DataLoader(data, batch_size=4 + (last == 3) * 5, shuffle=True))
        flow.manual_seed(3)
        mine = PartOfBatches(RandomSampler(data), len(loaded[0][1]))
        together = list(DataLoader(data, batch_sampler=mine, num_workers=workers))
        assert len(together) == len(loaded) and len(loaded[-1][1]) == last
        for parts, whole in zip(together, loaded):
            for part, expected in zip(parts, whole):
                x = part.to_global(flow.placement.all("cpu"), S(0))
                assert x.dtype is expected.dtype and np.array_equal(x.numpy(), expected.numpy())
    x = [global_of(NUMBERS + k, flow.placement.all("cpu"), S(1)) for k in range(3)]
    assert np.array_equal(default_collate(x).numpy(), NUMBERS + np.arange(3)[:, None, None])


PROGRAMS = [
    all_ranks_read_all_elements,
    all_elements_are_printed,
    copies_have_the_same_distribution,
    writes_keep_the_distribution,
    indices_are_those_of_the_logical_tensor,
    gradients_are_global,
    writes_are_recorded,
    modules_become_global,
    states_are_converted,
    loaders_together_load_the_batches_of_one_rank,
    tools_give_the_numbers_of_one_rank,
    distributions_draw_as_one_rank,
]
WITH_FILES = [
    checkpoints_are_those_of_one_rank,
    structures_are_saved_by_one_rank,
    parts_of_a_pipeline_are_saved_by_some_ranks,
]

if __name__ == "__main__":
    flow.distributed.init_process_group(timeout=60)
    for program in PROGRAMS:
        program()
    for program in WITH_FILES:
        program(sys.argv[2])
    print(f"{len(PROGRAMS)} programs passed on rank {flow.env.get_rank()} of {sys.argv[1]}")
    assert flow.env.get_world_size() == int(sys.argv[1])
