"""10.3 three_mistakes: a train job that cannot be built."""

import functools
import re

import numpy as np

import minflow as flow

from ...definition import Exercise, case
from .promise import outcome_of

tp = flow.typing
exercise = Exercise(
    "10.3", "three_mistakes", kind="mend", level="core", answer="make_train", time_limit=10.0,
    question="Which three mistakes does this job have?",
    hint="Call the job and read its card: it names each mistake with its line.",
    fact="All mistakes of a job are reported together, since it is written down as a whole before anything runs. An "
         "eager program stops at the first.",
    sibling="A job has `a = flow.layers.dense(x, 8)` and `b = flow.layers.dense(a, 8)`. Both layers get the name "
            'Dense, and with it one weight for two shapes. `name="first"` and `name="second"` keep them apart. An '
            "optimizer must be told what to minimize: `flow.optimizer.SGD(rate).minimize(error)`, the error, not b.",
)


@exercise.stub
def make_train(Images, Labels):
    @flow.global_function(type="train")
    def train_job(images: Images, labels: Labels) -> tp.Numpy:
        start = flow.truncated_normal(0.1)
        flat = flow.reshape(images, [images.shape[0], -1])
        hidden = flow.layers.dense(flat, 64, activation=flow.nn.relu, kernel_initializer=start)
        scores = flow.layers.dense(hidden, 10, kernel_initializer=start)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(scores, labels)
        return loss

    return train_job


@exercise.solution
def make_train(Images, Labels):
    @flow.global_function(type="train")
    def train_job(images: Images, labels: Labels) -> tp.Numpy:
        start = flow.truncated_normal(0.1)
        flat = flow.reshape(images, [images.shape[0], -1])
        # each layer has a name of its own, and so its own weight
        hidden = flow.layers.dense(flat, 64, activation=flow.nn.relu, kernel_initializer=start, name="hidden")
        scores = flow.layers.dense(hidden, 10, kernel_initializer=start, name="output")
        # labels come first, then scores
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)
        # a train job says what it minimizes
        rate = flow.optimizer.PiecewiseConstantScheduler([], [0.05])
        flow.optimizer.SGD(rate).minimize(loss)
        return loss

    return train_job


@exercise.also_right
def make_train(Images, Labels):
    def dense(x, units, name, **options):
        return flow.layers.dense(x, units, kernel_initializer=flow.truncated_normal(0.1), name=name, **options)

    @flow.global_function(type="train")
    def train_job(images: Images, labels: Labels) -> tp.Numpy:
        hidden = dense(flow.reshape(images, [images.shape[0], -1]), 64, "a", activation=flow.nn.relu)
        scores = dense(hidden, 10, "b")
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(logits=scores, labels=labels)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.05]), momentum=0.9).minimize([loss])
        return loss

    return train_job


@exercise.also_right
def make_train(Images, Labels):
    """Slower, as in section 4: without momentum."""
    return job_of(Images, Labels, momentum=0, finish=minimize)


@exercise.also_right
def make_train(Images, Labels):
    @flow.global_function(type="train")
    def train_job(images: Images, labels: Labels) -> tp.Numpy:
        start = flow.truncated_normal(0.1)
        flat = flow.reshape(images, [images.shape[0], -1])
        hidden = flow.layers.dense(flat, 64, activation=flow.nn.relu, kernel_initializer=start)
        scores = flow.layers.dense(hidden, 10, kernel_initializer=start, name="Last")
        loss = flow.math.reduce_mean(flow.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))
        flow.optimizer.Adam(flow.optimizer.PiecewiseConstantScheduler([], [0.01])).minimize(loss)
        return loss

    return train_job


RATE = flow.optimizer.PiecewiseConstantScheduler([], [0.05])


def job_of(Images, Labels, names=("hidden", "output"), kind="train", start=0.1, turned=False, momentum=0.9, finish=None,
           rate=RATE, back=lambda loss: loss, **flatten):
    """A job with the given mistakes."""
    @flow.global_function(type=kind)
    def train_job(images: Images, labels: Labels) -> tp.Numpy:
        options = {} if start is None else {"kernel_initializer": flow.truncated_normal(start)}
        flat = flow.reshape(images, [images.shape[0], -1], **flatten)
        named = [{"name": name} if name else {} for name in names]
        hidden = flow.layers.dense(flat, 64, activation=flow.nn.relu, **options, **named[0])
        scores = flow.layers.dense(hidden, 10, **options, **named[1])
        pair = (scores, labels) if turned else (labels, scores)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(*pair)
        if finish is not None:
            finish(flow.optimizer.SGD(rate, momentum=momentum), loss, scores)
        return back(loss)

    return train_job


def minimize(optimizer, loss, scores):
    optimizer.minimize(loss)


@exercise.wrong("all three",
                "All three mistakes are still there. Call the job with a batch, and read its card.",
                "The card shows each mistake with its line, and with what to try.")
def make_train(Images, Labels):
    return job_of(Images, Labels, (None, None), turned=True)


@exercise.wrong("one name for both",
                "Both layers have the same name: they would share one weight. Each needs a name of its own.",
                'Two different texts: `name="hidden"` for the first, another for the second.')
def make_train(Images, Labels):
    return job_of(Images, Labels, ("layer", "layer"), finish=minimize)


@exercise.wrong("layers without names",
                "Both layers are still called Dense. Which lines of the job make variables?",
                "`dense` makes a weight and an offset, `reshape` makes nothing: name the two layers.")
def make_train(Images, Labels):
    return job_of(Images, Labels, (None, None), finish=minimize, name="flat")


@exercise.wrong("still swapped",
                "Labels and scores are still the wrong way round. Which of the two is int32?",
                "The first argument of the loss is `labels`.")
def make_train(Images, Labels):
    return job_of(Images, Labels, turned=True, finish=minimize)


@exercise.wrong("nothing to minimize",
                "A train job has to say what to minimize. The optimizer does not know it by itself.",
                "`flow.optimizer.SGD(rate).minimize(loss)`: the last part says so.")
def make_train(Images, Labels):
    return job_of(Images, Labels, finish=lambda optimizer, loss, scores: None)


@exercise.wrong("minimizes the scores",
                "It minimizes the scores, and the loss grows. What should become small?",
                "The scores are the network's answer. The loss says how wrong it is.")
def make_train(Images, Labels):
    return job_of(Images, Labels, finish=lambda optimizer, loss, scores: optimizer.minimize(scores))


@exercise.wrong("starts at zero",
                "It builds, but does not learn: without `kernel_initializer` all weights start at 0.",
                "Leave `kernel_initializer=start` in both layers. It was not a mistake.")
def make_train(Images, Labels):
    return job_of(Images, Labels, start=None, finish=minimize)


@exercise.wrong("a predict job",
                "It builds now, since a predict job needs no optimizer. But it never learns.",
                'Leave type="train", and give it an optimizer with something to minimize.')
def make_train(Images, Labels):
    return job_of(Images, Labels, kind="predict")


@exercise.wrong("two left",
                "One mistake is mended. The card of the job names the two that are left: call it again.",
                "The card shows each mistake with its line, and with what to try.")
def make_train(Images, Labels):
    return job_of(Images, Labels, (None, None))


@exercise.wrong("another rate",
                "It trains, with another rate than the one of the question.",
                "The list of rates is the second argument of the scheduler.")
def make_train(Images, Labels):
    return job_of(Images, Labels, finish=minimize, rate=flow.optimizer.PiecewiseConstantScheduler([], [0.5]))


@exercise.wrong("a rate that ends",
                "Only the first steps have the rate 0.05, then it learns no more. What does the first list of the "
                "scheduler say?",
                "One rate for all steps: the first list is empty, the second has one entry.")
def make_train(Images, Labels):
    return job_of(Images, Labels, finish=minimize, rate=flow.optimizer.PiecewiseConstantScheduler([1], [0.05, 0.0]))


@exercise.wrong("a plain rate",
                "The optimizer of a job takes a schedule of rates, not one number. How is it written in section 3?",
                "`flow.optimizer.PiecewiseConstantScheduler([], [...])` makes a schedule.")
def make_train(Images, Labels):
    return job_of(Images, Labels, finish=minimize, rate=0.05)


@exercise.wrong("backward in a job",
                "`backward` belongs to eager code. What does the backward pass and the update in a train job?",
                "An optimizer that is told what to minimize does both.")
def make_train(Images, Labels):
    return job_of(Images, Labels, finish=lambda optimizer, loss, scores: loss.backward())


@exercise.wrong("optimizer of eager code",
                "`flow.optim` is for eager code. Where does the job in section 3 get its optimizer from?",
                "`flow.optimizer.SGD`")
def make_train(Images, Labels):
    return job_of(Images, Labels, finish=lambda optimizer, loss, scores: flow.optim.SGD(lr=0.05))


@exercise.wrong("loss not returned",
                "The job trains, but gives nothing back. What does its annotation promise?",
                "Its last line is `return loss`.")
def make_train(Images, Labels):
    return job_of(Images, Labels, finish=minimize, back=lambda loss: None)


@exercise.wrong("no job returned",
                "make_train gives nothing back. What should it return?",
                "Its last line is `return train_job`, as far to the left as the decorator.")
def make_train(Images, Labels):
    job_of(Images, Labels, finish=minimize)


@exercise.wrong("predict with an optimizer",
                "It has an optimizer now, and its type says that it does not train. The type was not a mistake.",
                'Leave type="train".')
def make_train(Images, Labels):
    return job_of(Images, Labels, kind="predict", finish=minimize)


# ---- how it is judged ------------------------------------------------------------------------------------------------

@functools.cache
def digit_batches(batch):
    """Placeholders for a batch, and the batches."""
    (images, labels), _ = flow.data.digits(batch)
    return (tp.Numpy.Placeholder((batch, 1, 8, 8)), tp.Numpy.Placeholder((batch,), dtype=flow.int32)), images, labels


def hide_variable_names(call):
    """Leave out the names that learners choose, except for the default, and what would not fit into a row."""
    result = outcome_of(call)
    if not isinstance(result, str):
        return result
    result = re.sub(r"(are swapped|has one gradient)[:,] .*", r"\1", result)
    return re.sub(r"'(?!Dense)[^'-]*-", "'...-", result)


def first_call_works(make_train, batch):
    """True if a first call works."""
    kinds, images, labels = digit_batches(batch)
    return hide_variable_names(lambda: make_train(*kinds)(images[0], labels[0]) is not None and "it builds")


def variables(make_train, batch):
    """The sizes of all variables of the job, sorted."""
    kinds, images, labels = digit_batches(batch)

    def sizes():
        make_train(*kinds)(images[0], labels[0])
        return sorted(list(one.shape) for name, one in flow.get_all_variables().items()
                      if re.search("-(weight|bias)$", name))

    return hide_variable_names(sizes)


def first_loss(make_train, batch):
    """True if the first loss is that of an untrained network with ten classes."""
    kinds, images, labels = digit_batches(batch)

    def loss():
        found = float(np.mean(make_train(*kinds)(images[0], labels[0])))
        return "near ln 10" if abs(found - np.log(10)) < 0.4 else "not near ln 10"

    return hide_variable_names(loss)


def count_steps(make_train, batch):
    """Number of training steps that it counts after two calls."""
    kinds, images, labels = digit_batches(batch)

    def steps():
        job = make_train(*kinds)
        for i in range(2):
            job(images[i], labels[i])
        return job.steps

    return hide_variable_names(steps)


def last_offsets():
    """The offsets of the last layer, as they are now."""
    return next(one.numpy() for name, one in flow.get_all_variables().items()
                if name.endswith("-bias") and len(one) == 10).copy()


def rate_of_step(make_train, batch):
    """Compare the first step of the last offsets with that of the rate 0.05. Images are 0: weights do not matter."""
    kinds, images, labels = digit_batches(batch)

    def offsets(maker):
        flow.clear_default_session()
        maker(*kinds)(0 * images[0], labels[0])
        return last_offsets()

    def rate():
        mine, usual = offsets(make_train), offsets(functools.partial(job_of, finish=minimize))
        factor = float(mine @ usual / (usual @ usual))
        sgd = np.allclose(mine, factor * usual, atol=1e-6)
        return "another rate" if sgd and abs(factor - 1) > 0.01 else "the rate 0.05"

    return hide_variable_names(rate)


def loss_after(make_train, batch, order):
    """The loss after these batches."""
    kinds, images, labels = digit_batches(batch)

    def train():
        job = make_train(*kinds)
        for i in order:
            before = last_offsets() if job.steps else None
            loss = float(np.mean(job(images[i % len(images)], labels[i % len(images)])))
        after = last_offsets()
        if abs(after - before).max() < 1e-3 * abs(after).max():
            return "the last steps change hardly anything"
        return "it has fallen" if loss < 2.2 else "it stays the same" if loss < 3 else "it has grown"

    return hide_variable_names(train)


@exercise.cases
def cases(rng):
    yield case(50, run=first_call_works, expected="it builds", text="the first call, with 50 images")
    yield case(50, run=variables, expected=[[10], [10, 64], [64], [64, 64]], text="the shapes of its variables, sorted")
    yield case(50, run=first_loss, expected="near ln 10", text="the first loss")
    yield case(50, run=count_steps, expected=2, text="how many training steps it counts after two calls")
    yield case(50, run=rate_of_step, expected="the rate 0.05", text="how far its first step goes")
    yield case(50, rng.permutation(29).tolist() * 2, run=loss_after, expected="it has fallen",
               text="the loss after 58 steps")
    yield case(25, run=first_call_works, expected="it builds", hidden=True)
    yield case(25, run=first_loss, expected="near ln 10", hidden=True)
