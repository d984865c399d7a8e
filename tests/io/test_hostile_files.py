"""Damaged or malicious files: each gives one of our errors, in the memory that the file itself would take.

A seeded mutator flips, cuts, copies and inserts bytes, and overwrites numbers in headers.
"""

import gzip
import io
import os
import random
import shutil
import struct
import tarfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from minflow.core import memory
from minflow.core.base.errors import CheckpointError, DataError
from minflow.core.files.temporary import host
from minflow.data import files as data_files
from minflow.data.download import fetch
from minflow.data.files import CIFAR_RECORD, read_cifar10, read_idx, read_npz
from tests import sampling
from tests.measuring import calls, peak

EXPECTED = {"images": ((4, 3), "uint8"), "labels": ((4,), "uint8")}
WORDS = [
    b"\0" * 8,
    b"\xff" * 8,
    struct.pack("<Q", 2**62),
    struct.pack(">I", 2**31),
    b"{",
    b"(",
    b"'",
    b"\n",
    b"\x1b]0;x\x07",
    b"99999999999",
    b"-1",
    b"NaN",
    b"true",
    b"null",
    b"\xe2\x80\xae",
    b"[0,4611686018427387904]",
]
SHARE = 1 if sampling.complete else 4  # the short command tries the first quarter of the mutants
STATE = Path(__file__).parent / "files" / "state.pth"  # files of torch.save
LIMIT = 1 << 23  # memory in bytes for reading a file of a few thousand bytes


def safetensors(folder):
    flow.save({"w": flow.arange(6.0), "e": flow.zeros(0, 3), "n": [1, {"lr": 0.1}]}, folder / "x.mf")
    return folder / "x.mf", flow.load, CheckpointError


def foreign_safetensors(folder):
    header = b'{"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},'
    header += b'"b":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]}}'
    (folder / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(11))
    return folder / "x.safetensors", flow.load, CheckpointError


def npz(folder):
    np.savez(folder / "x.npz", a=np.arange(5.0), b=np.ones((2, 3), "i2"), e=np.zeros((0, 4)))
    return folder / "x.npz", flow.load, CheckpointError


def packed_npz(folder):
    np.savez_compressed(folder / "x.npz", images=np.ones((4, 3), "uint8"), labels=np.zeros(4, "uint8"))
    return folder / "x.npz", lambda path: read_npz(path, EXPECTED), DataError


def idx(folder):
    (folder / "x").write_bytes(b"\0\0\x08\x03" + struct.pack(">3I", 2, 3, 4) + bytes(24))
    return folder / "x", lambda path: read_idx(path, 3), DataError


def packed_idx(folder):
    path, read, kind = idx(folder)
    path.write_bytes(gzip.compress(path.read_bytes()))
    return path, read, kind


def cifar(folder):
    with tarfile.open(folder / "x.tar.gz", "w:gz") as archive:
        for name, size in (("readme", 20), ("test_batch.bin", 2 * CIFAR_RECORD)):
            info = tarfile.TarInfo(name)
            info.size = size
            archive.addfile(info, io.BytesIO(bytes(size)))
    return folder / "x.tar.gz", lambda path: read_cifar10(path, False), DataError


def job(folder):
    flow.checkpoint.save(folder / "m", {"w": np.ones((2, 3), "f4")})
    return folder / "m" / "w" / "meta", lambda path: flow.checkpoint.get(folder / "m")["w"].numpy(), CheckpointError


def torch_zip(folder):
    shutil.copy(STATE, folder / "x.pth")
    return folder / "x.pth", flow.load, CheckpointError


def pickle_in_a_torch_zip(folder):
    """With a correct CRC, so that a mutant reaches the pickle reader."""
    with zipfile.ZipFile(STATE) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    pickled = next(name for name in contents if name.endswith("data.pkl"))
    (folder / "data.pkl").write_bytes(contents[pickled])

    def read(path):
        with zipfile.ZipFile(folder / "x.pth", "w") as archive:
            for name, data in (contents | {pickled: path.read_bytes()}).items():
                archive.writestr(name, data)
        flow.load(folder / "x.pth")

    return folder / "data.pkl", read, CheckpointError


def mutated(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at, way = rng.randrange(len(data) + 1), rng.randrange(7)
        at = rng.randrange(min(len(data), 200) + 1) if rng.random() < 0.5 else at  # headers do the most damage
        if way == 0:
            del data[at:]
        elif way == 1:
            del data[at : at + rng.randrange(1, 9)]
        elif way == 2:
            data[at:at] = rng.choice(WORDS)
        elif way == 3:
            word = rng.choice(WORDS)
            data[at : at + len(word)] = word
        elif way == 4:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other : other + rng.randrange(60)]
        elif at < len(data):
            data[at] = rng.randrange(256) if way == 5 else data[at] ^ 1 << rng.randrange(8)
    return bytes(data)


@pytest.mark.filterwarnings("error", "default::DeprecationWarning")
@pytest.mark.parametrize(
    "make",
    [safetensors, foreign_safetensors, npz, packed_npz, idx, packed_idx, cifar, job, torch_zip, pickle_in_a_torch_zip],
)
def test_mutants(make, tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "CIFAR_ROWS", 2)
    path, read, kind = make(tmp_path)
    read(path)
    whole = path.read_bytes()

    def reads():
        rng, refused = random.Random(make.__name__), 0
        for number in range(400 // SHARE):
            path.write_bytes(mutated(whole, rng))
            try:
                read(path)
            except kind as error:
                refused += 1
                text = str(error)
                assert len(text) < 10_000 and all(c.isprintable() or c == "\n" for c in text), (number, text)
            except Exception as error:
                data = path.read_bytes()[:300]
                raise AssertionError(f"mutant {number}: {type(error).__name__}: {error}: {data}") from error
        assert refused > 100 // SHARE

    assert peak(reads, below=LIMIT) < LIMIT


# ---- small files with large contents ---------------------------------------------------------------------------------


def refused(call, kind, match):
    """Assert a refusal; return the peak memory."""

    def is_refused():
        with pytest.raises(kind, match=match):
            call()

    return peak(is_refused, below=LIMIT)


def test_zip_bomb(tmp_path, monkeypatch):
    """A member before the wanted ones, and a tar header, of 3 GB each."""
    monkeypatch.setattr(data_files, "MAX_UNPACKED_BYTES", 1 << 24)
    for kind in (tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
        info = tarfile.TarInfo("big")
        info.size, info.type = 3 << 30, kind
        with gzip.open(tmp_path / "x.tar.gz", "wb", compresslevel=1) as file:
            file.write(info.tobuf(tarfile.GNU_FORMAT))
            for _ in range(32):
                file.write(bytes(1 << 20))
        assert refused(lambda: read_cifar10(tmp_path / "x.tar.gz", True), DataError, "x.tar.gz") < 1 << 26


def test_huge_empty_arrays(tmp_path):
    (tmp_path / "x").write_bytes(b"\0\0\x08\x03" + struct.pack(">3I", 0, 2**32 - 1, 2**32 - 1))
    refused(lambda: read_idx(tmp_path / "x", 3), DataError, r"\[0, 4294967295, 4294967295\]")
    flow.checkpoint.save(tmp_path / "m", {"w": np.ones((0, 3), "f4")})
    (tmp_path / "m" / "w" / "meta").write_text(
        "shape { dim: 0 " + "dim: 99999999999999999 " * 9 + "} data_type: kFloat"
    )
    refused(lambda: flow.checkpoint.get(tmp_path / "m")["w"].numpy(), CheckpointError, "'w'")


def test_many_members(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for i in range(3000):
            archive.writestr(f"{i}.npy", b"")
    assert refused(lambda: flow.load(tmp_path / "x.npz"), CheckpointError, "header") < LIMIT


def test_arrays_that_exceed_memory(tmp_path, monkeypatch):
    """300 kB that unpack to 300 MB: NumPy compresses such elements equally well, so memory decides."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in "abc":
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array_header_1_0(
                    file, {"descr": "|u1", "fortran_order": False, "shape": (100 << 20,)}
                )
                for _ in range(100):
                    file.write(bytes(1 << 20))
    monkeypatch.setattr(memory, "free_bytes", lambda: 200 << 20)
    assert (
        refused(
            lambda: flow.load(tmp_path / "x.npz"), CheckpointError, "need 314.6 MB of memory, and 209.7 MB are free"
        )
        < LIMIT
    )


def test_overlapping_members(tmp_path):
    """Two names for one array: a small file would unpack to an array per line of its directory."""
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.zeros(1 << 16), b=np.zeros(1 << 16))
    with zipfile.ZipFile(path) as archive:
        first, second = archive.infolist()
    data = bytearray(path.read_bytes())
    at = data.rindex(struct.pack("<L", second.header_offset), 0, data.rindex(b"b.npy"))
    data[at : at + 4] = struct.pack("<L", first.header_offset)
    path.write_bytes(data)
    refused(lambda: flow.load(path), CheckpointError, "overlaps the array before it")


@pytest.mark.parametrize("make", [npz, safetensors])
def test_many_duplicate_names(make, tmp_path):
    """In linear time: 20,000 names took half a minute."""
    path = make(tmp_path)[0]
    if make is npz:
        with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
            warnings.simplefilter("ignore")
            for i in range(20_000):
                archive.writestr(f"{i}.npy", b"")
            archive.writestr("19999.npy", b"")
    else:
        header = "{" + ",".join(f'"{i}":1' for i in [*range(20_000), 19_999]) + "}"
        path.write_bytes(struct.pack("<Q", len(header)) + header.encode())

    def load():
        with pytest.raises(CheckpointError, match=r"(?s)occurs twice|19999.*occurs twice"):
            flow.load(path)

    assert calls(load) < 4_000_000  # 200 for each name


# ---- invalid folder names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["~nobody-of-that-name", "a\0b", "\ud800", 5, b"x"], ids=ascii)
def test_data_folders(path):
    for call in (
        lambda: flow.data.load_mnist(out_dir=path),
        lambda: flow.vision.datasets.MNIST(path),
        lambda: flow.vision.datasets.CIFAR10(path),
    ):
        with pytest.raises(DataError, match="path|home folder"):
            call()


@pytest.mark.parametrize("name", ["MINFLOW_DATA", "XDG_CACHE_HOME"])
def test_data_folders_from_the_environment(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MINFLOW_DATA", raising=False)
    monkeypatch.setenv(name, "~nobody-of-that-name/x")
    for call in (flow.data.load_mnist, flow.vision.datasets.MNIST, flow.vision.datasets.CIFAR10):
        with pytest.raises(DataError, match=f"{name}: the home folder '~nobody-of-that-name'"):
            call()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"hash_check": 5}, "5"),
        ({"hash_check": "abc"}, "abc"),
        ({"url": 7}, "7"),
        ({"url": "no url"}, "unknown url type"),
    ],
)
def test_load_mnist_error_text(words, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINFLOW_DATA", str(tmp_path))
    with pytest.raises(DataError, match=text):
        flow.data.load_mnist(**words)


def test_pipe_in_place_of_a_partial_download(tmp_path):
    os.mkfifo(tmp_path / "x.part")
    (tmp_path / f"x.{host()}.999999999.part").write_bytes(b"left by a process that ended")
    with pytest.raises(DataError, match="a pipe"):
        fetch([], tmp_path / "x", None, 10)
    os.unlink(tmp_path / "x.part")
    with pytest.raises(DataError, match="0 addresses"):
        fetch([], tmp_path / "x", None, 10)
    assert os.listdir(tmp_path) == []
