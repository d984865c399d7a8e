"""While minflow is imported, nothing looks for garbage: what an import makes stays, and to go through it again and
again took as long as a third of numpy's import. `minflow/__init__.py` begins and ends with this file."""

import gc

COLLECTED = gc.isenabled()
gc.disable()


def collect_again() -> None:
    """At the end of the import; nothing for a program that had switched it off."""
    if COLLECTED:
        if not gc.get_freeze_count():  # unless the program itself keeps some apart
            gc.freeze()  # all that is there counts as old, in one step: else the next object made would have each of
            gc.unfreeze()  # them looked at as a new one
        gc.enable()
