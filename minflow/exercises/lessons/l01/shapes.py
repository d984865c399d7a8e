"""01.1 shapes: what comes out of sums and products of different shapes, predicted."""

from ...definition import Exercise

exercise = Exercise(
    "01.1", "shapes", kind="predict", level="warm-up",
    question="Which shapes come out, and which of these are errors?",
    hint="Write the two shapes under each other with their right ends together. Sizes must be equal, or one of them "
         "must be 1.",
    fact="Nothing is copied when a 1 stretches: the same numbers are read again. So stretching takes no extra memory. "
         "The result does: it has its full size.",
    sibling="(5, 2, 3) and (2, 1), right ends together: 3 over 1 gives 3, 2 over 2 gives 2, and 5 has no partner. The "
            "result is (5, 2, 3). (5, 2) and (5,): 2 over 5, neither is 1: an error. The mean over axis 1 of (5, 2) "
            "is (5,): axis 1, of size 2, is gone.",
)
RIGHT = [(4, 3), (4, 3), (2, 4, 3), (3,), "error"]
exercise.solution(RIGHT)
exercise.also_right([[4, 3], [4, 3], [2, 4, 3], [3], "error"])
exercise.also_right(tuple(RIGHT))


@exercise.accept
def in_order(shapes):
    """A tuple for a list, a list for a tuple and "Error" for "error" are fine."""
    return [one.lower() if isinstance(one, str) else tuple(one) for one in shapes] == RIGHT


def replace_answers(*changes):
    """The right answers with some of them replaced."""
    answers = list(RIGHT)
    for place, answer in changes:
        answers[place] = answer
    return answers


def has_answer(place, *answers):
    """True if one of these is the answer at that place."""
    return lambda shapes: any(
        shapes[place] == one if isinstance(one, str) else list(shapes[place]) == list(one) for one in answers)


def differs(place):
    """True if the answer at that place is not right."""
    return lambda shapes: shapes[place] != RIGHT[place] and not has_answer(place, RIGHT[place])(shapes)


exercise.wrong_value(
    "no list", "(4, 3), (4, 3), (2, 4, 3), (3,), error",
    "Write a list of five answers in square brackets, without quotes around it.",
    'Such as `[(2, 3), "error", ...]`: five entries with commas between them.',
    when=lambda shapes: not isinstance(shapes, list | tuple))
exercise.wrong_value(
    "another number of answers", RIGHT[:4],
    "Five questions, five answers: a list with five entries, in this order.",
    'An entry is a shape such as (4, 3), or "error".',
    when=lambda shapes: len(shapes) != 5)
exercise.wrong_value(
    "quotes", ["(4, 3)", "(4, 3)", "(2, 4, 3)", "(3,)", "error"],
    'Write a shape without quotes: (4, 3), not "(4, 3)".',
    'Only "error" is a text.',
    when=lambda shapes: any(isinstance(one, str) and "(" in one for one in shapes))
exercise.wrong_value(
    "another word", replace_answers((4, "an error")),
    'An entry is a shape in brackets, or exactly the text "error".',
    'If two shapes do not fit, write "error" in quotes, without any other word.',
    when=lambda shapes: any(one is None or isinstance(one, str) and one.lower() != "error" for one in shapes))
exercise.wrong_value(
    "no comma", replace_answers((3, 3)),
    "A shape with a single axis is written with a comma: (5,). Without it, Python reads a plain number.",
    "`(5)` is the number 5, `(5,)` is a tuple with one entry.",
    when=lambda shapes: any(isinstance(one, int) for one in shapes))
exercise.wrong_value(
    "all different shapes", replace_answers((0, "error"), (1, "error"), (2, "error")),
    "Shapes need not be the same. What happens to an axis of size 1, and to an axis that is missing on the left?",
    "A size of 1 stretches to the size that it meets, and a missing axis on the left counts as 1.",
    when=lambda shapes: shapes[0] == shapes[1] == "error")
exercise.wrong_value(
    "left ends", replace_answers((0, "error"), (4, (4, 3))),
    "You laid the left ends together. Write the shapes under each other with their *right* ends together.",
    "(4, 3) over (3,): the last 3 is over the 3, and the 4 has nothing below it.",
    when=has_answer(0, "error"))
exercise.wrong_value(
    "first", replace_answers((0, (3, 4))),
    "Look at the first. Which sizes meet at the right end, and what becomes of an axis that meets nothing?",
    "Sizes are not added, and they keep their order: 3 over 3 stays 3, and the axis to its left is kept.",
    when=differs(0))
exercise.wrong_value(
    "no stretching", replace_answers((1, "error")),
    "The second fits: a size of 1 stretches to whatever it meets.",
    "(4, 1) over (1, 3): on the right 1 meets 3, on the left 4 meets 1. Both stretch.",
    when=has_answer(1, "error"))
exercise.wrong_value(
    "one of the two", replace_answers((1, (4, 1))),
    "In the second *both* stretch: each size of 1 becomes the size that it meets.",
    "Go axis by axis: 1 meets 3, and 4 meets 1. Take the larger each time.",
    when=differs(1))
exercise.wrong_value(
    "third", replace_answers((2, (2, 4, 1))),
    "Look at the right end of the third: 3 meets 1. Which of them stretches? Then go on to the left.",
    "Go from the right: 3 meets 1, then 1 meets 4, then 2 has nothing to meet.",
    when=differs(2))
exercise.wrong_value(
    "the other axis", replace_answers((3, (4,))),
    "The axis that you name is the one that goes. Which size stays?",
    "Axis 0 of (4, 3) has size 4. Summed over it, the 4 is gone.",
    when=differs(3))
exercise.wrong_value(
    "does not fit", replace_answers((4, (4, 3))),
    "Look at the last: 3 meets 4 at the right end, and neither is 1.",
    'Only a size of 1 stretches. If they do not fit, the answer is the text "error".',
    when=differs(4))
