"""Self-checking exercises: `from minflow.exercises import check`.

`check(name, answer)` is in checker.py, the definition of an exercise in definition.py; `lessons/` has one file per
exercise. `Speedup` says what repeated measurements show, `agreement` how closely two results agree.
"""

from ..diagnosis.notebook import in_notebook
from ..views import words
from .agreement import agreement as agreement
from .checker import WrongAnswer as WrongAnswer, check as check, draw as draw, hint as hint
from .i18n import language, say_in_picture
from .i18n.fonts import use_fonts
from .progress import progress as progress
from .speedup import Speedup as Speedup, least as least

if in_notebook():  # in a notebook, whose pictures have words
    use_fonts(language())
    words.translate_by(say_in_picture)
