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
    forbidden={name: "Write the placeholder out in full, with its sizes." for name in ("Images", "Labels")},
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


@exercise.wrong("an axis missing",
                "Images have four sizes: the batch, the channel, rows and columns. Which one is missing?",
                "The first size is how many images there are; the second is 1, since they are gray.")
def make_eval(network):
    @flow.global_function(type="predict")
    def eval_job(images: tp.Numpy.Placeholder((1, 8, 8)),
                 labels: tp.Numpy.Placeholder((50,), dtype=flow.int32)) -> tuple[tp.Numpy, tp.Numpy]:
        return labels, network(images)

    return eval_job


@exercise.wrong("other sizes of images",
                "The four sizes that you promise are not those of the images. Which were printed above?",
                "They come in batches of 50, and each is 8 x 8 pixels.")
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
                "A call of your job does not wait for its arrays. What do you promise after the arrow `->`?",
                "Without an annotation after `->`, or with `tp.Callback`, it gives a handle: that is for lesson 11.")
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


def job_of(network, images, labels, gives, back=lambda labels, scores: (labels, scores)):
    """A job with these annotations."""
    @flow.global_function(type="predict")
    def eval_job(images: images, labels: labels) -> gives:
        return back(labels, network(images))

    return eval_job


PAIR = tuple[tp.Numpy, tp.Numpy]
IMAGES, LABELS = tp.Numpy.Placeholder((50, 1, 8, 8)), tp.Numpy.Placeholder((50,), dtype=flow.int32)


@exercise.wrong("flat images",
                "You promise images with two axes. The network flattens them itself: how do they come?",
                "Four sizes: the batch, the channel, rows and columns.")
def make_eval(network):
    return job_of(network, tp.Numpy.Placeholder((50, 64)), LABELS, PAIR)


@exercise.wrong("one axis for images",
                "You promise images with one axis. Have you taken the shape of the labels, or of another job?",
                "Four sizes: the batch, the channel, rows and columns.")
def make_eval(network):
    return job_of(network, tp.Numpy.Placeholder((50,)), LABELS, PAIR)


@exercise.wrong("images of another dtype",
                "The sizes of the images are right, their dtype is not. Which one was printed above?",
                "float32 is what a placeholder takes if you say nothing.")
def make_eval(network):
    return job_of(network, tp.Numpy.Placeholder((50, 1, 8, 8), dtype=flow.float64), LABELS, PAIR)


@exercise.wrong("labels as a table",
                "You promise a table of labels. A label is one number for each image: how many axes is that?",
                "The shape was printed above: one size.")
def make_eval(network):
    return job_of(network, IMAGES, tp.Numpy.Placeholder((50, 10), dtype=flow.int32), PAIR)


@exercise.wrong("other size of labels",
                "There are as many labels as images in a batch. How many do you promise?",
                "The size was printed above.")
def make_eval(network):
    return job_of(network, IMAGES, tp.Numpy.Placeholder((10,), dtype=flow.int32), PAIR)


@exercise.wrong("no sizes",
                "An argument of a job needs its sizes and its dtype: where do you promise them?",
                "`tp.Numpy.Placeholder(...)`, as in `double` above.")
def make_eval(network):
    return job_of(network, tp.Numpy, tp.Numpy, PAIR)


@exercise.wrong("no placeholder",
                "Your annotation of the images is not a placeholder. Which one takes NumPy arrays?",
                "`tp.Numpy.Placeholder(...)`, as in `double` above.")
def make_eval(network):
    return job_of(network, list, list, PAIR)


@exercise.wrong("other form of a pair",
                "Two arrays come back, and that can be said in one form only. Which one has the job `ends` above?",
                "`tuple[...]` with one `tp.Numpy` for each array; results have no placeholder.")
def make_eval(network):
    return job_of(network, IMAGES, LABELS, [tp.Numpy, tp.Numpy])


@exercise.wrong("a number as a shape",
                "`(50)` and `50` are numbers. How is a shape with one axis written?",
                "With a comma: the `(3,)` of `double` above.")
def make_eval(network):
    return job_of(network, IMAGES, tp.Numpy.Placeholder(50, dtype=flow.int32), PAIR)


@exercise.wrong("sizes without brackets",
                "The sizes are *one* argument of the placeholder. What makes one of four numbers?",
                "A tuple: round brackets around the sizes.")
def make_eval(network):
    return job_of(network, tp.Numpy.Placeholder(50, 1, 8, 8), LABELS, PAIR)


@exercise.wrong("results swapped",
                "The scores come first in yours. Only the annotations were to be filled in: leave the last line.",
                "`return labels, network(images)`")
def make_eval(network):
    return job_of(network, IMAGES, LABELS, PAIR, lambda labels, scores: (scores, labels))


@exercise.wrong("no job returned",
                "make_eval gives nothing back. What should it return?",
                "Its last line is `return eval_job`, as far to the left as the decorator.")
def make_eval(network):
    job_of(network, IMAGES, LABELS, PAIR)


@exercise.wrong("job called",
                "make_eval calls the job itself, without images. It should give the job back.",
                "`return eval_job`, without parentheses.")
def make_eval(network):
    return job_of(network, IMAGES, LABELS, PAIR)()


@exercise.wrong("no decorator",
                "Without `@flow.global_function` it is a plain function, which gets arrays and no Blobs.",
                "Leave the line with the `@` where it was.")
def make_eval(network):
    def eval_job(images, labels):
        return labels, network(images)

    return eval_job


def promised(expected, given, name):
    """Describe the mistake in a promise, such as "float32[50, 8, 8]" for arrays "float32[50, 1, 8, 8]"."""
    (dtype, sizes), (_, right) = (re.fullmatch(r"(\w+)(\[.*\])", text).groups() for text in (expected, given))
    mine, theirs = (text.count(",") + 1 for text in (sizes, right))
    if mine != theirs:
        return f"{name} with {mine} axes promised, {theirs} come"
    return f"other sizes of {name} promised" if sizes != right else f"{name} of dtype {dtype} promised"


def outcome_of(call):
    """The result, or a short description of the error."""
    try:
        return call()
    except flow.MinflowError as error:
        count = len(re.findall(r"^\d+\. ", str(error), re.MULTILINE))
        if count:
            return f"refused: {count} mistakes on its card"
        what = re.sub(r"^nn\.\w+: | of job \w+", "", error.what)
        if "expected" in error.values:
            (name, given), = [item for item in error.values.items() if item[0] != "expected"][:1]
            what = promised(error.values["expected"], given, name.removeprefix("got "))
        return f"refused: {what}"


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
               text="50 images of 1 x 8 x 8 float32, 50 labels int32, a test network whose scores are the 64 pixels: "
                    "what comes back")
    yield case(images, best, run=expected_labels, expected=count, text="how many of 50 are read right")
    both = [labels.tolist(), labels[::-1].tolist()]
    yield case(images, labels, run=labels_of_two_calls, expected=both, text="the labels of two calls")
    yield case(images.astype("float64"), labels, run=raises_error, expected="refused", text="images of float64")
    yield case(images[:49], labels[:49], run=raises_error, expected="refused", text="a batch of 49")
    yield case(images, best, run=expected_labels, expected=count, hidden=True)
    yield case(images, labels.astype("int64"), run=raises_error, expected="refused", hidden=True)
