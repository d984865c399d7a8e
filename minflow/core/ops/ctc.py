"""Connectionist temporal classification: the probability of a text, summed over all its alignments with the frames.

Source: Graves, Fernandez, Gomez & Schmidhuber 2006, section 4, in logarithms and for all examples at once.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from ..backend import on_host, to_host
from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import define
from ..source_location import fail
from ..spec import Spec
from .checks import check_range, refuse
from .examples import case, floats, ints
from .rules import need_floating, need_index, need_spec


def ctc_spec(log_probs: Spec, targets: Spec, input_lengths: Spec, target_lengths: Spec, blank: int) -> Spec:
    """The shape rule of ctc: one loss for each example."""
    need_floating("ctc_loss", log_probs, "log_probs")
    for name, spec in (("targets", targets), ("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if not isinstance(spec, Spec):
            raise DTypeError(f"ctc_loss: {name} is a number", hint=f"flow.tensor(...) for {name}")
        need_index("ctc_loss", spec, name)
    n = log_probs.shape[1] if log_probs.ndim == 3 else -1
    if input_lengths.size != n or target_lengths.size != n or targets.shape[:-1] not in ((), (n,)) or not targets.ndim:
        raise ShapeError(
            f"ctc_loss: {{log_probs}} is {log_probs}, {{targets}} {targets}, the lengths {input_lengths} "
            f"and {target_lengths}",
            hint="(T, N, C), (N, S) or one after another, and N lengths each",
        )
    if not 0 <= blank < log_probs.shape[2]:
        raise OutOfRangeError(
            f"ctc_loss: blank must be from 0 to {log_probs.shape[2] - 1}, got {blank}", hint="blank=0"
        )
    return log_probs.replace(shape=log_probs.shape[1:2])


LOG_PROB_RANGE: dict[str, Any] = dict(low=-3.0, high=-0.1)
CASES = [
    (floats(5, 2, 4, **LOG_PROB_RANGE), ints(2, 2, low=1, high=4), ints(2, low=4, high=6), ints(2, low=1, high=3)),
    (floats(5, 2, 3, **LOG_PROB_RANGE), ints(3, low=1, high=2), ints(2, low=5, high=6), ints(2, low=1, high=2)),
    (
        floats(3, 1, 3, dtype="float32", **LOG_PROB_RANGE),
        ints(1, 0, low=1, high=2),
        ints(1, low=3, high=4),
        ints(1, high=1),
    ),
]

# A primitive, because a loop over the frames would take a dozen ops per frame.
ctc = define(
    "ctc(log_probs, targets, input_lengths, target_lengths; blank)",
    ctc_spec,
    dict(
        log_probs=lambda g, log_probs, targets, input_lengths, target_lengths, blank: ctc_grad(
            g, log_probs, targets, input_lengths, target_lengths, blank=blank
        )
    ),
    second_order=False,
    autocast="float32",
    host_inputs=("input_lengths", "target_lengths"),
    sharding=lambda log_probs, targets, *_, **__: ". n ., n ., n, n -> n" if targets.ndim == 2 else None,
    examples=[case(*each, blank=0) for each in CASES],
    doc="-log probability that the frames (T, N, C) spell each of N targets, without repeats and blanks.",
)


def ctc_grad_spec(grad: Spec, log_probs: Spec, *rest: Spec, blank: int) -> Spec:
    need_spec("ctc_loss", ctc_spec(log_probs, *rest, blank=blank), grad=grad)
    return log_probs


ctc_grad = define(
    "ctc_grad(grad, log_probs, targets, input_lengths, target_lengths; blank)",
    ctc_grad_spec,
    second_order=False,
    host_inputs=("input_lengths", "target_lengths"),
    sharding=lambda grad, log_probs, targets, *_, **__: "n, . n ., n ., n, n -> . n ." if targets.ndim == 2 else None,
    linear=("grad",),
    examples=[case(floats(each[0].shape[1], dtype=each[0].dtype), *each, blank=0) for each in CASES],
    doc="The gradient of ctc: minus the probability of each class in each frame, given the target.",
)


def class_error(classes: int, blank: int, least: float, most: float) -> OutOfRangeError:
    what = f"ctc_loss: targets must be classes, 0 to {classes - 1}, got {int(least if least < 0 else most)}"
    return OutOfRangeError(what, hint=f"log_probs (T, N, C) with more classes; {blank} is the blank")


class Lattice:
    """The states of all examples, blank, label, blank, ... (N, 2 * S + 1), and their emissions in each frame."""

    def __init__(self, xp, log_probs, targets, input_lengths, target_lengths, blank: int):
        frames, examples, classes = log_probs.shape
        lengths = [to_host(n).reshape(-1).astype("int64") for n in (input_lengths, target_lengths)]
        longest = targets.shape[1] if targets.ndim == 2 else min(int(lengths[1].max(initial=0)), targets.size)
        self.check("input_lengths", lengths[0], frames)
        self.check("target_lengths", lengths[1], longest)
        if targets.ndim == 1 and lengths[1].sum() > targets.size:
            what = f"ctc_loss: target_lengths add up to {lengths[1].sum()}, and there are {targets.size} targets"
            fail(OutOfRangeError, what, "the targets of all examples one after another, or padded as (N, S)")
        self.frames, self.labels = map(xp.asarray, lengths)
        place = xp.arange(longest)
        inside = place < self.labels[:, None]
        if targets.ndim == 1:
            starts = (xp.cumsum(self.labels) - self.labels)[:, None]
            targets = targets[xp.where(inside, starts + place, 0)] if targets.size else xp.zeros(inside.shape, "int64")
        wrong = inside & ((targets < 0) | (targets >= classes))
        if not on_host(targets):
            error = functools.partial(class_error, classes, blank)
            check_range(xp.where(wrong, targets, 0), 0, classes - 1, error, ("ctc_loss", blank))
        elif wrong.any():
            refuse(class_error(classes, blank, targets[wrong][0], targets[wrong][0]))
        self.states = xp.full((examples, 2 * longest + 1), blank, "int64")
        self.states[:, 1::2] = xp.where(inside, targets, blank)
        self.skips = xp.zeros(self.states.shape, bool)  # a transition from two states back: not to a blank or a repeat
        self.skips[:, 2:] = (self.states[:, 2:] != blank) & (self.states[:, 2:] != self.states[:, :-2])
        self.emits = xp.take_along_axis(log_probs.astype("float64"), self.states[None], 2)
        self.xp, self.each = xp, xp.arange(examples)

    def check(self, name: str, lengths, most: int) -> None:
        if lengths.size and (lengths.min() < 0 or lengths.max() > most):
            wrong = lengths[(lengths < 0) | (lengths > most)][0]
            fail(OutOfRangeError, f"ctc_loss: {name} holds {wrong}, where 0 to {most} can be", "lengths as they are")

    def forward(self):
        """alpha (T, N, states): log probability of all paths into a state, including its frame."""
        xp, alpha = self.xp, self.xp.full(self.emits.shape, -math.inf)
        alpha[:1, :, :2] = self.emits[:1, :, :2]
        for t in range(1, len(alpha) if alpha.size else 0):
            a, b, c = alpha[t - 1], xp.full_like(alpha[0], -math.inf), xp.full_like(alpha[0], -math.inf)
            b[:, 1:] = a[:, :-1]
            c[:, 2:] = xp.where(self.skips[:, 2:], a[:, :-2], -math.inf)
            alpha[t] = xp.logaddexp(xp.logaddexp(a, b), c) + self.emits[t]
        return alpha

    def backward(self):
        """beta (T, N, states): log probability of all paths out of a state, excluding its frame."""
        xp, beta = self.xp, self.xp.full(self.emits.shape, -math.inf)
        final, last = xp.full(self.states.shape, -math.inf), 2 * self.labels  # in the last frame of an example
        final[self.each, last], final[self.each, xp.maximum(last - 1, 0)] = 0, 0
        for t in reversed(range(len(beta) if beta.size else 0)):
            if t + 1 < len(beta):
                a, b, c = beta[t + 1] + self.emits[t + 1], beta[t].copy(), beta[t].copy()
                b[:, :-1] = a[:, 1:]
                c[:, :-2] = xp.where(self.skips[:, 2:], a[:, 2:], -math.inf)
                beta[t] = xp.logaddexp(xp.logaddexp(a, b), c)
            beta[t] = xp.where((self.frames == t + 1)[:, None], final, beta[t])
        return beta

    def total(self, alpha):
        """Log probability of each target."""
        xp, last = self.xp, 2 * self.labels
        if not len(alpha):
            return xp.where(last == 0, 0.0, -math.inf)
        end = alpha[self.frames - 1, self.each]
        before = xp.where(last > 0, end[self.each, xp.maximum(last - 1, 0)], -math.inf)
        found = xp.logaddexp(end[self.each, last], before)
        return xp.where(self.frames > 0, found, xp.where(last == 0, 0.0, -math.inf))


@kernel(ctc)
def _(xp, log_probs, targets, input_lengths, target_lengths, blank):
    with silent():
        lattice = Lattice(xp, log_probs, targets, input_lengths, target_lengths, blank)
        return (0.0 - lattice.total(lattice.forward())).astype(log_probs.dtype)


@kernel(ctc_grad)
def _(xp, grad, log_probs, targets, input_lengths, target_lengths, blank):
    lattice = Lattice(xp, log_probs, targets, input_lengths, target_lengths, blank)
    found = xp.zeros(log_probs.shape)
    with silent():
        alpha = lattice.forward()
        chance = xp.exp(alpha + lattice.backward() - lattice.total(alpha)[:, None])
        t, n = xp.ogrid[: chance.shape[0], : chance.shape[1]]
        counts = ((grad != 0) & (t < lattice.frames))[..., None]  # no 0 * NaN
        chance = xp.where(counts, chance * -grad.astype("float64")[:, None], 0)
        xp.add.at(found, (t[..., None], n[..., None], lattice.states[None]), chance)
    return found.astype(log_probs.dtype)
