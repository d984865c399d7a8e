"""10.2 promise: the arguments and results of a job, as annotations."""

import re

import minflow as flow

from ...definition import Exercise, case

tp = flow.typing
exercise = Exercise(
    "10.2", "promise", kind="complete", level="core", answer="make_eval",
    question="What does a job promise to take and to give?",
    hint="Fill three gaps: what the images are, what the labels are, and how many arrays come back.",
    fact="The promise is checked at each call, before anything runs: a wrong dtype is reported by name, and not "
         "discovered an hour later through a strange accuracy.",
    sibling="A job that takes 20 heights and says for each whether it is tall: `def tall(heights: "
            "tp.Numpy.Placeholder((20,))) -> tp.Numpy`. One that takes 20 ages, whole numbers, as well, and gives two "
            "arrays: `ages: tp.Numpy.Placeholder((20,), dtype=flow.int32)` and `-> tuple[tp.Numpy, tp.Numpy]`.",
)


@exercise.stub
def make_eval(network):
    @flow.global_function(type="predict")
    def eval_job(images: ..., labels: ...) -> ...:
        return labels, network(images)

    return eval_job


@exercise.solution
def make_eval(network):
    # sizes are promised for the whole batch; the default dtype is float32
    images_kind = tp.Numpy.Placeholder((50, 1, 8, 8))
    # a label is the number of a class: a whole number
    labels_kind = tp.Numpy.Placeholder((50,), dtype=flow.int32)

    # two arrays come back
    @flow.global_function(type="predict")
    def eval_job(images: images_kind, labels: labels_kind) -> tuple[tp.Numpy, tp.Numpy]:
        return labels, network(images)

    return eval_job


@exercise.also_right
def make_eval(network):
    @flow.global_function(type="predict")
    def eval_job(images: tp.Numpy.Placeholder((50, 1, 8, 8), dtype=flow.float32),
                 labels: tp.Numpy.Placeholder((50,), dtype=flow.int32)) -> tuple[tp.Numpy, tp.Numpy]:
        return labels, network(images)

    return eval_job


@exercise.also_right
def make_eval(network):
    place = tp.Numpy.Placeholder

    def eval_job(images: place((50, 1, 8, 8)), labels: place((50,), flow.int32)) -> tuple[(tp.Numpy,) * 2]:
        scores = network(images)
        return labels, scores

    return flow.global_function(type="predict")(eval_job)


@exercise.wrong("one result",
                "Two arrays come back, labels and scores. Your annotation promises one.",
                "Two arrays are a tuple: name `tp.Numpy` twice in it.")
def make_eval(network):
    @flow.global_function(type="predict")
    def eval_job(images: tp.Numpy.Placeholder((50, 1, 8, 8)),
                 labels: tp.Numpy.Placeholder((50,), dtype=flow.int32)) -> tp.Numpy:
        return labels, network(images)

    return eval_job


@exercise.wrong("no batch",
                "That is the shape of one image. The job is given a batch: sizes are fixed for all of it.",
                "The first size is how many images there are: 50.")
def make_eval(network):
    @flow.global_function(type="predict")
    def eval_job(images: tp.Numpy.Placeholder((1, 8, 8)),
                 labels: tp.Numpy.Placeholder((50,), dtype=flow.int32)) -> tuple[tp.Numpy, tp.Numpy]:
        return labels, network(images)

    return eval_job


@exercise.wrong("batch of one",
                "Your job takes one image at a time, with a batch axis of 1. It is given 50.",
                "The first size is how many images there are: 50.")
def make_eval(network):
    @flow.global_function(type="predict")
    def eval_job(images: tp.Numpy.Placeholder((1, 1, 8, 8)),
                 labels: tp.Numpy.Placeholder((50,), dtype=flow.int32)) -> tuple[tp.Numpy, tp.Numpy]:
        return labels, network(images)

    return eval_job


@exercise.wrong("float labels",
                "Without a dtype a placeholder takes float32. What is a label?",
                "A label is the number of a class, a whole number: `dtype=flow.int32`.")
def make_eval(network):
    @flow.global_function(type="predict")
    def eval_job(images: tp.Numpy.Placeholder((50, 1, 8, 8)),
                 labels: tp.Numpy.Placeholder((50,))) -> tuple[tp.Numpy, tp.Numpy]:
        return labels, network(images)

    return eval_job


@exercise.wrong("int64 labels",
                "Labels are whole numbers, yes. But these are int32, and dtypes must match exactly.",
                "`labels.dtype` says so; 64 is NumPy's default size.")
def make_eval(network):
    @flow.global_function(type="predict")
    def eval_job(images: tp.Numpy.Placeholder((50, 1, 8, 8)),
                 labels: tp.Numpy.Placeholder((50,), dtype=flow.int64)) -> tuple[tp.Numpy, tp.Numpy]:
        return labels, network(images)

    return eval_job


@exercise.wrong("callback",
                "With `Callback` the call does not wait: it gives a handle instead of arrays. That is for lesson 11.",
                "Remove `tp.Callback[...]`, and keep the contents of its brackets.")
def make_eval(network):
    @flow.global_function(type="predict")
    def eval_job(images: tp.Numpy.Placeholder((50, 1, 8, 8)),
                 labels: tp.Numpy.Placeholder((50,), dtype=flow.int32)) -> tp.Callback[tuple[tp.Numpy, tp.Numpy]]:
        return labels, network(images)

    return eval_job


@exercise.wrong("numbers inside",
                "While the job is built, a Blob has no numbers yet: `.numpy()` has nothing to give.",
                "Return the Blobs themselves. The annotation says that arrays come out.")
def make_eval(network):
    @flow.global_function(type="predict")
    def eval_job(images: tp.Numpy.Placeholder((50, 1, 8, 8)),
                 labels: tp.Numpy.Placeholder((50,), dtype=flow.int32)) -> tuple[tp.Numpy, tp.Numpy]:
        return labels.numpy(), network(images).numpy()

    return eval_job


def outcome_of(call):
    """The result, or a short description of the error."""
    try:
        return call()
    except flow.MinflowError as error:
        count = len(re.findall(r"^\d+\. ", str(error), re.MULTILINE))
        if count:
            return f"refused: {count} mistakes on its card"
        values = ", ".join(f"{name} {value}" for name, value in error.values.items() if "[" in value)
        what = re.sub(r"^nn\.\w+: | of job \w+", "", error.what)
        return f"refused: {values if 'expected' in error.values else what}"


def flatten_images(images):
    """A network of 64 classes: the score of a class is a pixel."""
    return flow.reshape(images, [images.shape[0], -1])


def result_types(make_eval, images, labels):
    """dtypes and shapes of the results, or why there are none."""
    return outcome_of(lambda: " and ".join(
        f"{one.dtype}{list(one.shape)}" for one in make_eval(flatten_images)(images, labels)))


def raises_error(make_eval, images, labels):
    """True if the job refuses this."""
    job = make_eval(flatten_images)
    try:
        job(images, labels)
    except flow.MinflowError:
        return "refused"
    return "taken"


def expected_labels(make_eval, images, labels):
    """Number of images that are read correctly."""
    def count():
        given, scores = make_eval(flatten_images)(images, labels)
        return int((scores.argmax(1) == given).sum())

    return outcome_of(count)


def labels_of_two_calls(make_eval, images, labels):
    """The labels of two calls of one job."""
    job = make_eval(flatten_images)
    return outcome_of(lambda: [job(images, numbers)[0].tolist() for numbers in (labels, labels[::-1].copy())])


@exercise.cases
def cases(rng):
    images = rng.random((50, 1, 8, 8)).astype("float32")
    labels = rng.integers(0, 10, 50).astype("int32")
    best = images.reshape(50, 64).argmax(1).astype("int32")
    best[:20] = 63 - best[:20]
    count = int((images.reshape(50, 64).argmax(1) == best).sum())
    yield case(images, labels, run=result_types, expected="int32[50] and float32[50, 64]",
               text="50 images of 1 x 8 x 8 float32, 50 labels int32, 64 scores each: what comes back")
    yield case(images, best, run=expected_labels, expected=count, text="how many of 50 are read right")
    both = [labels.tolist(), labels[::-1].tolist()]
    yield case(images, labels, run=labels_of_two_calls, expected=both, text="the labels of two calls")
    yield case(images.astype("float64"), labels, run=raises_error, expected="refused", text="images of float64")
    yield case(images[:49], labels[:49], run=raises_error, expected="refused", text="a batch of 49")
    yield case(images, best, run=expected_labels, expected=count, hidden=True)
    yield case(images, labels.astype("int64"), run=raises_error, expected="refused", hidden=True)
