"""CIFAR-10, from its binary archive. Read next: `../../data/files.py`, which reads it."""

from __future__ import annotations

import numpy as np

from ...data.files import read_cifar10
from .base import DownloadedImages, found_or_fetched, roots


class CIFAR10(DownloadedImages):
    """50,000 small photographs to train on, 10,000 to test: `uint8[32, 32, 3]` and labels 0 to 9.

    root: the folder that holds `cifar-10-binary.tar.gz`; the cache by default.  download: fetch it (170 MB) if it is
    not there. The archive is read as it is, 1 to 2 seconds; the "Python version", which consists of pickles, is never
    read. Source: Krizhevsky 2009, "Learning multiple layers of features from tiny images", section 3.
    """

    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    archive = "cifar-10-binary.tar.gz"
    urls = [
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "https://cave.cs.toronto.edu/kriz/cifar-10-binary.tar.gz",
    ]
    sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
    limit = 180_000_000  # bytes; it has 170,052,171

    def arrays(self, download: bool) -> tuple[np.ndarray, np.ndarray]:
        path = found_or_fetched(self.archive, roots(self.root), self.urls, self.sha256, self.limit, download)
        planes, labels = read_cifar10(path, self.train)
        return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels
