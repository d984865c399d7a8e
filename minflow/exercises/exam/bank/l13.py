"""Variants of lesson 13."""

from ..variants import Change, ask, mistake, question, vary

SUMS = {
    "S0, axis 0": "P", "S0, axis 1": "S0", "S1, axis 0": "S0", "S1, axis 1": "P", "B, axis 0": "B", "P, axis 1": "P",
}


@ask("sbp")
def sbp(rng):
    names = list(SUMS)
    right = {names[i]: SUMS[names[i]] for i in sorted(rng.permutation(len(names))[:4])}
    one = question(
        "sbp",
        "A matrix with two axes is placed on two devices, with an SBP. Each device sums its part over one axis. That "
        "axis is gone, and the other one is axis 0 of the result. What is the SBP of the result? In this table replace "
        'each question mark by "S0", "S1", "B" or "P": `{answer} = {table}`',
        table=str(dict.fromkeys(right, "?")).replace("'", '"'),
    )
    one.solution(right)
    one.stub(dict.fromkeys(right, "?"))

    @one.accept
    def same(table):
        return {key: value.strip().upper() for key, value in table.items()} == right

    mistake(one, "not filled in", dict.fromkeys(right, "?"), when=lambda table: "?" in table.values())
    mistake(one, "no table", "S0", when=lambda table: not isinstance(table, dict) or table.keys() != right.keys())
    hint = "Cut a small matrix on paper: which numbers does each device have, and what is missing to their sums?"
    for key, value in right.items():
        wrong = "B" if value == "P" else "P"
        mistake(one, key, right | {key: wrong}, hint, half=True,
                when=lambda table, key=key: [other for other in right if table[other] != right[other]] == [key])
    return one


vary(
    "deal",
    "Write `{answer}(x, n, axis)`. It cuts the array x along `axis` into n parts, each of neighboring rows (or "
    "columns, and so on). Their sizes differ by at most 1, and the larger ones come first. Writing into a part must "
    "not change x.",
    [
        Change(
            "deal_backward",
            "Return a list of n arrays in the opposite order: the part with the last rows is the first of the list.",
            result="({})[::-1]",
            undo=lambda answer: lambda x, n, axis: answer(x, n, axis)[::-1],
        ),
        Change(
            "deal_by_device",
            "Return a dict: for each device, 0 to n - 1, its part.",
            result="dict(enumerate({}))",
            undo=lambda answer: lambda x, n, axis: in_order(answer(x, n, axis)),
            without=("no empty parts",),
        ),
    ],
)


def in_order(parts):
    """Parts of a dict with the keys 0, 1, ..."""
    return [dict.get(parts, i) for i in range(len(parts))]
