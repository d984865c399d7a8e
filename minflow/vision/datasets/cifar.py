"""CIFAR-10 and CIFAR-100, from their binary archives. Read next: `../../data/files.py`, which reads these."""

from __future__ import annotations

import numpy as np

from ...data.files import read_cifar10, read_cifar100
from .base import DownloadedImages, candidate_folders, find_or_fetch


class CIFAR10(DownloadedImages):
    """50,000 small photographs to train on, 10,000 to test: `uint8[32, 32, 3]` and labels 0 to 9.

    root: the folder of `cifar-10-binary.tar.gz`; default: the cache.  download: fetch it (170 MB) if it is missing.
    The archive is read directly, in 1 to 2 seconds; the "Python version", which consists of pickles, is never
    read. Source: Krizhevsky 2009, "Learning multiple layers of features from tiny images", section 3.
    """

    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    archive = "cifar-10-binary.tar.gz"
    urls = [
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "https://cave.cs.toronto.edu/kriz/cifar-10-binary.tar.gz",
    ]
    sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
    limit = 180_000_000  # bytes; the archive has 170,052,171
    read = staticmethod(read_cifar10)

    def arrays(self, download: bool) -> tuple[np.ndarray, np.ndarray]:
        path = find_or_fetch(self.archive, candidate_folders(self.root), self.urls, self.sha256, self.limit, download)
        planes, labels = self.read(path, self.train)
        return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels


class CIFAR100(CIFAR10):
    """50,000 small photographs of 100 classes to train on, 10,000 to test: `uint8[32, 32, 3]` and labels 0 to 99.

    root: the folder of `cifar-100-binary.tar.gz`; default: the cache.  download: fetch it (169 MB) if it is missing.
    Source: see CIFAR10.
    """

    classes = """apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
        camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup
        dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower
        leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid
        otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray
        road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
        sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
        wardrobe whale willow_tree wolf woman worm""".split()
    archive = "cifar-100-binary.tar.gz"
    urls = ["https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"]
    sha256 = "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"
    read = staticmethod(read_cifar100)
