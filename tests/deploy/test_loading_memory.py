"""Loading a saved graph takes at most 20 MB plus ten times the size of its files, whatever they contain.

Measured by the operating system, in a process for each folder.
"""

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from minflow.deploy.folder import write
from minflow.io.files import GRAPH, META, SAVED_GRAPH, WEIGHTS
from tests.deploy.saved import graph
from tests.deploy.test_folder import rehashed

TOP = Path(__file__).parent.parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])}
PROGRAM = """
import re, sys
from pathlib import Path
from minflow.core.base.errors import GraphFormatError
from minflow.deploy import folder, saving

def kilobytes(name):
    return int(re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

at_first = kilobytes("VmRSS")
for path in sys.argv[1:]:
    Path("/proc/self/clear_refs").write_text("5")  # the most memory is that from now on
    try:
        said = str(sorted(folder.read(path)[2])[:1])
    except GraphFormatError as error:
        said = ascii(error.what)
    print(kilobytes("VmHWM") - at_first, said)
"""
pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system tells the most memory")


def memories(paths):
    """(bytes of memory, output) of reading each folder, in consecutive child processes."""
    command = [sys.executable, "-c", PROGRAM, *map(str, paths)]
    ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    lines = [line.partition(" ") for line in ended.stdout.splitlines()]
    assert len(lines) == len(paths)
    return [(int(kilobytes) * 1024, said) for kilobytes, _, said in lines]


def bound(path):
    return 20_000_000 + 10 * sum((path / name).stat().st_size for name in SAVED_GRAPH)


def rows(*entries):
    """A graph.json of about 6 MB with these entries."""
    count = 6_000_000 // sum(len(entry) + 6 for entry in entries)
    return b'{\n  "nodes": [\n' + b"".join(b"    %s,\n" % entry for entry in entries * count) + b"    0\n  ]\n}\n"


def parts(part, size=500_000):
    return b"[%s0]" % (part * (size // len(part)))


NODE = b'{"value": "%0", "op": "relu", "in": ["%0"], "out": ["float32[]"]}'
TEXTS = {
    "lists": rows(parts(b"[],")),
    "dicts": rows(parts(b"{},")),
    "names": rows(parts(b'{"a":{}},')),
    "a little": rows(*[b"[[],[]]"] * 100),
    "numbers": rows(parts(b"1000000007,")),
    "texts": rows(parts(b'"ab",')),
    "wide": rows(b'["%s\\ud83d\\ude00"]' % (b"a" * 500_000)),
    "many names": rows(*[b"{%s}" % b",".join(b'"%x":0' % (i + 40_000 * j) for i in range(40_000)) for j in range(10)]),
    "nodes": rows(*[NODE] * 100),
    "one line": b'{"nodes": [' + b"[]," * 2_000_000 + b"0]}\n",
    "deep": b'{\n  "a": ' + b"[" * 6_000_000 + b"\n}\n",
    "quotes": b'{\n  "a": "' + b'\\"' * 3_000_000 + b'"\n}\n',
}


HEADERS = {
    "header of lists": b"[" + parts(b"[],", 6_000_000) + b"]",
    "lists in it": b'{"a":' + parts(b"[],", 6_000_000) + b"}",
    "names of nothing": b"{%s}" % b",".join(b'"%x":{}' % i for i in range(400_000)),
    "empty arrays": b"{%s}"
    % b",".join(b'"%x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % i for i in range(90_000)),
}


def hostile(tmp_path):
    for name, text in {**TEXTS, **HEADERS}.items():
        path = tmp_path / name
        write(path, *graph())
        if name in TEXTS:
            (path / GRAPH).write_bytes(text)
        else:
            (path / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text)
        rehashed(path)
        yield path
    write(tmp_path / "meta", *graph())
    (tmp_path / "meta" / META).write_bytes(parts(b"[],", 6_000_000))
    yield tmp_path / "meta"


def test_hostile_texts(tmp_path):
    paths = list(hostile(tmp_path))
    for path, (taken, said) in zip(paths, memories(paths)):
        print(f"{path.name:20} {taken / 1e6:6.1f} MB of {bound(path) / 1e6:6.1f}  {said}")
        assert taken < bound(path) and said.startswith("'"), (path.name, taken, said)


def test_weights_are_read_once(tmp_path):
    data, meta, _ = graph()
    data["states"] = [{"name": "w", "spec": "float32[25000000]"}]
    write(tmp_path / "x", data, meta, {"w": np.ones(25_000_000, "f4")})
    ((taken, said),) = memories([tmp_path / "x"])
    assert said == "['w']" and taken < 120_000_000, taken


def test_many_modules_are_accepted(tmp_path):
    """Rows of calls are the most expensive part that minflow writes; names count once, because Python shares them."""
    data, meta, arrays = graph()
    data["calls"] = [
        {
            "module": i,
            "depth": 1,
            "nodes": [i, i],
            "in": {"tuple": [{"tuple": [f"%{i}"]}, {"dict": []}]},
            "out": f"%{i}",
        }
        for i in range(10_000)
    ]
    write(tmp_path / "x", data, meta, arrays)
    ((taken, said),) = memories([tmp_path / "x"])
    assert said == "['model.weight']" and taken < bound(tmp_path / "x")
