"""Accuracy of the MLP of mlp_model/: a job that passes a tuple of two arrays to a callback."""

from typing import Tuple  # noqa: UP035 - as programs of that generation annotate

import digit_nets as nets

import minflow as flow
import minflow.typing as tp


@flow.global_function(type="predict")
def read_mlp(
    images: tp.Numpy.Placeholder(nets.IMAGES),
    labels: tp.Numpy.Placeholder(nets.LABELS, dtype=flow.int32),
) -> tp.Callback[Tuple[tp.Numpy, tp.Numpy]]:  # noqa: UP006
    with flow.scope.placement("cpu", "0:0"):
        logits = nets.mlp(images)
    return labels, logits


right, total = 0, 0


def count(pair: Tuple[tp.Numpy, tp.Numpy]):  # noqa: UP006
    global right, total
    labels, logits = pair
    right += int((logits.argmax(1) == labels).sum())
    total += len(labels)


def main():
    flow.train.CheckPoint().load("mlp_model")
    _, (test_images, test_labels) = flow.data.digits(nets.BATCH, image_size=28)
    for images, labels in zip(test_images, test_labels):
        read_mlp(images, labels)(count)
    flow.sync_default_session()  # the last two callbacks may not have run yet: without it the count is too small
    print(f"{right} of {total} right")
    return right / total


if __name__ == "__main__":
    main()
