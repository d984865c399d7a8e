"""Variants of lesson 08."""

from ..variants import Change, vary

vary(
    "read_card",
    "The cell below prints an error. Which module failed, how many numbers in each row did it get, and how many does "
    'it take? Write three parts: `{answer} = ("model.stem", 32, 30)`.',
    [Change("answer", "")],
    setup=(
        'broken, rows = draw("{name}")\n'
        "try:\n"
        "    broken(rows)\n"
        "except Exception as error:\n"
        "    print(error)"
    ),
)

vary(
    "first_part",
    "Two networks have the same operations and the same parameters; one has a wrong setting. The cell below shows each "
    "operation, in the order in which they run, after the largest difference between the two. Which one is the cause? "
    'Write its whole name: `{answer} = "..."`',
    [Change("name", "")],
    setup=(
        'mine, theirs, inputs = draw("{name}")\n'
        "for row in mine.compare(theirs, inputs).rows:\n"
        '    print(f"{row.difference:8.2g}  {row.name}")'
    ),
)
