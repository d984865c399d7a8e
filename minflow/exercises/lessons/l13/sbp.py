"""13.1 sbp: how is a product placed on two devices?"""

from ...definition import Exercise

exercise = Exercise(
    "13.1", "sbp", kind="predict", level="warm-up", answer="table",
    question="How is each matrix product placed on two devices?",
    hint='A dict with four entries. Each is "S0", "S1", "B" or "P". Draw two devices, and write into each the parts '
         "of x and w that it has.",
    fact="OneFlow keeps such a table for every operation, and chooses the rows that move the fewest bytes. You "
         "specify it for a few tensors only.",
    sibling="x + y with both S0: each device has the same rows of both, so it has these rows of the sum: S0. x + y "
            "with both P: each device adds its summands, and the sum of all is right: P. x + y with P and B: here it "
            "goes wrong, since y would be counted once on each device.",
)
RIGHT = {"S0 @ B": "S0", "B @ S1": "S1", "S1 @ S0": "P", "B @ B": "B"}
WAYS = {"S0", "S1", "B", "P"}
exercise.solution(RIGHT)
exercise.stub(dict.fromkeys(RIGHT, "?"))


@exercise.accept
def matches_table(table):
    return {key: value.strip().upper() for key, value in table.items()} == RIGHT


def has_value(key, *values):
    return lambda table: key in table and str(table[key]).strip().upper() in values


exercise.wrong_value("not filled in", RIGHT | {"B @ B": "?"},
                     'Put "S0", "S1", "B" or "P" in place of each question mark.',
                     "Four letters: S0 rows, S1 columns, B copies, P summands.",
                     when=lambda table: isinstance(table, dict) and "?" in table.values())
exercise.wrong_value("no dict", "S0 S1 P B",
                     'A dict with the four keys of the cell, such as {"S0 @ B": "P"}.',
                     "Keep the keys as they are; change only their values.",
                     when=lambda table: not isinstance(table, dict) or table.keys() != RIGHT.keys())
exercise.wrong_value("another letter", RIGHT | {"S0 @ B": "S"},
                     'One of your entries is none of "S0", "S1", "B" and "P".',
                     "S needs its axis, a digit: S0 splits the rows, S1 the columns.",
                     when=lambda table: not {str(value).strip().upper() for value in table.values()} <= WAYS)
exercise.wrong_value("a copy of other rows", RIGHT | {"S0 @ B": "B"},
                     "S0 @ B: the two devices have other rows of x, so they get other rows of the product.",
                     "Device 0 has the upper rows of x and all of w. Which part of the product can it make?",
                     when=has_value("S0 @ B", "B", "S1", "P"))
exercise.wrong_value("rows for columns", RIGHT | {"B @ S1": "S0"},
                     "B @ S1: each device has other *columns* of w. A column of w makes a column of the product.",
                     "Axis 1 counts the columns.", when=has_value("B @ S1", "S0", "B", "P"))
exercise.wrong_value("a finished sum", RIGHT | {"S1 @ S0": "B"},
                     "S1 @ S0: both results have the full shape, but each device has only *half of every sum*.",
                     "A number of the product is a sum over the columns of x. Does any device have all columns?",
                     when=has_value("S1 @ S0", "B"))
exercise.wrong_value("a finished row", RIGHT | {"S1 @ S0": "S0"},
                     "S1 @ S0: neither device has a finished row. Each has half of the columns of x.",
                     "What must you do with both results to get the product?", when=has_value("S1 @ S0", "S0", "S1"))
exercise.wrong_value("twice", RIGHT | {"B @ B": "P"},
                     "B @ B: each device has the whole product. If they were summands, adding would double it.",
                     "Both do the same work on the same numbers. What do they have then?",
                     when=has_value("B @ B", "P", "S0", "S1"))
