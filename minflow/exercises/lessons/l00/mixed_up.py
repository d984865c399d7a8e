"""00.2 mixed_up: read off a confusion matrix which digit is most often taken for which other."""

import numpy as np

from ...definition import Exercise, as_number

MATRIX = np.diag([32, 27, 25, 31, 26, 30, 29, 31, 27, 30])
MATRIX[[4, 4, 7, 9, 1], [1, 6, 9, 7, 4]] = [3, 1, 2, 1, 1]

exercise = Exercise(
    "00.2", "mixed_up", kind="read", level="warm-up", answer="pair", given=("matrix",), examples=(MATRIX,),
    question="Which digit does your model most often take for which other?",
    hint="Look for the largest number off the diagonal. Write (its row, its column).",
    fact="The mistakes of a model are not spread evenly: look at them before you change anything. Often you can "
         "understand how they happen.",
    sibling="Cats and dogs are sorted. The row of cats says: 40 read as cat, 7 read as dog. The row of dogs says: 3 "
            "read as cat, 50 read as dog. Off the diagonal are 7 and 3. The larger, 7, is in the row cat and in the "
            'column dog: `("cat", "dog")`.',
)


@exercise.solution
def mixed_up(matrix):
    most, pair = 0, (0, 1)
    for truth in range(10):
        for read in range(10):
            # on the diagonal both are the same: there the model was right
            if truth != read and matrix[truth][read] > most:
                most, pair = matrix[truth][read], (truth, read)
    return pair


@exercise.also_right
def without_the_diagonal(matrix):
    mistakes = matrix - np.diag(np.diag(matrix))
    return np.unravel_index(mistakes.argmax(), mistakes.shape)


@exercise.also_right
def the_last_of_equals(matrix):
    pairs = [[truth, read] for truth in range(10) for read in range(10) if truth != read]
    return max(reversed(pairs), key=lambda pair: matrix[pair[0]][pair[1]])


def count_of_pair(matrix):
    truth, read = mixed_up(matrix)
    return int(matrix[truth][read])


def digits_of(pair):
    """The two digits of a pair, also of a pair such as (4.0, 1.0); None for anything else."""
    if not isinstance(pair, list | tuple | np.ndarray) and not hasattr(pair, "tolist") or len(pair) != 2:
        return None
    digits = [as_number(digit) for digit in pair]
    return tuple(map(int, digits)) if all(digit in range(10) for digit in digits) else None


def is_digit_pair(pair):
    return digits_of(pair) is not None


def parts(pair):
    """The entries of a list or tuple; none for other values."""
    return list(pair) if isinstance(pair, list | tuple) else []


@exercise.accept
def largest_mistake(pair, matrix):
    truth, read = digits_of(pair)
    return truth != read and matrix[truth][read] == count_of_pair(matrix)


def right_answers(matrix):
    digit = int(np.diag(matrix).argmax())
    return digit, digit


def swapped(matrix):
    truth, read = mixed_up(matrix)
    return read, truth


def from_one(matrix):
    truth, read = mixed_up(matrix)
    return truth + 1, read + 1


def fullest_row(matrix):
    digit = int(matrix.sum(1).argmax())
    return digit, int(matrix[digit].sum())


def no_mistake(matrix):
    truth, read = mixed_up(matrix)
    return next((truth, other) for other in range(10) if other != truth and matrix[truth][other] == 0
                and (truth, other) != swapped(matrix))


def rarer(matrix):
    return next((truth, read) for truth in range(10) for read in range(10) if truth != read
                and 0 < matrix[truth][read] < count_of_pair(matrix) and (truth, read) != swapped(matrix))


exercise.wrong_value(
    "right answers", right_answers,
    "On the diagonal the digit was read as itself: there the model was *right*. Look beside it.",
    "The two digits differ. Which orange number is the largest?",
    when=lambda pair, matrix: len(set(digits_of(pair))) == 1)
exercise.wrong_value(
    "swapped", swapped,
    "The right two digits, in the wrong order: rows are the truth.",
    "First the number at the left end of the row, then the number below the column.")
exercise.wrong_value(
    "a count", count_of_pair,
    "That is how often it happened. Which two digits meet at that number?",
    "Go from the number to the left: the first digit. Go down from it: the second.")
exercise.wrong_value(
    "counted from 1", from_one,
    "You are one row and one column too far. The first row is digit 0.",
    "Read the digits beside the rows and below the columns; do not count.")
exercise.wrong_value(
    "how many there are", fullest_row,
    "The second is how many there are of that digit. Which *digit* was read instead?",
    "The sum of a row does not matter here. Look for its largest orange square.")
exercise.wrong_value(
    "texts", ("4", "1"),
    "These are texts. Write the two digits as numbers, without quotes.",
    '`(3, 5)` is a pair of numbers, `("3", "5")` is a pair of texts.',
    when=lambda pair, matrix: isinstance(pair, str) or any(isinstance(part, str) for part in parts(pair)))
exercise.wrong_value(
    "a pair in a list", [(4, 1)],
    "There are brackets inside brackets. Write one pair alone, even if several are equally frequent.",
    "`[(3, 5)]` is a list that holds a pair, `(3, 5)` is the pair.",
    when=lambda pair, matrix: any(isinstance(part, list | tuple) for part in parts(pair)))
exercise.wrong_value(
    "another number of digits", (4, 1, 3),
    "Two digits are asked for: the one that was meant, and the one that was read. How many did you write?",
    "How often it happened does not belong in the answer: `(row, column)`.",
    when=lambda pair, matrix: len(parts(pair)) not in (0, 2))
exercise.wrong_value(
    "no order", {4, 1},
    "A set or a dict does not say which digit was meant and which was read. Write a pair in round brackets.",
    "In `(row, column)` the order counts. In `{row, column}` there is no order.",
    when=lambda pair, matrix: isinstance(pair, set | frozenset | dict))
exercise.wrong_value(
    "one number", 41,
    "That is a single number. Two digits are asked for, with a comma between them.",
    "`35` and `3.5` are one number each. `3, 5` are two.",
    when=lambda pair, matrix: as_number(pair) is not None)
exercise.wrong_value(
    "no digit", (10, 1),
    "The digits are the whole numbers from 0 to 9. Is each of your two among them?",
    "Read the digits beside the rows and below the columns.",
    when=lambda pair, matrix: len(parts(pair)) == 2 and digits_of(pair) is None)
exercise.wrong_value(
    "not two digits", None,
    "Those are not two digits. Which two, of 0 to 9, meet at the largest mistake?",
    "Write two digits in brackets: `(row, column)`, without quotes.",
    when=lambda pair, matrix: not is_digit_pair(pair))
exercise.wrong_value(
    "never happened", no_mistake,
    "That never happened: its square is empty. Look for the largest number off the diagonal.",
    "First the row of the true digit, then the column of the digit that was read instead.",
    when=lambda pair, matrix: matrix[digits_of(pair)] == 0)
exercise.wrong_value(
    "not the most", rarer,
    "That did happen, but not most often. Is there a larger number off the diagonal?",
    "Compare all orange squares: the darkest holds the largest number.",
    when=lambda pair, matrix: 0 < matrix[digits_of(pair)] < count_of_pair(matrix))
