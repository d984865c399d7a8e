"""Exam bank: variants of the exercises, chosen by a seed, and the plans of a mid-term and a final.

`bank/` has the variants of each lesson, `variants.py` makes an exercise from one, `plans.py` has the plans. The
notebooks and the rubric are written by teach/exam.py. Read next: `variants.py`.
"""
