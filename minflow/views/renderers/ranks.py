"""A step on all ranks as a picture: a lane for each rank, communication apart from computation by color.

Read next: `../text/ranks.py`, the same as text.
"""

from __future__ import annotations

from ..draw import svg_writer as svg, theme
from ..draw.lanes import TEXT_LEFT, Card, LaneBox
from ..records.reports import RankLanes
from ..text.listing import clean
from ..text.numbers import nbytes_text, percent
from ..text.ranks import rank_shares, verdict
from .memory_map import phase_legend

LEFT = 190
COLORS = {"computation": (theme.PALE_BLUE, theme.BLUE), "communication": (theme.PALE_AMBER, theme.AMBER)}


def headline(record: RankLanes) -> str:
    """The picture in one sentence."""
    return f"{clean(record.title)}: {verdict(record)}"


def ranks_svg(record: RankLanes) -> str:
    card, whole = Card(LEFT), record.seconds or 1e-9
    card.heading(clean(record.title))
    notes = [f"{percent(x)} communication, {nbytes_text(n)}" for x, n in zip(rank_shares(record), record.sent)]
    names = [(f"rank {rank}", note, "") for rank, note in enumerate(notes)]
    boxes = []
    for bar in record.bars:
        kind = "communication" if bar.communicates else "computation"
        words = clean(bar.name).rpartition(".")[2]
        boxes.append(LaneBox(bar.rank, bar.start, bar.stop, words, COLORS[kind]))
    card.lanes(names, boxes, 0.0, whole)
    card.axis(whole)
    card.parts += phase_legend([*COLORS], TEXT_LEFT, card.y + 6, sample)
    card.y += 24
    card.sentence(verdict(record))
    return card.svg(headline(record))


def sample(x: float, y: float, kind: str) -> list[str]:
    fill, rim = COLORS[kind]
    return [svg.rect(x, y, 24, 12, fill=fill, stroke=rim)]
