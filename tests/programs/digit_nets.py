"""The two networks of the job programs. Train and predict jobs share variables through the names of their layers."""

import minflow as flow

BATCH = 50
IMAGES, LABELS = (BATCH, 1, 28, 28), (BATCH,)


def normal():
    return flow.truncated_normal(0.1)


def mlp(images):
    """784 pixels -> 128 -> 10 logits."""
    pixels = flow.reshape(images, [images.shape[0], -1])
    hidden = flow.layers.dense(pixels, 128, activation=flow.nn.relu, kernel_initializer=normal(), name="mlp1")
    return flow.layers.dense(hidden, 10, kernel_initializer=normal(), name="mlp2")


def lenet(images, dropout):
    """Two convolutions, each with a pool that halves the image, and two dense layers: 10 logits."""
    maps = images
    for name, filters in (("conv1", 8), ("conv2", 16)):
        maps = flow.layers.conv2d(
            maps, filters, 5, padding="SAME", activation=flow.nn.relu, kernel_initializer=normal(), name=name
        )
        maps = flow.nn.max_pool2d(maps, ksize=2, strides=2, padding="SAME", name=f"{name}-pool")
    features = flow.reshape(maps, [maps.shape[0], -1])
    hidden = flow.layers.dense(features, 64, activation=flow.nn.relu, kernel_initializer=normal(), name="dense1")
    if dropout:
        hidden = flow.nn.dropout(hidden, rate=0.5, name="dropout")
    return flow.layers.dense(hidden, 10, kernel_initializer=normal(), name="dense2")


def train_on(labels, logits):
    """Minimize the cross entropy by plain SGD; return the loss of each image."""
    losses = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, name="loss")
    rate = flow.optimizer.PiecewiseConstantScheduler([], [0.1])
    flow.optimizer.SGD(rate, momentum=0).minimize(losses)
    return losses
