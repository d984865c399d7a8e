"""04.1 start_value: the loss of a network that knows nothing yet."""

import math

from ...definition import Exercise

exercise = Exercise(
    "04.1", "start_value", kind="predict", level="warm-up", answer="first",
    question="At which loss does an untrained network begin, with ten classes?",
    hint="It gives each class about the same share. What is the surprise, -ln(share), at the right class?",
    fact="A first loss far from ln(classes) means that something is wrong before training begins: look there first.",
    sibling="With two classes and no idea which is right, each gets the share 1/2. The surprise at the right one is "
            "-ln(1/2) = ln 2 = 0.693. In code: `-math.log(1 / 2)`. With ten classes, only the share changes.",
)

exercise.solution(math.log(10))
exercise.also_right(2.3)
exercise.also_right(2.35)


@exercise.accept
def is_near_ln_10(value):
    return 2.2 <= value <= 2.4


exercise.wrong_value("not one number", [2.5],
                     "The answer is one number, without brackets.",
                     "Write `first = ` and a number.",
                     when=lambda value: isinstance(value, list | tuple | set | dict))
exercise.wrong_value("a function", lambda: math.log,
                     "That is a function, not a number. What do you give it, in parentheses?",
                     "`math.log(3)` is a number, `math.log` is not.",
                     when=lambda value: callable(value) and not hasattr(value, "item"))
exercise.wrong_value("log10", 1.0,
                     "1 is log10(10), or all shares together. The surprise is -ln of the share of *one* class.",
                     "`math.log10` counts digits. `math.log` is ln.",
                     when=lambda value: 0.95 <= value <= 1.05)
exercise.wrong_value("log2", 3.32,
                     "That is log2(10), a surprise in bits. Ours is measured with ln: `math.log`.",
                     "1 bit is ln 2 = 0.693 of our units. How many bits do you have?",
                     when=lambda value: 3.2 <= value <= 3.45)
exercise.wrong_value("the share", 0.1,
                     "That is the share of each class. How surprising is it to see a class with this share?",
                     "The surprise is -ln(share). Compute it for 0.1.",
                     when=lambda value: 0.05 <= value <= 0.15)
exercise.wrong_value("the other classes", 0.9,
                     "That is the share of the nine other classes. Take the surprise at the right one, -ln(share).",
                     "The right class has the share 0.1. What is -ln of that?",
                     when=lambda value: 0.85 <= value <= 0.92)
exercise.wrong_value("certain", 0.0,
                     "A surprise of 0 means: it was certain, and right. Is an untrained network certain?",
                     "0 is -ln(1). How large is the share of the right class before training?",
                     when=lambda value: value == 0)
exercise.wrong_value("classes", 10.0,
                     "That is the number of classes. Take its natural logarithm.",
                     "Each class has the share 1/10, and -ln(1/10) is ln(10).",
                     when=lambda value: value == 10)
exercise.wrong_value("below 0", -2.3,
                     "The size is right, the sign is not: a surprise is never below 0.",
                     "ln(0.1) is below 0; the minus in -ln(share) makes it positive.",
                     when=lambda value: -2.4 <= value <= -2.2)
exercise.wrong_value("two classes", 0.69,
                     "That is ln 2, the start with two classes. How many are there here?",
                     "With two classes the share is 1/2. With ten it is 1/10.",
                     when=lambda value: 0.6 <= value <= 0.75)
exercise.wrong_value("one in a hundred", 4.61,
                     "That is the surprise at the share 0.01. With ten classes, what is the share of one?",
                     "0.01 is one in a hundred.",
                     when=lambda value: 4.5 <= value <= 4.7)
exercise.wrong_value("a half", 0.5,
                     "0.5 is the share of one of *two* classes. And a share is not yet a surprise.",
                     "The surprise is -ln(share).",
                     when=lambda value: 0.45 <= value <= 0.55)
exercise.wrong_value("impossible", math.inf,
                     "An infinite surprise belongs to the share 0. Which share has a class if none is preferred?",
                     "All ten shares are equal, and they sum to 1.",
                     when=lambda value: value == math.inf)
exercise.wrong_value("all ten", 23.03,
                     "That is the sum of ten surprises. Only the surprise at the *right* class counts.",
                     "Divide by the number of classes.",
                     when=lambda value: 22 <= value <= 24)
exercise.wrong_value("exp", 1.105,
                     "exp undoes ln. Which of the two does the surprise take?",
                     "The surprise is -ln(share), `-math.log(share)`.",
                     when=lambda value: any(math.isclose(value, math.exp(x), rel_tol=0.01) for x in (0.1, -0.1, 10)))
