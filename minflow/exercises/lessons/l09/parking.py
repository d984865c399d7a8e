"""09.3 parking: values get addresses in one buffer, so that it is small."""

from ...definition import Exercise, case

exercise = Exercise(
    "09.3", "parking", kind="write", level="stretch", answer="place",
    question="How do a thousand values fit into the memory of a few?",
    hint="Take the values one by one, the largest first. What is the lowest address that is free while it lives?",
    fact="Placing the largest first, at the lowest free address, comes near the best possible result. minflow's own "
         "arena is filled in this way.",
    sibling="Cars of length 4, 2 and 2 park along a street. The first stays from 9 to 12, the second from 9 to 10, "
            "the third from 11 to 12. Put the first at meter 0. The second is there at the same time: meter 4. The "
            "third meets only the first, since the second has left: meter 4 too. Six meters are enough for eight "
            "meters of cars.",
)


@exercise.solution
def place(lives):
    addresses = [None] * len(lives)
    # the largest first: small ones find gaps
    for i in sorted(range(len(lives)), key=lambda i: -lives[i][2]):
        first, last, size = lives[i]
        # values that are already placed and live at the same time
        taken = sorted((addresses[j], lives[j][2]) for j in range(len(lives))
                       if addresses[j] is not None and lives[j][0] <= last and first <= lives[j][1])
        # the lowest address with room
        address = 0
        for start, length in taken:
            if start - address >= size:
                break
            address = max(address, start + length)
        addresses[i] = address
    return addresses


reference = place


@exercise.also_right
def place(lives):
    placed = {}
    for i in sorted(range(len(lives)), key=lambda i: (-lives[i][2], lives[i][0])):
        first, last, size = lives[i]
        others = [(at, lives[j][2]) for j, at in placed.items() if not (lives[j][1] < first or last < lives[j][0])]
        tries = [0] + [at + length for at, length in others]
        placed[i] = min(a for a in tries if all(a + size <= at or at + length <= a for at, length in others))
    return [placed[i] for i in range(len(lives))]


@exercise.also_right
def place(lives):
    order = sorted(enumerate(lives), key=lambda one: one[1][2], reverse=True)
    done, result = [], {}
    for i, (first, last, size) in order:
        busy = sorted((at, end) for at, end, a, b in done if a <= last and b >= first)
        address = 0
        for at, end in busy:
            if at >= address + size:
                break
            address = max(address, end)
        done.append((address, address + size, first, last))
        result[i] = address
    return [result[i] for i in sorted(result)]


@exercise.wrong("one after the other",
                "No place is used twice: the buffer is as large as all values together. Which values live at the same "
                "time?",
                "A value that has died leaves its place to others.")
def place(lives):
    addresses, end = [], 0
    for first, last, size in lives:
        addresses.append(end)
        end += size
    return addresses


@exercise.wrong("dies as the next is born",
                "Two values share a place in the step in which one is read and the other is written.",
                "If last == first, both live in that step: use <=, not <.")
def place(lives):
    addresses = [None] * len(lives)
    for i in sorted(range(len(lives)), key=lambda i: -lives[i][2]):
        first, last, size = lives[i]
        taken = sorted((addresses[j], lives[j][2]) for j in range(len(lives))
                       if addresses[j] is not None and lives[j][0] < last and first < lives[j][1])
        address = 0
        for start, length in taken:
            if start - address >= size:
                break
            address = max(address, start + length)
        addresses[i] = address
    return addresses


@exercise.wrong("sorted answers",
                "The addresses are right, in the order in which you placed them. Return them in the order in which "
                "the values came.",
                "Entry i belongs to lives[i].")
def place(lives):
    order = sorted(range(len(lives)), key=lambda i: -lives[i][2])
    addresses = {}
    for i in order:
        first, last, size = lives[i]
        taken = sorted((addresses[j], lives[j][2]) for j in addresses if lives[j][0] <= last and first <= lives[j][1])
        address = 0
        for start, length in taken:
            if start - address >= size:
                break
            address = max(address, start + length)
        addresses[i] = address
    return [addresses[i] for i in order]


@exercise.wrong("one short",
                "Neighbors overlap by one: a value at 0 of size 4 ends before 4.",
                "The next free address is start + size.")
def place(lives):
    addresses = [None] * len(lives)
    for i in sorted(range(len(lives)), key=lambda i: -lives[i][2]):
        first, last, size = lives[i]
        taken = sorted((addresses[j], lives[j][2]) for j in range(len(lives))
                       if addresses[j] is not None and lives[j][0] <= last and first <= lives[j][1])
        address = 0
        for start, length in taken:
            if start - address >= size:
                break
            address = max(address, start + length - 1)
        addresses[i] = address
    return addresses


@exercise.wrong("too small a gap",
                "A value is in a gap that is too small for it: look at sizes, not only at whether a place is free.",
                "The gap must hold all of the value: start - address >= size.")
def place(lives):
    addresses = [None] * len(lives)
    for i in sorted(range(len(lives)), key=lambda i: -lives[i][2]):
        first, last, size = lives[i]
        taken = sorted((addresses[j], lives[j][2]) for j in range(len(lives))
                       if addresses[j] is not None and lives[j][0] <= last and first <= lives[j][1])
        address = 0
        for start, length in taken:
            if start > address:
                break
            address = max(address, start + length)
        addresses[i] = address
    return addresses


@exercise.wrong("all at 0",
                "All values are at address 0, on top of each other. Values that live at the same time need different "
                "places.",
                "Compare each value with those that are placed already.")
def place(lives):
    return [0 for first, last, size in lives]


@exercise.wrong("as they come",
                "No two overlap, but each value is above all that live with it. Is there a gap below them?",
                "Go through the gaps from address 0 upwards: which is the first that is large enough?")
def place(lives):
    addresses = []
    for i, (first, last, size) in enumerate(lives):
        address = max((addresses[j] + lives[j][2] for j in range(i)
                       if lives[j][0] <= last and first <= lives[j][1]), default=0)
        addresses.append(address)
    return addresses


def lowest(lives, order):
    """Addresses of values that are placed in this order, each at the lowest free address."""
    addresses = {}
    for i in order:
        first, last, size = lives[i]
        address = 0
        for start, length in sorted((addresses[j], lives[j][2]) for j in addresses
                                    if lives[j][0] <= last and first <= lives[j][1]):
            if start - address >= size:
                break
            address = max(address, start + length)
        addresses[i] = address
    return [addresses[i] for i in range(len(lives))]


@exercise.wrong("another order",
                "No two overlap, but the buffer is larger than necessary. In which order do you place them?",
                "Large values fit only while there is much room: place them first.")
def place(lives):
    return lowest(lives, sorted(range(len(lives)), key=lambda i: lives[i][0]))


@exercise.wrong("only the one before",
                "You look only at the value before. Others may live at the same time, too.",
                "Compare each value with *all* that are placed already.")
def place(lives):
    addresses = [0]
    for (first, last, size), (a, b, _) in zip(lives, lives[1:]):
        addresses.append(0 if last < a else addresses[-1] + size)
    return addresses


@exercise.wrong("no list",
                "Return a list with an address for each value, in the order of `lives`.",
                "A dictionary, a generator or a single number is not a list: `[addresses[i] for i in ...]`.")
def place(lives):
    return {i: 0 for i in range(len(lives))}


@exercise.wrong("no address",
                "An address is one whole number, 0 or more: the place where the value begins.",
                "No pairs, no fractions, nothing below 0.")
def place(lives):
    return [-size for first, last, size in lives]


def peak_bytes(lives):
    """Largest number of bytes that live at the same time, a lower bound for every placement."""
    return max((sum(size for a, b, size in lives if a <= step <= b) for step in {one[0] for one in lives}), default=0)


def addresses_of(place, lives):
    given = place([tuple(one) for one in lives])
    return given if given is None or isinstance(given, list | tuple) else "not a list of addresses"


def addresses_of_sets(place, sets):
    return [addresses_of(place, lives) for lives in sets]


def describe_placement(given, lives):
    """Describe what is wrong with a placement, and the size of the buffer relative to the lower bound."""
    if given is None or isinstance(given, str):
        return given
    addresses = [one.item() if hasattr(one, "item") else one for one in given]  # includes NumPy's integers
    if len(addresses) != len(lives):
        return f"{len(addresses)} addresses for {len(lives)} values"
    if any(not isinstance(one, int) or one < 0 for one in addresses):
        return "an address that is not a whole number, 0 or more"
    for i, (a, b, size) in enumerate(lives):
        for j, (c, d, length) in enumerate(lives[:i]):
            if a <= d and c <= b and addresses[i] < addresses[j] + length and addresses[j] < addresses[i] + size:
                return f"values {j} and {i} overlap: addresses {addresses}"
    end = buffer_size(addresses, lives)
    enough = max(1.3 * peak_bytes(lives), buffer_size(reference(lives), lives))
    return "fits" if end <= enough else f"a buffer of {end} where {peak_bytes(lives)} live at once: {addresses}"


def buffer_size(addresses, lives):
    return max((one + size for one, (a, b, size) in zip(addresses, lives)), default=0)


def random_lives(rng, count, steps=20):
    starts = rng.integers(0, steps, count)
    return [(int(a), int(a + rng.integers(0, 6)), int(rng.integers(1, 65))) for a in starts]


def first_fault(given, sets):
    """Report the first fault among many sets, without its numbers."""
    faults = (describe_placement(addresses, lives) or "" for addresses, lives in zip(given, sets))
    fault = next((fault for fault in faults if fault != "fits"), "fits")
    kinds = {"overlap": "two values overlap", "buffer": "a buffer that is too large"}
    return next((kind for word, kind in kinds.items() if word in fault), fault)


def placement(lives, text):
    return case(lives, run=addresses_of, finish=lambda given: describe_placement(given, lives), text=text,
                expected="fits")


def placements(sets, **rest):
    return case(sets, run=addresses_of_sets, finish=lambda given: first_fault(given, sets), expected="fits", **rest)


@exercise.cases
def cases(rng):
    yield placement([(0, 1, 4)], "one value, (first, last, size) = (0, 1, 4)")
    yield placement([(0, 2, 4), (1, 3, 4)], "two that live together: (0, 2, 4), (1, 3, 4)")
    yield placement([(0, 1, 4), (2, 3, 4)], "one after the other: (0, 1, 4), (2, 3, 4)")
    yield placement([(0, 1, 4), (1, 2, 4)], "the second is written while the first is read: (0, 1, 4), (1, 2, 4)")
    yield placement([(0, 1, 2), (0, 3, 8), (2, 3, 2)], "(0, 1, 2), (0, 3, 8), (2, 3, 2)")
    gap = [(0, 1, 8), (0, 9, 6), (2, 9, 5), (2, 9, 4)]
    yield placement(gap, ", ".join(map(str, gap)))
    gap = [(0, 1, 4), (0, 9, 8), (0, 9, 16), (3, 9, 6), (0, 1, 5)]
    yield placement(gap, ", ".join(map(str, gap)))
    yield placements([random_lives(rng, 12) for _ in range(60)], text="60 sets of 12 values, drawn")
    yield placements([random_lives(rng, 30) for _ in range(30)], hidden=True)
    yield placements([random_lives(rng, 80, 60) for _ in range(6)], hidden=True)
