"""13.4 ring: a sum over n devices, each of which only sends to its right neighbor."""

import numpy as np

from ...definition import Exercise, case

exercise = Exercise(
    "13.4", "ring", kind="write", level="stretch", time_limit=4.0,
    question="How do n devices add their arrays if each may only send to its neighbor?",
    hint="Cut each array into n pieces. First half, n - 1 rounds: in round r device d sends piece (d - r) % n, and "
         "its neighbor adds it. Second half, n - 1 rounds: finished pieces go round, and are only copied.",
    fact="Each device sends nearly two arrays, whether there are 4 devices or 400. That is why large trainings add "
         "their gradients in rings.",
    sibling="Three children have three heaps each: apples, nuts and figs. Each passes a different heap to the child "
            "on the right, who adds it to her own heap of that kind: Ana passes the apples, Ben the nuts, Cem the "
            "figs. Then each passes on the heap that she has just made larger. After these two rounds Cem has all "
            "apples, Ana all nuts, Ben all figs. Two more rounds tell everybody the three totals.",
)


@exercise.solution
def ring(parts, send):
    n = len(parts)
    # pieces[d][k]: piece k of device d, a copy
    pieces = [[piece.copy() for piece in np.array_split(part, n)] for part in parts]
    # first half: add each piece that arrives
    for r in range(n - 1):
        for d in range(n):
            k = (d - r) % n
            pieces[(d + 1) % n][k] += send(d, pieces[d][k])
    # second half: device d has the whole sum of piece d + 1; each piece that arrives replaces the old one
    for r in range(n - 1):
        for d in range(n):
            k = (d + 1 - r) % n
            pieces[(d + 1) % n][k] = send(d, pieces[d][k])
    return [np.concatenate(own) for own in pieces]


@exercise.also_right
def ring(parts, send):
    """Send pieces around the ring: once to add, once to distribute."""
    n = len(parts)
    cuts = np.array_split(np.arange(len(parts[0])), n)
    results = [np.zeros_like(part) for part in parts]
    for first, cut in enumerate(cuts):
        piece = parts[first][cut]
        for d in range(first, first + n - 1):
            piece = parts[(d + 1) % n][cut] + send(d % n, piece)
        last = (first + n - 1) % n
        results[last][cut] = piece
        for d in range(last, last + n - 1):
            piece = send(d % n, piece)
            results[(d + 1) % n][cut] = piece
    return results


@exercise.also_right
def ring(parts, send):
    """Let all send at once: first every message, then every change."""
    n = len(parts)
    own = [part.copy() for part in parts]
    ends = [len(parts[0]) * k // n for k in range(n + 1)]
    for r in range(2 * (n - 1)):
        messages = []
        for d in range(n):
            k = (d - r) % n if r < n - 1 else (d - r + n) % n
            messages.append((k, send(d, own[d][ends[k]:ends[k + 1]])))
        for d, (k, message) in enumerate(messages):
            place = slice(ends[k], ends[k + 1])
            to = own[(d + 1) % n]
            to[place] = to[place] + message if r < n - 1 else message
    return own


@exercise.wrong("whole arrays",
                "The sums are right, but too much is sent: each device passes on whole arrays.",
                "Cut each array into n pieces, and send one piece at a time.")
def ring(parts, send):
    n = len(parts)
    results, going = [part.copy() for part in parts], [part.copy() for part in parts]
    for r in range(n - 1):
        arrived = [send(d, going[d]) for d in range(n)]
        going = [arrived[(d - 1) % n] for d in range(n)]
        for d in range(n):
            results[d] += going[d]
    return results


@exercise.wrong("all to one",
                "One sum goes round with everything in it: some devices send two whole arrays, and all others wait.",
                "Cut each array into n pieces. Then all devices can send at the same time.")
def ring(parts, send):
    n = len(parts)
    total = parts[0].copy()
    for d in range(n - 1):
        total = parts[d + 1] + send(d, total)
    results = [total.copy() for _ in range(n)]
    for d in range(n - 1, 2 * n - 2):
        results[(d + 1) % n] = total = send(d % n, total)
    return results


@exercise.wrong("no message",
                "The sums are right, but you took the numbers of other devices without sending them.",
                "Everything that goes from device to device goes through `send`.")
def ring(parts, send):
    return [np.sum(parts, axis=0) for _ in parts]


def rounds(parts, send, first, second, add=False, copies=True, n=0, own=1, split=np.array_split, neighbor=None):
    """The right algorithm, except for the number of rounds and of devices, the second half, and who is the neighbor.

    own: the piece that device 0 sends first in the second half.
    """
    n, neighbor = n or len(parts), neighbor or (lambda d, n: (d + 1) % n)
    pieces = [[piece.copy() if copies else piece for piece in split(part, n)] for part in parts]
    for r in range(first):
        for d in range(n):
            pieces[neighbor(d, n)][(d - r) % n] += send(d, pieces[d][(d - r) % n])
    for r in range(second):
        for d in range(n):
            k, to = (d + own - r) % n, pieces[neighbor(d, n)]
            to[k] = to[k] + send(d, pieces[d][k]) if add else send(d, pieces[d][k])
    return [np.concatenate(own) for own in pieces]


FIXED = ("The number of devices is fixed in yours. How many are there in this case?",
         "`len(parts)` is the number of devices.")


@exercise.wrong("two devices", *FIXED)
def ring(parts, send):
    return rounds(parts, send, 1, 1, n=2)


@exercise.wrong("three devices", *FIXED)
def ring(parts, send):
    return rounds(parts, send, 2, 2, n=3)


@exercise.wrong("four devices", *FIXED)
def ring(parts, send):
    return rounds(parts, send, 3, 3, n=4)


@exercise.wrong("another piece first",
                "The second half begins with the wrong piece. Which piece has device d finished in the first half?",
                "After the first half piece d + 1 is finished on device d.")
def ring(parts, send):
    return rounds(parts, send, len(parts) - 1, len(parts) - 1, own=0)


@exercise.wrong("equal pieces only",
                "`np.split` only cuts into equal pieces. 7 numbers for 3 devices must work too.",
                "Section 6 shows a function that also cuts what does not divide evenly.")
def ring(parts, send):
    return rounds(parts, send, len(parts) - 1, len(parts) - 1, split=np.split)


@exercise.wrong("ring not closed",
                "The last device has a right neighbor too: device 0. It closes the ring.",
                "`(d + 1) % n` is n - 1, and then 0 again.")
def ring(parts, send):
    return rounds(parts, send, len(parts) - 1, len(parts) - 1, neighbor=lambda d, n: d + 1)


@exercise.wrong("to the left",
                "`send(d, data)` brings the data to the *right* neighbor. In yours the left one uses them.",
                "Only device (d + 1) % n may use what `send(d, data)` returns.")
def ring(parts, send):
    n = len(parts)
    own = [[piece.copy() for piece in np.array_split(part, n)] for part in parts]
    for r in range(2 * n - 2):
        for d in range(n):
            k, to = (d + r) % n, own[(d - 1) % n]
            to[k] = to[k] + send(d, own[d][k]) if r < n - 1 else send(d, own[d][k])
    return [np.concatenate(pieces) for pieces in own]


@exercise.wrong("result not used",
                "You call `send`, but then take the numbers out of the other device's memory.",
                "`send` returns the data that arrive. Add these.")
def ring(parts, send):
    def count(device, data):
        send(device, data)
        return data.copy()

    return rounds(parts, count, len(parts) - 1, len(parts) - 1)


@exercise.wrong("device 0 for all",
                "Device 0 makes the sum for all, and sends whole arrays: the others wait for it.",
                "Cut each array into n pieces. Then all devices can send at the same time.")
def ring(parts, send):
    total = parts[0].copy()
    for d in range(1, len(parts)):
        total += send(d, parts[d])
    return [send(0, total) for _ in parts]


@exercise.wrong("not joined",
                "Each device has a list of pieces. It should have one array.",
                "`np.concatenate(pieces)` joins them.")
def ring(parts, send):
    return [np.array_split(result, len(parts)) for result in exercise.right(parts, send)]


@exercise.wrong("mean",
                "That is the mean of the parts. The exercise asks for their sum.",
                "Nothing is divided.")
def ring(parts, send):
    return [result / len(parts) for result in exercise.right(parts, send)]


@exercise.wrong("arguments swapped",
                "`send(d, data)`: the device comes first, then the data.",
                "In yours the data are the device.")
def ring(parts, send):
    return exercise.right(parts, lambda device, data: send(data, device))


@exercise.wrong("first half only",
                "Each device has one piece of the sum. The others still need it.",
                "A second half, n - 1 rounds more: the finished pieces go round.")
def ring(parts, send):
    return rounds(parts, send, len(parts) - 1, 0)


@exercise.wrong("adds again",
                "In the second half you add again. There, pieces are only copied.",
                "A piece that arrives in the second half is finished: it takes the place of the old one.")
def ring(parts, send):
    return rounds(parts, send, len(parts) - 1, len(parts) - 1, add=True)


@exercise.wrong("one round more",
                "n rounds are one too many: a piece returns to its start and is added a second time.",
                "n - 1 rounds in each half.")
def ring(parts, send):
    return rounds(parts, send, len(parts), len(parts))


@exercise.wrong("one round less",
                "A round is missing: a piece that starts at one device must reach n - 1 others.",
                "n - 1 rounds in each half.")
def ring(parts, send):
    return rounds(parts, send, max(0, len(parts) - 2), max(0, len(parts) - 2))


@exercise.wrong("added up in one place",
                "The sums are right, but they are made in one place: a device may only send to its right neighbor.",
                "A device adds only the pieces that `send` brought from its left neighbor, one at a time.")
def ring(parts, send):
    total = sum(send(d, part) for d, part in enumerate(parts))
    return [total.copy() for _ in parts]


@exercise.wrong("writes into the parts",
                "The given arrays have changed. Pieces of an array are views.",
                "Take a `.copy()` of each piece before you add anything to it.")
def ring(parts, send):
    return rounds(parts, send, len(parts) - 1, len(parts) - 1, copies=False)


@exercise.wrong("one after the other",
                "Your function is a generator: `yield` gives one array after the other. The exercise asks for a list.",
                "Collect the arrays in a list, and return it.")
def ring(parts, send):
    yield from exercise.right(parts, send)


class Wires:
    """Counts the bytes that each device has sent."""

    def __init__(self, n):
        self.sent = [0] * n

    def send(self, device, data):
        """Send from a device to its right neighbor; return what arrives there."""
        data = np.array(data)
        self.sent[device] += data.nbytes
        return data


def kinds(ring, parts):
    """The types in the returned list."""
    results = ring(parts, Wires(len(parts)).send)
    if not isinstance(results, list | tuple):
        return None if results is None else type(results).__name__
    return f"[{', '.join(type(one).__name__ for one in results)}]"


def known(ring, parts):
    """The other devices whose numbers device 1 has although the wire to it is cut. Device d has the numbers 10**d."""
    wires = Wires(len(parts))
    result = ring(parts, lambda device, data: wires.send(device, data) * (device != 0))[1]
    return [d for d in range(len(parts)) if d != 1 and (np.asarray(result) // 10**d % 10 != 0).any()]


def sums(ring, parts):
    return [np.asarray(one).tolist() for one in ring(parts, Wires(len(parts)).send)]


def sent(ring, parts):
    """Bytes that each device sent."""
    wires = Wires(len(parts))
    ring(parts, wires.send)
    return wires.sent


def all_sent(ring, parts):
    """Total number of bytes sent: pieces of other sizes may go in another order."""
    return sum(sent(ring, parts))


def parts_unchanged(ring, parts):
    """True if the parts are unchanged."""
    before = [part.copy() for part in parts]
    ring(parts, Wires(len(parts)).send)
    return all((one == two).all() for one, two in zip(parts, before))


@exercise.cases
def cases(rng):
    def parts(n, size):
        return [rng.integers(1, 9, size).astype(np.float64) for _ in range(n)]

    def total(some):
        return [np.sum(some, axis=0).tolist()] * len(some)

    two, three, four = [np.array([1.0, 2.0]), np.array([10.0, 20.0])], parts(3, 6), parts(4, 8)
    uneven = parts(3, 7)
    yield case(two, run=kinds, expected="[ndarray, ndarray]", text="[1 2] and [10 20]: the types in the list")
    yield case(two, run=sums, expected=[[11.0, 22.0]] * 2, text="[1 2] and [10 20]")
    yield case(two, run=sent, expected=[16, 16], text="[1 2] and [10 20]: the bytes that each sends")
    yield case(three, run=sums, expected=total(three), text="3 devices, 6 numbers each")
    yield case(three, run=parts_unchanged, expected=True, text="3 devices: are the given arrays as they were?")
    yield case(four, run=sent, expected=[96] * 4, text="4 devices, 8 numbers each: the bytes that each sends")
    yield case(uneven, run=sums, expected=total(uneven), text="3 devices, 7 numbers each")
    yield case([np.full(6, 10.0**d) for d in range(3)], run=known, expected=[],
               text="the wire from device 0 to 1 is cut: whose numbers has device 1?")
    one = parts(1, 3)
    yield case(one, run=sums, expected=total(one), text="one device alone")
    yield case(uneven, run=all_sent, expected=2 * 2 * 7 * 8, hidden=True)
    five = parts(5, 13)
    yield case(five, run=sums, expected=total(five), hidden=True)
    yield case(five, run=all_sent, expected=2 * 4 * 13 * 8, hidden=True)
