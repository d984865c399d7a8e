"""03.5 who_keeps: which operation keeps the most bytes for the backward pass?"""

import minflow as flow

from ...definition import Exercise

exercise = Exercise(
    "03.5", "who_keeps", kind="read", level="warm-up", answer="keeper",
    question="What fills the memory of a training step?",
    hint='The answer is the name of an operation, such as "mean". In the picture the longest bar is at the top; what '
         "does the line below it say?",
    fact="In the training of large networks, most of the memory holds arrays that are kept for the backward pass, not "
         "parameters. Half the batch keeps half as much.",
    sibling="A tape of h = x @ w, r = relu(h), loss = r.sum(), with x of 100 x 8 numbers and h of 100 x 50. relu "
            "keeps its result, to know where it was 0: 5,000 numbers of 4 bytes, 20,000 bytes. matmul keeps x for the "
            "slope of w: 3,200 bytes. sum keeps nothing, since its slope is always 1. So relu keeps the most.",
)
BENDS = {"tanh": flow.tanh, "sigmoid": flow.sigmoid, "exp": flow.exp}


@exercise.drawn
def drawn(rng):
    """The loss of a small network: x (n, k), h (n, m)."""
    wide = bool(rng.integers(2))
    few, many = sorted(int(size) for size in (rng.integers(20, 40), rng.integers(80, 120)))
    columns, units = (many, few) if wide else (few, many)
    bend = str(rng.choice(list(BENDS)))
    generator = flow.Generator().manual_seed(int(rng.integers(1000)))
    x = flow.randn(int(rng.integers(100, 200)), columns, generator=generator)
    w = (0.1 * flow.randn(columns, units, generator=generator)).requires_grad_()
    b = flow.zeros(units, requires_grad=True)
    h = BENDS[bend](x @ w + b)
    error = h.sum(1) - 1.0
    return (error * error).mean()


@exercise.solution
def keeper(loss):
    """Name in the row with the most bytes: "#3 tanh: its result" gives tanh."""
    from minflow.views.renderers.tape_memory import memory_record

    return memory_record(loss).rows[0].keepers[0].split()[1].rstrip(":")


@exercise.accept
def accept(name, loss):
    """Accept the form of the picture too: "#1 matmul"."""
    return name.split()[-1].lower() == keeper(loss)


def second_keeper(loss):
    from minflow.views.renderers.tape_memory import memory_record

    return memory_record(loss).rows[1].keepers[0].split()[1].rstrip(":")


exercise.wrong_value(
    "several operations", "matmul, exp",
    "One operation is asked for: the one that keeps the most.",
    "The longest bar is at the top. Write the name in its row.",
    when=lambda value, loss: "," in value if isinstance(value, str) else all(isinstance(one, str) for one in value))
exercise.wrong_value(
    "no text", 58368,
    'The answer is the name of an operation, a text in quotes such as "mean".',
    "Names of operations follow a number: `#1 matmul`.",
    when=lambda value, loss: not isinstance(value, str))
exercise.wrong_value(
    "the whole line", "#1 matmul: input a",
    "That says more than the name. Which word in it is the name of an operation?",
    "The name is between the number and the colon: `#3 tanh: its result` names tanh.",
    when=lambda value, loss: ":" in value or "#" in value)
exercise.wrong_value(
    "the other large one", second_keeper,
    "This one keeps something, but there is a longer bar. Compare the bytes.",
    "The rows are sorted: the first one has the most bytes.")
exercise.wrong_value(
    "a large result that is not kept", "add",
    "Its result is large, but its rule does not read it: its slope is 1 everywhere. Is its name in the picture?",
    "An operation that no row names keeps nothing. A row names it like this: `#3 tanh: its result`.")
exercise.wrong_value(
    "sum", "sum",
    "It reads many numbers, but its slope is 1 for each of them. It needs none of them again.",
    "An operation that no row names keeps nothing.")
exercise.wrong_value(
    "the last", "mean",
    "That is the last operation. Follow the bars: which one is the longest?",
    "The order of operations says nothing about bytes.")
exercise.wrong_value(
    "a parameter", "w",
    "That is a parameter: it is there anyway, with or without a tape. The answer is an operation.",
    "Names of operations follow a number: `#1 matmul`.", when=lambda value, loss: value in ("w", "b", "weight", "bias"))
exercise.wrong_value(
    "a tensor", "x",
    "That is a tensor that is kept. For which operation? The second line of its row says so.",
    "`#1 matmul: input a` says: operation 1, a matmul, keeps its input.",
    when=lambda value, loss: value in ("x", "h", "error"))
exercise.wrong_value(
    "the loss", "loss",
    "The loss is one number, 4 bytes. Which operation needs a whole table again?",
    "The longest bar is at the top.")
exercise.wrong_value(
    "small factors", "mul",
    "A product keeps its factors. Here these have one number for each example: there is a longer bar.",
    "Compare the bytes in the first column.")
exercise.wrong_value(
    "no such operation", "dot",
    "No row of the picture names such an operation. Look at the words behind the numbers, such as `#7 mean`.",
    "Read the row of the longest bar: its second line begins with a number and a name.",
    when=lambda value, loss: True)
