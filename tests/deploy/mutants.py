"""Endless seeded mutants of a saved graph: its bytes, text, weights and files; half of them with recomputed hashes, as
an attacker would write them.

    for name, number in zip(range(2000), Mutants(saved, work, seed=0)): ...

Each is written to `work / "mutant"` and replaces the previous one.
"""

import copy
import hashlib
import json
import os
import random
import shutil
import struct

from minflow.io.files import GRAPH, META, SAVED_GRAPH, WEIGHTS

# No sizes in between: values that this machine can hold, slowly, test nothing.
NUMBERS = [0, 1, -1, 2, 3, 7, 255, 4096, 2**40, 2**62, 2**63 - 1, -(2**63), 2**63, 10**30, 0.5, -0.0, 1e308]
TEXTS = [
    "",
    "x",
    "%0",
    "%1",
    "%2",
    "%3",
    "%-1",
    "%99",
    "%999999999999",
    "%1e3",
    "float32[]",
    "float32[2,3]",
    "int64[2]",
    "float32[0]",
    "bool[3]",
    "float32[4611686018427387904,4]",
    "float99[2]",
    "complex64[2,3]",
    "../../etc/passwd",
    "relu",
    "add",
    "matmul",
    "conv2d",
    "nonzero",
    "__import__",
    "Linear",
    "model",
    "model.weight",
    "\n",
    "\0",
    "\u202e",
    "\x1b[2J",
    "é" * 300,
    "y" * 70_000,
    "nan",
    "inf",
    "minflow.graph",
    "generator",
    "constant",
    "parameter",
    "buffer",
    "recompute",
    "optimizer",
    "tuple",
    "list",
    "dict",
    "is",
    "x.py:0",
    "x.py:99999999",
    "*args",
]
OTHERS = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"is": 1},
    {"tuple": []},
    {"text": "x"},
    {"list": ["%0"]},
    {"": 0},
    {"follows": [[2, ["batch"]]]},
    {"dtype": "int64"},
    float("nan"),
    float("-inf"),
]
HUGE = ["m" * 1_000_000, [[]] * 3000, list(range(3000))]


def deep(levels, leaf):
    for _ in range(levels):
        leaf = [leaf] if levels % 2 else {"tuple": [leaf]}
    return leaf


def places(x, path=()):
    """Every place in a structure."""
    yield path
    for key, value in x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ():
        yield from places(value, (*path, key))


def at(x, path):
    for key in path:
        x = x[key]
    return x


def text_of(data):
    """Serialize anything as `strict_json.py` would, including invalid JSON and overlong values."""
    if not isinstance(data, dict):
        return json.dumps(data).encode()
    rows = []
    for name, value in data.items():
        if isinstance(value, list) and value:
            rows.append(f"  {json.dumps(name)}: [\n    " + ",\n    ".join(map(json.dumps, value)) + "\n  ]")
        else:
            rows.append(f"  {json.dumps(name)}: {json.dumps(value)}")
    return ("{\n" + ",\n".join(rows) + "\n}\n").encode()


class Mutants:
    """Iterator over descriptions of mutations. other: a second saved graph, for swapping files."""

    def __init__(self, saved, work, seed=0, other=None):
        self.rng, self.path, self.work = random.Random(seed), work / "mutant", work
        self.bytes = {name: (saved / name).read_bytes() for name in SAVED_GRAPH}
        self.other = {name: ((other or saved) / name).read_bytes() for name in SAVED_GRAPH}
        self.graph, self.meta = json.loads(self.bytes[GRAPH]), json.loads(self.bytes[META])

    def __iter__(self):
        return self

    def __next__(self):
        kinds = [
            self.raw,
            self.structure,
            self.structure,
            self.structure,
            self.values,
            self.values,
            self.weights,
            self.description,
            self.files,
        ]
        change = self.rng.choice(kinds)
        files = dict(self.bytes)
        said = change(files)
        rehashed = self.rng.random() < 0.5 and self.rehash(files)
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir()
        for name, data in files.items():
            if isinstance(data, bytes):
                (self.path / name).write_bytes(data)
            else:
                data(self.path / name)
        return f"{change.__name__}: {said}{', hashes made anew' if rehashed else ''}"

    def rehash(self, files):
        """Recompute the hashes, if possible."""
        try:
            meta = json.loads(files[META])
            meta["sha256"] = {name: hashlib.sha256(files[name]).hexdigest() for name in (GRAPH, WEIGHTS)}
            plain = json.dumps({name: x for name, x in meta.items() if name != "sha256"}, ensure_ascii=False, indent=1)
            meta["sha256"][META] = hashlib.sha256(plain.encode()).hexdigest()
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
            return False
        files[META] = json.dumps(meta, indent=1).encode()
        return True

    # ---- mutations ---------------------------------------------------------------------------------------------------

    def raw(self, files):
        name, rng = self.rng.choice(SAVED_GRAPH), self.rng
        data = files[name]
        for _ in range(rng.choice([1, 1, 1, 2, 8])):
            i = rng.randrange(len(data) + 1)
            j = min(len(data), i + rng.choice([1, 2, 8, 64, 1000]))
            flipped = bytes([b ^ (1 << rng.randrange(8)) for b in data[i : i + 1]])
            part = rng.choice(
                [
                    b"",
                    data[i:j] * 2,
                    bytes(j - i),
                    rng.randbytes(j - i),
                    b'"',
                    b"[" * (j - i),
                    b"\\",
                    b"\xff",
                    b"1e999",
                    b"NaN",
                    b"\n",
                    b",",
                    flipped,
                ]
            )
            data = data[:i] + part + data[j:]
        files[name] = data
        return f"{name} at {i}"

    def value(self):
        rng = self.rng
        kind = rng.randrange(24)
        if kind == 0:
            return deep(rng.choice([3, 99, 150, 250]), rng.choice(TEXTS))
        if kind == 1:
            return copy.deepcopy(rng.choice(HUGE))
        if kind < 4:
            return copy.deepcopy(at(self.graph, rng.choice(list(places(self.graph)))))
        return copy.deepcopy(rng.choice(rng.choice([NUMBERS, TEXTS, OTHERS])))

    def changed(self, data):
        """Make one change at a random place of a structure; return its description."""
        rng = self.rng
        path = rng.choice(list(places(data))[1:])
        around, key = at(data, path[:-1]), path[-1]
        what = rng.choice(["delete", "rename", "replace", "replace", "replace", "swap", "double", "nudge", "nudge"])
        if what == "delete":
            del around[key]
        elif what == "rename" and isinstance(around, dict):
            around[rng.choice([*TEXTS, *self.graph])] = around.pop(key)
        elif what == "swap":
            other = rng.choice(list(places(data))[1:])
            if path[: len(other)] != other and other[: len(path)] != path:
                there = at(data, other[:-1])
                around[key], there[other[-1]] = there[other[-1]], around[key]
        elif what == "double" and isinstance(around, list):
            around.insert(rng.randrange(len(around) + 1), copy.deepcopy(around[key]))
        elif what == "nudge" and isinstance(around[key], str):
            around[key] = "".join(
                rng.choice("0123456789,") if c.isdigit() and rng.random() < 0.4 else c for c in around[key]
            )
        elif what == "nudge" and type(around[key]) is int:
            around[key] += rng.choice([-1, 1, 2])
        else:
            around[key] = self.value()
        return f"{what} {'.'.join(map(str, path))}"[:120]

    def structure(self, files):
        data = copy.deepcopy(self.graph)
        said = [self.changed(data) for _ in range(self.rng.choice([1, 1, 1, 2, 3]))]
        files[GRAPH] = text_of(data)
        if self.rng.random() < 0.05:  # a name twice
            files[GRAPH] = files[GRAPH].replace(b'"op"', b'"op": "add", "op"', 1)
        return "; ".join(said)

    def values(self, files):
        """Inputs of nodes: other values, later ones, those of another node; another node's op; specs of other sizes."""
        rng, data = self.rng, copy.deepcopy(self.graph)
        nodes = data["nodes"]
        what = rng.choice(["reads", "op", "order", "out", "attrs", "updates", "states", "inputs"])
        one, other = rng.choice(nodes), rng.choice(nodes)
        count = sum(len(node["out"]) for node in nodes) + len(data["states"]) + len(data["inputs"])
        if what == "reads" and one["in"]:
            one["in"][rng.randrange(len(one["in"]))] = f"%{rng.randrange(count + 2)}"
        elif what == "op":
            one["op"] = rng.choice([other["op"], "exp", "sum", "reshape", "conv2d", "nonzero", "max_pool2d"])
            data["ops"].setdefault(one["op"], 1)
        elif what == "order":
            nodes.remove(one)
            nodes.insert(rng.randrange(len(nodes) + 1), one)
        elif what == "out":
            one["out"] = copy.deepcopy(other["out"])
        elif what == "attrs":
            one["attrs"] = copy.deepcopy(other.get("attrs", {})) or {"dim": self.value()}
        elif what == "updates":
            data["updates"].append([f"%{rng.randrange(count)}", f"%{rng.randrange(count)}"])
        elif what == "states" and data["states"]:
            state = rng.choice(data["states"])
            state["spec"] = rng.choice(TEXTS)
        else:
            rng.choice(data["inputs"])["spec"] = rng.choice([t for t in TEXTS if t.endswith("]")])
        files[GRAPH] = text_of(data)
        return f"{what} of {one['value']}"

    def weights(self, files):
        rng, data = self.rng, files[WEIGHTS]
        (length,) = struct.unpack("<Q", data[:8])
        header, numbers = json.loads(data[8 : 8 + length]), data[8 + length :]
        if not header:
            return "none"
        one, other = rng.choice(list(header)), rng.choice(list(header))
        what = rng.choice("shape offsets dtype missing extra swapped renamed numbers value length".split())
        if what == "shape":
            turned = header[one]["shape"][::-1]
            header[one]["shape"] = rng.choice([[], [0], [2**62, 4], [2**40], [-1], turned, [1.0], "x"])
        elif what == "offsets":
            header[one]["data_offsets"] = rng.choice([[0, 0], [0, 2**63], [-4, 4], header[other]["data_offsets"], [4]])
        elif what == "dtype":
            header[one]["dtype"] = rng.choice(["F32", "I32", "F64", "BOOL", "U8", "F8_E4M3", "", None, "BF16", "U32"])
        elif what == "missing":
            del header[one]
        elif what == "extra":
            header[rng.choice(TEXTS)] = {"dtype": "F32", "shape": [0], "data_offsets": [len(numbers)] * 2}
        elif what == "swapped":
            header[one], header[other] = header[other], header[one]
        elif what == "renamed":
            header[rng.choice(TEXTS)] = header.pop(one)
        elif what == "numbers":
            count = len(numbers)
            numbers = rng.choice([rng.randbytes(count), b"\xff" * count, numbers[:-4], numbers + bytes(4)])
        elif what == "value":
            header[one] = self.value()
        text = json.dumps(header).encode()
        length = len(text) if what != "length" else rng.choice([0, 1, 2**63, len(text) + 8, len(text) - 1])
        files[WEIGHTS] = struct.pack("<Q", length) + text + numbers
        return f"{what} of {one}"

    def description(self, files):
        data = copy.deepcopy(self.meta)
        said = self.changed(data)
        files[META] = json.dumps(data, indent=1).encode()
        return said

    def files(self, files):
        rng = self.rng
        name = rng.choice(SAVED_GRAPH)
        what = rng.choice(["missing", "link", "pipe", "empty", "folder", "swapped", "other"])
        data = files.pop(name)
        if what == "link":
            outside = self.work / "outside"
            outside.write_bytes(data)
            files[name] = lambda path: path.symlink_to(rng.choice([outside, "/dev/zero", path, "../mutant", GRAPH]))
        elif what == "pipe":
            files[name] = os.mkfifo
        elif what == "empty":
            files[name] = b""
        elif what == "folder":
            files[name] = lambda path: path.mkdir()
        elif what == "swapped":
            second = rng.choice(list(files))
            files[name], files[second] = files[second], data
        elif what == "other":
            files[name] = self.other[name]
        return f"{name} {what}"
