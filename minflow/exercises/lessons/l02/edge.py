"""02.4 edge: the learning rate at which a walk runs away."""

from ...definition import Exercise, as_number

exercise = Exercise(
    "02.4", "edge", kind="predict", level="core", answer="limit",
    question="From which rate on does the walk run away?",
    hint="Start at w = 1 and take two steps by hand, with rates 0.05, 0.1, 0.15 and 0.3. By which factor does w "
         "change?",
    fact="The steeper the valley, the smaller the largest rate: it is 2 divided by how fast the slope changes, here "
         "2/10. A loss with one steep and one flat direction must use the rate of the steep one, and walks slowly "
         "along the flat one.",
    sibling="Take the loss w**2. Its slope is 2*w, so a step goes from w to w - rate*2*w = (1 - 2*rate)*w. With rate "
            "0.25 the factor is 0.5: each step halves w. With rate 0.75 it is -0.5: w jumps to the other side, but "
            "comes nearer. With rate 1 it is -1: w jumps back and forth for ever. Above 1 it runs away.",
)
exercise.solution(0.2)


@exercise.accept
def accept(limit):
    return abs(as_number(limit) - 0.2) <= 1e-6


exercise.wrong_value(
    "a text", "0.2",
    "That is a text. Write a plain number, without quotes.",
    "Such as `limit = 0.3`.", when=lambda limit: isinstance(limit, str))
exercise.wrong_value(
    "several numbers", (0, 2),
    "Python reads a collection of numbers here. Write a single one, with a point and not with a comma: such as 0.3.",
    "`0,3` are the two numbers 0 and 3. `0.3` is one.",
    when=lambda limit: isinstance(limit, list | tuple | set | dict))
exercise.wrong_value(
    "another kind", True,
    "That is not a number. Write the rate as a plain number, such as 0.3.",
    "Such as `limit = 0.3`.", when=lambda limit: as_number(limit) is None)
exercise.wrong_value(
    "below 0", -1.0,
    "With a rate below 0 each step goes uphill: try -0.1 from w = 1. A factor may be below 0, a rate is not.",
    "The rate is a number above 0. The factor is 1 - 10*rate: at which rate is it -1?",
    when=lambda limit: as_number(limit) < 0)


exercise.wrong_value(
    "lands at once", 0.1,
    "At 0.1 the factor is 0: the walk lands in one step. Which rates above it still come nearer?",
    "Past 0.1 w changes its side at each step. It still comes nearer while the factor is between -1 and 0.")
exercise.wrong_value(
    "slope 5w", 0.4,
    "The slope of 5*w**2 is 10*w, not 5*w. Nudge it at w = 1.",
    "One step goes from w to w - rate*10*w. When does that land at -w?")
exercise.wrong_value(
    "factor of 0.02", 0.02,
    "At 0.02 one step goes from 1 to 0.8: that is nearer. Compute the factor. When is it below -1?",
    "The factor is 1 - 10*rate. At 0.02 it is 0.8.")
exercise.wrong_value(
    "none works", 0.0,
    "Tiny rates do work: they are slow, but they come nearer. Try 0.01 from w = 1.",
    "With rate 0.01 the factor is 0.9.")
exercise.wrong_value(
    "far too large", 1.0,
    "Take two steps by hand from w = 1: with rate 1, w becomes 1 - 10 = -9. And then?",
    "The size of w must shrink. With rate 0.5 it goes from 1 to -4.", when=lambda limit: as_number(limit) >= 0.5)
exercise.wrong_value(
    "still nearer", 0.15,
    "With this rate w still comes nearer to 0. Is there a larger one that does?",
    "The factor is 1 - 10*rate. It may go down to -1: then w jumps from 1 to -1 and back.",
    when=lambda limit: 0 < as_number(limit) < 0.2)
exercise.wrong_value(
    "runs away already", 0.3,
    "With this rate w is farther from 0 after each step. Try a smaller one, and take two steps.",
    "The factor is 1 - 10*rate. Below -1 each jump is longer than the last.",
    when=lambda limit: 0.2 < as_number(limit) < 0.5)
