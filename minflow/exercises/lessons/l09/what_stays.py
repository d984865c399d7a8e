"""09.1 what_stays: how many of the written operations run after the passes?"""

from ...definition import Exercise

exercise = Exercise(
    "09.1", "what_stays", kind="predict", level="core", answer="left",
    question="How many of nine written operations does a graph really run?",
    hint="Cross out line by line: which results are unused, the same at each call, or computed twice?",
    fact="The passes keep the results, to the last bit. They only drop work that was not needed.",
    sibling="Five operations: `a = flow.zeros(2)`, `b = a + 1`, `c = x * x`, `d = x * x`, `return c + b`. d is never "
            "used, so it goes. a and b do not need x: they are computed once, when the graph is built. c and the last "
            "sum stay: two operations run at each call.",
)
PROGRAMS = (
    ("x * y", "p + q", "x.exp()", "r * b", "s - p"),
    ("x - y", "p * q", "y.tanh()", "r - b", "s + q"),
    ("x / y", "p + q", "x.relu()", "b * r", "s * p"),
)


class Lines(str):
    """A program of nine operations, shown as it is written."""

    def __repr__(self):
        return str(self)


@exercise.drawn
def drawn(rng):
    """The text of a function of x and y."""
    twice, first, unread, last, also_unread = PROGRAMS[int(rng.integers(len(PROGRAMS)))]
    fill = float(rng.integers(2, 5))
    return Lines(f"""def nine(x, y):
    a = flow.ones(3) * {fill:g}
    b = a + 1
    p = {twice}
    q = {twice}
    r = {first}
    s = {unread}
    u = {also_unread}
    t = {last}
    return t""")


@exercise.solution
def left(text):
    """Only p, r and t run at each call."""
    import minflow as flow

    names = {"flow": flow}
    exec(text, names)
    nine = names["nine"]

    class Nine(flow.nn.Graph):
        def build(self, x, y):
            return nine(x, y)

    graph = Nine()
    graph(flow.tensor([1.0, 2.0, 3.0]), flow.tensor([4.0, 5.0, 6.0]))
    return graph.stages().record.rows[-1].nodes


exercise.also_right(3.0)
exercise.wrong_value(
    "names", "p, r, t",
    "Write one number, without quotes or brackets: how many there are.",
    "Count the lines that you have not crossed out.",
    when=lambda value, text: isinstance(value, str | list | tuple | set))
exercise.wrong_value(
    "no count", 2.5,
    "A number of operations is a whole number, 1 or more.",
    "Count the lines that you have not crossed out.",
    when=lambda value, text: not float(value).is_integer() or value < 0)
exercise.wrong_value(
    "all of them", 9,
    "That is how many are written. Which of them does the result not need?",
    "Begin at `return t` and walk back: which results are read on the way?")
exercise.wrong_value(
    "only the unread ones out", 7,
    "You dropped unused results. Which operations need neither x nor y?",
    "a and b are the same at each call. Then look at p and q.")
exercise.wrong_value(
    "the product twice", 4,
    "One of these is there twice: same inputs, same operation.",
    "p and q are the same numbers. Must both be computed?")
exercise.wrong_value(
    "constants kept", 6,
    "Something is still there that is the same at each call.",
    "a and b read neither x nor y: they are computed once, when the graph is built.",
    when=lambda value, text: value in (5, 6))
exercise.wrong_value(
    "the result out too", 2,
    "Too few: the caller reads t, and t must be computed each time.",
    "Which operations need x and y, and are read by the result?", when=lambda value, text: value in (0, 1, 2))
exercise.wrong_value(
    "unread kept", 8,
    "Are s and u needed? Follow the arrows back from t.",
    "Begin at `return t`: everything that you do not meet on the way back is dropped.")
exercise.wrong_value(
    "more than written", 12,
    "There are nine operations at the beginning: one line may contain two.",
    "Count again: `flow.ones(3) * 2` makes a constant and multiplies it.",
    when=lambda value, text: isinstance(value, int) and value > 9)
