"""Introspection of nn.Graph.

listing/ prints and reports, compare/ runs eager code beside it, explore/ records a step.
"""
