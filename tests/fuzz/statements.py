"""Random programs of statements, in minflow and in PyTorch: hooks, in-place writes, views, nested values, modules.

A program is a list of lines. Both libraries run it line by line, and after each line all visible state is compared:
values, gradients and flags of all variables, and the log that hooks and overrides write. See also `modes.py`.
"""

from __future__ import annotations

import copy
import random
import re
import warnings
from math import inf, nan

import numpy as np

import minflow

from .comparison import Finding, Hung, differs, is_our_error, place, raw_place, text, time_limit, to_plain_values

PRELUDE = """
class Extra(L.nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.extra = L.nn.Parameter(L.tensor([1.0, -2.0, 0.5])), 1.0
        self.register_buffer("b", L.tensor([0.5, 0.0, -1.0]))
    def forward(self, x):
        return x * self.w * self.extra + self.b
    def get_extra_state(self):
        return {"extra": self.extra}
    def set_extra_state(self, state):
        self.extra = state["extra"] + 1
class Saver(Extra):
    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "w"] = destination[prefix + "w"] * 2
        destination[prefix + "more"] = L.ones(1)
    def _load_from_state_dict(self, state, prefix, *rest):
        log.append(float(state.pop(prefix + "more", L.zeros(1))))
        super()._load_from_state_dict(state, prefix, *rest)
class Applied(Extra):
    def _apply(self, f, recurse=True):
        self.extra += 1
        return super()._apply(f, recurse)
    def train(self, mode=True):
        log.append(mode)
        return super().train(mode)
    def zero_grad(self, set_to_none=True):
        log.append("zero")
        return super().zero_grad(set_to_none)
class Outer(L.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.rest = Saver(), L.nn.ModuleList([Applied(), Extra()])
        self.scales = L.nn.ParameterList([L.ones(3)])
    def forward(self, x):
        for layer in self.rest:
            x = layer(x)
        return self.first(x) * self.scales[0]
    def __setattr__(self, name, value):
        if name[0] != "_":
            log.append(name)
        super().__setattr__(name, value)
class Double(L.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        log.append(x.sum().item())
        return g * 3
def collate(batch):
    return __import__(L.__name__ + ".utils.data").utils.data.default_collate(batch)
Pair = __import__("collections").namedtuple("Pair", "p q")
log = []
"""
# {a} {b}: tensors, {g}: a leaf with a gradient, {m} {k}: modules, {h}: a handle, {s}: a state, {o}: an optimizer;
# {i}: a small number, {w}: a truth; {T} {M} {H} {S} {O}: a new variable of that kind, {G}: a new leaf.
STATEMENTS = {
    "leaf": """
        {G} = L.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]], requires_grad=True)
        {G} = L.tensor([0.5, 2.0, -1.0], requires_grad=True)
        {G} = L.ones(2, 3, dtype=L.float64, requires_grad=True)
        {G} = {a}.detach().clone().requires_grad_()
        {G} = L.nn.Parameter({a}.detach())
    """,
    "values": """
        {T} = L.tensor([{a}.sum(), {i}, True])
        {T} = L.tensor([[1, 2.5, True], [{i}, 0, -1]])
        {T} = L.tensor([{a}.detach().reshape(-1).numpy(), {a}.detach().reshape(-1).numpy() * 2])
        {T} = L.tensor([list({a}.detach().reshape(-1)[:3]), [1, 2, 3]])
        {T} = L.tensor(({a}.max(), [0.5][0], {i}), dtype=L.float64)
        {T} = L.as_tensor({a})
        {T} = L.as_tensor([{a}.min(), {b}.max()])
        {T} = L.tensor({a}.tolist())
        {T} = L.full_like({a}, {i})
        {T} = {a}.new_tensor([{i}, 1.5, True])
        {T} = L.tensor({a})
        {T} = L.from_numpy({a}.detach().numpy())
        {T} = L.tensor([range(3), ({i}, 1, 2)])
        {T} = L.tensor(np.float32({i}) * np.ones(3))
        {T} = L.tensor([np.float64(1), np.float32({i}), 2])
    """,
    "collate": """
        {T} = collate([{a}, {a}])
        d = collate([dict(x={a}, n={i}), dict(x={a} + 1, n=2)])
        d = collate([({a}, [1, 2.5]), ({a}, [3, 4.5])])
        d = collate([Pair({a}, "x"), Pair({a}, "y")])
        d = collate([[{i}, True], [2, False]])
        d = collate([{a}.detach().numpy(), {a}.detach().numpy()])
        d = collate([np.float32(1), np.float32({i})])
        d = collate([dict(d={{"e": ({a}[0], 1)}}), dict(d={{"e": ({a}[0], 2)}})])
        d = collate([[{a}, {b}], [{a}, {b}]])
        d = collate([True, 2.5, {i}])
    """,
    "ops": """
        {T} = {a} * {b}
        {T} = {a} + {b}
        {T} = {a} / ({b} + 4)
        {T} = {a} * {i}
        {T} = {a}.exp()
        {T} = {a}.tanh()
        {T} = {a}.relu()
        {T} = {a}.clamp(-1, 1)
        {T} = {a}.sum(0)
        {T} = {a}.mean(-1, keepdim=True)
        {T} = {a}.max(0).values
        {T} = {a}.sort(-1)[0]
        {T} = {a}.cumsum(0)
        {T} = {a}.softmax(-1)
        {T} = {a}.clone()
        {T} = {a}.to(L.float64)
        {T} = {a}.float()
        {T} = L.where({a} > 0, {a}, {b})
        {T} = L.cat([{a}.reshape(-1), {b}.reshape(-1)])[:3]
        {T} = L.stack([{a}, {a} * 2])[1]
        {T}, {T} = (t * 2 for t in {a}.split(1))
        {T} = {a}.unbind(0)[0] + 1
        {T} = {m}({a})
        {T} = Double.apply({a})
        {T} = L.nn.functional.layer_norm({a}, {a}.shape[-1:])
    """,
    "views": """
        {T} = {a}[0]
        {T} = {a}[..., ::2]
        {T} = {a}[1:]
        {T} = {a}.T
        {T} = {a}.reshape(-1)
        {T} = {a}.view(-1)
        {T} = {a}.expand(2, *{a}.shape)
        {T} = {a}.unsqueeze(0)
        {T} = {a}.narrow(0, 0, 1)
        {T} = {a}.diagonal()
        {T} = {a}.detach()
        {T} = {a}.data
        {T} = {a}.squeeze()
        {T} = {a}.flatten()
        {T} = {a}.as_strided((2,), (1,), 0)
        {T} = {a}[[0]]
        {T} = {a}.view_as({a})
        {T} = {a}.contiguous()
        {T} = {a}.flip(0)
        {T} = {a}.unfold(0, 1, 1)
        {T} = {m}.w[1:]
        {T} = {m}.b
        {T} = {g}.grad
    """,
    "writes": """
        {a}.mul_({i})
        {a}.add_({b})
        {a}[0] = {i}
        {a}[{a} > 0] = {i}
        {a}[..., 0] = {b}[..., 0]
        {a}[[0, 0]] += {i}
        {a}.copy_({b})
        {a}.zero_()
        {a}.exp_()
        {a} += {b}
        {a} *= {a}
        {a}.sub_({a})
        {a}.data.mul_({i})
        {a}.detach().add_(1)
        {a}.detach().numpy()[...] = {i}
        {a}.data = {b}.detach().clone()
        {a}.requires_grad_({w})
        {a}.index_add_(0, L.tensor([0]), {a}.detach()[:1] * 2)
        {a}.masked_fill_({a} > 1, {i})
        {a}.clamp_(-1, 1)
        {a}.t_()
        {a}.unsqueeze_(0)
        {a}.squeeze_()
        {a}.detach_()
        {a}.fill_({b}.sum())
        L.add({a}, {b}, out={b})
        {a}[1:].mul_({a}[:-1].clone())
        {a}.view(-1)[0].fill_({i})
        {a}.addcmul_({b}, {b}, value={i})
        {a}.resize_(2)
        L.nn.functional.relu_({a})
        L.nn.functional.dropout({a}, 0.0, inplace=True)
        {a}.swapaxes_(0, -1)
        {a}.lerp_({b}, 0.5)
        {m}.w.data.add_({i})
        {m}.b.mul_({i})
        {m}.b = {a}.detach()
    """,
    "hooks": """
        {H} = {a}.register_hook(lambda g: g * {i})
        {H} = {a}.register_hook(lambda g: log.append(g.sum().item()))
        {H} = {a}.register_hook(lambda g: g.mul_(2))
        {H} = {a}.register_hook(lambda g: g * {b}.detach().sum())
        {H} = {a}.register_hook(lambda g: log.append(g.requires_grad))
        {H} = {a}.register_hook(lambda g: ({h}.remove(), g + 1)[1])
        {H} = {a}.register_hook(lambda g: {b}.data.add_(1) and None)
        {H} = {g}.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.sum().item()))
        {H} = {g}.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5) and None)
        {H} = {g}.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None))
        {H} = {a}.grad_fn.register_hook(lambda gi, go: log.append(len(go)))
        {H} = {a}.grad_fn.register_prehook(lambda go: tuple(g * 2 for g in go))
        {H} = {m}.register_forward_hook(lambda m, args, out: out * {i})
        {H} = {m}.register_forward_hook(lambda m, args, out: log.append(out.sum().item()), prepend=True)
        {H} = {m}.register_forward_pre_hook(lambda m, args: (args[0] + {i},))
        {H} = {m}.register_full_backward_hook(lambda m, gi, go: log.append(go[0].sum().item()))
        {H} = {m}.register_full_backward_hook(lambda m, gi, go: tuple(None if g is None else g * {i} for g in gi))
        {H} = {m}.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
        {H} = {m}.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(prefix))
        {H} = {m}.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
        {H} = {m}.register_load_state_dict_pre_hook(lambda m, state, prefix, *rest: log.append(sorted(state)))
        {h}.remove()
        {a}.retain_grad()
    """,
    "backward": """
        {a}.sum().backward()
        ({a} * {b}).sum().backward(retain_graph=True)
        ({a} * {a}).sum().backward()
        {a}.backward(L.ones_like({a}))
        {T}, = L.autograd.grad({a}.sum(), {g})
        {T}, = L.autograd.grad(({a} * {a}).sum(), {g}, create_graph=True)
        {T}, = L.autograd.grad({a}.sum(), {b}, retain_graph=True)
        {a}.sum().backward(inputs=[{g}])
        {m}({a}).sum().backward()
        {g}.grad = None
        {g}.grad.zero_()
        {g}.grad = {g}.detach() * {i}
        L.autograd.backward([{a}.sum(), {b}.sum()])
        {O} = L.optim.SGD([{g}], 0.1, momentum=0.9)
        {O} = L.optim.Adam({m}.parameters(), 0.1)
        {o}.step()
        {o}.zero_grad()
        {o}.load_state_dict({o}.state_dict())
        {m}.zero_grad()
    """,
    "states": """
        {S} = {m}.state_dict()
        {S} = copy.deepcopy({m}.state_dict())
        {S} = {m}.state_dict(prefix="p.", keep_vars=True)
        {m}.load_state_dict({s})
        log.append(list(map(sorted, {m}.load_state_dict({s}, strict=False))))
        {m}.load_state_dict({s}, assign=True)
        {m}.load_state_dict({k}.state_dict())
        {s}["w"] = {a}.detach()
        log.append(list({s}))
    """,
    "modules": """
        {M} = Extra()
        {M} = Saver()
        {M} = Applied()
        {M} = Outer()
        {M} = L.nn.Sequential({m}, {k})
        {M} = copy.deepcopy({m})
        {m}.double()
        {m}.float()
        {m}.to(L.float64)
        {m}.half().float()
        {m}.apply(lambda m: log.append(type(m).__name__))
        {m}.register_buffer("b", {a}.detach().clone(), persistent={w})
        {m}.register_parameter("v", {g})
        {m}.w = L.nn.Parameter({a}.detach())
        {m}.w = {m}.w
        del {m}.b
        {m}.train({w})
        {m}.eval()
        {m}.requires_grad_({w})
        {m}._apply(lambda t: t * {i})
        {m}.more = {k}
        log.append([n for n, _ in {m}.named_parameters()])
        log.append([n for n, _ in {m}.named_buffers()])
        log.append([n for n, _ in {m}.named_modules()])
        {m}.share_memory()
        {g}.data = {m}.b
        {m}.w.grad = L.ones_like({m}.w)
    """,
}
STATEMENTS = {family: [line.strip() for line in block.strip().splitlines()] for family, block in STATEMENTS.items()}
# Programs that PyTorch refuses and minflow computes on purpose, by PyTorch's message: see docs/differences.md.
DELIBERATE = re.compile(
    "Can't detach views in-place|refer to a single memory location|"
    "has been modified by an inplace operation|allow the output views to be modified|"
    "returned an invalid gradient at index|expected dtype \\w+ for `end`|maximum recursion depth"
)
# A view follows its base where the base's history ends; in PyTorch it keeps its old history.
ENDS = re.compile(r"\.(detach_\(|requires_grad_\(False|requires_grad = False)")
START = [
    "t0 = L.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]], requires_grad=True)",
    "t1 = L.tensor([0.5, 2.0, -1.0], requires_grad=True)",
    "t2 = t0 * 2",
]
USED = {"m": "m", "k": "m", "h": "h", "s": "s", "o": "o"}
KINDS = {"T": "t", "G": "t", "M": "m", "H": "h", "S": "s", "O": "o"}


def draw(seed: object, length: int = 14) -> list[str]:
    """Lines of a program. Each statement uses variables of earlier ones."""
    rng = random.Random(f"statements {seed}")
    families = rng.sample(sorted(STATEMENTS), rng.randint(2, 5))
    known = {"t": ["t0", "t1", "t2"], "g": ["t0", "t1"], "m": [], "h": [], "s": [], "o": []}
    program = list(START)
    if rng.random() < 0.5:
        program.append(f"m0 = {rng.choice(('Extra', 'Saver', 'Applied', 'Outer'))}()")
        known["m"].append("m0")
    while len(program) < length:
        family = rng.choice(families)
        line = rng.choice(STATEMENTS[family])
        if any(f"{{{name}}}" in line and not known[kind] for name, kind in USED.items()):
            continue
        recent = lambda kind: rng.choice(known[kind][-3:] if rng.random() < 0.6 else known[kind])
        values = {
            "a": recent("t"),
            "b": recent("t"),
            "g": recent("g"),
            "i": rng.choice("0 1 2 -1 0.5 3".split()),
            "w": rng.choice(("True", "False")),
        }
        values |= {name: recent(kind) for name, kind in USED.items() if known[kind]}
        for letter, kind in KINDS.items():
            while f"{{{letter}}}" in line:
                name = f"{kind}{len(known[kind])}"
                line = line.replace(f"{{{letter}}}", name, 1)
                known[kind].append(name)
                if letter == "G":
                    known["g"].append(name)
        line = line.format(**values)
        if line.endswith(f".more = {values.get('m')}"):  # a module that contains itself
            continue
        quiet = family == "writes" and "e_(" not in line and "t_(" not in line and rng.random() < 0.4
        program.append(f"with L.no_grad(): {line}" if quiet else line)
    return program


def space_of(lib) -> dict:
    space = {"L": lib, "np": np, "copy": copy, "inf": inf, "nan": nan, "__name__": "program"}
    exec(compile(PRELUDE, "<call>", "exec"), space)
    return space


def visible_state(space: dict) -> dict:
    """Visible state of a program's variables as plain values."""
    found = {"log": to_plain_values(list(space["log"]))}
    for name, value in space.items():
        if name[0] == "t" and hasattr(value, "is_leaf"):
            grad = value.grad if value.is_leaf or value.retains_grad else None
            found[name] = [
                to_plain_values(value),
                bool(value.requires_grad),
                bool(value.is_leaf),
                to_plain_values(grad),
            ]
        elif name[0] == "m" and hasattr(value, "state_dict"):
            found[name] = [
                [n, to_plain_values(p), to_plain_values(p.grad), p.requires_grad] for n, p in value.named_parameters()
            ]
            found[name] += [[n, to_plain_values(b)] for n, b in value.named_buffers()] + [getattr(value, "extra", None)]
        elif name[0] in "sd" and isinstance(value, (dict, list, tuple)):
            found[name] = to_plain_values(value)
    return found


def ran(space: dict, line: str) -> Exception | None:
    try:
        with time_limit():
            exec(compile(line, "<call>", "exec"), space)
    except Exception as error:
        return error
    return None


def fault(lines: list[str], torch) -> Finding | None:
    """First difference, with the line that shows it. A line that both refuse is skipped."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ours, theirs = space_of(minflow), space_of(torch)
        for i, line in enumerate(lines):
            mine, yours = ran(ours, line), ran(theirs, line)
            found = lambda kind, a, b, i=i: Finding("program", kind, tuple(lines[: i + 1]), a, b)
            if isinstance(mine, Hung):
                return found("hang", text(mine), text(yours))
            if mine is not None and not is_our_error(mine) and (yours is None or place(mine) != "<call>"):
                return found("raw", raw_place(mine), text(yours))
            if mine is not None and yours is None:
                return found("refused", text(mine), "accepted")
            if mine is None and yours is not None and DELIBERATE.search(str(yours)):
                return None
            if mine is None and yours is not None:
                return found("accepted", "accepted", text(yours))
            if mine is not None and ("backward" in line or "load_state_dict" in line):
                return None  # the progress of a failed backward may differ, and a refused load changes nothing here
            a, b = visible_state(ours), visible_state(theirs)
            for key in b:
                if kind := differs(a.get(key), b[key], False, 1e-4):
                    if ENDS.search(line) and key[0] == "t":
                        return None
                    return found(kind, f"{key} = {text(a.get(key))}", f"{key} = {text(b[key])}")
    return None


def minimized(found: Finding, torch) -> Finding:
    """Drop lines while the program has a fault of the same kind."""
    for i in reversed(range(len(found.lines) - 1)):
        less = fault([*found.lines[:i], *found.lines[i + 1 :]], torch)
        if less is not None and less.kind == found.kind and less.lines[-1] == found.lines[-1]:
            return minimized(less, torch)
    return found


def source(lines) -> str:
    return f"import copy, numpy as np, minflow as L{PRELUDE}" + "\n".join(lines)
