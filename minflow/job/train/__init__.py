"""What a job trains with: `flow.optimizer`, its rules, rates, clipping and loss scales.

Read next: `optimizer_base.py` (what an optimizer is asked), `rules.py` (the formulas), `schedule.py` (the rates).
"""
