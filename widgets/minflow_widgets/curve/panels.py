"""Assignment of series to panels, and the message from which a page draws them.

Read next: `curve_panel.js`, which draws it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minflow.views.text.listing import clean

from .legend import describe, legend
from .series import STRIP_WORDS, Series

FLOAT32_MAX = 3.4e38  # float32 range: larger values are clipped, not drawn as a gap
DATA_SETS = ("train", "training", "val", "validation", "test")  # parts of a name, such as "test loss", that name no run
LOG_SCALE_RATIO = 1e4  # if the largest value is this many times the smallest, the default scale is logarithmic


def spans_decades(word: str, values: Sequence[np.ndarray]) -> bool:
    """True if a linear scale would flatten the values of a panel, ignoring the smallest twentieth of them."""
    numbers = np.concatenate([np.empty(0), *values])
    numbers = numbers[np.isfinite(numbers)]
    if word == "lr" or not numbers.size or numbers.min() < 0:
        return False
    few = len(numbers) // 20
    if numbers.max() / LOG_SCALE_RATIO <= numbers.min():
        return False
    least = np.partition(numbers, few)[few]
    return bool(0 < least < numbers.max() / LOG_SCALE_RATIO)


def line_series(series: list[Series], declared: tuple[str, ...] = ()) -> list[Series]:
    """The series drawn as lines. A small one that never changed is only a number, unless its panel is declared."""
    return [s for s in series if s.moved or s.word not in STRIP_WORDS or s.word in declared] or (
        [] if declared else series
    )


def scale_members(members: list[Series]) -> list[Series]:
    """The series that determine the scale: of several runs, those that have not diverged, if there are any."""
    several = len({(s.prefix, s.style) for s in members}) > 1
    return [s for s in members if not (several and s.first_nonfinite)] or members


def looks(members: Sequence[Series]) -> list[tuple[int, int]]:
    """Indices of the color and of the dashes of each line of a panel: all lines of a run have one color."""
    prefixes = ["" if s.prefix in DATA_SETS else s.prefix for s in members]
    runs = list(dict.fromkeys(prefixes))
    result = []
    for k, s in enumerate(members):
        run, nth = k if s.style is None else s.style, 0
        if s.style is None and 1 < len(runs) < len(members):
            run, nth = runs.index(prefixes[k]), prefixes[:k].count(prefixes[k])
        result.append((run % 4, (run + run // 4 + 2 * nth) % 4))
    return result


def panels(series: list[Series], declared: tuple[str, ...] = ()) -> list[str]:
    """The titles of the panels: declared ones first, then the others in order of appearance."""
    return list(dict.fromkeys([*declared, *[s.word for s in line_series(series, declared)]]))


def panel_rows(titles: list[str]) -> list[list[int]]:
    """Panels in each row: two per row, then those of SMALL words in one row of strips."""
    large = [i for i, title in enumerate(titles) if title not in STRIP_WORDS]
    small = [i for i, title in enumerate(titles) if title in STRIP_WORDS]
    return [large[i : i + 2] for i in range(0, len(large), 2)] + ([small] if small else [])


def encode(
    series: list[Series],
    status: str,
    declared: tuple[str, ...] = (),
    before: Sequence[Series] = (),
    runs: Mapping[str, Mapping] | None = None,
    **more,
) -> bytes:
    """Message with all data of the curve: length of the header, header as JSON, float32 values.

    For each series: n steps, n values, m steps of the means, m means. Steps are relative to its `zero`, because a
    float32 has only 24 bits. Times come from the clock in the header, or its own; if steps do not increase, a clock
    cannot give times, and n and m seconds follow ("timed"). before: series of the previous run and of earlier ones,
    which share the scales; earlier ones have a "style", the index of the run, and are drawn as full lines.
    runs: columns of the first legend, as in `legend`.  more: additional entries of the header.
    """
    titles, lines, entries, arrays = panels(series, declared), line_series(series, declared), [], []
    names = {s.name for s in lines}
    beside = [*lines, *[s for s in before if s.style is not None or s.name in names]]
    points = {id(s): s.points() for s in beside}
    heights = [
        [points[id(s)][1] for s in scale_members([one for one in beside if one.word == title])] for title in titles
    ]
    drawn = [[s for s in beside if s.word == title and (s in lines or s.style is not None)] for title in titles]
    look = {id(s): each for members in drawn for s, each in zip(members, looks(members))}
    calm = [s for members in drawn for s in scale_members(members)]
    longest: Any = max(lines, key=lambda s: s.count, default=None)
    times = longest.clock() if lines else []
    for s in lines:
        x, y = points[id(s)]
        mx, my, window = s.means()
        zero = float(x[0]) if len(x) else 0.0
        arrays += [x - zero, y, mx - zero, my]
        clock = times if s is longest or (times and s.within(longest)) else s.clock()
        if not clock and s.count:
            arrays += [s.points("time")[0], s.means("time")[0]]
        entries.append(
            {"panel": titles.index(s.word), "name": clean(s.name), "look": look[id(s)]}
            | {"n": len(x), "m": len(mx), "window": window}
            | ({"zero": zero} if zero else {})
            | ({"style": s.style} if s.style is not None else {})
            | ({"shown": True} if s.shown else {})
            | ({"every": sampled} if (sampled := s.sampled()) else {})
            | ({} if clock is times else {"clock": clock})
            | ({} if clock or not s.count else {"timed": True})
            | ({"epochs": s.epoch_ends()} if s.epochs else {})
            | ({"bad": s.first_nonfinite[0], "late": s.first_nonfinite[2]} if s.first_nonfinite else {})
            | ({} if s in calm else {"wild": True})
        )
    small = [i for i, title in enumerate(titles) if title in STRIP_WORDS]
    logs = [i for i, title in enumerate(titles) if spans_decades(title, heights[i])]
    header = {
        "status": status,
        "panels": titles,
        "rows": panel_rows(titles),
        "small": small,
        "logs": logs,
        "series": entries,
        "legends": [legend(series, members, runs if i == 0 else None) for i, members in enumerate(drawn)],
        "said": describe([*series, *[s for s in before if s.style is not None]]),
    }
    header |= {"clock": times} | more
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    with np.errstate(over="ignore"):
        body = np.concatenate([np.empty(0), *arrays]).clip(-FLOAT32_MAX, FLOAT32_MAX).astype("<f4")
    return len(text).to_bytes(4, "little") + text + body.tobytes()
