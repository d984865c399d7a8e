"""Random programs in five modes: eager, as an nn.Graph that is called or submitted, as a sync and as an async job.

A program is data: the objects that it captures (`THINGS`), the statements of its function, and a write after each call.
`source` prints it. Each call gives the bits of eager mode, or minflow refuses the program or warns about it. Read next:
`statements.py`, programs against PyTorch.
"""

from __future__ import annotations

import ast
import random
import traceback
import warnings
from typing import NamedTuple

import numpy as np

import minflow as flow
import minflow.typing as tp

from .comparison import is_our_error, place

MODES = ["eager", "graph", "submitted graph", "sync", "async"]
INPUTS = np.random.default_rng(7).standard_normal((8, 4, 3)).astype("float32")
LONG = 60  # seconds, for a result of an async job


class Thing(NamedTuple):
    """setup: lines that create it.  uses: statements of the function.  writes: statements between calls; `{i}` is the
    index of the call, from 1.  unfollowed: writes that a graph warns about, because it reads the value only once.
    """

    setup: str
    uses: tuple[str, ...]
    writes: tuple[str, ...]
    unfollowed: tuple[str, ...] = ()


class Program(NamedTuple):
    """train: True if each call is a step of SGD on all parameters, in eager mode and in the graph."""

    things: tuple[str, ...]
    body: tuple[str, ...]
    writes: tuple[str, ...]
    train: bool = False

    @property
    def modes(self) -> list[str]:
        return MODES[:3] if self.train else MODES


def lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm, self.act, self.drop = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Dropout(1.0)
        self.scale, self.table, self.named = 2.0, [1.0, L.ones(3)], {"a": 0.5, "deep": (L.zeros(3), [3])}
        self.array = np.ones(3, "float32")
        self.register_buffer("state", L.zeros(3))
        self.eval()
    def forward(self, x):
        x = self.drop(self.act(self.norm(self.fc(x)))) * self.scale * self.table[0] + self.table[1] + self.state
        return x * self.named["a"] + self.named["deep"][0] - self.named["deep"][1][0] + self.array + self.array * 2
"""
TRAIN = """
class Train(nn.Graph):
    def __init__(self, m):
        super().__init__()
        self.m = m
        self.config.exact(True)
        self.add_optimizer(L.optim.SGD(m.parameters(), 0.1, momentum=0.9))
    def build(self, x):
        loss = self.m(x).square().mean()
        loss.backward()
        return loss
"""
STEP = "{0}.zero_grad(); m(L.tensor(INPUTS[{{i}} % 8])).square().mean().backward(); {0}.step()"
OVERRIDES = """
class Override(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.calls, self.extra = nn.Parameter(L.ones(3)), 0, 1.0
        self.register_buffer("seen", L.zeros(3))
    def forward(self, x):
        return x * self.w * self.extra + self.seen
    def get_extra_state(self):
        return self.extra
    def set_extra_state(self, state):
        self.extra = state
    def _apply(self, f, recurse=True):
        self.extra += 1
        return super()._apply(f, recurse)
    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "w"] = destination[prefix + "w"] * 2
    def train(self, mode=True):
        self.extra *= 0.5
        return super().train(mode)
"""
THINGS = {
    "module": Thing(
        f"{NET}{TRAIN}m = Net()\nsgd = L.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)\n"
        "adam = L.optim.Adam(m.parameters(), lr=0.1)\ntraining = Train(m)\nhandles = []",
        lines("""
            y = m(y)
            y = y @ m.fc.weight.T
            y = F.linear(y, m.fc.weight, m.fc.bias)
            y = y + m.norm.running_mean
            y = m.act(y) * m.scale
            m.act(y); y = m.drop(y)
        """),
        lines(f"""
            with L.no_grad(): m.fc.weight.fill_({{i}})
            with L.no_grad(): m.fc.bias.add_({{i}})
            with L.no_grad(): m.fc.weight[1].mul_({{i}})
            with L.no_grad(): m.fc.weight[0, :] = {{i}}.0
            with L.no_grad(): m.fc.weight[m.fc.weight > 0] = 1.0 / {{i}}
            with L.no_grad(): m.norm.running_mean.copy_(L.arange(3.0) / {{i}})
            m.fc.weight.data.sub_(0.5 * {{i}})
            m.fc.weight.data = L.eye(3) * {{i}}
            m.fc.bias.detach().mul_({{i}})
            m.fc.weight.detach().numpy()[...] *= 0.5
            m.fc.weight = nn.Parameter(L.eye(3) * {{i}})
            m.fc = nn.Linear(3, 3)
            nn.init.constant_(m.fc.weight, 1 / {{i}})
            m.load_state_dict({{k: t + {{i}} / 8 if t.is_floating_point() else t for k, t in m.state_dict().items()}})
            m.load_state_dict({{k: t + 1 if "fc" in k else t for k, t in m.state_dict().items()}}, assign=True)
            {STEP.format("sgd")}
            {STEP.format("adam")}
            training = training if training.m.fc.weight is m.fc.weight else Train(m); training(L.tensor(INPUTS[{{i}}]))
            m.state.add_({{i}})
            m.state = m.state * 0.5 + {{i}}
            m.train(); m(L.tensor(INPUTS[0])); m.eval()
            m.drop.train({{i}} % 2 == 0)
            m.scale = {{i}}.0
            m.table[0] = {{i}}.0
            m.table[1].add_({{i}})
            m.table[1] = L.full((3,), {{i}}.0)
            m.named.update(a={{i}} / 2)
            m.named["deep"][0].add_({{i}})
            m.named["deep"][1][0] = {{i}}
            m.array += np.float32({{i}})
            m.array = np.full(3, {{i}}, "float32")
            [h.remove() for h in handles]; handles.append(m.act.register_forward_hook(lambda _, args, out: out + {{i}}))
            handles.append(m.fc.register_forward_pre_hook(lambda _, args: (args[0] * {{i}},)))
            m.half().float()
            m.requires_grad_({{i}} % 2 == 0)
            None
        """),
    ),
    "overrides": Thing(
        f"{OVERRIDES}v = Override()",
        lines("""
            y = v(y)
            y = y + v.seen * v.extra
        """),
        lines("""
            v.load_state_dict(v.state_dict())
            v.double().float()
            v.train({i} % 2 == 0)
            v.set_extra_state({i}.0)
            v.to(L.float32)
            v.seen.add_(v.w.detach())
            v.seen = v.seen + {i}
            v.register_buffer("seen", L.full((3,), {i}.0))
            v.load_state_dict({**v.state_dict(), "seen": L.ones(3) * {i}})
        """),
    ),
    "tensors": Thing(
        "t, whole, lent = L.ones(3), L.ones(4, 6), np.ones(3, 'float32')\n"
        "view, shared = whole[1:2, ::2], L.from_numpy(lent)",
        lines("""
            y = y * t + view + shared
            y = y + whole[:, :3] * t
            y = L.where(y > 0, y, shared)
            y = y - view.sum() + t[1]
            z = whole.T[:3]; y = y @ z[:, :3]
            y = y + L.stack([t, shared, view[0]]).sum(0)
        """),
        lines("""
            t.mul_({i})
            t = L.full((3,), {i}.0)
            t.data = L.arange(3.0) * {i}
            t.set_(L.arange(3.0) + {i})
            L.add(t, {i}.0, out=t)
            t.numpy()[...] += {i}
            a = np.from_dlpack(t); a += {i}
            whole.add_({i})
            whole[1].mul_({i})
            view.add_(1)
            lent *= np.float32({i})
            shared.add_({i})
            t[{i} % 3] = {i}.0
            whole[whole > 1] = 0.5
            view = whole[{i} % 4, :3]
            None
        """),
    ),
    "arrays": Thing(
        "a, b = np.ones(3, 'float32'), np.arange(12, dtype='float32').reshape(4, 3)",
        lines("""
            y = y + a + a * 2 + L.from_numpy(b) * float(b[1, 1]) + L.tensor(b[0])
            y = y * L.tensor([a[0], 2.0, float(b[0, 1])])
            y = y + L.as_tensor(a)
            y = L.stack([y[0], L.tensor(a)])
        """),
        lines("""
            a += {i}
            a[0] = {i}
            a = np.full(3, {i}, "float32")
            a.fill({i}); b *= np.float32(1 / {i})
            b[:, 1].fill({i})
            None
        """),
    ),
    "numbers": Thing(
        "n, flags, k = L.zeros(1), L.zeros(2), L.tensor(0)",
        lines("""
            y = y * n.item() + L.arange(3.0)[k]; y = F.relu(y) if flags.tolist()[0] else y
            y = y + L.tensor([n.item(), 1.0, int(k)])
            y = y[: 1 + int(k)]
            y = y * float(n) if n.item() > 0 else y
            y = sum([y] * (1 + k.item()))
        """),
        lines("""
            n.fill_({i})
            n.numpy().fill(-{i})
            k.fill_({i} % 3)
            flags.add_({i} % 2 * 2 - 1)
            n.data.sub_({i})
            None
        """),
    ),
    "read modules": Thing(
        f"{NET}"
        """
class Reads(nn.Module):
    def __init__(self):
        super().__init__()
        self._others, self.inner = [nn.BatchNorm1d(3)], Net()
    def forward(self, x):
        return x * self._others[0].running_var + self.inner.state + self.inner.scale
norm, held, other, reads = nn.BatchNorm1d(3), [nn.Linear(3, 3)], Net(), Reads()
norm.k, norm.table = 2.0, [1.0]""",
        lines("""
            y = reads(y) + norm.running_mean * norm.k + held[0].bias; y = y if norm.training else -y
            y = y * norm.table[0] + other.fc.weight[0]
            y = y + reads.inner.state
        """),
        lines("""
            norm.running_mean = L.full((3,), {i}.0)
            norm.running_mean.add_({i})
            norm.k = {i}.0
            norm.table[0] = {i}.0
            norm.train({i} % 2 == 0)
            with L.no_grad(): held[0].bias.add_({i})
            held[0].bias = nn.Parameter(L.full((3,), {i}.0))
            other.fc = nn.Linear(3, 3)
            reads.inner.state = L.full((3,), {i}.0)
            reads.inner.state = other.fc.weight.detach()[{i} % 3]
            reads.inner.scale = {i}.0
            reads._others[0].running_var = L.full((3,), {i}.0)
            None
        """),
    ),
    "containers": Thing(
        "box, names, pair = [L.ones(3), 2.0], {'w': L.ones(3), 'n': {'k': 1.0}}, (L.ones(3), [L.zeros(3)])\n"
        "number = 1.0",
        lines("""
            y = y * box[0] * box[1] + names["w"] * names["n"]["k"] + pair[0] + pair[1][0] + number
            y = y + L.stack([box[0], *pair[1]]).sum(0)
        """),
        lines("""
            box[0].add_({i})
            names["w"].mul_({i})
            pair[0].fill_({i})
            pair[1][0].fill_({i})
        """),
        lines("""
            box[0] = L.full((3,), {i}.0)
            box[1] = {i}.0
            names.update(w=L.arange(3.0) + {i})
            names["n"].update(k={i}.0)
            number = {i}
        """),
    ),
    "own": Thing(  # values of the function itself
        "total, count, c = L.zeros(3), L.zeros(1), nn.Parameter(L.tensor([1.0, -2.0, 0.5]))",
        lines("""
            z = y.clone(); z.mul_(2); y = z
            z = y.clone(); z[0] = 1.0; z[:, 1].add_(z[:, 0]); y = z
            z = y.clone(); v = z[1:]; z.add_(1); v.mul_(3); y = z + v.sum()
            z = y.clone(); z[z > 0] = -1.0; y = z
            z = L.empty_like(y); z.copy_(y); z += 1; y = z
            total.add_(y.detach().sum(0)); y = y + total
            count += 1; y = y * count
            with L.no_grad(): total.mul_(0.5).add_(y.sum(0))
            z = y.detach().requires_grad_(); (g,) = L.autograd.grad((z * z).sum(), z); y = y + g
            z = y * c; h = z.register_hook(lambda g: g * 2); (g,) = L.autograd.grad(z.sum(), c); y = y + g
            z = (y * c).exp(); z.register_hook(lambda g: g.clamp(-1, 1)); y = y + L.autograd.grad(z.sum(), c)[0]
            z = c * 2; z.retain_grad(); (z * y).sum().backward(); y = y + z.grad
            y = y + collate([y[0], y[1]]).sum(0)
            d = collate([dict(x=y, n=(1, 2.5)), dict(x=y + 1, n=(3, 4.5))]); y = d["x"][1] * d["n"][0][0]
            y = y * L.tensor([[1, 2.5, True], [0, 1, 2]])[1]
            y = y + L.tensor([total[0].item(), 1.0, 2.0])
            y = L.cat([y, y.flip(0)])[::2]
            y = F.dropout(y, 0.5)
            y = y + L.rand(3)
            y = y.T.contiguous().T
            y = y.double().float()
            y, _ = y.sort(0)
            y = y.reshape(-1)[: 3 * (y.numel() // 3)].reshape(-1, 3)
        """),
        lines("""
            total.zero_()
            total = total + {i}
            count.fill_({i})
            c.data.mul_(-1)
            None
        """),
    ),
}


# ---- drawing and printing ------------------------------------------------------------------------------------------


def draw(seed: object, calls: int = 5) -> Program:
    rng = random.Random(f"modes {seed}")
    things = tuple(rng.sample(sorted(THINGS), rng.choice((1, 1, 2, 3))))
    uses = [use for name in things for use in THINGS[name].uses]
    body = tuple(rng.choice(uses) for _ in range(rng.randint(1, 5)))
    writes = [w for name in things for w in (*THINGS[name].writes, *THINGS[name].unfollowed)]
    few = rng.sample(writes, min(len(writes), rng.randint(1, 4)))
    train = rng.random() < 0.3 and bool({"module", "overrides", "own", "read modules"} & {*things})
    return Program(things, body, tuple(rng.choice(few) for _ in range(calls)), train)


def stored(nodes) -> set[str]:
    """Names that these statements assign."""
    names = [n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)]
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


def source(program: Program) -> str:
    """Source of a function `make` that returns the function of a program, its writes, and its captured values."""
    setup = "\n".join(dict.fromkeys("\n".join(THINGS[name].setup for name in program.things).split("\n\n")))
    captured = stored([s for s in ast.parse(setup).body if not isinstance(s, ast.ClassDef)])

    def defined(signature: str, statements: list[str]) -> list[str]:
        bound = sorted(stored(map(ast.parse, statements)) & captured)
        nonlocal_ = [f"nonlocal {', '.join(bound)}"] if bound else []
        return [f"def {signature}:", *["    " + line for line in (*nonlocal_, *statements)]]

    inner = [*setup.strip().splitlines(), *defined("f(x)", ["y = x", *program.body, "return y"])]
    for i, write in enumerate(program.writes):
        inner += defined(f"write{i}()", [write.replace("{i}", str(i + 1))])
    writes = ", ".join(f"write{i}" for i in range(len(program.writes)))
    inner.append(f"return f, [{writes}], [{', '.join(sorted(captured))}]")
    return "\n".join(["def make():", *["    " + line for line in inner]])


# ---- running -------------------------------------------------------------------------------------------------------


def caller(mode: str, f, trained: list | None = None):
    """A function that starts a step on an array and returns a function that waits for its result.

    trained: the parameters that a step changes; None for predictions.
    """
    optimizer = flow.optim.SGD(trained, 0.1, momentum=0.9) if trained is not None else None

    def loss_of(x):
        loss = f(x).square().mean()
        loss.backward()
        return loss

    if mode == "eager":

        def step(x):
            if optimizer is None:
                return done(f(flow.tensor(x)).detach().numpy().copy())
            optimizer.zero_grad()
            loss = loss_of(flow.tensor(x))
            optimizer.step()
            return done(loss.detach().numpy().copy())

        return step
    if mode in ("graph", "submitted graph"):
        built = f if optimizer is None else loss_of

        class Graph(flow.nn.Graph):
            def __init__(self):
                super().__init__()
                self.config.exact(True)

            def build(self, x):
                return built(x)

        graph = Graph()
        if optimizer is not None:
            graph.add_optimizer(optimizer)
        if mode == "submitted graph":
            return lambda x: waiting(graph.submit(flow.tensor(x)), lambda result: result.numpy())
        return lambda x: done(graph(flow.tensor(x)).numpy())
    config = flow.function_config()
    config.exact(True)

    def job(x: tp.Numpy.Placeholder((4, 3))):
        return f(x)

    job.__name__ = f"{mode}_job"
    job.__annotations__["return"] = tp.Numpy if mode == "sync" else tp.Callback[tp.Numpy]
    job = flow.global_function(type="predict", function_config=config)(job)
    return lambda x: done(job(x)) if mode == "sync" else waiting(job(x))


def done(result):
    return lambda: result


def waiting(step, convert=lambda result: result):
    return lambda: convert(step.get(LONG))


def results(mode: str, make, train: bool = False) -> list[np.ndarray]:
    """Results of the calls, and the parameters after them. make: returns a function, its writes, one after each call,
    and its captured values.
    """
    flow.manual_seed(3)
    flow.clear_default_session()
    f, writes, captured = make()
    modules = [x for x in captured if isinstance(x, flow.nn.Module)]
    trained = [x for x in captured if isinstance(x, flow.nn.Parameter)] + [p for m in modules for p in m.parameters()]
    call, steps = caller(mode, f, trained if train else None), []
    for i, write in enumerate(writes):
        steps.append(call(INPUTS[i % len(INPUTS)]))
        write()
    found = [step() for step in steps] + [p.detach().numpy().copy() for p in trained]
    flow.clear_default_session()
    return found


def maker(program: Program):
    space = {
        "L": flow,
        "nn": flow.nn,
        "F": flow.nn.functional,
        "np": np,
        "INPUTS": INPUTS,
        "collate": flow.utils.data.default_collate,
    }
    exec(compile(source(program), "<program>", "exec"), space)
    return space["make"]


def same(found: list, wanted: list) -> bool:
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True))


def outcome(mode: str, program: Program) -> tuple[str, object]:
    """("gives", arrays), ("warns", arrays), ("refuses", error) or ("raw", error)."""
    with warnings.catch_warnings(record=True) as told, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            found = results(mode, maker(program), program.train)
        except Exception as error:
            flow.clear_default_session()
            by_program = place(error) == "<program>"  # an error of Python unrelated to minflow
            return "refuses" if is_our_error(error) or by_program else "raw", "".join(
                traceback.format_exception(error)[-3:]
            )
    return "warns" if any(
        "later change is not seen" in str(w.message) or "while it is built" in str(w.message) for w in told
    ) else "gives", found


def fault(program: Program) -> str | None:
    """Mode and kind of the first fault: "graph: differs" is a silent difference from eager mode."""
    kind, wanted = outcome("eager", program)
    if kind == "raw":
        return "eager: raw"
    if kind == "refuses":
        return None
    for mode in program.modes[1:]:
        kind, found = outcome(mode, program)
        if kind == "raw" or (kind == "gives" and not same(found, wanted)):
            return f"{mode}: {'raw' if kind == 'raw' else 'differs'}"
    return None


def smaller(program: Program):
    """Programs with one statement, write or thing less."""
    for part in ("things", "body", "writes"):
        for i in range(len(getattr(program, part))):
            yield program._replace(**{part: getattr(program, part)[:i] + getattr(program, part)[i + 1 :]})


def minimized(program: Program, found: str) -> Program:
    """Drop statements, writes and things while the program has the same fault."""
    for less in smaller(program):
        try:
            if fault(less) == found:
                return minimized(less, found)
        except SyntaxError:  # a part is empty
            continue
    return program


def report(program: Program, found: str) -> str:
    least = minimized(program, found)
    told = {mode: outcome(mode, least) for mode in least.modes}
    return "\n".join([found, source(least), *[f"# {mode}: {kind} {value}" for mode, (kind, value) in told.items()]])
