"""Damaged, truncated, swapped or hostile data files: every one raises DataError."""

import gzip
import io
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from minflow.core.base.errors import DataError
from minflow.data import files
from minflow.data.files import CIFAR_RECORD, read_cifar10, read_idx, read_npz
from tests.cases import in_cases

EXPECTED = {"images": ((5, 8, 8), "uint8"), "labels": ((5,), "uint8")}
ARRAYS = {"images": np.arange(320, dtype="uint8").reshape(5, 8, 8), "labels": np.arange(5, dtype="uint8")}


@pytest.fixture
def npz(tmp_path):
    def write(save=np.savez, **arrays):
        save(tmp_path / "some.npz", **(ARRAYS | arrays))
        return tmp_path / "some.npz"

    return write


def test_npz(npz):
    for save in (np.savez, np.savez_compressed):
        found = read_npz(npz(save), EXPECTED)
        assert all(np.array_equal(found[name], ARRAYS[name]) for name in EXPECTED)


@pytest.mark.parametrize("labels, said", [
    (np.arange(6, dtype="uint8"), r"uint8\[6\][\s\S]*uint8\[5\]"),
    (np.arange(5.0), r"float64\[5\]"),
    (np.array([None] * 5), r"object\[5\]"),
])  # fmt: skip
def test_npz_with_other_contents(npz, labels, said):
    with pytest.raises(DataError, match=rf"some.npz: its array labels has another dtype or shape[\s\S]*{said}"):
        read_npz(npz(labels=labels), EXPECTED)
    with pytest.raises(DataError, match="has no array extra"):
        read_npz(npz(), EXPECTED | {"extra": ((1,), "uint8")})


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_damaged_anywhere(npz, save):
    path = npz(save)
    whole = path.read_bytes()
    seen = 0
    for position in range(0, len(whole), 11):
        for damaged in (whole[:position], whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :]):
            path.write_bytes(damaged)
            try:
                found = read_npz(path, EXPECTED)
            except DataError as error:
                assert "some.npz" in str(error) and "Try:" in str(error)
                seen += 1
            else:  # a flipped bit in an unused field, such as a date
                assert all(np.array_equal(found[name], ARRAYS[name]) for name in EXPECTED)
    assert seen > len(whole) // 11


def test_npz_bomb(tmp_path):
    """A member that claims to be small and unpacks to more than its array needs."""
    path = tmp_path / "some.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in ARRAYS.items():
            file = io.BytesIO()
            np.save(file, array)
            archive.writestr(f"{name}.npy", file.getvalue() + bytes(5_000_000))
    with pytest.raises(DataError, match="claims 5000"):
        read_npz(path, EXPECTED)


def test_missing_file_and_invalid_zip(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_npz(tmp_path / "none.npz", EXPECTED)
    (tmp_path / "page.npz").write_text("<html>404</html>")
    with pytest.raises(DataError, match="page.npz: is damaged or not an npz file"):
        read_npz(tmp_path / "page.npz", EXPECTED)


def idx(array, kind=8):
    return b"\0\0" + bytes([kind, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_idx(tmp_path):
    array = np.arange(24, dtype="uint8").reshape(2, 3, 4)
    (tmp_path / "a").write_bytes(idx(array))
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx(array)))
    for name in ("a", "a.gz"):
        found = read_idx(tmp_path / name, 3)
        assert np.array_equal(found, array) and found.flags.writeable


CUBE = np.zeros((2, 3, 4), "uint8")
PACKED = gzip.compress(idx(np.arange(240, dtype="uint8").reshape(2, 30, 4)))
NO_IDX = [
    (b"", "an empty file"),
    (idx(CUBE, kind=13), "00 00 0d 03"),
    (idx(np.zeros(5, "uint8")), "expected  *00 00 08 03"),
    (idx(CUBE)[:-1], "there are 23"),
    (idx(CUBE) + b"x", "there are more"),
    (idx(CUBE)[:7], "damaged"),
    (b"\0\0\x08\x03" + struct.pack(">3I", 2**31, 2**31, 2**31), "more than 268435456 bytes"),
    (pickle.dumps([1, 2]), "not an idx file"),
]


@in_cases(
    "content, said",
    [
        *NO_IDX,
        *[(gzip.compress(content), said) for content, said in NO_IDX],
        *[
            (damaged, "")
            for damaged in (PACKED[:40], PACKED[:30] + b"\xff\xff\xff" + PACKED[33:], PACKED[:-8] + bytes(8))
        ],
    ],
)
def test_invalid_idx(tmp_path, content, said):
    (tmp_path / "a.gz").write_bytes(content)
    with pytest.raises(DataError, match=rf"a.gz: [\s\S]*{said}"):
        read_idx(tmp_path / "a.gz", 3)


@pytest.fixture
def archive(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CIFAR_ROWS", 4)

    def write(members, mode="w:gz"):
        path = tmp_path / "cifar-10-binary.tar.gz"
        with tarfile.open(path, mode) as tar:
            for name, content in members:
                if isinstance(content, tarfile.TarInfo):
                    tar.addfile(content)
                else:
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
        return path

    return write


def cifar_file(seed, label=None):
    rows = np.random.default_rng(seed).integers(0, 256, (4, CIFAR_RECORD), dtype="uint8")
    rows[:, 0] = np.arange(4) + seed if label is None else label
    return rows


def test_cifar(archive, tmp_path):
    rows = [cifar_file(i) for i in range(6)]
    members = [("cifar-10-batches-bin/readme.html", b"hello"), ("../../outside", b"never written")]
    members += [(f"cifar-10-batches-bin/data_batch_{i + 1}.bin", rows[i].tobytes()) for i in (2, 0, 1, 3, 4)]
    members += [("cifar-10-batches-bin/test_batch.bin", rows[5].tobytes())]
    path = archive(members)
    images, labels = read_cifar10(path, True)
    assert images.shape == (20, 3, 32, 32) and np.array_equal(labels[:8], [0, 1, 2, 3, 1, 2, 3, 4])
    assert np.array_equal(images[5], rows[1][1, 1:].reshape(3, 32, 32))
    images, labels = read_cifar10(path, False)
    assert images.shape == (4, 3, 32, 32) and np.array_equal(labels, [5, 6, 7, 8])
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_invalid_cifar(archive, tmp_path):
    good = cifar_file(0).tobytes()
    link = tarfile.TarInfo("test_batch.bin")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    for members, said in [
        ([("cifar-10-batches-py/test_batch", pickle.dumps(1))], r"has no member test_batch.bin[\s\S]*pickles"),
        ([("test_batch.bin", good[:-1])], "12291 bytes"),
        ([("", link)], "is not a file"),
        ([("test_batch.bin", cifar_file(0, 77).tobytes())], "the label 77 at position 0"),
        ([(f"file{i}", b"") for i in range(200)], "more than the CIFAR-10 archive"),
    ]:
        with pytest.raises(DataError, match=said):
            read_cifar10(archive(members), False)
    path = archive([("test_batch.bin", good)])
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match="cifar-10-binary.tar.gz"):
        read_cifar10(path, False)
    with pytest.raises(DataError, match="not a tar.gz archive"):
        read_cifar10(archive([("test_batch.bin", good)], "w"), False)
