"""What a training graph needs to go on, as plain data and back: optimizers, schedules, settings, steps, the generator.

What the tables of `built_in.py` do not know (a function, a class of the program's own) is refused when the graph is
saved. Read next: `built_in.py`; `optimizers.py`, which writes and reads by its tables; `settings.py`.
"""
