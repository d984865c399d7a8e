"""05.3 out_size: at how many places does a window fit?"""

from ...definition import Exercise, case

exercise = Exercise(
    "05.3", "out_size", kind="write", level="core", tolerance=(0, 0),
    question="How large is the result of a convolution?",
    hint="Add the padding on both sides, place the window at the start, count the steps to the end, and add one for "
         "the start.",
    fact="Padding (k - 1) / 2 with stride 1 keeps the size: that is why kernels are 3, 5 or 7 wide.",
    sibling="A ruler of 3 cm on a board of 10 cm, moved by 2 cm: after the start, 7 cm are left, and 7 // 2 = 3 steps "
            "fit. With the start, that is 4 places; the last centimeter stays free.",
)


@exercise.solution
def out_size(n, k, stride=1, padding=0):
    # the distance that is left when the window is at the start
    way = n + 2 * padding - k
    # whole steps, and the start itself
    return way // stride + 1


@exercise.also_right
def out_size(n, k, stride=1, padding=0):
    return len(range(0, n + 2 * padding - k + 1, stride))


@exercise.also_right
def out_size(n, k, stride=1, padding=0):
    places, start = 0, -padding
    while start + k <= n + padding:
        places, start = places + 1, start + stride
    return places


@exercise.wrong("rounds up",
                "A window that hangs over the end is left out: round down.",
                "`//` rounds down. Draw the last window of the case: does it fit?")
def out_size(n, k, stride=1, padding=0):
    return -(-(n + 2 * padding - k) // stride) + 1


@exercise.wrong("one side",
                "Padding is added once in yours. An image has two sides.",
                "n becomes n + 2 * padding.")
def out_size(n, k, stride=1, padding=0):
    return (n + padding - k) // stride + 1


@exercise.wrong("start too early",
                "Count the steps first, then add the start: the + 1 comes after the division.",
                "(way + 1) // stride is not way // stride + 1.")
def out_size(n, k, stride=1, padding=0):
    return (n + 2 * padding - k + 1) // stride


@exercise.wrong("no start",
                "One too few. If the window is as large as the image (k = n), there is one place.",
                "You count the steps; the place before the first step counts too.")
def out_size(n, k, stride=1, padding=0):
    return (n + 2 * padding - k) // stride


@exercise.wrong("fraction",
                "The number of places must be a whole number. `/` gives a fraction, `//` does not.",
                "Use `//`: 5 / 2 is 2.5, 5 // 2 is 2.")
def out_size(n, k, stride=1, padding=0):
    return (n + 2 * padding - k) / stride + 1


@exercise.wrong("stride and padding swapped",
                "Stride and padding are swapped: try stride 2 and padding 0.",
                "The padding makes the image larger; the stride divides the way.")
def out_size(n, k, stride=1, padding=0):
    return (n + 2 * stride - k) // padding + 1


@exercise.wrong("stride forgotten",
                "With stride 1 that is right. A larger stride takes fewer steps.",
                "Divide the way by the stride.")
def out_size(n, k, stride=1, padding=0):
    return n + 2 * padding - k + 1


@exercise.wrong("padding forgotten",
                "Without padding that is right. Padding makes the image larger before the window moves.",
                "There are `padding` more places at each of the two ends.")
def out_size(n, k, stride=1, padding=0):
    return (n - k) // stride + 1


@exercise.wrong("no parentheses",
                "`//` comes before + and -: only k is divided by the stride in yours.",
                "Put the way in parentheses: (all that is left) // stride.")
def out_size(n, k, stride=1, padding=0):
    return n + 2 * padding - k // stride + 1


@exercise.wrong("kernel forgotten",
                "The window itself takes k pixels: where is k in yours?",
                "The window is at the start; only n + 2 * padding - k pixels are left to move over.")
def out_size(n, k, stride=1, padding=0):
    return (n + 2 * padding) // stride


@exercise.wrong("kernel of 3",
                "With a window of 3 pixels that is right. How wide is it in this case?",
                "Its width is given: k.")
def out_size(n, k, stride=1, padding=0):
    return (n + 2 * padding - 3) // stride + 1


@exercise.wrong("padding times the kernel",
                "You multiply the padding by k. How many zeros are added at each of the two sides?",
                "`padding` is a number of pixels, whatever the kernel is.")
def out_size(n, k, stride=1, padding=0):
    return (n + k * padding - k) // stride + 1


@exercise.wrong("int as a float",
                "The number is right, but it is a float, such as 3.0. A number of places is an int.",
                "Leave out the dot: 1, not 1.0, and `//`, not `/`.")
def out_size(n, k, stride=1, padding=0):
    return (n + 2 * padding - k) // stride + 1.0


@exercise.wrong("one too many",
                "One too many. If the window is as large as the image (k = n), there is one place.",
                "Count the steps, and add one for the start: only once.")
def out_size(n, k, stride=1, padding=0):
    return (n + 2 * padding - k) // stride + 2


def size_case(n, k, stride, padding, hidden=False):
    expected = sum(1 for start in range(-padding, n + padding, stride) if start + k <= n + padding)
    return case(n, k, stride, padding, text=f"n = {n}, k = {k}, stride = {stride}, padding = {padding}",
                expected=expected,
                hidden=hidden)


def with_defaults(out_size, n, k):
    return out_size(n, k)


@exercise.cases
def cases(rng):
    yield case(5, 5, 1, 0, text="n = 5, k = 5, stride = 1, padding = 0")
    yield size_case(5, 2, 1, 0)
    yield size_case(6, 2, 2, 0)
    yield size_case(8, 3, 2, 0)
    yield size_case(28, 5, 1, 2)
    yield size_case(224, 7, 2, 3)
    yield case(28, 3, run=with_defaults, expected=26, text="n = 28, k = 3, stride and padding not given")
    k = int(rng.integers(2, 6))
    yield size_case(int(rng.integers(20, 60)), k, int(rng.integers(2, 5)), int(rng.integers(1, k)), hidden=True)
    yield size_case(int(rng.integers(20, 60)), k, 3, 0, hidden=True)
