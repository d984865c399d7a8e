"""06.3 two_cheats: a program that uses test images in two places."""

from ...definition import Exercise

exercise = Exercise(
    "06.3", "two_cheats", kind="mend", level="core", answer="lines", value=True,
    question="In which two lines does this program cheat?",
    hint="Go through the lines. Which ones use a number that was computed from test images?",
    fact="Each such leak is small, and they add up: publish only numbers from images that decided nothing.",
    sibling="A teacher sets an exam, and looks at it to choose what the class revises the day before. The marks are "
            "good, and say little about the year. It would be fair to revise with last year's exam, and to keep this "
            "one closed until the day.",
)

CUT, SCALED, PICKED = 5, 4, 13

exercise.solution({SCALED, PICKED})


@exercise.accept
def is_both_cheats(value):
    return isinstance(value, set | list | tuple) and set(value) == {SCALED, PICKED}


def is_long_list(value):
    return len(value) >= 7


exercise.wrong_value("text", {"4", "13"},
                     "Write the numbers without quotes, such as {1, 14}.",
                     "A number in quotes is text: '3' is not 3.",
                     when=lambda value: any(isinstance(one, str) for one in value))
exercise.wrong_value("no set", 4,
                     "Write the numbers of both lines as a set, such as {1, 14}.",
                     "Curly brackets, and a comma between the two numbers.",
                     when=lambda value: not isinstance(value, set | list | tuple))
exercise.wrong_value("every line", set(range(1, 15)),
                     "Most of these lines are honest, and each false suspicion costs time. Which two use test images?",
                     "Ask about each line: would its result change if the test images were different ones?",
                     when=lambda value: is_long_list(set(value)))
exercise.wrong_value("both and more", {1, SCALED, PICKED},
                     "Two of these lines are right, the others are honest. Which ones never use a test image?",
                     "Ask about each line: would its result change if the test images were different ones?",
                     when=lambda value: {SCALED, PICKED} < set(value))
exercise.wrong_value("only the scaling", {SCALED},
                     "That is one: the mean of *all* images knows the test images. There is another.",
                     "Follow `test_x` to the end. What is decided with it?",
                     when=lambda value: set(value) == {SCALED})
exercise.wrong_value("only the choice", {PICKED},
                     "That is one: the best epoch is picked by the test images. There is another.",
                     "Look at what happens before the images are split.",
                     when=lambda value: set(value) == {PICKED})
exercise.wrong_value("the shuffle", {3, SCALED},
                     "Mixing before the cut is right: images and labels stay together.",
                     "The order is drawn without looking at any image.",
                     when=lambda value: set(value) & {2, 3})
exercise.wrong_value("the dropout", {7, PICKED},
                     "Dropout is harmless: it acts in training only, and reads no test image.",
                     "Line 7 only builds the network.",
                     when=lambda value: 7 in value)
exercise.wrong_value("eval", {12, SCALED},
                     "`eval()` is as it should be: dropout is off during the test.",
                     "Lines 10 and 12 only switch dropout on and off.",
                     when=lambda value: set(value) & {10, 12})
exercise.wrong_value("the cut", {CUT, PICKED},
                     "The two parts share no image: the first ends at 600, the second starts at 1,400.",
                     "Lines 5 and 6 are a fair cut. What happened to the images before it?",
                     when=lambda value: set(value) & {5, 6})
exercise.wrong_value("the print", {SCALED, 14},
                     "The last line only prints the result. Where was it found?",
                     "Go one line up from the print.",
                     when=lambda value: 14 in value)
exercise.wrong_value("one of them", {SCALED, 11},
                     "One of your lines is right, and another one is not.",
                     "Ask about each line: would its result change if the test images were different ones?",
                     when=lambda value: len(set(value) & {SCALED, PICKED}) == 1)
