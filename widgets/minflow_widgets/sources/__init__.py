"""What a curve is filled from, and what is drawn of one step: its values, and the norm of its gradients.

Read next: `source.py`.
"""
