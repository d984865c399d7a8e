"""Write a small archive in the format of CIFAR-10, so that programs read files and download nothing."""

import io
import tarfile
from pathlib import Path

import numpy as np

NAMES = [*(f"data_batch_{part}.bin" for part in range(1, 6)), "test_batch.bin"]


def write_cifar10(folder, rows, seed=0):
    """Write `cifar-10-binary.tar.gz`: five parts for training and one for testing, each of `rows` images.

    A record is a label and 3072 bytes, the red, green and blue planes. Every class has its own color, with noise.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    colors = rng.integers(40, 200, (10, 3, 1), dtype="uint8")
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz", compresslevel=1) as archive:
        for name in NAMES:
            labels = rng.permutation(np.arange(rows) % 10).astype("uint8")
            planes = colors[labels] + rng.integers(0, 56, (rows, 3, 1024), dtype="uint8")
            content = np.concatenate([labels[:, None], planes.reshape(rows, 3072)], axis=1).tobytes()
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
