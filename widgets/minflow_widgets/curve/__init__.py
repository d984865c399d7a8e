"""The loss curve: what it remembers of a run, what it sends to a page, and the still picture that stays.

Read next: `loss_curve.py`.
"""
