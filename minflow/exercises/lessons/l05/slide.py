"""05.2 slide: a filter at every place of an image."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "05.2", "slide", kind="write", level="core", tolerance=(1e-5, 1e-5),
    question="What comes out when a filter slides over an image?",
    hint="For each place: cut out a window as large as the kernel, multiply entry by entry, add it all up.",
    fact="minflow's `conv2d` loops over the few entries of the kernel, not over the many places: for each entry it "
         "shifts the whole image.",
    sibling="In one dimension: [1, 2, 3, 4] and the kernel [1, 0, -1] fit at 4 - 3 + 1 = 2 places. Place 0: "
            "1*1 + 2*0 + 3*-1 = -2. Place 1: 2*1 + 3*0 + 4*-1 = -2. In code, place i reads `row[i:i + 3]`.",
    forbidden={name: "That is the library's function. Write the two loops." for name in ("conv2d", "Conv2d")},
)


@exercise.solution
def slide(image, kernel):
    height, width = kernel.shape
    # at how many places does the kernel fit, down and across?
    rows, columns = image.shape[0] - height + 1, image.shape[1] - width + 1
    out = flow.zeros(rows, columns)
    for i in range(rows):
        for j in range(columns):
            # the window under the kernel, entry by entry, added up
            window = image[i:i + height, j:j + width]
            out[i, j] = (window * kernel).sum()
    return out


@exercise.also_right
def slide(image, kernel):
    k, m = kernel.shape
    return flow.stack([flow.stack([(image[i:i + k, j:j + m] * kernel).sum() for j in range(image.shape[1] - m + 1)])
                       for i in range(image.shape[0] - k + 1)])


@exercise.also_right
def slide(image, kernel):
    rows, columns = (image.shape[axis] - kernel.shape[axis] + 1 for axis in (0, 1))
    total = flow.zeros(rows, columns)
    for u in range(kernel.shape[0]):
        for v in range(kernel.shape[1]):
            total = total + kernel[u, v] * image[u:u + rows, v:v + columns]
    return total


@exercise.wrong("flipped",
                "You flip the kernel. That is the convolution of textbooks; networks do not flip.",
                "The first entry of the kernel meets the first entry of the window.")
def slide(image, kernel):
    kernel = flow.flip(kernel, (0, 1))
    k, m = kernel.shape
    return flow.stack([flow.stack([(image[i:i + k, j:j + m] * kernel).sum() for j in range(image.shape[1] - m + 1)])
                       for i in range(image.shape[0] - k + 1)])


@exercise.wrong("one place short",
                "A place is missing at the end. How many are there if the kernel is as large as the image?",
                "H - K counts the steps. There is one more place than there are steps.")
def slide(image, kernel):
    k, m = kernel.shape
    rows, columns = image.shape[0] - k, image.shape[1] - m
    out = flow.zeros(max(rows, 0), max(columns, 0))
    for i in range(rows):
        for j in range(columns):
            out[i, j] = (image[i:i + k, j:j + m] * kernel).sum()
    return out


@exercise.wrong("i and j swapped",
                "Rows and columns are swapped somewhere. An image that is not square shows it.",
                "i counts rows, the first axis; j counts columns, the second. Check the window's two slices.")
def slide(image, kernel):
    k, m = kernel.shape
    rows, columns = image.shape[0] - k + 1, image.shape[1] - m + 1
    out = flow.zeros(rows, columns)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = (image[j:j + k, i:i + m] * kernel).sum()
    return out


@exercise.wrong("turned",
                "Your result is transposed. Its rows belong to i, the way down.",
                "out[i, j], not out[j, i].")
def slide(image, kernel):
    k, m = kernel.shape
    rows, columns = image.shape[0] - k + 1, image.shape[1] - m + 1
    out = flow.zeros(columns, rows)
    for i in range(rows):
        for j in range(columns):
            out[j, i] = (image[i:i + k, j:j + m] * kernel).sum()
    return out


@exercise.wrong("mean",
                "That is the mean of the products. A filter adds them up.",
                "Use `.sum()`: a kernel of four ones on a white square answers 4.")
def slide(image, kernel):
    k, m = kernel.shape
    rows, columns = image.shape[0] - k + 1, image.shape[1] - m + 1
    out = flow.zeros(rows, columns)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = (image[i:i + k, j:j + m] * kernel).mean()
    return out


@exercise.wrong("short window",
                "Your window is one too small. Python already leaves out the end of a slice.",
                "`image[i:i + 3]` has three rows: i, i + 1, i + 2.")
def slide(image, kernel):
    k, m = kernel.shape
    rows, columns = image.shape[0] - k + 1, image.shape[1] - m + 1
    out = flow.zeros(rows, columns)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = (image[i:i + k - 1, j:j + m - 1] * kernel).sum()
    return out


def windows(image, kernel, step=1):
    """The windows of the image, as rows of lists."""
    (H, W), (K, M) = image.shape, kernel.shape
    return [[image[i:i + K, j:j + M] for j in range(0, W - M + 1, step)] for i in range(0, H - K + 1, step)]


def answers(image, kernel):
    return flow.tensor([[(window * kernel).sum().item() for window in row] for row in windows(image, kernel)])


@exercise.wrong("last ones left 0",
                "The last row and the last column stay 0: your loops end one place early.",
                "`range(n)` counts from 0 to n - 1: let the loops run over all rows and columns of `out`.")
def slide(image, kernel):
    out = answers(image, kernel)
    out[-1:] = 0
    out[:, -1:] = 0
    return out


@exercise.wrong("as large as the image",
                "Your result is as large as the image. At how many places does the window fit into it?",
                "A window of 3 fits into 4 pixels at 2 places: 4 - 3 + 1.")
def slide(image, kernel):
    out, found = flow.zeros(*image.shape), answers(image, kernel)
    out[:found.shape[0], :found.shape[1]] = found
    return out


@exercise.wrong("square kernel",
                "You use one size for both sides of the window. A kernel (K, M) need not be square.",
                "`kernel.shape` has two sizes: one for the rows, one for the columns.")
def slide(image, kernel):
    K = kernel.shape[0]
    rows, columns = image.shape[0] - K + 1, image.shape[1] - K + 1
    out = flow.zeros(rows, columns)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = (image[i:i + K, j:j + K] * kernel).sum()
    return out


@exercise.wrong("square image",
                "You use the number of rows for the columns as well. An image (H, W) need not be square.",
                "`image.shape` has two sizes: H for the rows, W for the columns.")
def slide(image, kernel):
    K, M = kernel.shape
    rows, columns = image.shape[0] - K + 1, image.shape[0] - M + 1
    out = flow.zeros(rows, columns)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = (image[i:i + K, j:j + M] * kernel).sum()
    return out


@exercise.wrong("K and M swapped",
                "The two sizes of the kernel are swapped. Which one counts its rows?",
                "The shape is (rows, columns): K goes with H, M with W.")
def slide(image, kernel):
    M, K = kernel.shape
    rows, columns = image.shape[0] - K + 1, image.shape[1] - M + 1
    out = flow.zeros(rows, columns)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = (image[i:i + K, j:j + M] * kernel).sum()
    return out


@exercise.wrong("windows of 2 x 2",
                "Your windows are always 2 x 2. Where does your code ask how large the kernel is?",
                "`kernel.shape` says it.")
def slide(image, kernel):
    rows, columns = image.shape[0] - 1, image.shape[1] - 1
    out = flow.zeros(rows, columns)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = (image[i:i + 2, j:j + 2] * kernel).sum()
    return out


@exercise.wrong("no sum",
                "A window times the kernel is a table, and a place of `out` holds one number. What makes one of it?",
                "Add the products up.")
def slide(image, kernel):
    out = flow.zeros(image.shape[0] - kernel.shape[0] + 1, image.shape[1] - kernel.shape[1] + 1)
    for i, row in enumerate(windows(image, kernel)):
        for j, window in enumerate(row):
            out[i, j] = window * kernel
    return out


@exercise.wrong("side by side",
                "Your windows do not overlap. They move by one pixel at a time.",
                "The window at place i begins at row i, not at i * K.")
def slide(image, kernel):
    (H, W), (K, M) = image.shape, kernel.shape
    return flow.tensor([[(image[i * K:i * K + K, j * M:j * M + M] * kernel).sum().item() for j in range(W // M)]
                        for i in range(H // K)])


@exercise.wrong("in a row",
                "All answers are in one row. They belong in a table: row i, column j.",
                "`flow.zeros(rows, columns)`, then fill `out[i, j]`.")
def slide(image, kernel):
    return answers(image, kernel).flatten()


@exercise.wrong("first place only",
                "That is the answer at the first place. The window moves to all others, too.",
                "One loop over the rows, and in it one over the columns.")
def slide(image, kernel):
    return answers(image, kernel)[0, 0]


@exercise.wrong("return in the loop",
                "Only the first row is filled: `return` ends the function. How far is it indented?",
                "It belongs below both loops.")
def slide(image, kernel):
    out = answers(image, kernel)
    out[1:] = 0
    return out


@exercise.wrong("end of the window",
                "`image[i:K]` ends at row K, wherever it begins. Where does the window at row i end?",
                "A window of K rows ends K rows after its beginning.")
def slide(image, kernel):
    (H, W), (K, M) = image.shape, kernel.shape
    return flow.tensor([[(image[i:K, j:M] * kernel).sum().item() for j in range(W - M + 1)]
                        for i in range(H - K + 1)])


@exercise.wrong("whole numbers",
                "You make whole numbers of the answers. A pixel may be 0.5.",
                "Leave out `int` and the dtype.")
def slide(image, kernel):
    return answers(image, kernel).long()


@exercise.wrong("caller's image",
                "The answers are right, but the given image has changed. Where do you write them?",
                "`out = flow.zeros(...)` makes a new tensor for them.")
def slide(image, kernel):
    found = answers(image, kernel)
    image[:found.shape[0], :found.shape[1]] = found
    return image[:found.shape[0], :found.shape[1]]


def image_after(slide, image, kernel):
    slide(image, kernel)
    return image


def slide_case(image, kernel, hidden=False):
    image, kernel = np.asarray(image, "float32"), np.asarray(kernel, "float32")
    windows = np.lib.stride_tricks.sliding_window_view(image.astype("float64"), kernel.shape)
    right = (windows * kernel).sum((2, 3)).astype("float32")
    return case(flow.tensor(image), flow.tensor(kernel), expected=right, hidden=hidden)


@exercise.wrong("matrix product",
                "`@` sums rows times columns. A filter multiplies entry by entry: `*`, then the sum.",
                "Each pixel of the window is multiplied by the one number of the kernel above it.")
def slide(image, kernel):
    (H, W), (K, M) = image.shape, kernel.shape
    return flow.tensor([[(image[i:i + K, j:j + M] @ kernel).sum().item() for j in range(W - M + 1)]
                        for i in range(H - K + 1)])


@exercise.cases
def cases(rng):
    yield case(flow.tensor([[2.0]]), flow.tensor([[3.0]]))
    yield slide_case([[1, 2], [3, 4]], [[10]])
    yield slide_case([[1, 2], [3, 4]], [[1, 0], [0, -1]])
    yield slide_case([[1, 2, 3], [4, 5, 6], [7, 8, 10]], [[1, 2], [0, 0]])
    yield slide_case([[1, 0, 2, 0], [0, 3, 0, 4]], [[1, 2, 3], [4, 5, 6]])
    yield slide_case([[1, 2], [4, 8], [1, 1], [0, 2]], [[1], [-1]])
    yield slide_case([[0.5, 0.25]], [[1, 1]])
    image = np.array([[1, 2], [3, 4]], "float32")
    yield case(flow.tensor(image), flow.tensor([[10.0]]), run=image_after, expected=image,
               text="is the given image still the same?")
    yield slide_case(rng.integers(-3, 4, (5, 4)), rng.integers(-3, 4, (3, 2)), hidden=True)
    yield slide_case(rng.integers(-3, 4, (4, 6)), rng.integers(-3, 4, (3, 3)), hidden=True)
