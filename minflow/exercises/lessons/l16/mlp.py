"""16.3 mlp: two layers on several devices, with one message."""

import numpy as np

from ...definition import Exercise, case

exercise = Exercise(
    "16.3", "mlp", kind="write", level="core", tolerance=(1e-9, 1e-9),
    question="How do several devices compute two layers and send one message?",
    hint="On each device: x @ w1 + b1, relu, @ w2. These are summands. One all_reduce, and then b2, once.",
    fact="Every block of a large language model is split so: the first layer by columns, the second by rows, and one "
         "all_reduce. It is called Megatron's way (Shoeybi and others 2019).",
    sibling="Three friends add up 5 + 6 + 7 and a fee of 2. If each pays the fee before the sum, it is 7 + 8 + 9 = 24, "
            "with the fee in it three times. Sum first, then the fee: 18 + 2 = 20.",
)


@exercise.solution
def mlp(x, w1, b1, w2, b2, all_reduce):
    summands = []
    for d in range(len(x)):
        # other columns on each device, and finished: the bend may see them
        hidden = np.maximum(x[d] @ w1[d] + b1[d], 0)
        # a part of every sum
        summands.append(hidden @ w2[d])
    # the bias comes after the sum, or it would count once for each device
    return [result + bias for result, bias in zip(all_reduce(summands), b2)]


@exercise.also_right
def mlp(x, w1, b1, w2, b2, all_reduce):
    n = len(x)
    return all_reduce([np.maximum(x[d] @ w1[d] + b1[d], 0) @ w2[d] + b2[d] / n for d in range(n)])


@exercise.also_right
def mlp(x, w1, b1, w2, b2, all_reduce):
    """Only device 0 adds the bias."""
    summands = [np.maximum(a @ w + b, 0) @ v for a, w, b, v in zip(x, w1, b1, w2)]
    summands[0] = summands[0] + b2[0]
    return all_reduce(summands)


def network(x, w1, b1, w2, b2, all_reduce, early=False, late=True, bend=True):
    """The right network with changes: the second bias before or after the sum, without the bend."""
    summands = []
    for a, w, b, v, c in zip(x, w1, b1, w2, b2):
        hidden = a @ w + b
        summands.append((np.maximum(hidden, 0) if bend else hidden) @ v + (c if early else 0))
    return [result + (c if late else 0) for result, c in zip(all_reduce(summands), b2)]


@exercise.wrong("bias from each",
                "The bias b2 is in the sum once for each device.",
                "Add `b2[d]` after the all_reduce, when the sum is there.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return network(x, w1, b1, w2, b2, all_reduce, early=True, late=False)


@exercise.wrong("no second bias",
                "b2 is missing.",
                "Add `b2[d]` to the sum, after the all_reduce.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return network(x, w1, b1, w2, b2, all_reduce, late=False)


@exercise.wrong("no bend",
                "There is no bend between the layers. Two layers without a bend are one layer.",
                "`np.maximum(hidden, 0)` comes between the two products.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return network(x, w1, b1, w2, b2, all_reduce, bend=False)


@exercise.wrong("bend of summands",
                "The bend comes after the second product: it sees summands there, and the hidden layer has none.",
                "`np.maximum(..., 0)` belongs to the hidden layer, before `@ w2[d]`.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    summands = [np.maximum((a @ w + b) @ v, 0) for a, w, b, v in zip(x, w1, b1, w2)]
    return [result + c for result, c in zip(all_reduce(summands), b2)]


@exercise.wrong("bend before the bias",
                "The bias b1 comes after the bend. It belongs before it.",
                "First `x[d] @ w1[d] + b1[d]`, then the bend.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    summands = [(np.maximum(a @ w, 0) + b) @ v for a, w, b, v in zip(x, w1, b1, w2)]
    return [result + c for result, c in zip(all_reduce(summands), b2)]


@exercise.wrong("bend at the end",
                "The result has no number below 0: you bend it once more at the end.",
                "The bend is between the layers only.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return [np.maximum(result, 0) for result in exercise.right(x, w1, b1, w2, b2, all_reduce)]


@exercise.wrong("never summed",
                "Each device returns its own summands. None has the sum.",
                "`all_reduce(summands)` gives each device the sum.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return network(x, w1, b1, w2, b2, list)


@exercise.wrong("no message",
                "The results are right, but you took the numbers of other devices without sending them.",
                "The sum is made by `all_reduce(summands)`, once.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return network(x, w1, b1, w2, b2, lambda parts: [sum(parts) for _ in parts])


@exercise.wrong("two messages",
                "The results are right, but one message is enough. You call all_reduce twice.",
                "The bend may see the hidden columns as they are. Only the result is a sum.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    bias = all_reduce([c / len(x) for c in b2])
    return [result + c for result, c in zip(network(x, w1, b1, w2, b2, all_reduce, late=False), bias)]


@exercise.wrong("the hidden layer put together",
                "You send the hidden layer to all. Each device has the rows of w2 for its own columns: it needs no "
                "others.",
                "On device d: `hidden @ w2[d]`, with the hidden columns of this device.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    ends = np.cumsum([0, *[w.shape[1] for w in w1]])
    wide = []
    for d in range(len(x)):
        place = np.zeros((len(x[0]), ends[-1]))
        place[:, ends[d]:ends[d + 1]] = x[d] @ w1[d] + b1[d]
        wide.append(place)
    hidden = [np.maximum(whole, 0)[:, ends[d]:ends[d + 1]] for d, whole in enumerate(all_reduce(wide))]
    return [result + c for result, c in zip(all_reduce([h @ v for h, v in zip(hidden, w2)]), b2)]


@exercise.wrong("one result",
                "You return one array. There are several devices, and each should have the result: a list.",
                "A list with one array for each device.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return exercise.right(x, w1, b1, w2, b2, all_reduce)[0]


@exercise.wrong("no first bias",
                "b1 is missing.",
                "`x[d] @ w1[d] + b1[d]`, then the bend.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return network(x, w1, [0 * b for b in b1], w2, b2, all_reduce)


@exercise.wrong("second bias twice",
                "b2 is in the result twice: before the sum, and after it.",
                "Once is enough: after the all_reduce.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    summands = [np.maximum(a @ w + b, 0) @ v for a, w, b, v in zip(x, w1, b1, w2)]
    summands[0] = summands[0] + b2[0]
    return [result + c for result, c in zip(all_reduce(summands), b2)]


@exercise.wrong("half of the second bias",
                "b2 is divided by 2. How many devices are there in this case?",
                "`len(x)` is their number. Or add `b2[d]` once, after the all_reduce.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return all_reduce([np.maximum(a @ w + b, 0) @ v + c / 2 for a, w, b, v, c in zip(x, w1, b1, w2, b2)])


HIDDEN = ("You add up the hidden layers of the devices. They have other columns: finished numbers, not summands.",
          "Only after `@ w2[d]` each device has summands.")


@exercise.wrong("hidden layers summed, then the bend", *HIDDEN)
def mlp(x, w1, b1, w2, b2, all_reduce):
    hidden = all_reduce([a @ w + b for a, w, b in zip(x, w1, b1)])
    summands = [np.maximum(h, 0) @ v for h, v in zip(hidden, w2)]
    return [result + c for result, c in zip(all_reduce(summands), b2)]


@exercise.wrong("hidden layers summed, then no sum", *HIDDEN)
def mlp(x, w1, b1, w2, b2, all_reduce):
    hidden = all_reduce([a @ w + b for a, w, b in zip(x, w1, b1)])
    return [np.maximum(h, 0) @ v + c for h, v, c in zip(hidden, w2, b2)]


@exercise.wrong("hidden layers summed", *HIDDEN)
def mlp(x, w1, b1, w2, b2, all_reduce):
    hidden = all_reduce([np.maximum(a @ w + b, 0) for a, w, b in zip(x, w1, b1)])
    return [h @ v + c for h, v, c in zip(hidden, w2, b2)]


@exercise.wrong("hidden layers summed before the bias", *HIDDEN)
def mlp(x, w1, b1, w2, b2, all_reduce):
    hidden = all_reduce([a @ w for a, w in zip(x, w1)])
    return [np.maximum(h + b, 0) @ v + c for h, b, v, c in zip(hidden, b1, w2, b2)]


@exercise.wrong("bend of the sum",
                "The bend comes after the sum, at the result. The hidden layer has none.",
                "`np.maximum(..., 0)` belongs to the hidden layer, before `@ w2[d]`.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    summands = [(a @ w + b) @ v for a, w, b, v in zip(x, w1, b1, w2)]
    return [np.maximum(result, 0) + c for result, c in zip(all_reduce(summands), b2)]


@exercise.wrong("once for each device",
                "You call all_reduce once for each device. Each call is a message of all of them.",
                "Call it once: it returns the list with the results for all.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    summands = [np.maximum(a @ w + b, 0) @ v for a, w, b, v in zip(x, w1, b1, w2)]
    return [all_reduce(summands)[d] + c for d, c in enumerate(b2)]


@exercise.wrong("summed twice",
                "You add up the parts of all devices yourself, and all_reduce adds up these sums once more.",
                "Each device gives all_reduce its own summands.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    total = sum(np.maximum(a @ w + b, 0) @ v for a, w, b, v in zip(x, w1, b1, w2))
    return [result + c for result, c in zip(all_reduce([total for _ in x]), b2)]


@exercise.wrong("mean",
                "You divide the sum by the number of devices. A sum over columns is not a mean.",
                "Nothing is divided.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return network(x, w1, b1, w2, b2, lambda parts: [one / len(parts) for one in all_reduce(parts)])


@exercise.wrong("lists joined",
                "`+` joins two lists: the biases are behind the sums. Each device adds its own.",
                "Go through both lists at once: `zip`.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return network(x, w1, b1, w2, b2, all_reduce, late=False) + b2


COUNT = ("The number of devices is fixed in yours. How many are there in this case?",
         "`len(x)` is the number of devices.")


@exercise.wrong("two devices", *COUNT)
def mlp(x, w1, b1, w2, b2, all_reduce):
    results = all_reduce([np.maximum(x[d] @ w1[d] + b1[d], 0) @ w2[d] for d in range(2)])
    return [results[d] + b2[d] for d in range(2)]


@exercise.wrong("four devices", *COUNT)
def mlp(x, w1, b1, w2, b2, all_reduce):
    results = all_reduce([np.maximum(x[d] @ w1[d] + b1[d], 0) @ w2[d] for d in range(4)])
    return [results[d] + b2[d] for d in range(4)]


@exercise.wrong("lists multiplied",
                "`x @ w1`: both are lists, with an array for each device. Lists have no `@`.",
                "Go through the devices: `x[d] @ w1[d]`.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    return all_reduce(np.maximum(x @ w1 + b1, 0) @ w2) + b2


@exercise.wrong("number by number",
                "`*` multiplies number by number. A layer is a product of matrices.",
                "`@`")
def mlp(x, w1, b1, w2, b2, all_reduce):
    summands = [np.maximum(a * w + b, 0) * v for a, w, b, v in zip(x, w1, b1, w2)]
    return [result + c for result, c in zip(all_reduce(summands), b2)]


@exercise.wrong("max in place of maximum",
                "`np.max` finds the largest number of each column. The bend compares each number with 0.",
                "`np.maximum(hidden, 0)`")
def mlp(x, w1, b1, w2, b2, all_reduce):
    summands = [np.max(a @ w + b, 0) @ v for a, w, b, v in zip(x, w1, b1, w2)]
    return [result + c for result, c in zip(all_reduce(summands), b2)]


@exercise.wrong("one after the other",
                "Your function is a generator: `yield` gives one array after the other. The exercise asks for a list.",
                "Collect the arrays in a list, and return it.")
def mlp(x, w1, b1, w2, b2, all_reduce):
    yield from exercise.right(x, w1, b1, w2, b2, all_reduce)


class Wires:
    """Adds up what devices hand over, and keeps how large it was."""

    def __init__(self):
        self.messages = []

    def all_reduce(self, parts):
        """Each device gets the sum of all parts."""
        self.messages.append(np.shape(parts[0]))
        return [np.sum(parts, axis=0) for _ in parts]


def deal(x, w1, b1, w2, b2, n):
    """The parts of each device: x and b2 are copies, w1 and b1 split by columns, w2 by rows."""
    def split(array, axis):
        return [part.copy() for part in np.array_split(array, n, axis)]

    return [x.copy() for _ in range(n)], split(w1, 1), split(b1, 0), split(w2, 0), [b2.copy() for _ in range(n)]


def kinds(mlp, x, w1, b1, w2, b2, n):
    """The types in the returned list."""
    results = mlp(*deal(x, w1, b1, w2, b2, n), Wires().all_reduce)
    if not isinstance(results, list | tuple):
        return None if results is None else type(results).__name__
    return f"[{', '.join('list' if isinstance(one, tuple) else type(one).__name__ for one in results)}]"


def results(mlp, x, w1, b1, w2, b2, n):
    return [np.asarray(one).tolist() for one in mlp(*deal(x, w1, b1, w2, b2, n), Wires().all_reduce)]


def messages(mlp, x, w1, b1, w2, b2, n):
    """The sizes of what is summed up, one message after the other."""
    wires = Wires()
    mlp(*deal(x, w1, b1, w2, b2, n), wires.all_reduce)
    return wires.messages


@exercise.cases
def cases(rng):
    one, two = np.array([[2.0]]), np.array([[1.0, -1.0]])
    small = (one, two, np.array([0.0, 3.0]), np.array([[1.0], [10.0]]), np.array([5.0]))
    bent = (np.array([[1.0]]), two, np.array([-2.0, 0.0]), np.array([[-3.0], [4.0]]), np.array([-1.0]))
    yield case(*small, 1, run=kinds, expected="[ndarray]", text="one device: the types in the list")
    yield case(*small, 1, run=results, expected=[[[17.0]]], text="one device: 1 number, 2 hidden, 1 result")
    yield case(*small, 2, run=results, expected=[[[17.0]]] * 2, text="the same on 2 devices")
    yield case(*bent, 2, run=results, expected=[[[-1.0]]] * 2, text="all hidden numbers at or below 0, 2 devices")
    yield case(*small, 2, run=messages, expected=[(1, 1)], text="what is summed up, 2 devices: one message, (1, 1)")
    for rows, wide, hidden, out, n in ((3, 4, 8, 2, 4), (2, 3, 7, 3, 3), (5, 2, 6, 4, 2)):
        x, w1, b1, w2, b2 = (rng.normal(size=s) for s in ((rows, wide), (wide, hidden), hidden, (hidden, out), out))
        whole = (np.maximum(x @ w1 + b1, 0) @ w2 + b2).tolist()
        sizes = f"x {x.shape}, w1 {w1.shape}, w2 {w2.shape} on {n} devices"
        yield case(x, w1, b1, w2, b2, n, run=results, expected=[whole] * n, hidden=n != 4, text=sizes)
        yield case(x, w1, b1, w2, b2, n, run=messages, expected=[(rows, out)], hidden=n != 4,
                   text=f"what is summed up, {sizes}")
