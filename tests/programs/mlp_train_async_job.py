"""Train an MLP on digits with a job that passes each loss to a callback, and save it as mlp_model/."""

import digit_nets as nets

import minflow as flow
import minflow.typing as tp


@flow.global_function(type="train")
def train_mlp(
    images: tp.Numpy.Placeholder(nets.IMAGES),
    labels: tp.Numpy.Placeholder(nets.LABELS, dtype=flow.int32),
) -> tp.Callback[tp.Numpy]:
    return nets.train_on(labels, nets.mlp(images))


means = []


def show(losses: tp.Numpy):
    means.append(losses.mean())
    if len(means) % 50 == 0:
        print(f"step {len(means)}: loss {means[-1]:.4f}")


def main(epochs=12):
    flow.manual_seed(0)
    check_point = flow.train.CheckPoint()
    check_point.init()
    (train_images, train_labels), _ = flow.data.digits(nets.BATCH, image_size=28)
    for _ in range(epochs):
        for images, labels in zip(train_images, train_labels):
            train_mlp(images, labels)(show)
    check_point.save("mlp_model")  # wait for every step and its callback
    print("saved mlp_model after", len(means), "steps")


if __name__ == "__main__":
    main()
