"""Depthwise 3x3 convolutions with padding 1, of images in blocks that are at least two pixels high and wide.

The filter stays in registers, and each pixel is loaded once per output row: a column of pixels finishes the sum of the
output to its left, continues the next, and starts the one to its right. The top and bottom lines use two rows of the
filter, by the same code for two rows; padding is never read. Read next: `nchw16c_depthwise.py`, the caller.
"""

from __future__ import annotations

from ..codegen import llvm
from ..codegen.jit import float32, inlined
from ..codegen.llvm import LANES, function, word
from ..codegen.vectors import BYTES, clip, filled, load, store

NINE, RUN = 9, 256  # taps of a filter; pixels whose products are summed separately
ROW = 3 * LANES  # elements of a row of the filter
LINE = ROW * BYTES


def columns_of(builder, rows: int, x, row):
    """Return a function that loads the pixels of column j in `rows` rows, `row` elements apart."""
    starts = [llvm.place(builder, x, builder.mul(row, word(u))) for u in range(rows)]
    return lambda j: [llvm.load(builder, start, builder.mul(j, word(LANES))) for start in starts]


def weights_of(builder, rows: int, weights, distance=None):
    """Load the left, middle and right column of `rows` rows of the filter."""
    distance = word(ROW) if distance is None else distance
    return [
        [llvm.load(builder, weights, builder.mul(distance, word(u)), v * LANES) for u in range(rows)] for v in range(3)
    ]


def more(builder, value, column, weights):
    """Compute value + column * weights."""
    for pixel, weight in zip(column, weights):
        value = llvm.multiply_add(builder, pixel, weight, value)
    return value


def over_lines(builder, images, lines, distances, carried, body):
    """Emit `carried = body(offset of a line in x, in y, carried)` for all lines of all images.

    distances: (from line to line, from image to image), in x and in y.
    """

    def one(n, carried):
        starts = [builder.mul(n, image) for _, image in distances]
        return llvm.loop(
            builder,
            lines,
            carried,
            lambda i, carried: body(
                *[builder.add(start, builder.mul(i, line)) for start, (line, _) in zip(starts, distances)], carried
            ),
        )

    return llvm.loop(builder, images, carried, one)


# ---- loops -----------------------------------------------------------------------------------------------------------


def slid(rows: int, stride: int):
    """Loop over output lines that read `rows` rows of the filter; `weights` starts at the first of these.

    row, image: elements between rows and images of x; y_row, y_image: of y.  ends: a bias and two bounds.
    """

    @function(f"slid_{rows}_{stride}", 11, inline=False)
    def code(builder, x, row, image, weights, lines, images, width, y, y_row, y_image, ends):
        left, middle, right = weights_of(builder, rows, weights)
        bias, low, high = [llvm.load(builder, ends, fixed=i * LANES) for i in range(3)]

        def line(start, to, nothing):
            column, target = columns_of(builder, rows, llvm.place(builder, x, start), row), llvm.place(builder, y, to)

            def put(j, value):
                llvm.store(builder, clip(builder, value, low, high), target, builder.mul(j, word(LANES)))

            def one(j, sums):
                here = column(builder.add(j, word(1)))
                put(j, more(builder, sums[0], here, right))
                return [more(builder, sums[1], here, middle), more(builder, bias, here, left)]

            def two(j, sums):
                first = builder.mul(j, word(2))
                after = column(builder.add(first, word(1)))
                put(j, more(builder, more(builder, sums[0], column(first), middle), after, right))
                return [more(builder, bias, after, left)]

            if stride == 1:
                first, last = column(word(0)), builder.sub(width, word(1))
                value, _ = llvm.loop(
                    builder, last, [more(builder, bias, first, middle), more(builder, bias, first, left)], one
                )
                put(last, value)
                return []
            pairs = builder.sdiv(width, word(2))
            (value,) = llvm.loop(builder, pairs, [bias], two)

            def alone(_, nothing):
                put(pairs, more(builder, value, column(builder.mul(pairs, word(2))), middle))
                return []

            return llvm.loop(builder, builder.srem(width, word(2)), [], alone, perhaps=True)

        over_lines(builder, images, lines, ((builder.mul(row, word(stride)), image), (y_row, y_image)), [], line)

    return code


def slid_back(rows: int):
    """Loop over lines of the gradient of images, with stride 2.

    Each line reads one or two rows of the cotangent; even columns read one pixel of it, odd ones two. weights: rotated
    by 180 degrees; `distance`: between the rows that are read.
    """

    @function(f"slid_back_{rows}", 11, inline=False)
    def code(builder, grad, row, image, weights, distance, lines, images, width, y, y_row, y_image):
        left, middle, right = weights_of(builder, rows, weights, distance)
        last = builder.sdiv(builder.sub(width, word(1)), word(2))

        def line(start, to, nothing):
            column = columns_of(builder, rows, llvm.place(builder, grad, start), row)
            target, nought = llvm.place(builder, y, to), llvm.filled(0)

            def put(j, odd, value):
                llvm.store(builder, value, target, builder.mul(j, word(2 * LANES)), odd * LANES)

            def one(j, here):
                after = column(builder.add(j, word(1)))
                put(j, 0, more(builder, nought, here, middle))
                put(j, 1, more(builder, more(builder, nought, here, left), after, right))
                return after

            here = llvm.loop(builder, last, column(word(0)), one, perhaps=True)
            put(last, 0, more(builder, nought, here, middle))

            def beside(_, nothing):
                put(last, 1, more(builder, nought, here, left))
                return []

            even = builder.sub(word(1), builder.srem(width, word(2)))
            return llvm.loop(builder, even, [], beside, perhaps=True)

        over_lines(builder, images, lines, ((row, image), (y_row, y_image)), [], line)

    return code


def slid_products(rows: int):
    """Loop over lines for the gradient of `rows` rows of the filter with stride 1, added to `sums`."""

    @function(f"slid_products_{rows}", 8, inline=False)
    def code(builder, x, row, image, grad, lines, images, width, sums):
        places = [(u, v) for u in range(rows) for v in range(3)]

        def met(accumulated, v, column, g):
            """Accumulate the products for column v of the filter."""
            return [
                llvm.multiply_add(builder, column[a], g, old) if b == v else old
                for old, (a, b) in zip(accumulated, places)
            ]

        def line(start, to, accumulated):
            column = columns_of(builder, rows, llvm.place(builder, x, start), row)
            source = llvm.place(builder, grad, to)
            at = lambda j: llvm.load(builder, source, builder.mul(j, word(LANES)))

            def one(j, carried):
                before, here, *accumulated = carried
                j = builder.add(j, word(1))
                after, pixels = at(builder.add(j, word(1))), column(j)
                return [here, after, *met(met(met(accumulated, 0, pixels, after), 1, pixels, here), 2, pixels, before)]

            here, after, pixels = at(word(0)), at(word(1)), column(word(0))
            accumulated = met(met(accumulated, 0, pixels, after), 1, pixels, here)
            before, here, *accumulated = llvm.loop(
                builder, builder.sub(width, word(2)), [here, after, *accumulated], one, perhaps=True
            )
            pixels = column(builder.sub(width, word(1)))
            return met(met(accumulated, 1, pixels, here), 2, pixels, before)

        accumulated = [llvm.load(builder, sums, fixed=u * ROW + v * LANES) for u, v in places]
        accumulated = over_lines(builder, images, lines, ((row, image),) * 2, accumulated, line)
        for (u, v), value in zip(places, accumulated):
            llvm.store(builder, value, sums, fixed=u * ROW + v * LANES)

    return code


TWO, THREE, TWO_BY_TWO, THREE_BY_TWO = [slid(rows, stride) for stride in (1, 2) for rows in (2, 3)]
BACK_ONE, BACK_TWO = slid_back(1), slid_back(2)
OF_TWO, OF_THREE = slid_products(2), slid_products(3)


# ---- images ----------------------------------------------------------------------------------------------------------
# The first output line reads the two lower rows of the filter. The last one reads the two upper rows, unless the stride
# is 2 and the height is even.


@inlined
def slide(x, weights, images, height, width, stride, y, ends):
    """Convolve images. height, width: of x."""
    row, to = width * LANES, ((width - 1) // stride + 1) * LANES
    down = (height - 1) // stride + 1
    image, y_image, bottom, last = height * row, down * to, (height - 2) * row * BYTES, (down - 1) * to * BYTES
    if stride == 1:
        TWO(x, row, image, weights + LINE, 1, images, width, y, to, y_image, ends)
        if down > 2:
            THREE(x, row, image, weights, down - 2, images, width, y + to * BYTES, to, y_image, ends)
        TWO(x + bottom, row, image, weights, 1, images, width, y + last, to, y_image, ends)
        return
    TWO_BY_TWO(x, row, image, weights + LINE, 1, images, width, y, to, y_image, ends)
    if height // 2 > 1:
        THREE_BY_TWO(
            x + row * BYTES, row, image, weights, height // 2 - 1, images, width, y + to * BYTES, to, y_image, ends
        )
    if height % 2:
        TWO_BY_TWO(x + bottom, row, image, weights, 1, images, width, y + last, to, y_image, ends)


@inlined
def slide_back(grad, weights, images, height, width, y):
    """With stride 2, compute the gradient of images of this height and width. weights: rotated by 180 degrees."""
    down, row, to = (height + 1) // 2, (width + 1) // 2 * LANES, width * LANES
    image, y_image, last = down * row, height * to, (down - 1) * row * BYTES
    BACK_ONE(grad, row, image, weights + LINE, 0, down, images, width, y, 2 * to, y_image)
    if down > 1:
        BACK_TWO(grad, row, image, weights, 2 * ROW, down - 1, images, width, y + to * BYTES, 2 * to, y_image)
    if height % 2 == 0:
        BACK_ONE(grad + last, row, image, weights, 0, 1, images, width, y + (height - 1) * to * BYTES, to, y_image)


@inlined
def slide_products(x, grad, images, height, width, part, sums):
    """With stride 1, add the gradient of filters to `sums`. part: scratch, all zeros before and after."""
    row, image = width * LANES, height * width * LANES
    line, run = row * BYTES, max(1, RUN // (width * images))
    for first in range(0, height - 2, run):
        p, g = x + first * line, grad + (first + 1) * line
        OF_THREE(p, row, image, g, min(run, height - 2 - first), images, width, part)
        flush(part, sums, NINE)
    OF_TWO(x, row, image, grad, 1, images, width, part + LINE)
    OF_TWO(x + (height - 2) * line, row, image, grad + (height - 1) * line, 1, images, width, part)
    flush(part, sums, NINE)


@inlined
def flush(part, sums, taps):
    """Add `part` to `sums` and clear it: long sums of short ones round less."""
    for i in range(0, taps * LANES * BYTES, LANES * BYTES):
        store(sums + i, load(sums + i) + load(part + i))
        store(part + i, filled(float32(0)))
