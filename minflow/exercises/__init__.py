"""Exercises that check themselves: `from minflow.exercises import check`.

definition.py says what an exercise is; `lessons/` holds them, one file each.
"""
