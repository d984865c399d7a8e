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


exercise.wrong_value("log10", 1.0,
                     "That is log10(10). The surprise here is a natural logarithm: `math.log`.",
                     "`math.log10` counts digits. `math.log` is ln: use it on the same number.",
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
