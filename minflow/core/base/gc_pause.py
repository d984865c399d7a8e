"""Pause the garbage collector while minflow is imported.

Objects made by an import stay alive, and scanning them again and again took a third of numpy's import time.
`minflow/__init__.py` imports this file first, and calls `resume` last.
"""

import gc

WAS_ENABLED = gc.isenabled()
gc.disable()


def resume() -> None:
    """Turn the collector on again, unless the program had turned it off before the import."""
    if WAS_ENABLED:
        if not gc.get_freeze_count():  # the program has no frozen objects of its own
            gc.freeze()  # freeze and unfreeze move all objects to the oldest generation, so that the next collection
            gc.unfreeze()  # of the youngest one does not scan them
        gc.enable()
