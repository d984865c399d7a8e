"""05.4 shifted: the share of images that are still read correctly after all have moved."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "05.4", "shifted", kind="measure", level="core", answer="shifted_accuracy",
    question="How many images are still read when all have moved?",
    hint="Begin with a dark image: `flow.zeros_like(images)`. Copy into it the columns that stay in the picture.",
    fact="If an image moves, the answers of a convolution move with it; the layers after it must learn to cope with "
         "that. Pooling helps with a pixel or two.",
    sibling="Move the row [1, 2, 3, 4] by 1 to the right: the new row starts as [0, 0, 0, 0]. Its places 1 to 3 get "
            "the old places 0 to 2: `new[1:] = old[:3]` gives [0, 1, 2, 3]. By 1 to the left: `new[:3] = old[1:]`.",
)


@exercise.solution
def shifted_accuracy(model, images, labels, dx):
    # dark images, into which the columns that stay are copied
    moved, width = flow.zeros_like(images), images.shape[3]
    if dx >= 0:
        moved[:, :, :, dx:] = images[:, :, :, :width - dx]
    else:
        moved[:, :, :, :dx] = images[:, :, :, -dx:]
    # the class of the largest score, against the truth
    right = model(moved).argmax(1) == labels
    return right.float().mean().item()


@exercise.also_right
def shifted_accuracy(model, images, labels, dx):
    moved = flow.roll(images, dx, 3)
    if dx > 0:
        moved[..., :dx] = 0
    if dx < 0:
        moved[..., dx:] = 0
    return float((model(moved).argmax(1) == labels).numpy().mean())


@exercise.also_right
def shifted_accuracy(model, images, labels, dx):
    n, channels, height, width = images.shape
    dark = flow.zeros(n, channels, height, abs(dx))
    wide = flow.cat([dark, images, dark], 3)
    start = abs(dx) - dx
    scores = model(wide[:, :, :, start:start + width])
    hits = 0
    for row, label in zip(scores, labels):
        hits += int(row.argmax().item() == label.item())
    return hits / n


def moved_by(images, dx):
    """Expected images, by NumPy."""
    array = images.numpy()
    moved = np.zeros_like(array)
    for column in range(array.shape[3]):
        if 0 <= column + dx < array.shape[3]:
            moved[..., column + dx] = array[..., column]
    return flow.tensor(moved)


@exercise.wrong("rolled",
                "`roll` brings back at the left what leaves at the right. Zeros should come in.",
                "After the roll, set the columns that wrapped around to 0. Which ones are they if dx is below 0?")
def shifted_accuracy(model, images, labels, dx):
    return (model(flow.roll(images, dx, 3)).argmax(1) == labels).float().mean().item()


@exercise.wrong("not to the left",
                "It is right to the right. With dx below 0 the images should move to the left.",
                "If dx is -2, the new columns start with the old column 2.")
def shifted_accuracy(model, images, labels, dx):
    return (model(moved_by(images, max(dx, 0))).argmax(1) == labels).float().mean().item()


@exercise.wrong("down",
                "The images move down. Right is the last axis: (n, channels, rows, columns).",
                "Axis 3 counts the columns, axis 2 the rows.")
def shifted_accuracy(model, images, labels, dx):
    moved = moved_by(images.transpose(2, 3), dx).transpose(2, 3)
    return (model(moved).argmax(1) == labels).float().mean().item()


@exercise.wrong("left",
                "Your images move to the left. The pixel in column 0 should go to column dx.",
                "Slices of the new image start at dx, those of the old one at 0.")
def shifted_accuracy(model, images, labels, dx):
    return (model(moved_by(images, -dx)).argmax(1) == labels).float().mean().item()


@exercise.wrong("only to the right",
                "It is right for dx above 0. For 0 and below, `[:-dx]` is another part of the image.",
                "`[:-0]` is empty. Write `[:width - dx]`, and treat dx below 0 separately.")
def shifted_accuracy(model, images, labels, dx):
    moved = flow.zeros_like(images)
    moved[:, :, :, dx:] = images[:, :, :, :-dx]
    return (model(moved).argmax(1) == labels).float().mean().item()


@exercise.wrong("count",
                "That is how many were right. What share is it?",
                "Divide by the number of images.")
def shifted_accuracy(model, images, labels, dx):
    return float((model(moved_by(images, dx)).argmax(1) == labels).numpy().sum())


@exercise.wrong("mistakes",
                "That is the share of the mistakes. 1 minus it would be right.",
                "`==` finds the right ones, `!=` the others.")
def shifted_accuracy(model, images, labels, dx):
    return (model(moved_by(images, dx)).argmax(1) != labels).float().mean().item()


@exercise.wrong("scores against labels",
                "Those are scores, not classes. Which class has the largest one? `argmax(1)`.",
                "(n, classes) cannot be compared with (n,). argmax over axis 1 leaves (n,).")
def shifted_accuracy(model, images, labels, dx):
    return (model(moved_by(images, dx)) == labels).float().mean().item()


@exercise.wrong("caller's images",
                "The share is right, but the given images have moved too.",
                "Write into new images: `flow.zeros_like(images)`.")
def shifted_accuracy(model, images, labels, dx):
    images.copy_(moved_by(images, dx))
    return (model(images).argmax(1) == labels).float().mean().item()


def read(model, images, labels):
    """Share that the model reads correctly."""
    return (model(images).argmax(1) == labels).float().mean().item()


@exercise.wrong("not moved",
                "That is the share of the images as they were. Does the model see the moved ones?",
                "Which images do you give to the model: the new ones or the old ones?")
def shifted_accuracy(model, images, labels, dx):
    return read(model, images, labels)


@exercise.wrong("0 forgotten",
                "It is right unless dx is 0: `[-0:]` is the whole image, `[:-0]` nothing of it.",
                "Treat 0 separately, or use the width: `[:width - dx]`.")
def shifted_accuracy(model, images, labels, dx):
    moved = moved_by(images, dx)
    if dx == 0:
        moved[:, :, :, :0] = images
    return read(model, moved, labels)


@exercise.wrong("one pixel further",
                "Your images move one pixel further than dx.",
                "The old column 0 becomes column dx: `[..., dx:]`.")
def shifted_accuracy(model, images, labels, dx):
    return read(model, moved_by(images, dx + (dx > 0) - (dx < 0)), labels)


@exercise.wrong("bright margin",
                "Bright pixels come in. Dark images to begin with are zeros.",
                "`flow.zeros_like`, not ones.")
def shifted_accuracy(model, images, labels, dx):
    dark = moved_by(flow.ones_like(images), dx) == 0
    return read(model, moved_by(images, dx) + dark.float(), labels)


@exercise.wrong("images moved",
                "You move whole *images* to other places of the batch. The first axis counts images.",
                "The columns are the last axis: `[:, :, :, ...]`, or `[..., ...]`.")
def shifted_accuracy(model, images, labels, dx):
    return read(model, moved_by(images.transpose(0, 3), dx).transpose(0, 3), labels)


@exercise.wrong("classes down the images",
                "`argmax(0)` looks down the images. The scores of one image are along axis 1.",
                "One class for each image: the result has the shape (n,).")
def shifted_accuracy(model, images, labels, dx):
    return (model(moved_by(images, dx)).argmax(0) == labels).float().mean().item()


@exercise.wrong("one class for all",
                "`argmax()` without an axis gives one place in the whole table. Each image has a class of its own.",
                "The scores of one image are along axis 1.")
def shifted_accuracy(model, images, labels, dx):
    return (model(moved_by(images, dx)).argmax() == labels).float().mean().item()


@exercise.wrong("percent",
                "That is a percentage. A share is a number from 0 to 1.",
                "Leave out the 100.")
def shifted_accuracy(model, images, labels, dx):
    return 100 * read(model, moved_by(images, dx), labels)


@exercise.wrong("always 300",
                "You divide by 300. How many images are given?",
                "`len(images)`, or the mean.")
def shifted_accuracy(model, images, labels, dx):
    return len(images) / 300 * read(model, moved_by(images, dx), labels)


class Where(flow.nn.Module):
    """Scores of tiny images: the brightness of each pixel, and a last score that wins if all pixels are dark."""

    def forward(self, images):
        flat = images.reshape(images.shape[0], -1)
        return flow.cat([flat, flow.full((images.shape[0], 1), 0.5)], 1)


def dots(places, height=1, width=4):
    images = np.zeros((len(places), 1, height, width), "float32")
    for image, place in zip(images, places):
        image.reshape(-1)[place] = 1
    return flow.tensor(images)


def shift_case(places, labels, dx, height=1, width=4, hidden=False):
    images, labels = dots(places, height, width), flow.tensor(labels)
    text = f"dx = {dx}, images of {height} x {width}, bright at pixel {places}; the model says which one is bright, " \
           f"{height * width} if none; labels {labels.tolist()}"
    return case(Where(), images, labels, dx, text=text, hidden=hidden)


def images_after(shifted_accuracy, model, images, labels, dx):
    """The given images after the measurement."""
    shifted_accuracy(model, images, labels, dx)
    return images


@exercise.cases
def cases(rng):
    yield shift_case([0, 1, 2], [0, 1, 1], 0)
    yield shift_case([0, 1, 2, 1, 0], [1, 2, 1, 3, 1], 1)
    yield shift_case([3, 2], [4, 3], 1)
    yield shift_case([0, 3, 2, 1, 0], [2, 4, 4, 1, 2], 2)
    yield shift_case([2, 3, 1], [0, 1, 0], -2)
    yield shift_case([0, 1, 3, 4], [1, 2, 4, 5], 1, 2, 3)
    yield case(Where(), dots([0]), flow.tensor([1]), 1, run=images_after, expected=dots([0]).cpu().numpy(),
               text="are the given images still the same?")
    places = rng.integers(0, 20, 6).tolist()
    yield shift_case(places, [place + 1 for place in places], 1, 4, 5, hidden=True)
    yield shift_case(places, [place - 2 for place in places], -2, 4, 5, hidden=True)
