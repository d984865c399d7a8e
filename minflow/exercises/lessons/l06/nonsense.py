"""06.1 nonsense: what a network does with labels that mean nothing."""

from ...definition import Exercise

exercise = Exercise(
    "06.1", "nonsense", kind="predict", level="warm-up", answer="shares",
    question="How well does a network learn labels that mean nothing?",
    hint="Two questions: does it have room to store 300 answers? And is there anything to learn about new images?",
    fact="A training accuracy alone proves nothing: the same network reaches it with true labels and with nonsense.",
    sibling="Someone learns 20 telephone numbers by heart. For these 20, all answers are right. For the number of a "
            "stranger, a guess of one digit is right one time in ten. Nothing in the 20 helps with that.",
)

exercise.solution((1.0, 0.1))
exercise.also_right((0.98, 0.08))
exercise.also_right((1, 0.15))


@exercise.accept
def is_near_solution(value):
    train, test = value
    return 0.95 <= train <= 1 and 0.05 <= test <= 0.2


exercise.wrong_value("text", ("1.0", "0.1"),
                     "Write numbers, without quotes.",
                     "A number in quotes is text: '0.5' is not 0.5.",
                     when=lambda value: isinstance(value, str) or any(isinstance(one, str) for one in value))
exercise.wrong_value("not a pair", {0.4, 0.8},
                     "Two shares in this order: (train, test).",
                     "A pair is written in round brackets, with a comma between the two.",
                     when=lambda value: isinstance(value, int | float | set | dict) or len(value) != 2)
exercise.wrong_value("percent", (100, 10),
                     "Shares, please: numbers between 0 and 1.",
                     "All of them is the share 1.0, one in ten is 0.1.",
                     when=lambda value: len(value) == 2 and max(value) > 1)
exercise.wrong_value("test above train", (0.1, 0.9),
                     "You expect more of the images that it has never seen. For which images has it seen the answers?",
                     "The pair is (train, test), in this order.",
                     when=lambda value: value[0] < value[1])
exercise.wrong_value("cannot learn", (0.1, 0.1),
                     "256 hidden units can store 300 answers, whether they make sense or not.",
                     "It trains long. Nothing keeps it from remembering each image with its label.",
                     when=lambda value: value[0] <= 0.2 and value[1] <= 0.2)
exercise.wrong_value("learns all", (1.0, 0.95),
                     "The labels of the test images are the true ones. What did nonsense teach about them?",
                     "It has remembered 300 answers. For other images there was nothing to learn.",
                     when=lambda value: value[1] > 0.2 and not 0.4 <= value[1] < 0.6)
exercise.wrong_value("half", (1.0, 0.5),
                     "0.5 would be a guess between two kinds. How many kinds are there?",
                     "With ten kinds, a blind guess is right one time in ten.",
                     when=lambda value: 0.4 <= value[1] < 0.6)
exercise.wrong_value("never right", (1.0, 0.0),
                     "Even a blind guess at a test image is right now and then.",
                     "Ten kinds: how often is a blind guess right?",
                     when=lambda value: value[1] < 0.05)
exercise.wrong_value("partly", (0.6, 0.1),
                     "The second share is right. But it will remember more of the 300: it trains until they are right.",
                     "256 hidden units have room for 300 answers.",
                     when=lambda value: 0.2 < value[0] < 0.95 and value[1] <= 0.2)
