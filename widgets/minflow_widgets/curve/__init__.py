"""The loss curve: history of a run, data for the page, and the static picture that remains.

Read next: `loss_curve.py`.
"""
