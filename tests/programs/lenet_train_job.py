"""Train LeNet on digits with a job that gives its loss at once, and save it as lenet_model/."""

import digit_nets as nets

import minflow as flow
import minflow.typing as tp


@flow.global_function(type="train")
def train_lenet(
    images: tp.Numpy.Placeholder(nets.IMAGES),
    labels: tp.Numpy.Placeholder(nets.LABELS, dtype=flow.int32),
) -> tp.Numpy:
    with flow.scope.placement("gpu", "0:0"):
        logits = nets.lenet(images, dropout=True)
    return nets.train_on(labels, logits)


def main(epochs=4):
    flow.config.gpu_device_num(1)
    flow.manual_seed(0)
    check_point = flow.train.CheckPoint()
    check_point.init()
    (train_images, train_labels), _ = flow.data.digits(nets.BATCH, image_size=28)
    means = []
    for epoch in range(1, epochs + 1):
        for images, labels in zip(train_images, train_labels):
            means.append(train_lenet(images, labels).mean())
        print(f"epoch {epoch}: loss {means[-1]:.4f}")
    check_point.save("lenet_model")
    print("saved lenet_model after", train_lenet.steps, "steps")
    return means


if __name__ == "__main__":
    main()
