"""13.3 together: the loss of a batch from the losses of its parts."""

import numpy as np

from ...definition import Exercise, case

exercise = Exercise(
    "13.3", "together", kind="mend", level="core", answer="combine", tolerance=(1e-12, 1e-12),
    question="How do the losses of unequal parts become the loss of the whole?",
    hint="Make each mean a sum again: times its number of images. Add. Divide once, by all images.",
    fact="The same holds for gradients, since the gradient of a sum is the sum of the gradients. With equal parts the "
         "plain mean is right, which is why this mistake can hide for long.",
    sibling="A class of 30 has the mean mark 4, a class of 10 the mean mark 2. All 40 together: 30 times 4 is 120, 10 "
            "times 2 is 20, that is 140 points for 40 children: 3.5. The plain mean of both means, 3, would count a "
            "child of the small class three times.",
)


@exercise.stub
def combine(losses, sizes):
    return sum(losses) / len(losses)


@exercise.solution
def combine(losses, sizes):
    # each mean is a sum again
    total = sum(loss * size for loss, size in zip(losses, sizes))
    # one division, by all images
    return total / sum(sizes)


@exercise.also_right
def combine(losses, sizes):
    return np.average(losses, weights=sizes)


@exercise.also_right
def combine(losses, sizes):
    images, result = sum(sizes), 0.0
    for i in range(len(losses)):
        result += losses[i] * (sizes[i] / images)
    return result


@exercise.wrong("plain mean",
                "In yours, an image of the small part counts more than one of the large part.",
                "A device with 30 images counts as 30, one with 20 as 20. Use `sizes`.")
def combine(losses, sizes):
    return sum(losses) / len(losses)


@exercise.wrong("sum of means",
                "With more devices the loss grows, and the gradient with it. It should be one mean.",
                "Each loss is a mean already. What must each be multiplied by?")
def combine(losses, sizes):
    return sum(losses)


@exercise.wrong("not divided",
                "That is the sum over all images. The loss is their mean.",
                "Divide by the number of all images.")
def combine(losses, sizes):
    return sum(loss * size for loss, size in zip(losses, sizes))


@exercise.wrong("weights turned round",
                "The weights are swapped. Which device has more images?",
                "The loss of a part is multiplied by *its own* number of images.")
def combine(losses, sizes):
    return sum(loss * size for loss, size in zip(losses, sizes[::-1])) / sum(sizes)


@exercise.wrong("largest",
                "Only one device counts. The images of the others would teach nothing.",
                "Every image must count, and each as much as any other.")
def combine(losses, sizes):
    return max(losses)


@exercise.wrong("not multiplied",
                "You divide by all images, but a loss is the mean of its part. Divided again, it is far too small.",
                "Each loss times its own number of images is the sum of its part.")
def combine(losses, sizes):
    return sum(losses) / sum(sizes)


@exercise.wrong("only the first device",
                "Only the first device counts: your loop ends in its first round.",
                "`return` comes after the loop: how far is it indented?")
def combine(losses, sizes):
    return losses[0] * sizes[0] / sum(sizes)


@exercise.wrong("one for each device",
                "That is a number for each device. The loss of the batch is one number.",
                "Add what the devices contribute, and divide once.")
def combine(losses, sizes):
    return np.array(losses) * np.array(sizes) / sum(sizes)


@exercise.wrong("rounded down",
                "`//` throws the fraction away. A mean may have one.",
                "`/` keeps it.")
def combine(losses, sizes):
    return sum(loss * size for loss, size in zip(losses, sizes)) // sum(sizes)


@exercise.wrong("list times list",
                "`losses * sizes`: both are lists, and Python does not multiply a list by a list.",
                "Go through both at once, pair by pair: `zip(losses, sizes)`.")
def combine(losses, sizes):
    return sum(losses * sizes) / sum(sizes)


@exercise.wrong("50 images",
                "You divide by 50. How many images are there in this case?",
                "`sum(sizes)` counts them.")
def combine(losses, sizes):
    return sum(loss * size for loss, size in zip(losses, sizes)) / 50


TWO = ("Yours is for exactly two devices. How many are there in this case?",
       "Go through both lists, however long they are: `zip(losses, sizes)`.")


@exercise.wrong("two devices", *TWO)
def combine(losses, sizes):
    return (losses[0] * sizes[0] + losses[1] * sizes[1]) / (sizes[0] + sizes[1])


@exercise.wrong("two devices, all images", *TWO)
def combine(losses, sizes):
    return (losses[0] * sizes[0] + losses[1] * sizes[1]) / sum(sizes)


@exercise.wrong("two devices, the last product divided", *TWO)
def combine(losses, sizes):
    return losses[0] * sizes[0] + losses[1] * sizes[1] / sum(sizes)


@exercise.wrong("two names", *TWO)
def combine(losses, sizes):
    a, b = losses
    m, n = sizes
    return (a * m + b * n) / (m + n)


@exercise.wrong("30 and 20 images",
                "The numbers 30, 20 and 50 are those of one example. `losses` and `sizes` tell how it is here.",
                "Go through both lists, however long they are: `zip(losses, sizes)`.")
def combine(losses, sizes):
    return (losses[0] * 30 + losses[1] * 20) / 50


@exercise.wrong("divided twice",
                "You divide twice: by all images, and by the devices. Check with equal parts.",
                "sum of loss * size, divided by sum(sizes): nothing else.")
def combine(losses, sizes):
    return sum(loss * size for loss, size in zip(losses, sizes)) / sum(sizes) / len(losses)


@exercise.wrong("divided by the devices",
                "You divide by the number of devices. How many *images* are there?",
                "`sum(sizes)`, not `len(sizes)`.")
def combine(losses, sizes):
    return sum(loss * size for loss, size in zip(losses, sizes)) / len(sizes)


def of_images(combine, images, sizes):
    """The losses of the parts, each a mean over its images, combined."""
    ends = np.cumsum([0, *sizes])
    losses = [float(np.mean(images[a:b])) for a, b in zip(ends, ends[1:])]
    return combine(losses, list(sizes))


@exercise.cases
def cases(rng):
    yield case([3.0], [5], expected=3.0)
    yield case([1.0, 2.0], [10, 10], expected=1.5)
    yield case([1.0, 2.0], [30, 20], expected=1.4)
    yield case([4.0, 1.0, 1.0], [1, 2, 3], expected=1.5)
    yield case([2.0, 7.0], [4, 1], expected=3.0)
    for sizes, hidden in (((30, 20), False), ((3, 3, 2, 2), True), ((17, 1, 30), True)):
        images = rng.uniform(0, 3, sum(sizes))
        yield case(images, sizes, run=of_images, expected=float(np.mean(images)), hidden=hidden,
                   text=f"{sum(sizes)} images in parts of {', '.join(map(str, sizes))}, beside one device")
