"""00.3 keep_rate: which learning rate to keep, judged by how the curves of loss end."""

import math

import numpy as np

from ...definition import Exercise, case

exercise = Exercise(
    "00.3", "keep_rate", kind="measure", level="core", answer="best_rate", tolerance=(0, 0),
    question="Which learning rate do you keep?",
    hint="For each rate, take the mean of the last ten losses. Keep the rate with the lowest mean.",
    fact="One number of a noisy curve says little. A mean over its end says where it really is.",
    sibling="Two runners train. Times of the last runs in seconds: Ada 14, 12, 13 and Bo 11, 16, 18. Bo had the best "
            "single run and Ada the better end: her mean is (14 + 12 + 13) / 3 = 13, his is (11 + 16 + 18) / 3 = 15. "
            "`min(ends, key=ends.get)` of `ends = {\"Ada\": 13, \"Bo\": 15}` gives the name, not the time.",
)


@exercise.solution
def best_rate(losses):
    ends = {}
    for rate, values in losses.items():
        # where the curve ends: the mean of its last ten, or of all if they are fewer
        last = values[-10:]
        mean = sum(last) / len(last)
        # NaN is not even equal to itself: such a rate is left out
        if mean == mean:
            ends[rate] = mean
    # the rate, not its loss
    return min(ends, key=ends.get)


@exercise.also_right
def best_rate(losses):
    best, lowest = None, math.inf
    for rate in losses:
        end = sum(losses[rate][-10:]) / min(10, len(losses[rate]))
        if end < lowest:
            best, lowest = rate, end
    return best


@exercise.also_right
def best_rate(losses):
    rates = list(losses)
    return rates[int(np.nanargmin([np.mean(losses[rate][-10:]) for rate in rates]))]


@exercise.also_right
def best_rate(losses):
    def end(rate):
        last = losses[rate][-10:]
        return (math.isnan(sum(last)), sum(last) / len(last))

    return sorted(losses, key=end)[0]


def lowest(losses, end):
    """The rate with the lowest `end(its losses)`, those with NaN left out."""
    ends = {rate: end(values) for rate, values in losses.items()}
    return min((rate for rate in ends if ends[rate] == ends[rate]), key=ends.get)


def last_ten(values):
    return sum(values[-10:]) / len(values[-10:])


def without_nan(values):
    return [value for value in values if value == value]


@exercise.wrong("nan wins",
                "NaN is neither smaller nor larger than a number, so `min` keeps it where it comes first.",
                "Leave out a rate whose mean is NaN: `mean == mean` is False for NaN alone.")
def best_rate(losses):
    return min(losses, key=lambda rate: last_ten(losses[rate]))


NAN = ("You leave out the NaN losses and judge by the rest. But how did that training end?",
       "A rate with NaN in its last ten losses is broken: leave out the *rate*, not the NaN.")


@exercise.wrong("nan left out", *NAN)
def best_rate(losses):
    return lowest(losses, lambda values: last_ten(without_nan(values)))


@exercise.wrong("nan left out of the last ten", *NAN)
def best_rate(losses):
    return lowest(losses, lambda values: last_ten(without_nan(values[-10:]) or [math.inf]))


@exercise.wrong("nan as 0",
                "A NaN counts as 0 in yours, so a broken rate looks better than all others.",
                "A rate with NaN in its last ten losses is broken: leave it out.")
def best_rate(losses):
    return min(losses, key=lambda rate: last_ten([value if value == value else 0 for value in losses[rate]]))


@exercise.wrong("nan anywhere",
                "You leave out a rate for a NaN long before the end of its curve. Where does a NaN count?",
                "Look for NaN in `values[-10:]` alone.")
def best_rate(losses):
    return lowest(losses, lambda values: last_ten(values) + 0 * sum(values))


@exercise.wrong("lowest once",
                "You take the lowest loss of the whole curve. Lowest *once* is not where it ended.",
                "Take the last ten losses of each rate, and their mean.")
def best_rate(losses):
    return min(losses, key=lambda rate: min(losses[rate]))


@exercise.wrong("lowest of the last ten",
                "You take the lowest of the last ten losses. One noisy step decides.",
                "All ten count alike: take their mean.")
def best_rate(losses):
    return lowest(losses, lambda values: min(values[-10:]) + 0 * values[-1])


@exercise.wrong("the middle one",
                "You take the loss in the middle of the last ten, so a very high one does not count. Which average is "
                "asked for?",
                "The mean is the sum divided by how many there are. A median is not a mean.")
def best_rate(losses):
    return lowest(losses, lambda values: float(np.median(values[-10:])))


LAST = ("You take the last loss only. One noisy step decides.",
        "`values[-1]` is one number, `values[-10:]` are the last ten.")


@exercise.wrong("last one, with nan", *LAST)
def best_rate(losses):
    return min(losses, key=lambda rate: losses[rate][-1])


@exercise.wrong("last one", *LAST)
def best_rate(losses):
    return lowest(losses, lambda values: values[-1])


@exercise.wrong("without the last ten",
                "You cut off the last ten losses and look at the others. For a short curve nothing is left.",
                "`values[:-10]` are all *but* the last ten, `values[-10:]` are the last ten.")
def best_rate(losses):
    return lowest(losses, lambda values: sum(values[:-10]) / len(values[:-10]))


@exercise.wrong("without the last one",
                "You leave out the very last loss. For a curve of one loss nothing is left.",
                "`values[-10:-1]` ends before the last one, `values[-10:]` does not.")
def best_rate(losses):
    return lowest(losses, lambda values: sum(values[-10:-1]) / len(values[-10:-1]))


NUMBER = ("Count the losses at the end of each curve: how many does your mean take?",
          "`values[-10:]` are the last ten.")


@exercise.wrong("nine losses", *NUMBER)
def best_rate(losses):
    return lowest(losses, lambda values: last_ten(values[-9:]))


@exercise.wrong("eleven losses", *NUMBER)
def best_rate(losses):
    return lowest(losses, lambda values: sum(values[-11:]) / len(values[-11:]))


LOSS = ("You return a loss. Which *rate* had it?",
        "Go through `losses.items()` and keep two things: the lowest mean, and its rate.")


@exercise.wrong("the loss", *LOSS)
def best_rate(losses):
    return min(map(last_ten, losses.values()))


@exercise.wrong("the loss, without nan", *LOSS)
def best_rate(losses):
    return min(without_nan(map(last_ten, losses.values())))


HIGHEST = ("That rate has the highest loss. A loss is better when it is low.",
           "Ask for the smallest mean, not for the largest.")


@exercise.wrong("highest", *HIGHEST)
def best_rate(losses):
    return max(losses, key=lambda rate: last_ten(losses[rate]))


@exercise.wrong("highest, without nan", *HIGHEST)
def best_rate(losses):
    return lowest(losses, lambda values: -last_ten(values))


FIRST = ("You look at how the curves begin. How do they end?",
         "`values[:10]` are the first ten, `values[-10:]` the last.")


@exercise.wrong("first ten, with nan", *FIRST)
def best_rate(losses):
    return min(losses, key=lambda rate: last_ten(losses[rate][:10]))


@exercise.wrong("first ten", *FIRST)
def best_rate(losses):
    return lowest(losses, lambda values: last_ten(values[:10]))


WHOLE = ("You take the mean of the whole curve. The bad beginning counts as much as the end.",
         "Cut off the last ten first: `values[-10:]`. Then take the mean.")


@exercise.wrong("whole curve", *WHOLE)
def best_rate(losses):
    return min(losses, key=lambda rate: sum(losses[rate]) / len(losses[rate]))


@exercise.wrong("whole curve, without nan", *WHOLE)
def best_rate(losses):
    return lowest(losses, lambda values: sum(values) / len(values))


@exercise.wrong("sorted",
                "You sort the losses, so the last ten are the ten *largest*. Which ten came last in training?",
                "A curve of losses is in the order of the steps: leave that order as it is.")
def best_rate(losses):
    return lowest(losses, lambda values: last_ten(sorted(values)))


TEN = ("A curve of fewer than ten losses looks too good. What do you divide by?",
       "Divide the sum by how many there are: `len(last)`.")


@exercise.wrong("always ten", *TEN)
def best_rate(losses):
    return min(losses, key=lambda rate: sum(losses[rate][-10:]) / 10)


@exercise.wrong("always ten, without nan", *TEN)
def best_rate(losses):
    return lowest(losses, lambda values: sum(values[-10:]) / 10)


SHORT = ("You never keep a rate with fewer than ten losses. Such a rate is judged too, by the losses that it has.",
         "If there are only three losses, the last ten are these three: `values[-10:]` gives them.")


@exercise.wrong("short curves left out", *SHORT)
def best_rate(losses):
    long = {rate: values for rate, values in losses.items() if len(values) >= 10}
    return lowest(long, last_ten) if long else None


@exercise.wrong("only short curves left out", *SHORT)
def best_rate(losses):
    return lowest({rate: values for rate, values in losses.items() if len(values) >= 10}, last_ten)


BOUND = ("You begin with a lowest loss that you made up. What if every loss is above it?",
         'Begin with a number that no loss is above: `math.inf` or `float("inf")`. Or begin with the first rate.')


def below(bound, best, losses):
    """The rate with the lowest mean below the bound, else `best`."""
    for rate, values in losses.items():
        if last_ten(values) < bound:
            best, bound = rate, last_ten(values)
    return best


@exercise.wrong("a bound", *BOUND)
def best_rate(losses):
    return below(1e6, None, losses)


@exercise.wrong("a bound, and a rate of 0", *BOUND)
def best_rate(losses):
    return below(1e6, 0, losses)


@exercise.wrong("a bound, and the first rate", *BOUND)
def best_rate(losses):
    return below(1e6, next(iter(losses)), losses)


@exercise.wrong("a bound, and no rate", *BOUND)
def best_rate(losses):
    lowest = 1e6
    for rate, values in losses.items():
        if last_ten(values) < lowest:
            best, lowest = rate, last_ten(values)
    return best


@exercise.wrong("a bound of 1", *BOUND)
def best_rate(losses):
    return below(1, None, losses)


@exercise.wrong("a bound of 0", *BOUND)
def best_rate(losses):
    return below(0, None, losses)


@exercise.wrong("never lowered",
                "The last rate that is below your first bound wins. What must change together with the best rate?",
                "When a mean is lower, keep two things: the rate, and this mean as the new lowest.")
def best_rate(losses):
    best, lowest = None, 1000.0
    for rate, values in losses.items():
        last = values[-10:]
        if sum(last) / len(last) < lowest:
            best = rate
    return best


@exercise.wrong("the first rate",
                "You return the first rate that you look at. Have you seen the others by then? Where is your `return`?",
                "Move `return` out of the loop: below it, as far to the left as `for`.")
def best_rate(losses):
    rate = next(iter(losses))
    return below(math.inf, None, {rate: losses[rate]})


@exercise.wrong("the notebook's rate",
                "You return 0.1, whatever the losses are. Which rate is best for *these* losses?",
                "Compute the mean for each rate of the dict that you get, and compare.")
def best_rate(losses):
    return 0.1


@exercise.wrong("the smallest rate",
                "You compare the rates themselves. Their losses decide which one to keep.",
                "`min(losses)` is the smallest key of the dict. Compare the means of `losses[rate][-10:]`.")
def best_rate(losses):
    return min(losses)


@exercise.wrong("the largest fall",
                "You look at how far each loss fell. A curve may fall far and still end high: where does it end?",
                "The beginning of a curve does not count: compare the means of the last ten.")
def best_rate(losses):
    return max(losses, key=lambda rate: losses[rate][0] - losses[rate][-1])


@exercise.wrong("a place",
                "You return a place in a list. Which *rate* is there?",
                "`rates = list(losses)` holds the rates: `rates[place]` is one of them.")
def best_rate(losses):
    ends = [sum(values[-10:]) / len(values[-10:]) for values in losses.values()]
    return ends.index(min(ends))


@exercise.wrong("the notebook's own losses",
                "The dict that you look into has no such key. Which dict is it, and which rates are its keys?",
                "Go through the rates of the `losses` that your function gets: `for rate in losses`. `end` above reads "
                "the notebook's `losses` instead, and `losses[0]` asks for a rate of 0.")
def best_rate(losses):
    ends = {0.01: 1.7, 0.1: 0.1, 2.0: 2.4}
    return min(losses, key=lambda rate: ends[rate])


@exercise.wrong("the notebook's own rates",
                "These `losses` have other rates than those of the notebook. Which rates are in the dict that you get?",
                "`for rate in losses` goes through all of its rates, whichever they are.")
def best_rate(losses):
    return min((0.01, 0.1, 2.0), key=lambda rate: last_ten(losses[rate]))


def loss_curve(first, last, noise=0.0):
    """Ten losses around `first`, then ten around `last`, above and below in turns."""
    return [level + noise * (-1) ** i for level in (first, last) for i in range(10)]


@exercise.cases
def cases(rng):
    nan = math.nan
    yield case({0.5: [3.0], 0.1: [2.0]}, text="{0.5: [3.0], 0.1: [2.0]}")
    yield case({0.001: loss_curve(2.3, 2.2), 0.5: loss_curve(1.5, 0.2), 5.0: loss_curve(8.0, 2.4)},
               text="0.001 stays high, 0.5 falls, 5.0 begins at 8 and stays high")
    yield case({0.01: loss_curve(0.75, 0.75), 0.1: [*loss_curve(1.6, 0.8)[:-1], 0.3],
                2.0: [*loss_curve(1.7, 0.9)[:-3], 0.05, 0.9, 0.9],
                0.5: loss_curve(1.5, 0.4, 0.1)},
               text="noise: 2.0 has one very low loss, 0.1 a low last one, 0.5 ends low")
    yield case({1.0: loss_curve(0.3, 2.0), 0.1: loss_curve(2.0, 1.0), 0.3: loss_curve(1.1, 1.1),
                0.01: loss_curve(2.1, 2.5)},
               text="1.0 dips at first, then climbs; 0.1 ends lowest")
    yield case({1.0: [0.9, 0.9, 0.9], 0.1: [0.5] * 8, 0.01: loss_curve(2.2, 2.1)},
               text="fewer than ten: 1.0 has three losses of 0.9, 0.1 has eight of 0.5")
    yield case({5.0: [3.0, 40.0, *[nan] * 18], 0.5: loss_curve(0.9, 0.3), 0.01: loss_curve(2.2, 2.1)},
               text="5.0 comes first and ends in NaN")
    yield case({0.5: loss_curve(0.9, 0.3), 5.0: [0.2, 0.1, *[nan] * 18]}, text="5.0 begins low and ends in NaN")
    yield case({1.0: [0.5] * 19 + [8.0], 0.1: loss_curve(2.0, 0.9)},
               text="1.0 ends at 0.5, but with one loss of 8; 0.1 ends at 0.9")
    yield case({1.0: [0.9] * 10 + [9.0] + [0.1] * 9, 0.1: [0.5] * 20, 0.3: [0.9] * 9 + [9.0] + [0.3] * 10},
               text="1.0 has a loss of 9 as the first of its last ten, 0.3 has one just before its last ten")
    yield case({5.0: [2.0] * 10 + [0.2] * 5 + [nan] + [0.2] * 4, 0.5: loss_curve(0.9, 0.3)},
               text="5.0 has one NaN among its last ten losses")
    yield case({0.5: loss_curve(0.9, 0.3), 1.0: [2.0, nan, *[1.5] * 8, *[0.2] * 10]},
               text="1.0 has one NaN early, and ends at 0.2; 0.5 ends at 0.3")
    yield case({2.0: [7e200] * 12, 0.1: [9e200] * 10 + [3e200] * 25, 0.5: [5e200] * 3},
               text="all losses are huge: 2.0 ends at 7e200, 0.1 at 3e200, 0.5 at 5e200")
    rates = [float(rate) for rate in rng.permutation([0.003, 0.02, 0.2, 0.7])]
    ends = rng.permutation([0.4, 0.6, 0.9, 1.4])
    yield case({rate: [float(end + x) for x in rng.normal(0, 0.05, 30)] for rate, end in zip(rates, ends)}, hidden=True)
    yield case({rates[0]: loss_curve(1.0, 0.5), rates[1]: [2.0, *[nan] * 19], rates[2]: loss_curve(0.9, 0.8)},
               hidden=True)
