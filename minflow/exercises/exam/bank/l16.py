"""Variants of lesson 16."""

from ..variants import Change, ask, mistake, question, vary

MESSAGES = {
    "S0 -> B": "all_gather", "S1 -> B": "all_gather", "P -> B": "all_reduce", "P -> S0": "reduce_scatter",
    "P -> S1": "reduce_scatter", "S0 -> S1": "all_to_all", "S1 -> S0": "all_to_all", "B -> S0": "nothing",
    "B -> S1": "nothing",
}


@ask("collective")
def collective(rng):
    names = list(MESSAGES)
    right = {names[i]: MESSAGES[names[i]] for i in sorted(rng.permutation(len(names))[:5])}
    one = question(
        "collective",
        "A tensor has one SBP, and is needed with another. Which message makes this change with the fewest bytes? In "
        "this table replace each question mark by one of five names, some of which may be used twice: \"all_gather\", "
        '"all_reduce", "reduce_scatter", "all_to_all", "nothing". `{answer} = {table}`',
        table=str(dict.fromkeys(right, "?")).replace("'", '"'),
    )
    one.solution(right)
    one.stub(dict.fromkeys(right, "?"))

    @one.accept
    def same(table):
        return {key: value.strip().lower() for key, value in table.items()} == right

    mistake(one, "not filled in", dict.fromkeys(right, "?"), when=lambda table: "?" in table.values())
    mistake(one, "no table", "all_gather",
            when=lambda table: not isinstance(table, dict) or table.keys() != right.keys())
    hint = "Must anything be added? Then it is a reduce. Does each device need all of the result, or a part?"
    for key, value in right.items():
        wrong = "all_reduce" if value != "all_reduce" else "all_gather"
        mistake(one, key, right | {key: wrong}, hint, half=True,
                when=lambda table, key=key: [other for other in right if table[other] != right[other]] == [key])
    return one


vary(
    "cheapest",
    "Write `{answer}(rows, have, sizes, price)`. `rows` is a list of pairs, such as `[(\"S0\", \"B\"), (\"B\", "
    "\"S1\")]`: the SBPs that x and w must have for a product. `have` is the pair of the SBPs that they have now, "
    "`sizes` the pair of their sizes in bytes. `price(before, after, nbytes)` gives the price of a change. Find the "
    "row with the lowest price for x and w together; if several rows have this price, the first of them.",
    [
        Change("cheapest_index", "Return the index of this row in `rows`, an int.", result="rows.index({})"),
        Change("cheapest_for_w", "Return the pair of this row in the opposite order: the SBP of w first.",
               result="({})[::-1]"),
    ],
)

vary(
    "deal_heads",
    "Write `{answer}(w, n)`. The columns of w are queries, keys and values: three blocks of equal width, each with the "
    "columns of all heads in order. There are n arrays: the array of device d has, side by side, the d-th of n equal "
    "pieces of the queries, the d-th of the keys, and the d-th of the values.",
    [
        Change("heads_backward", "Return a list of the n arrays in the opposite order: the last device first.",
               result="({})[::-1]", undo=lambda answer: lambda w, n: answer(w, n)[::-1]),
        Change("heads_by_device", "Return a dict: for each device, 0 to n - 1, its array.",
               result="dict(enumerate({}))",
               undo=lambda answer: lambda w, n: [dict.get(answer(w, n), i) for i in range(n)]),
    ],
)

vary(
    "mlp",
    "Write `{answer}(x, w1, b1, w2, b2, all_reduce)`. Each of the first five is a list with one array for each device. "
    "x is B, w1 is S1, b1 is S0, w2 is S0, and b2 is B. The network is relu(x @ w1 + b1) @ w2 + b2; relu is "
    "`np.maximum(..., 0)`. Call `all_reduce(parts)` once: it returns a list with the sum for each device.",
    [
        Change("mlp_by_device", "Return a dict: for each device, 0 to n - 1, the whole result.",
               result="dict(enumerate({}))",
               undo=lambda answer: lambda x, *rest: (lambda found: [dict.get(found, i) for i in range(len(x))])(
                   answer(x, *rest))),
        Change("mlp_negative", "Return a list with the whole result for each device, multiplied by -1.",
               result="[-one for one in ({})]",
               undo=lambda answer: lambda *parts: [-one for one in answer(*parts)], without=("one after the other",)),
    ],
)

vary(
    "bubble",
    "Write `{answer}(p, m)`. There is a list for each of p devices, with an entry for each of 2 (m + p - 1) ticks: "
    '`"F0"` for the forward pass of piece 0, `"B0"` for its backward pass, and `"."` if the device waits. Each piece '
    "takes one tick on each device, in each direction. First all pieces go forward, piece k on device s at tick s + k. "
    'In tick m + p - 1 the last device starts with `"B0"`. In the next tick it has `"B1"`, and the device before it '
    '`"B0"`. And so on.',
    [
        Change("lanes_upward", "Return a list of these lists in the opposite order: the last device first.",
               result="({})[::-1]", undo=lambda answer: lambda p, m: answer(p, m)[::-1],
               without=("last device first",)),
        Change("lanes_as_text", "Return a list with one text for each device: its entries with a space between them.",
               result='[" ".join(row) for row in ({})]',
               undo=lambda answer: lambda p, m: [row.split(" ") for row in answer(p, m)]),
    ],
)
