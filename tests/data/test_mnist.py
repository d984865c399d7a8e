"""load_mnist: OneFlow's shapes, locations of the file, and errors."""

import hashlib

import numpy as np
import pytest

from minflow.core.base.errors import DataError, ShapeError
from minflow.data import cache_dir, load_mnist, mnist
from minflow.vision import datasets


def write_npz(path, train, test):
    """Write a valid file whose images contain their index."""
    arrays = {}
    for part, n in (("train", train), ("test", test)):
        images = np.zeros((n, 28, 28), "uint8")
        images[:, 3, 5] = np.arange(n) % 256
        arrays |= {f"x_{part}": images, f"y_{part}": (np.arange(n) % 10).astype("uint8")}
    np.savez(path, **arrays)
    return path


@pytest.fixture
def npz(tmp_path_factory, monkeypatch):
    """A file with a hundredth of the images, which is accepted."""
    small = {name: ((size // 100, *rest), dtype) for name, ((size, *rest), dtype) in mnist.EXPECTED.items()}
    monkeypatch.setattr(mnist, "EXPECTED", small)
    return write_npz(tmp_path_factory.mktemp("mnist") / "mnist.npz", 600, 100)


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty current folder, an empty cache, and no network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINFLOW_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(mnist, "URLS", ["http://127.0.0.1:9/mnist.npz"])
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path


def test_shapes(empty, capsys):
    write_npz(empty / "mnist.npz", 60000, 10000)
    (images, labels), (test_images, test_labels) = load_mnist(100, 500)
    assert images.shape == (600, 100, 1, 28, 28) and images.dtype == np.float32
    assert labels.shape == (600, 100) and labels.dtype == np.int32
    assert test_images.shape == (20, 500, 1, 28, 28) and test_labels.shape == (20, 500)
    assert images[2, 55, 0, 3, 5] == np.float32(255) / np.float32(255) and labels[3, 7] == 7
    assert images.max() == 1 and images.min() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "File mnist.npz already exist, path: ./mnist.npz"
    assert len(lines) == 2 and "does not have the checksum" in lines[1]
    (nhwc, _), _ = load_mnist(1000, data_format="NHWC", hash_check=None)
    assert nhwc.shape == (60, 1000, 28, 28, 1) and len(capsys.readouterr().out.splitlines()) == 1


def test_file_is_downloaded_once_into_the_cache(npz, empty, capsys):
    sha256 = hashlib.sha256(npz.read_bytes()).hexdigest()
    for _ in range(2):
        load_mnist(url=npz.as_uri(), hash_check=sha256)
    out, err = capsys.readouterr()
    assert out == f"File mnist.npz already exist, path: {empty}/cache/mnist.npz\n" and err.count("mnist.npz") == 1
    assert [p.name for p in (empty / "cache").iterdir()] == ["mnist.npz"]
    assert len(datasets.MNIST(train=False)) == 100  # the dataset uses the same file


def test_download_with_wrong_checksum(npz, empty):
    with pytest.raises(DataError, match="has the sha256"):
        load_mnist(url=npz.as_uri())
    assert not (empty / "cache" / "mnist.npz").exists()


def test_offline(empty):
    with pytest.raises(DataError) as caught:
        load_mnist()
    text = str(caught.value)
    assert "mnist.npz is missing" in text and "refused" in text and str(empty / "cache" / "mnist.npz") in text
    assert "flow.data.digits()" in text and "test_mnist.py" in text


@pytest.mark.parametrize(
    "name, size, near",
    [
        ("train_batch_size", 64, "60 or 75"),
        ("test_batch_size", 300, "250 or 400"),
        ("train_batch_size", 0, "1"),
        ("test_batch_size", -5, "1"),
    ],
)
def test_batches_must_divide(empty, name, size, near):
    with pytest.raises(ShapeError, match=rf"{name} must divide .* got {size}[\s\S]*{near}"):
        load_mnist(**{name: size})


def test_damaged(npz, empty):
    (empty / "mnist.npz").write_bytes(npz.read_bytes()[:-1000])
    with pytest.raises(DataError, match="mnist.npz: is damaged"):
        load_mnist()


def test_wrong_labels(empty, npz):
    arrays = dict(np.load(npz, allow_pickle=False))
    arrays["y_test"] = arrays["y_test"].copy()
    arrays["y_test"][43] = 10
    np.savez(empty / "mnist.npz", **arrays)
    with pytest.raises(DataError, match="the label 10 at position 43"):
        load_mnist()


def test_cache_dir(monkeypatch, tmp_path):
    monkeypatch.setenv("MINFLOW_DATA", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("MINFLOW_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_dir() == tmp_path / "x" / "minflow"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir().parts[-1] == "minflow" and str(cache_dir()).startswith(str(tmp_path))
