"""Tables of calls that are refused."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from minflow.core.base.errors import MinflowError


def refusals(rows: Iterable[tuple], kind: type[MinflowError] = MinflowError) -> Callable:
    """Make a parametrized test: `test_mistakes = refusals([(call, words), ...])`. A row may begin with its error class.

    The error text must match the words, and name the line of the call and a remedy.
    """
    rows = [row if len(row) == 3 else (kind, *row) for row in rows]
    names = [f"{' '.join(call.__code__.co_names)}: {words}" for _, call, words in rows]

    @pytest.mark.parametrize(("kind", "call", "words"), rows, ids=names)
    def test_refused(kind, call, words):
        with pytest.raises(kind, match=words) as caught:
            call()
        file = Path(call.__code__.co_filename).name
        assert file in caught.value.where and caught.value.hint, str(caught.value)

    return test_refused
