"""How many digits the LeNet of lenet_model/ reads right: a job that gives two arrays, as a tuple, at once."""

from typing import Tuple  # noqa: UP035 - as programs of that generation annotate

import digit_nets as nets

import minflow as flow
import minflow.typing as tp


@flow.global_function(type="predict")
def read_lenet(
    images: tp.Numpy.Placeholder(nets.IMAGES),
    labels: tp.Numpy.Placeholder(nets.LABELS, dtype=flow.int32),
) -> Tuple[tp.Numpy, tp.Numpy]:  # noqa: UP006
    with flow.scope.placement("gpu", "0:0"):
        logits = nets.lenet(images, dropout=False)
        flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, name="unused")
    return labels, logits


def main():
    flow.train.CheckPoint().load("lenet_model")
    _, (test_images, test_labels) = flow.data.digits(nets.BATCH, image_size=28)
    right = total = 0
    for images, labels in zip(test_images, test_labels):
        same, logits = read_lenet(images, labels)
        right += int((logits.argmax(1) == same).sum())
        total += len(same)
    print(f"{right} of {total} right")
    return right / total


if __name__ == "__main__":
    main()
