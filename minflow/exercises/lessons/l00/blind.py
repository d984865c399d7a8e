"""00.1 blind: what share of the digits a model reads right before it has learned anything."""

from ...definition import Exercise, as_number

exercise = Exercise(
    "00.1", "blind", kind="predict", level="warm-up", answer="share",
    question="How many digits are read correctly before any training?",
    hint="A model that knows nothing picks one of the ten digits. How often is such a pick right?",
    fact="A share of right answers says little alone: compare it with blind guessing. With ten kinds that is about "
         "0.1.",
    sibling="A die is thrown, and you guess the number. There are 6 sides and one guess, so about 1 guess in 6 is "
            "right. As a share that is 1 / 6, about 0.17. Of 300 throws you would guess about 50.",
)
exercise.solution(0.1)
exercise.also_right(30 / 300)
exercise.also_right(0.2)


@exercise.accept
def near_a_tenth(share):
    return 0.05 <= as_number(share) <= 0.2


exercise.wrong_value(
    "no number", "0.1",
    "That is a text. Write a plain number without quotes, such as 0.25.",
    "A quarter is 0.25, half is 0.5. Which share do you expect?",
    when=lambda share: isinstance(share, str))
exercise.wrong_value(
    "several numbers", (0, 1),
    "Python reads a collection of numbers here. Write a single one, with a point and not with a comma: such as 0.25.",
    "`0,25` are the two numbers 0 and 25. `0.25` is a quarter.",
    when=lambda share: isinstance(share, list | tuple | set | dict))
exercise.wrong_value(
    "another kind", True,
    "That is not a number. Write the share as a plain number, such as 0.25.",
    "A quarter is 0.25, half is 0.5. Which share do you expect?",
    when=lambda share: as_number(share) is None)
exercise.wrong_value(
    "not a number", float("nan"),
    "`nan` says that a computation has no result. Write the share that you expect, such as 0.25.",
    "A quarter is 0.25, half is 0.5. Which share do you expect?",
    when=lambda share: as_number(share) != as_number(share))
exercise.wrong_value(
    "none", 0,
    "Even a blind guess is right now and then.",
    "Throw a die and guess the number, again and again. Are you never right?",
    when=lambda share: as_number(share) <= 0)
exercise.wrong_value(
    "too few", 0.01,
    "The share would be that small if there were very many kinds. How many digits are there to choose from?",
    "There are ten digits, from 0 to 9. A blind guess picks one of ten.",
    when=lambda share: 0 < as_number(share) < 0.05)
exercise.wrong_value(
    "a third", 0.3,
    "That would be one digit in three or four. How many different answers are there?",
    "Count them: 0, 1, 2, up to 9. A blind guess picks one of these.",
    when=lambda share: 0.2 < as_number(share) < 0.4)
exercise.wrong_value(
    "half", 0.5,
    "Half would be right if there were two kinds. How many kinds of digits are there?",
    "A coin has two sides, and half of the guesses are right. A digit has more than two.",
    when=lambda share: 0.4 <= as_number(share) < 0.7)
exercise.wrong_value(
    "after learning", 0.95,
    "That share will be right *after* learning. The question is about the model before it.",
    "Nothing has been learned yet: the model knows as much as a die.",
    when=lambda share: 0.7 <= as_number(share) <= 1)
exercise.wrong_value(
    "percent", 10,
    "A share is between 0 and 1. All of them is 1.0, half of them is 0.5.",
    "Ten percent as a share is 0.10. Write your guess in this way.",
    when=lambda share: as_number(share) > 1)
