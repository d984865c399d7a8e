"""Variants of lesson 07."""

from ..variants import Change, ask, mistake, question, vary

CALLS = ("g(x)", "g(x[:2])", "g(x[:3])")
LESSON = 3  # the answer of the lesson's exercise


@ask("how_often")
def how_often(rng):
    plans = set(range(LESSON))
    while len(plans) == LESSON:
        lines, training, plans, calls, shapes = [], True, set(), 0, set()
        for _ in range(int(rng.integers(6, 9))):
            if lines and rng.random() < 0.3 and lines[-1] in CALLS:
                training = not training
                lines.append("model.train()" if training else "model.eval()")
            call = str(rng.choice(CALLS))
            lines.append(call)
            calls, shapes = calls + 1, shapes | {call}
            plans.add((call, training))
    one = question(
        "how_often",
        "The model of the graph `g` holds a dropout and begins in train mode; `x` has the shape (4, 3). The graph "
        "keeps all its plans. How many plans does it have in the end? Write `{answer} = ...`\n\n"
        "```python\n{program}\n```",
        program="\n".join(lines),
    )
    one.solution(len(plans))
    for name, wrong, hint in (
        ("once", 1, "A plan is for one shape and one mode."),
        ("each call", calls, "A call whose shape and mode have been seen before makes no plan."),
        ("shapes alone", len(shapes), "Train and eval mode need a plan each."),
        ("one too many", len(plans) + 1, "Count the pairs of a shape and a mode that occur."),
        ("one too few", len(plans) - 1, "The first call makes a plan too."),
        ("twice as many", 2 * len(plans), "Count each pair of a shape and a mode once."),
        ("never", 0, "The first call makes a plan."),
    ):
        if wrong != len(plans) and wrong not in [known.answer for known in one.wrongs]:
            mistake(one, name, wrong, hint)
    return one


vary(
    "read_tags",
    "The cell below prints the listing of a graph. How many lines begin with PARAMETER? Which module owns the BUFFER "
    'lines? Which module has no INPUT line? Write a dict: `{answer} = {{"parameters": 7, "buffer": "model.one", '
    '"no input": "model.two"}}`.',
    [Change("answers", "")],
    setup='print("""\n{drawn}\n""")',
)
