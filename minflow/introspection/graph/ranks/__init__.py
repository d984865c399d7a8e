"""Global tensors in a graph, and its ranks: why an op has its sbp, who holds which slice, and what ranks exchange.

Read next: `sbp_choices.py`.
"""
