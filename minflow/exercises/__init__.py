"""Exercises that check themselves: `from minflow.exercises import check`.

`check(name, answer)` is in checker.py; definition.py says what an exercise is; `lessons/` holds them, one file each.
"""

from .checker import WrongAnswer as WrongAnswer, check as check, draw as draw, hint as hint
from .progress import progress as progress
