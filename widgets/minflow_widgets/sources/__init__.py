"""Sources that fill a curve, and the values of a step: its results, and the norm of its gradients.

Read next: `source.py`.
"""
