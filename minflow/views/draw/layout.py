"""Our own layered layout in pure Python, so that there is always a picture. Recursion depth does not grow with graph
depth.

The four steps of Sugiyama, Tagawa & Toda 1981: ranks, dummies on long edges, few crossings by barycenters, then
coordinates: the x coordinates of each rank are the least-squares fit to its neighbors that keeps order and distance.
Read next: `drawing.py`, which draws it.
"""

from __future__ import annotations

from collections import defaultdict

from .boxes import Box, Diagram, Edge
from .drawing import ARROW_LENGTH, Frame, Line, diagram_svg, label_size, size_of

GAP_X, GAP_Y, LABEL_GAP = 18, 30, 16  # horizontal gap, vertical gap, extra vertical gap for labels
FRAME_MARGIN, FRAME_NAME_HEIGHT = 8, 20  # margin inside a frame; height of its name
SWEEPS = 12


class Place:
    """A box, or a dummy on a long edge: size, rank, center."""

    __slots__ = ("box", "frames", "width", "height", "rank", "x", "y")

    def __init__(self, box: Box | None, rank: int = 0, frames: tuple[int, ...] = ()):
        self.box, self.rank, self.x, self.y = box, rank, 0.0, 0.0
        self.frames = box.frames if box else frames
        self.width, self.height = size_of(box) if box else (2.0, 0.0)


def layout_svg(diagram: Diagram) -> str:
    """The picture as SVG."""
    boxes = {box.id: box for box in (*diagram.boxes, *diagram.beside)}
    ranks = rank_boxes(list(boxes), diagram.edges)
    places: dict[object, Place] = {id: Place(box, ranks[id]) for id, box in boxes.items()}
    chains: list[tuple[Edge, list]] = []
    for k, edge in enumerate(diagram.edges):
        a, b = places[edge.source], places[edge.target]
        step = 1 if b.rank >= a.rank else -1
        keys = [(k, r) for r in range(a.rank + step, b.rank, step)]
        for key in keys:
            places[key] = Place(None, key[1], common_frames(a.frames, b.frames))
        chains.append((edge, [edge.source, *keys, edge.target]))
    rows: list[list] = [[] for _ in range(max((p.rank for p in places.values()), default=-1) + 1)]
    for key, place in places.items():
        rows[place.rank].append(key)
    above, below = neighbor_lists(places, chains)
    order_rows(rows, above, below)
    assign_x(rows, places, above, below)
    sides = separate_frames(diagram.frames, list(places.values()), len(rows))
    inner = nesting_depths(diagram)
    ends = {id: [p.rank for p in places.values() if id in p.frames] for id in inner}
    labeled = {min(places[key].rank for key in chain[:2]) for edge, chain in chains if edge.label}
    y = 0.0
    for r, row in enumerate(rows):
        tall = max((places[k].height for k in row), default=0)
        for k in row:
            places[k].y = y + tall / 2
        closing = max((FRAME_MARGIN * n for id, n in inner.items() if max(ends[id]) == r), default=0)
        opening = max(
            ((FRAME_MARGIN + FRAME_NAME_HEIGHT) * n for id, n in inner.items() if min(ends[id]) == r + 1), default=0
        )
        y += tall + max(GAP_Y + LABEL_GAP * (r in labeled), closing + opening + FRAME_MARGIN)
    return diagram_svg(
        diagram,
        [(p.box, p.x, p.y) for p in places.values() if p.box],
        [route_edge(edge, [places[k] for k in chain]) for edge, chain in chains],
        frame_boxes(diagram.frames, list(places.values()), sides, inner),
    )


def common_frames(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The frames around both: their common prefix."""
    return a[: sum(a[: i + 1] == b[: i + 1] for i in range(min(len(a), len(b))))]


def nesting_depths(diagram: Diagram) -> dict[int, int]:
    """Nesting depth of each frame: the most frames from it inward, counting itself."""
    inner: dict[int, int] = {}
    for box in diagram.boxes:
        for i, frame in enumerate(box.frames):
            inner[frame] = max(inner.get(frame, 0), len(box.frames) - i)
    return inner


def min_gap(a: Place, b: Place) -> float:
    """Least distance between two neighbors of a row, with room for the sides of frames around only one of them."""
    return GAP_X + FRAME_MARGIN * (len(a.frames) + len(b.frames) - 2 * len(common_frames(a.frames, b.frames)))


def separate_frames(names: tuple[str, ...], places: list[Place], rows: int) -> dict[tuple[int, ...], list[float]]:
    """Move frames apart so that each contains only its own boxes. Return (left, right) of each, outer frames first.

    Starts with the innermost; a finished frame moves as one piece. If two frames overlap in height, the right one
    moves to the right.
    """
    members: dict[tuple[int, ...], list[Place]] = {}
    for place in places:
        for depth in range(len(place.frames) + 1):
            members.setdefault(place.frames[:depth], []).append(place)
    sides: dict[tuple[int, ...], list[float]] = {}
    for path in sorted(members, key=lambda path: -len(path)) if len(members) > 1 else ():
        items = [(p.x - p.width / 2, p.x + p.width / 2, [p], ()) for p in members[path] if p.frames == path]
        items += [(*sides[inside], members[inside], inside) for inside in sides if inside[:-1] == path]
        free = [-float("inf")] * rows  # left limit of the next frame in each row
        ends = []
        for left, right, held, inside in sorted(items, key=lambda item: item[0] + item[1]):
            ranks = range(min(p.rank for p in held), max(p.rank for p in held) + 1)
            shift = max(0.0, max(free[r] for r in ranks) - left)
            for p in held if shift else ():
                p.x += shift
            for other in [other for other in sides if inside and other[: len(inside)] == inside] if shift else ():
                sides[other] = [side + shift for side in sides[other]]
            for r in ranks:
                free[r] = right + shift + GAP_X
            ends.append((left + shift, right + shift))
        if path:
            left, right = min(end[0] for end in ends) - FRAME_MARGIN, max(end[1] for end in ends) + FRAME_MARGIN
            sides[path] = [left, max(right, left + label_size(names[path[-1]])[0] + 2 * FRAME_MARGIN)]
    return dict(sorted(sides.items(), key=lambda item: len(item[0])))


def rank_boxes(ids: list[str], edges: tuple[Edge, ...]) -> dict[str, int]:
    """The row of each box: the longest path from a source; edges that would close a cycle are ignored."""
    out = defaultdict(list)
    for edge in edges:
        if not edge.back and edge.source != edge.target:
            out[edge.source].append(edge.target)
    state: dict[str, int] = {}  # 1: being visited, 2: done
    finished: list[str] = []
    back = set()
    for start in ids:
        stack = [(start, iter(out[start]))] if start not in state else []
        if stack:
            state[start] = 1
        while stack:
            id, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                state[id] = 2
                finished.append(id)
                stack.pop()
            elif state.get(target) == 1:
                back.add((id, target))
            elif target not in state:
                state[target] = 1
                stack.append((target, iter(out[target])))
    rank = dict.fromkeys(ids, 0)
    readers = set()
    for id in reversed(finished):
        for target in out[id]:
            if (id, target) not in back:
                rank[target] = max(rank[target], rank[id] + 1)
                readers.add(target)
    for id in ids:  # a leaf is just above its first user
        users = [rank[t] for t in out[id] if (id, t) not in back]
        if id not in readers and users:
            rank[id] = min(users) - 1
    return rank


def neighbor_lists(places, chains):
    above, below = defaultdict(list), defaultdict(list)
    for _, chain in chains:
        for a, b in zip(chain, chain[1:]):  # noqa: RUF007
            if places[a].rank < places[b].rank:
                below[a].append(b)
                above[b].append(a)
            elif places[a].rank > places[b].rank:
                above[a].append(b)
                below[b].append(a)
    return above, below


def order_rows(rows: list[list], above, below) -> None:
    """Reduce crossings: sort each row by the mean position of its neighbors, sweeping down and up, and keep the best
    order.
    """
    best, kept = None, None
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row, near in zip(rows[1:] if down else rows[-2::-1], rows if down else rows[:0:-1]):
            at = {k: i for i, k in enumerate(near)}
            links = above if down else below
            mean = {}
            for i, k in enumerate(row):
                spots = [at[n] for n in links[k] if n in at]
                mean[k] = sum(spots) / len(spots) if spots else i
            row.sort(key=mean.__getitem__)
        crossed = sum(count_crossings(a, b, below) for a, b in zip(rows, rows[1:]))  # noqa: RUF007
        if best is None or crossed < best:
            best, kept = crossed, [list(row) for row in rows]
        if best == 0:
            break
    if kept is not None:
        rows[:] = kept


def count_crossings(upper: list, lower: list, below) -> int:
    """Count the edges between two rows that cross, by insertion."""
    from bisect import bisect_right, insort

    at = {k: i for i, k in enumerate(lower)}
    seen: list[int] = []
    total = 0
    for k in upper:
        ends = sorted(at[n] for n in below[k] if n in at)
        for end in ends:
            total += len(seen) - bisect_right(seen, end)
        for end in ends:
            insort(seen, end)
    return total


def assign_x(rows: list[list], places, above, below) -> None:
    """Assign an x coordinate to every place: near the mean of its neighbors, in order and without overlap."""
    for row in rows:
        x = 0.0
        for k, after in zip(row, [*row[1:], None]):
            places[k].x = x + places[k].width / 2
            x += places[k].width + (min_gap(places[k], places[after]) if after is not None else 0)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else rows[::-1]:
            wanted = []
            for k in row:
                near = (above if down else below)[k] or (below if down else above)[k]
                wanted.append(sum(places[n].x for n in near) / len(near) if near else places[k].x)
            for k, x in zip(row, fit_positions(row, wanted, places), strict=True):
                places[k].x = x
    left = min((p.x - p.width / 2 for p in places.values()), default=0.0)
    for place in places.values():
        place.x -= left


def fit_positions(row: list, wanted: list[float], places) -> list[float]:
    """The x coordinates closest to the desired ones (least squares) that keep order and gaps, by the
    pool-adjacent-violators algorithm.
    """
    offset, offsets = 0.0, []
    for i, k in enumerate(row):
        if i:
            offset += (places[row[i - 1]].width + places[k].width) / 2 + min_gap(places[row[i - 1]], places[k])
        offsets.append(offset)
    pools: list[list[float]] = []  # [sum of the desired x, number of members]
    for x, shift in zip(wanted, offsets, strict=True):
        pools.append([x - shift, 1])
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] > pools[-1][0] * pools[-2][1]:
            total, n = pools.pop()
            pools[-1][0] += total
            pools[-1][1] += n
    bases = [total / n for total, n in pools for _ in range(int(n))]
    return [base + shift for base, shift in zip(bases, offsets, strict=True)]


def frame_boxes(names: tuple[str, ...], places: list[Place], sides, inner: dict[int, int]) -> list[Frame]:
    """The frame of each module, outer ones first; its name is in the upper left corner."""
    around = []
    for path, (left, right) in sides.items():
        members = [p for p in places if p.frames[: len(path)] == path]
        top = min(p.y - p.height / 2 for p in members) - (FRAME_MARGIN + FRAME_NAME_HEIGHT) * inner[path[-1]]
        bottom = max(p.y + p.height / 2 for p in members) + FRAME_MARGIN * inner[path[-1]]
        around.append(Frame(path[-1], names[path[-1]], left, top, right, bottom, top + FRAME_NAME_HEIGHT / 2 + 2))
    return around


def route_edge(edge: Edge, way: list[Place]) -> Line:
    """Route an edge from the side of one box to that of another, through the dummies between them."""
    a, b = way[0], way[-1]
    if a is b:
        x, y = a.x + a.width / 2, a.y
        return Line(
            edge,
            ((x, y - 5), (x + 22, y - 9), (x + 22, y + 9), (x + ARROW_LENGTH, y + 5)),
            (x, y + 5),
            (x + 20 + label_size(edge.label)[0] / 2, y) if edge.label else None,
        )
    sign = 1 if b.rank >= a.rank else -1
    tip = b.x, b.y - sign * b.height / 2
    ends = [(a.x, a.y + sign * a.height / 2), *((p.x, p.y) for p in way[1:-1]), (b.x, tip[1] - sign * ARROW_LENGTH)]
    points = [ends[0]]
    for (x0, y0), (x1, y1) in zip(ends, ends[1:]):  # noqa: RUF007
        points += [(x0, (y0 + y1) / 2), (x1, (y0 + y1) / 2), (x1, y1)]
    (x0, y0), (x1, y1) = ends[:2]
    return Line(edge, tuple(points), tip, ((x0 + x1) / 2, (y0 + y1) / 2) if edge.label else None)
