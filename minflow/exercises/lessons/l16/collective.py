"""16.1 collective: which message brings a tensor from one way to another?"""

from ...definition import Exercise

exercise = Exercise(
    "16.1", "collective", kind="predict", level="warm-up", answer="table",
    question="Which message brings a tensor from one way to another?",
    hint="Ask two questions for each line. Must anything be added up? Then it is a reduce. Who needs the result: each "
         "device all of it, or each a part?",
    fact="These four have the same names in MPI, in NCCL, which joins graphics cards, and in `flow.comm`.",
    sibling="Four cooks have a bowl of soup each, and want one taste of the mix of all bowls: each pours a quarter of "
            "his bowl into each of four pots. That is reduce_scatter: added up, and each cook has one pot. If each "
            "wants the mix of all pots too, an all_gather follows. Both together are all_reduce.",
)
RIGHT = {
    "S0 -> B": "all_gather",
    "P -> B": "all_reduce",
    "P -> S0": "reduce_scatter",
    "S0 -> S1": "all_to_all",
    "B -> S0": "nothing",
}
exercise.solution(RIGHT)
exercise.stub(dict.fromkeys(RIGHT, "?"))


@exercise.accept
def matches_table(table):
    return {key: value.strip().lower() for key, value in table.items()} == RIGHT


def has_value(key, *values):
    return lambda table: key in table and str(table[key]).strip().lower() in values


def other_names(table):
    """True if an entry is none of the five names."""
    return not {str(value).strip().lower() for value in table.values()} <= set(RIGHT.values())


exercise.wrong_value("not filled in", RIGHT | {"B -> S0": "?"},
                     'Put one of five names in place of each question mark: "all_gather", "all_reduce", '
                     '"reduce_scatter", "all_to_all", "nothing".',
                     "Each of the five names is used once.",
                     when=lambda table: isinstance(table, dict) and "?" in table.values())
exercise.wrong_value("no dict", "all_gather",
                     'A dict with the five keys of the cell, such as {"S0 -> B": "nothing"}.',
                     "Keep the keys as they are; change only their values.",
                     when=lambda table: not isinstance(table, dict) or table.keys() != RIGHT.keys())
exercise.wrong_value("another name", RIGHT | {"B -> S0": "none"},
                     "One of your entries is none of the five names.",
                     'They are texts, written as in the exercise: "all_gather" with an underscore, "nothing" too.',
                     when=other_names)
exercise.wrong_value("summands as they are", RIGHT | {"P -> B": "nothing"},
                     "P -> B: each device has a table of summands. Without adding them, no device has a finished "
                     "number.",
                     "The name of a message that adds has `reduce` in it.",
                     when=has_value("P -> B", "all_to_all", "nothing"))
exercise.wrong_value("gathered summands", RIGHT | {"P -> B": "all_gather"},
                     "P -> B: an all_gather puts four tables of summands side by side. They must be added.",
                     "The name of a message that adds has `reduce` in it.",
                     when=has_value("P -> B", "all_gather"))
exercise.wrong_value("summed in parts", RIGHT | {"P -> B": "reduce_scatter"},
                     "P -> B: after a reduce_scatter each device has a part of the sum. B means that each has all.",
                     "Which message adds, and gives everything to all?",
                     when=has_value("P -> B", "reduce_scatter"))
exercise.wrong_value("more than needed", RIGHT | {"P -> S0": "all_reduce"},
                     "P -> S0: an all_reduce works, and sends twice what is needed. Each device needs only its rows.",
                     "Which message adds, and gives each device a part?",
                     when=has_value("P -> S0", "all_reduce"))
exercise.wrong_value("not added", RIGHT | {"P -> S0": "all_to_all"},
                     "P -> S0: the tables are summands. Without adding, no device has a finished row.",
                     "The name of a message that adds has `reduce` in it.",
                     when=has_value("P -> S0", "all_to_all", "all_gather", "nothing"))
exercise.wrong_value("rows added up", RIGHT | {"S0 -> B": "all_reduce"},
                     "S0 -> B: the devices have other rows. Rows must be put together, not added.",
                     "Each device needs the parts of all others, as they are.",
                     when=has_value("S0 -> B", "all_reduce", "reduce_scatter"))
exercise.wrong_value("still a part", RIGHT | {"S0 -> B": "nothing"},
                     "S0 -> B: after that, each device still has only a part. B means that each has all.",
                     "Each device needs the parts of all others.",
                     when=has_value("S0 -> B", "all_to_all", "nothing"))
exercise.wrong_value("all of it", RIGHT | {"S0 -> S1": "all_gather"},
                     "S0 -> S1: after an all_gather each device has everything, and uses a quarter of it.",
                     "A device keeps some columns of its rows, and sends each other device the columns that it needs.",
                     when=has_value("S0 -> S1", "all_gather"))
exercise.wrong_value("columns of other rows", RIGHT | {"S0 -> S1": "nothing"},
                     "S0 -> S1: a device needs its columns of *all* rows. It has only its own rows.",
                     "Each device has something for each other device.",
                     when=has_value("S0 -> S1", "nothing"))
exercise.wrong_value("nothing to add", RIGHT | {"S0 -> S1": "reduce_scatter"},
                     "S0 -> S1: the numbers are finished. What would be added up?",
                     "A message with `reduce` in its name adds. These numbers only move.",
                     when=has_value("S0 -> S1", "all_reduce", "reduce_scatter"))
exercise.wrong_value("sent for nothing", RIGHT | {"B -> S0": "all_to_all"},
                     "B -> S0: each device has the whole table already. Must anything be sent?",
                     "It cuts its rows out of its own copy.",
                     when=lambda table: table["B -> S0"] != "nothing")
