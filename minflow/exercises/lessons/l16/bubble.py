"""16.5 bubble: the timeline of a pipeline."""

import numpy as np

from ...definition import Exercise, case

exercise = Exercise(
    "16.5", "bubble", kind="write", level="stretch", answer="lanes",
    question="Who works when, if each device has some layers of the network?",
    hint="Forward: device s gets piece k at tick s + k. All forwards take m + p - 1 ticks. Backward starts then, at "
         "the last device: device s gets piece k at tick m + p - 1 + (p - 1 - s) + k.",
    fact="In an order called 1F1B the devices wait just as long, but keep the results of at most p pieces in memory. "
         "Here they keep those of all m.",
    sibling="Three people wash, dry and put away two plates. Tick 0: wash plate 0. Tick 1: wash 1, dry 0. Tick 2: dry "
            "1, put away 0. Tick 3: put away 1. Person s has plate k at tick s + k; the last tick is 2 + 1. So it is 2 "
            "+ 3 - 1 = 4 ticks, and each of the three has nothing to do in two of them.",
)


@exercise.solution
def lanes(p, m):
    half = m + p - 1
    rows = [["."] * (2 * half) for _ in range(p)]
    for s in range(p):
        for k in range(m):
            # forward: one device after the other, one tick later
            rows[s][s + k] = f"F{k}"
            # backward: from the last device to the first
            rows[s][half + p - 1 - s + k] = f"B{k}"
    return rows


@exercise.also_right
def lanes(p, m):
    rows = []
    for s in range(p):
        forward = ["."] * s + [f"F{k}" for k in range(m)] + ["."] * (p - 1 - s)
        rows.append(forward + [one.replace("F", "B") for one in ["."] * (p - 1 - s) + forward[s:s + m] + ["."] * s])
    return rows


@exercise.also_right
def lanes(p, m):
    """Ask at each tick which piece a device has."""
    def at(s, tick):
        half = m + p - 1
        name, k = ("F", tick - s) if tick < half else ("B", tick - half - (p - 1 - s))
        return f"{name}{k}" if 0 <= k < m else "."

    return [[at(s, tick) for tick in range(2 * (m + p - 1))] for s in range(p)]


def drawn(p, ticks, forward, backward, m):
    """Lanes from two functions that give the tick of device s and piece k."""
    rows = [["."] * ticks for _ in range(p)]
    for s in range(p):
        for k in range(m):
            rows[s][forward(s, k)] = f"F{k}"
            rows[s][backward(s, k)] = f"B{k}"
    return rows


@exercise.wrong("all at once",
                "Every device starts at tick 0. But device 1 needs the result of device 0 first.",
                "Piece k is on device s at tick s + k. Before and after, the device waits: '.'.")
def lanes(p, m):
    return drawn(p, 2 * m, lambda s, k: k, lambda s, k: m + k, m)


@exercise.wrong("one piece at a time",
                "Piece 1 starts only when piece 0 has left the last device. Device 0 could begin with it at once.",
                "Piece k is on device s at tick s + k.")
def lanes(p, m):
    return drawn(p, 2 * m * p, lambda s, k: s + k * p, lambda s, k: m * p + p - 1 - s + k * p, m)


@exercise.wrong("back from the first",
                "Backward starts on device 0. The loss is on the *last* device, so slopes come from there.",
                "Device s waits p - 1 - s ticks more than the last one.")
def lanes(p, m):
    return drawn(p, 2 * (m + p - 1), lambda s, k: s + k, lambda s, k: m + p - 1 + s + k, m)


@exercise.wrong("last piece first",
                "Backward takes the last piece first. Here piece 0 is first, in both directions.",
                "k ticks later for piece k.")
def lanes(p, m):
    return drawn(p, 2 * (m + p - 1), lambda s, k: s + k, lambda s, k: m + p - 1 + p - 1 - s + m - 1 - k, m)


@exercise.wrong("no backward",
                "The lanes end after the forwards. Each piece goes back as well, as B0, B1 and so on.",
                "Twice as many ticks: 2 * (m + p - 1).")
def lanes(p, m):
    return [row[:m + p - 1] for row in exercise.right(p, m)]


@exercise.wrong("ticks as rows",
                "Each row is a tick. It should be a device.",
                "p rows, each with 2 * (m + p - 1) entries.")
def lanes(p, m):
    return [list(column) for column in zip(*exercise.right(p, m))]


@exercise.wrong("last device first",
                "The first row is the last device.",
                "Row s is device s.")
def lanes(p, m):
    return exercise.right(p, m)[::-1]


@exercise.wrong("p and m swapped",
                "You have as many rows as pieces. p is the number of devices, m that of pieces.",
                "p rows.")
def lanes(p, m):
    return exercise.right(m, p)


@exercise.wrong("an empty tick between",
                "Nothing happens in one tick between forward and backward. The last device can turn at once.",
                "The first backward is at tick m + p - 1.")
def lanes(p, m):
    return [[*row[:m + p - 1], ".", *row[m + p - 1:]] for row in exercise.right(p, m)]


@exercise.wrong("back too early",
                "Backward of piece 0 starts as soon as it is on the last device, where that device has piece 1 next: "
                "one of them is lost.",
                "Here all forwards come first. Backward begins at tick m + p - 1.")
def lanes(p, m):
    return drawn(p, 2 * (m + p - 1), lambda s, k: s + k, lambda s, k: 2 * p - 1 - s + k, m)


@exercise.wrong("counted from 1",
                "The first piece is F1. Pieces are counted from 0.",
                'f"F{k}" with k from 0 to m - 1.')
def lanes(p, m):
    return [[one if one == "." else f"{one[0]}{int(one[1:]) + 1}" for one in row] for row in exercise.right(p, m)]


@exercise.wrong("one list for all",
                "All devices have the same list: `[row] * p` repeats one list, and does not copy it.",
                "Make a new list for each device, in a loop or by `for _ in range(p)`.")
def lanes(p, m):
    row = ["."] * (2 * (m + p - 1))
    for s in range(p):
        for k in range(m):
            row[s + k], row[m + p - 1 + p - 1 - s + k] = f"F{k}", f"B{k}"
    return [list(row) for _ in range(p)]


@exercise.wrong("backward one tick early",
                "Backward starts one tick early: in this tick the last device still computes its last piece forward.",
                "The first backward is at tick m + p - 1. Ticks are counted from 0.")
def lanes(p, m):
    return drawn(p, 2 * (m + p - 1), lambda s, k: s + k, lambda s, k: m + p - 2 + p - 1 - s + k, m)


LATE = ("Backward starts one tick late, so that the last one has no room. The last device can turn at once.",
        "The first backward is at tick m + p - 1. Ticks are counted from 0.")


@exercise.wrong("no room for the last tick", *LATE)
def lanes(p, m):
    return drawn(p, 2 * (m + p - 1), lambda s, k: s + k, lambda s, k: m + p + p - 1 - s + k, m)


@exercise.wrong("an empty tick, other lengths", *LATE)
def lanes(p, m):
    return [row[:s] + row[s:m + p - 1] + ["."] + row[m + p - 1:len(row) - s] + ["."] * (s - 1)
            for s, row in enumerate(exercise.right(p, m))]


@exercise.wrong("second half empty",
                "The second half is empty. Each piece goes back as well, as B0, B1 and so on.",
                "Backward: from the last device to the first.")
def lanes(p, m):
    return [row[:m + p - 1] + ["."] * (m + p - 1) for row in exercise.right(p, m)]


@exercise.wrong("device 1 too early",
                "Device 1 starts together with device 0. But it needs the result of device 0 first.",
                "Piece k is on device s at tick s + k.")
def lanes(p, m):
    return drawn(p, 2 * (m + p - 1), lambda s, k: max(s - 1, 0) + k, lambda s, k: m + p - 1 + p - 1 - s + k, m)


@exercise.wrong("back without waiting",
                "Each device goes back as soon as its forwards are done. But slopes come from the device after it.",
                "Backward starts at the last device. Device s waits p - 1 - s ticks more than the last one.")
def lanes(p, m):
    return drawn(p, 2 * (m + p - 1), lambda s, k: s + k, lambda s, k: s + m + k, m)


@exercise.wrong("waits too little before backward",
                "Your lanes have different lengths. After its forwards, device s waits until the last device is done, "
                "*and* until the slopes come back to it.",
                "p - 1 - s ticks for each of the two, and s ticks at the end.")
def lanes(p, m):
    return [["."] * s + [f"F{k}" for k in range(m)] + ["."] * (p - 1 - s) + [f"B{k}" for k in range(m)]
            for s in range(p)]


@exercise.wrong("forward and backward in turn",
                "Your devices go forward and backward in turn. Here *all* pieces go forward first.",
                "Backward begins at tick m + p - 1.")
def lanes(p, m):
    return drawn(p, 2 * (m + p - 1), lambda s, k: s + 2 * k, lambda s, k: s + 2 * k + 1, m)


@exercise.wrong("two ticks too many",
                "At the end nothing happens for two ticks. How many ticks are there?",
                "2 * (m + p - 1).")
def lanes(p, m):
    return [[*row, ".", "."] for row in exercise.right(p, m)]


@exercise.wrong("four devices",
                "The number of devices is fixed in yours. How many are there in this case?",
                "It is p.")
def lanes(p, m):
    return exercise.right(4, m)


@exercise.wrong("braces in the text",
                "The braces are in your texts: the f in front of the quotes is missing.",
                'f"F{k}"')
def lanes(p, m):
    return [[one if one == "." else one[0] + "{k}" for one in row] for row in exercise.right(p, m)]


@exercise.wrong("small letters",
                'The letters should be large: "F0", "B0".',
                "F for forward, B for backward.")
def lanes(p, m):
    return [[one.lower() for one in row] for row in exercise.right(p, m)]


@exercise.wrong("spaces",
                "A waiting device has a space in yours. Which sign does the exercise ask for?",
                'A dot: ".".')
def lanes(p, m):
    return [[" " if one == "." else one for one in row] for row in exercise.right(p, m)]


@exercise.wrong("numbers alone",
                'Your entries are numbers. They should be texts that also tell the direction, such as "F0" or "B0".',
                'f"F{k}" forward, f"B{k}" backward, and "." for waiting.')
def lanes(p, m):
    return [[-1 if one == "." else int(one[1:]) for one in row] for row in exercise.right(p, m)]


@exercise.wrong("first letters only",
                'The numbers of the pieces are cut off: an array that was made with "." has room for one letter.',
                "Lists have room for any text.")
def lanes(p, m):
    return [[one[0] for one in row] for row in exercise.right(p, m)]


@exercise.wrong("lines of text",
                "Each device has one text in yours. It should have a list, with an entry for each tick.",
                "No `join`.")
def lanes(p, m):
    return [" ".join(row) for row in exercise.right(p, m)]


@exercise.wrong("an array",
                "You return an array of NumPy. The exercise asks for a list of lists.",
                "Lists have room for any text: \"F10\" too.")
def lanes(p, m):
    return np.array(exercise.right(p, m))


def kinds(lanes, p, m):
    """The types in the returned list. A tuple counts as a list."""
    rows = lanes(p, m)
    if not isinstance(rows, list | tuple):
        return None if rows is None else type(rows).__name__
    return f"[{', '.join('list' if isinstance(row, tuple) else type(row).__name__ for row in rows)}]"


def text(lanes, p, m):
    """Each device as one line."""
    return [" ".join(map(str, row)) for row in lanes(p, m)]


@exercise.cases
def cases(rng):
    yield case(1, 1, expected=[["F0", "B0"]])
    yield case(2, 1, run=kinds, expected="[list, list]", text="2 devices, 1 piece: the types in the list")
    yield case(1, 3, run=text, expected=["F0 F1 F2 B0 B1 B2"], text="one device, 3 pieces")
    yield case(2, 1, run=text, expected=["F0 . . B0", ". F0 B0 ."], text="2 devices, 1 piece")
    yield case(2, 2, run=text, expected=["F0 F1 . . B0 B1", ". F0 F1 B0 B1 ."], text="2 devices, 2 pieces")
    yield case(3, 2, run=text, expected=["F0 F1 . . . . B0 B1", ". F0 F1 . . B0 B1 .", ". . F0 F1 B0 B1 . ."],
               text="3 devices, 2 pieces")
    yield case(2, 4, run=text, text="2 devices, 4 pieces")
    for p, m in ((4, 1), (4, 12)):
        yield case(p, m, run=text, hidden=True, text=f"{p} devices, {m} pieces")
