"""Run a program with a small MNIST: `python small_mnist.py program.py`, in a folder that `write_mnist` has filled.

`load_mnist` refuses files whose arrays are not of MNIST's sizes; only here it expects other sizes, and everything else
is unchanged. The programs set no seed: here they start from seed 0, and print the same losses each time.
"""

import runpy
import sys
from pathlib import Path

import numpy as np

TRAIN, TEST = 200, 300  # images: 2 and 3 batches of 100


def sizes():
    """Return the arrays that `load_mnist` expects in mnist.npz, with our numbers of images."""
    parts = (("train", TRAIN), ("test", TEST))
    return {f"x_{part}": ((n, 28, 28), "uint8") for part, n in parts} | {
        f"y_{part}": ((n,), "uint8") for part, n in parts
    }


def write_mnist(folder):
    """Write mnist.npz with the first digits of the packaged data, in gray values from 0 to 255."""
    import minflow as flow

    arrays = {}
    for (part, (shape, _)), (images, labels) in zip(list(sizes().items())[:2], flow.data.digits(100, image_size=28)):
        gray = np.rint(images.reshape(-1, 28, 28)[: shape[0]] * 255).astype("uint8")
        arrays |= {part: gray, part.replace("x", "y"): labels.reshape(-1)[: shape[0]].astype("uint8")}
    np.savez(Path(folder) / "mnist.npz", **arrays)


if __name__ == "__main__":
    import minflow
    from minflow.data import mnist

    minflow.manual_seed(0)
    mnist.EXPECTED = sizes()
    runpy.run_path(sys.argv[1], run_name="__main__")
