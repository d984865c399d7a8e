"""One program in four modes: eager, as a graph, as a job whose calls wait and as one whose calls do not.

A program here is a function with all that it captures, and ways to write what it captures between two calls. Each
step sees what was there when it was called, in all modes alike and bit for bit; what a plan cannot follow is said.
"""

import random
import warnings

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.nn import functional as F

MODES = ["eager", "graph", "sync", "async"]
INPUTS = np.random.default_rng(7).standard_normal((8, 4, 3)).astype("float32")
LONG = 60


def caller(mode, f):
    """A function of an array that makes a step and gives a function that waits for its result."""
    if mode == "eager":
        return lambda x: done(f(flow.tensor(x)).detach().numpy().copy())
    if mode == "graph":

        class Graph(nn.Graph):
            def __init__(self):
                super().__init__()
                self.config.exact(True)

            def build(self, x):
                return f(x)

        graph = Graph()
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


def waiting(step):
    return lambda: step.get(LONG)


def results(mode, make, order):
    """What the calls give. make: of the PROGRAMS.  order: the names of the writes after each call."""
    flow.manual_seed(3)
    flow.clear_default_session()
    f, writes = make()
    call, steps = caller(mode, f), []
    for i, name in enumerate(order):
        steps.append(call(INPUTS[i]))
        writes[name](i + 1)
    found = [step() for step in steps]
    flow.clear_default_session()
    return found


def same(found, wanted):
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True))


# ---- the programs ----------------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm, self.act, self.drop = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Dropout(1.0)
        self.scale, self.table, self.named = 2.0, [1.0, flow.ones(3)], {"a": 0.5, "deep": (flow.zeros(3), [3])}
        self.array = np.ones(3, "float32")
        self.register_buffer("state", flow.zeros(3))
        self.eval()

    def forward(self, x):
        x = self.drop(self.act(self.norm(self.fc(x)))) * self.scale * self.table[0] + self.table[1] + self.state
        return x * self.named["a"] + self.named["deep"][0] - self.named["deep"][1][0] + self.array + self.array * 2


def no_grad(write):
    def quiet(i):
        with flow.no_grad():
            write(i)

    return quiet


def module_program():
    m = Net()

    def f(x):
        return m(x)

    def optimizer(kind, **options):
        found = kind(m.parameters(), lr=0.1, **options)

        def step(i):
            found.zero_grad()
            m(flow.tensor(INPUTS[i % 8])).square().mean().backward()
            found.step()

        return step

    def graph_step(i, known=[]):  # noqa: B006  (one graph for all steps of this program)
        class Train(nn.Graph):
            def __init__(self):
                super().__init__()
                self.m = m
                self.config.exact(True)
                self.add_optimizer(flow.optim.SGD(m.parameters(), 0.1, momentum=0.9))

            def build(self, x):
                loss = self.m(x).square().mean()
                loss.backward()
                return loss

        parameters = list(m.parameters())
        if not known or any(a is not b for a, b in zip(known[0], parameters)):
            known[:] = parameters, Train()
        known[1](flow.tensor(INPUTS[i % 8]))

    def hook(i, handles=[]):  # noqa: B006
        while handles:
            handles.pop().remove()
        handles.append(m.act.register_forward_hook(lambda module, args, out, i=i: out + i))

    def state(i):
        return {name: t + i / 8 if t.is_floating_point() else t for name, t in m.state_dict().items()}

    m_writes = {
        "fill_": no_grad(lambda i: m.fc.weight.fill_(i)),
        "add_": no_grad(lambda i: m.fc.bias.add_(i)),
        "mul_ of a row": no_grad(lambda i: m.fc.weight[1].mul_(i)),
        "index": no_grad(lambda i: m.fc.weight.__setitem__((0, slice(None)), float(i))),
        "mask": no_grad(lambda i: m.fc.weight.__setitem__(m.fc.weight > 0, 1.0 / i)),
        "copy_": no_grad(lambda i: m.norm.running_mean.copy_(flow.arange(3.0) / i)),
        "data in place": lambda i: m.fc.weight.data.sub_(0.5 * i),
        "data =": lambda i: setattr(m.fc.weight, "data", flow.eye(3) * i),
        "detach in place": lambda i: m.fc.bias.detach().mul_(i),
        "numpy": lambda i: m.fc.weight.detach().numpy().__imul__(0.5),
        "a new parameter": lambda i: setattr(m.fc, "weight", nn.Parameter(flow.eye(3) * i)),
        "a new layer": lambda i: setattr(m, "fc", nn.Linear(3, 3)),
        "init": lambda i: nn.init.constant_(m.fc.weight, 1 / i),
        "load_state_dict": lambda i: m.load_state_dict(state(i)),
        "load and assign": lambda i: m.load_state_dict(state(i), assign=True),
        "sgd": optimizer(flow.optim.SGD, momentum=0.9),
        "adam": optimizer(flow.optim.Adam),
        "a training graph": graph_step,
        "buffer in place": lambda i: m.state.add_(i),
        "buffer assigned": lambda i: setattr(m, "state", m.state * 0.5 + i),
        "running statistics": lambda i: (m.train(), m(flow.tensor(INPUTS[0])), m.eval()),
        "train and eval": lambda i: m.drop.train(i % 2 == 0) and None,
        "number": lambda i: setattr(m, "scale", float(i)),
        "list": lambda i: m.table.__setitem__(0, float(i)),
        "tensor in a list": lambda i: m.table[1].add_(i),
        "another tensor in a list": lambda i: m.table.__setitem__(1, flow.full((3,), float(i))),
        "dict": lambda i: m.named.update(a=i / 2),
        "tensor in a dict": lambda i: m.named["deep"][0].add_(i),
        "list in a tuple in a dict": lambda i: m.named["deep"][1].__setitem__(0, i),
        "array in place": lambda i: m.array.__iadd__(np.float32(i)),
        "another array": lambda i: setattr(m, "array", np.full(3, i, "float32")),
        "hook": hook,
        "half and back": lambda i: m.half().float() and None,
        "requires_grad": lambda i: m.requires_grad_(i % 2 == 0) and None,
        "nothing": lambda i: None,
    }
    return f, m_writes


def tensor_program():
    t, whole, lent = flow.ones(3), flow.ones(4, 6), np.ones(3, "float32")
    view, shared = whole[1:2, ::2], flow.from_numpy(lent)

    def f(x):
        return x * t + view + shared

    def rebind(i):
        nonlocal t
        t = flow.full((3,), float(i))

    return f, {
        "in place": lambda i: t.mul_(i),
        "another tensor": rebind,
        "data =": lambda i: setattr(t, "data", flow.arange(3.0) * i),
        "set_": lambda i: t.set_(flow.arange(3.0) + i),
        "out=": lambda i: flow.add(t, float(i), out=t),
        "numpy": lambda i: t.numpy().__iadd__(i),
        "dlpack": lambda i: np.from_dlpack(t).__iadd__(i),
        "the base of a view": lambda i: whole.add_(i),
        "a view of the base": lambda i: whole[1].mul_(i),
        "the view": lambda i: view.add_(1),
        "the array that it shares": lambda i: lent.__imul__(np.float32(i)),
        "what shares an array": lambda i: shared.add_(i),
        "nothing": lambda i: None,
    }


def container_program():
    """Of containers of a function around: a job follows what they hold, a graph says that it does not."""
    box, names, pair = [flow.ones(3), 2.0], {"w": flow.ones(3), "n": {"k": 1.0}}, (flow.ones(3), [flow.zeros(3)])

    def f(x):
        return x * box[0] * box[1] + names["w"] * names["n"]["k"] + pair[0] + pair[1][0]

    return f, {
        "tensor in a list": lambda i: box[0].add_(i),
        "tensor in a dict": lambda i: names["w"].mul_(i),
        "tensor in a tuple": lambda i: pair[0].fill_(i),
        "tensor in a list in a tuple": lambda i: pair[1][0].fill_(i),
    }


def setting_program():
    """What they hold is another tensor or number; and so is a number of a function around."""
    box, names, number = [flow.ones(3), 2.0], {"w": flow.ones(3), "n": {"k": 1.0}}, 1.0

    def f(x):
        return x * box[0] * box[1] + names["w"] * names["n"]["k"] + number

    def rebind(i):
        nonlocal number
        number = i

    return f, {
        "another tensor in a list": lambda i: box.__setitem__(0, flow.full((3,), float(i))),
        "number in a list": lambda i: box.__setitem__(1, float(i)),
        "another tensor in a dict": lambda i: names.update(w=flow.arange(3.0) + i),
        "number in a dict in a dict": lambda i: names["n"].update(k=float(i)),
        "number": rebind,
    }


def array_program():
    a, b = np.ones(3, "float32"), np.arange(12, dtype="float32").reshape(4, 3)

    def f(x):
        return x + a + a * 2 + flow.from_numpy(b) * float(b[1, 1]) + flow.tensor(b[0])

    def rebind(i):
        nonlocal a
        a = np.full(3, i, "float32")

    return f, {
        "in place": lambda i: a.__iadd__(i),
        "an element": lambda i: a.__setitem__(0, i),
        "another array": rebind,
        "both": lambda i: (a.fill(i), b.__imul__(np.float32(1 / i))),
        "a view of it": lambda i: b[:, 1].fill(i),
        "nothing": lambda i: None,
    }


def number_program():
    """A number that Python reads of a tensor: `item()`, an index, a condition."""
    n, flags, k = flow.zeros(1), flow.zeros(2), flow.tensor(0)

    def f(x):
        y = x * n.item() + flow.arange(3.0)[k]
        return F.relu(y) if flags.tolist()[0] else y

    return f, {
        "fill_": lambda i: n.fill_(i),
        "numpy": lambda i: n.numpy().fill(-i),
        "index": lambda i: k.fill_(i % 3),
        "condition": lambda i: flags.add_(i % 2 * 2 - 1),
        "data": lambda i: n.data.sub_(i),
        "nothing": lambda i: None,
    }


def read_module_program():
    """Modules that are read and never called: around the function, in a list, and a submodule."""
    norm, held, m = nn.BatchNorm1d(3), [nn.Linear(3, 3)], Net()
    norm.k, norm.table = 2.0, [1.0]

    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self._others, self.inner = [nn.BatchNorm1d(3)], Net()

        def forward(self, x):
            return x * self._others[0].running_var + self.inner.state + self.inner.scale

    reads = Reads()

    def f(x):
        y = reads(x) + norm.running_mean * norm.k + held[0].bias * norm.table[0] + m.fc.weight[0]
        return y if norm.training else -y

    return f, {
        "buffer bound": lambda i: setattr(norm, "running_mean", flow.full((3,), float(i))),
        "buffer in place": lambda i: norm.running_mean.add_(i),
        "number": lambda i: setattr(norm, "k", float(i)),
        "list": lambda i: norm.table.__setitem__(0, float(i)),
        "train and eval": lambda i: norm.train(i % 2 == 0) and None,
        "parameter in place": no_grad(lambda i: held[0].bias.add_(i)),
        "another parameter": lambda i: setattr(held[0], "bias", nn.Parameter(flow.full((3,), float(i)))),
        "another layer": lambda i: setattr(m, "fc", nn.Linear(3, 3)),
        "buffer of a submodule": lambda i: setattr(reads.inner, "state", flow.full((3,), float(i))),
        "a view as buffer of a submodule": lambda i: setattr(reads.inner, "state", m.fc.weight.detach()[i % 3]),
        "number of a submodule": lambda i: setattr(reads.inner, "scale", float(i)),
        "buffer of a module in a list": lambda i: setattr(reads._others[0], "running_var", flow.full((3,), float(i))),
        "nothing": lambda i: None,
    }


PROGRAMS = {
    "module": module_program, "tensors": tensor_program, "arrays": array_program, "numbers": number_program,
    "read modules": read_module_program,
}
CASES = [(name, write) for name, make in PROGRAMS.items() for write in make()[1]]


@pytest.mark.parametrize(("name", "write"), CASES)
def test_one_kind_of_write_between_the_calls(name, write):
    order = [write] * 6
    wanted = results("eager", PROGRAMS[name], order)
    for mode in MODES[1:]:
        assert same(results(mode, PROGRAMS[name], order), wanted), mode


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", PROGRAMS)
def test_random_writes_between_the_calls(name, seed):
    rng, writes = random.Random(f"{name} {seed}"), list(PROGRAMS[name]()[1])
    order = [rng.choice(writes) for _ in range(8)]
    wanted = results("eager", PROGRAMS[name], order)
    for mode in MODES[1:]:
        assert same(results(mode, PROGRAMS[name], order), wanted), (mode, order)


AROUND = [(make, write) for make in (container_program, setting_program) for write in make()[1]]


@pytest.mark.parametrize(("make", "write"), AROUND)
def test_what_only_a_job_follows_is_said_of_a_graph(make, write):
    wanted = results("eager", make, [write] * 5)
    for mode in ("sync", "async"):
        assert same(results(mode, make, [write] * 5), wanted), mode
    with pytest.warns(flow.MinflowWarning, match="build uses .* while it is built, and not again at each call"):
        found = results("graph", make, [write] * 5)
    assert same(found, wanted) is (make is container_program)  # tensors themselves are read at each call


class Settings:
    def __init__(self):
        self.rate = 1.0


@pytest.mark.parametrize("mode", MODES[1:])
def test_what_no_plan_follows_is_said(mode):
    settings = Settings()

    def make():
        return (lambda x: x * settings.rate), {"rate": lambda i: setattr(settings, "rate", float(i))}

    notice = r"settings \(an object of class Settings\).* a later change is not seen"
    with pytest.warns(flow.MinflowWarning, match=notice):
        results(mode, make, ["rate"] * 3)


def test_nothing_is_said_of_what_is_followed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("module", "tensors", "arrays", "read modules"):
            for mode in MODES:
                results(mode, PROGRAMS[name], ["nothing"] * 2)


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_counter_that_the_function_sets_is_said(mode):
    def make():
        calls = 0

        def f(x):
            nonlocal calls
            calls += 1
            return x * calls

        return f, {"nothing": lambda i: None}

    with pytest.warns(flow.MinflowWarning, match=r"uses calls \(1\) while it is built, and not again at each call"):
        results(mode, make, ["nothing"] * 2)


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("how", ["param_groups", "get_last_lr"])
def test_a_learning_rate_that_python_reads_is_said(how, mode):
    def make():
        optimizer = flow.optim.SGD([nn.Parameter(flow.ones(1))], 0.5)
        scheduler = flow.optim.lr_scheduler.StepLR(optimizer, 1)

        functions = {
            "param_groups": lambda x: x * optimizer.param_groups[0]["lr"],
            "get_last_lr": lambda x: x * scheduler.get_last_lr()[0],
        }
        return functions[how], {"nothing": lambda i: None}

    with pytest.warns(flow.MinflowWarning, match=rf"{how} \(the learning rate of .*a later change is not seen"):
        results(mode, make, ["nothing"] * 2)
