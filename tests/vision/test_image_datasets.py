"""Image datasets from generated files; where the files are searched for, and errors if they are missing."""

import gzip
import hashlib
import io
import struct
import tarfile

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DataError, LoaderError, OutOfRangeError
from minflow.data import digits, files
from minflow.utils.data import DataLoader, Subset
from minflow.vision import datasets, transforms
from minflow.vision.datasets import mnist

TO_TENSOR = transforms.ToTensor()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINFLOW_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(mnist, "PARTS", {True: (*mnist.PARTS[True][:2], 60), False: (*mnist.PARTS[False][:2], 20)})
    monkeypatch.setattr(files, "CIFAR_ROWS", 12)
    return tmp_path / "cache"


def idx(array):
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def mnist_files(folder, packed=True):
    folder.mkdir(parents=True, exist_ok=True)
    sums = {}
    for seed, (images, labels, n) in enumerate(mnist.PARTS.values()):
        rng = np.random.default_rng(seed)
        arrays = {images: rng.integers(0, 256, (n, 28, 28), dtype="uint8"), labels: (np.arange(n) % 10).astype("uint8")}
        for name, array in arrays.items():
            content = gzip.compress(idx(array)) if packed else idx(array)
            (folder / (name if packed else name.removesuffix(".gz"))).write_bytes(content)
            sums[name] = hashlib.sha256(content).hexdigest()
    return sums


def archive_of(path, contents):
    """Return a tar.gz with these names and bytes."""
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize("below", ["MNIST/raw", "."])
@pytest.mark.parametrize("packed", [True, False])
def test_mnist(tmp_path, below, packed):
    mnist_files(tmp_path / "data" / below, packed)
    data = datasets.MNIST("data", train=True)
    image, label = data[13]
    assert len(data) == 60 and image.size == (28, 28) and image.mode == "L" and label == 3
    assert np.array_equal(np.asarray(image), np.random.default_rng(0).integers(0, 256, (60, 28, 28), dtype="uint8")[13])
    x, y = next(iter(DataLoader(datasets.MNIST("data", False, TO_TENSOR), 20)))
    assert x.shape == (20, 1, 28, 28) and y.dtype is flow.int64 and y.tolist() == list(range(10)) * 2


@pytest.mark.parametrize("kind", [datasets.MNIST, datasets.FashionMNIST])
def test_downloaded_from_a_mirror(tmp_path, cache, monkeypatch, kind, capsys):
    sums = mnist_files(tmp_path / "mirror")
    monkeypatch.setattr(kind, "mirrors", [(tmp_path / "none").as_uri() + "/", (tmp_path / "mirror").as_uri() + "/"])
    monkeypatch.setattr(kind, "checksums", sums)
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte.gz is missing[\s\S]*download=True"):
        kind("data")
    assert len(kind("data", download=True)) == 60
    assert (tmp_path / "data" / kind.__name__ / "raw" / "train-labels-idx1-ubyte.gz").is_file()
    assert len(kind("data")) == 60 and len(kind(train=False, download=True)) == 20
    assert (cache / kind.__name__ / "raw" / "t10k-images-idx3-ubyte.gz").is_file()
    (tmp_path / "mirror" / "train-images-idx3-ubyte.gz").write_bytes(b"something else")
    with pytest.raises(DataError, match="has the sha256"):
        kind("elsewhere", download=True)


def test_manually_replaced_files(tmp_path):
    mnist_files(tmp_path / "data")
    (tmp_path / "data" / "train-images-idx3-ubyte.gz").write_bytes(
        (tmp_path / "data" / "t10k-images-idx3-ubyte.gz").read_bytes()
    )
    with pytest.raises(
        DataError, match=r"is not the file that its name says[\s\S]*\[20, 28, 28\][\s\S]*\[60, 28, 28\]"
    ):
        datasets.MNIST("data")


def test_cifar10(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"cifar-10-binary.tar.gz is missing[\s\S]*download=True"):
        datasets.CIFAR10("data")
    rows = np.random.default_rng(0).integers(0, 256, (6, 12, 3073), dtype="uint8")
    rows[:, :, 0] %= 10
    path = tmp_path / "mirror" / "cifar-10-binary.tar.gz"
    names = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]
    archive_of(path, {f"cifar-10-batches-bin/{name}": part.tobytes() for name, part in zip(names, rows)})
    monkeypatch.setattr(datasets.CIFAR10, "urls", [path.as_uri()])
    monkeypatch.setattr(datasets.CIFAR10, "sha256", hashlib.sha256(path.read_bytes()).hexdigest())
    data = datasets.CIFAR10(root="data", train=True, transform=TO_TENSOR, download=True)
    assert len(data) == 60 and data.data.shape == (60, 32, 32, 3)
    image, label = data[14]
    assert np.array_equal((image.numpy() * 255).round(), rows[1, 2, 1:].reshape(3, 32, 32)) and label == rows[1, 2, 0]
    test = datasets.CIFAR10("data", train=False)
    assert (
        len(test) == 12
        and test[3][0].size == (32, 32)
        and np.array_equal(np.asarray(test[3][0])[0, 0], rows[5, 3, [1, 1025, 2049]])
    )
    assert [p.name for p in (tmp_path / "data").iterdir()] == ["cifar-10-binary.tar.gz"]


def test_cifar100(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CIFAR100_ROWS", {True: 9, False: 4})
    with pytest.raises(DataError, match=r"cifar-100-binary.tar.gz is missing[\s\S]*download=True"):
        datasets.CIFAR100("data")
    rows = np.random.default_rng(0).integers(0, 256, (13, 3074), dtype="uint8")
    rows[:, 0], rows[:, 1] = rows[:, 0] % 20, rows[:, 1] % 100
    path = tmp_path / "mirror" / "cifar-100-binary.tar.gz"

    def write(train):
        parts = {"names.txt": b"apple", "train.bin": train, "test.bin": rows[9:].tobytes()}
        archive_of(path, {f"cifar-100-binary/{name}": part for name, part in parts.items()})

    write(rows[:9].tobytes())
    monkeypatch.setattr(datasets.CIFAR100, "urls", [path.as_uri()])
    monkeypatch.setattr(datasets.CIFAR100, "sha256", hashlib.sha256(path.read_bytes()).hexdigest())
    data, test = datasets.CIFAR100("data", True, TO_TENSOR, download=True), datasets.CIFAR100("data", False)
    image, label = data[5]
    assert len(data) == 9 and len(test) == 4 and label == rows[5, 1] and test[3][1] == rows[12, 1]
    assert np.array_equal((image.numpy() * 255).round(), rows[5, 2:].reshape(3, 32, 32))
    assert len(data.classes) == 100 and list(data.classes) == sorted(data.classes)
    write(rows[:8].tobytes())
    with pytest.raises(DataError, match="train.bin is not a file of 27666 bytes"):
        datasets.CIFAR100("mirror")
    rows[2, 1] = 100
    write(rows[:9].tobytes())
    with pytest.raises(DataError, match="the label 100 at position 2"):
        datasets.CIFAR100("mirror")


def test_digits():
    train, test = datasets.Digits(), datasets.Digits(train=False, image_size=28)
    assert len(train) == 1497 and len(test) == 300
    image, label = train[5]
    (images, labels), _ = digits(100)
    assert np.array_equal(image.numpy(), images[0, 5]) and label == labels[0, 5]
    assert image.shape == (1, 8, 8) and test[0][0].shape == (1, 28, 28)
    picture = datasets.Digits(transform=lambda image: image)[0][0]
    assert picture.size == (8, 8) and picture.mode == "L"


@pytest.mark.parametrize(
    "transform", [None, TO_TENSOR, transforms.Compose([TO_TENSOR, transforms.Normalize(0.3, 0.7)])], ids=str
)
def test_whole_batches_equal_single_samples(transform):
    data = datasets.Digits(transform=transform)
    plain = [data[i] for i in range(100)]
    for indices in ([3, 99, 0], list(range(100))):
        for quick in (data.whole_batch(indices), Subset(data, indices).whole_batch(range(len(indices)))):
            (slow,) = DataLoader([plain[i] for i in indices], len(indices))
            assert all(flow.equal(a, b) and a.dtype is b.dtype for a, b in zip(quick, slow))
    labels = datasets.Digits(transform=transform, target_transform=lambda label: -label)
    assert not hasattr(labels, "whole_batch") and next(iter(DataLoader(labels, 4)))[1].max().item() <= 0


def test_fake():
    data = datasets.FakeData(5, (3, 8, 6), transform=TO_TENSOR)
    again = datasets.FakeData(5, (3, 8, 6), transform=TO_TENSOR)
    assert (
        flow.equal(data[3][0], again[3][0]) and data[3][0].shape == (3, 8, 6) and not flow.equal(data[3][0], data[2][0])
    )
    assert not flow.equal(datasets.FakeData(5, (3, 8, 6), transform=TO_TENSOR, random_offset=1)[3][0], data[3][0])
    assert datasets.FakeData(1, (1, 4, 5))[0][0].size == (5, 4) and {data[i][1] for i in range(5)} <= set(range(10))
    with pytest.raises(OutOfRangeError, match="no sample 5"):
        data[5]
    with pytest.raises(OutOfRangeError, match=r"\(2, 4, 4\)"):
        datasets.FakeData(5, (2, 4, 4))


def test_class_in_place_of_a_transform():
    with pytest.raises(LoaderError, match=r"transform=ToTensor\(\)"):
        datasets.Digits(transform=transforms.ToTensor)
