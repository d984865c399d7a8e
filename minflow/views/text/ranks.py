"""A step on all ranks as text: computation and communication of each rank.

Read next: `../renderers/ranks.py`, the same as a picture.
"""

from __future__ import annotations

from ..records.reports import RankLanes
from .listing import clean, count
from .numbers import ms, nbytes_text, percent
from .tables import table


def rank_shares(record: RankLanes) -> list[float]:
    """The part of the step in which each rank communicates or waits for the others."""
    return [record.busy(rank, True) / (record.seconds or 1.0) for rank in range(record.count)]


def verdict(record: RankLanes) -> str:
    """The ranks in one sentence."""
    share = percent(sum(rank_shares(record)) / (record.count or 1))
    sent = nbytes_text(sum(record.sent))
    what = f"{share} of the step is communication, which includes waiting for other ranks"
    return f"{count(record.count, 'rank')}, {ms(record.seconds)}: {what}; boxing sends {sent}"


def ranks_text(record: RankLanes) -> str:
    rows = [("", "computation", "communication", "of the step", "boxing sends")]
    for rank, share in enumerate(rank_shares(record)):
        times = ms(record.busy(rank, False)), ms(record.busy(rank, True))
        rows.append((f"rank {rank}", *times, percent(share), nbytes_text(record.sent[rank])))
    return "\n".join([clean(record.title), verdict(record), "", *table(rows, range(1, 5))])
