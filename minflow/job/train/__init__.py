"""`flow.optimizer` of job functions: update rules, learning rates, gradient clipping and loss scales.

Read next: `optimizer_base.py` (the protocol), `rules.py` (the formulas), `schedule.py` (the learning rates).
"""
