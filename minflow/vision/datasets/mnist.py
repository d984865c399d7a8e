"""MNIST and FashionMNIST, from their own idx files. Read next: `../../data/files.py`, which reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...data.cache import find_file
from ...data.files import check_labels, file_error, read_idx
from ...data.mnist import mnist_arrays
from .base import DownloadedImages, candidate_folders, find_or_fetch

PARTS = {
    True: ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", 60000),
    False: ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", 10000),
}
LIMIT = 60_000_000  # bytes of one file, compressed or not


class MNIST(DownloadedImages):
    """60,000 handwritten digits to train on, 10,000 to test: `uint8[28, 28]` and labels 0 to 9.

    root: the folder of the files, laid out as in torchvision (`root/MNIST/raw`); default: the cache.  download: fetch
    missing files. A file `mnist.npz` in the current folder or the cache is accepted too.
    Source: LeCun, Cortes & Burges, "The MNIST database of handwritten digits".
    """

    classes = [
        "0 - zero",
        "1 - one",
        "2 - two",
        "3 - three",
        "4 - four",
        "5 - five",
        "6 - six",
        "7 - seven",
        "8 - eight",
        "9 - nine",
    ]
    mirrors = ["https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"]
    checksums = {
        "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    }

    def arrays(self, download: bool) -> tuple[np.ndarray, np.ndarray]:
        images, labels, count = PARTS[bool(self.train)]
        folders = candidate_folders(self.root, type(self).__name__, "raw")
        if type(self) is MNIST and self.root is None and find_file(images, folders) is None:
            if find_file("mnist.npz", [Path("."), folders[-1]]):
                result = mnist_arrays(say=False)
                return (result["x_train"], result["y_train"]) if self.train else (result["x_test"], result["y_test"])
        paths = []
        for name in (images, labels):
            plain = find_file(name.removesuffix(".gz"), folders)  # decompressed by hand or by torchvision
            paths.append(
                plain
                if plain is not None and find_file(name, folders) is None
                else find_or_fetch(
                    name, folders, [mirror + name for mirror in self.mirrors], self.checksums[name], LIMIT, download
                )
            )
        data, targets = read_idx(paths[0], 3), read_idx(paths[1], 1)
        for path, array, shape in ((paths[0], data, (count, 28, 28)), (paths[1], targets, (count,))):
            if array.shape != shape:
                raise file_error(
                    path,
                    "is not the file that its name says",
                    found=f"uint8{list(array.shape)}",
                    expected=f"uint8{list(shape)}",
                )
        check_labels(paths[1], targets, 10)
        return data, targets


class FashionMNIST(MNIST):
    """60,000 pictures of clothes to train on, 10,000 to test: `uint8[28, 28]` and labels 0 to 9.

    Source: Xiao, Rasul & Vollgraf 2017 (arXiv:1708.07747).
    """

    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
    mirrors = [
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ]
    checksums = {
        "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    }
