"""Convert the state of a training graph to plain data and back: optimizers, schedules, settings, steps, the generator.

Anything that is not in the tables of `built_in.py` (functions, user-defined classes) is refused when the graph is
saved. Read next: `built_in.py`; `optimizers.py`, which uses its tables; `settings.py`.
"""
