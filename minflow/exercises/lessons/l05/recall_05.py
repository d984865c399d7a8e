"""05.0 recall_05: what is left of the lessons before."""

from ...definition import recall

exercise = recall(
    "05.0",
    ("Layers without a bend", "c",
     "Question 1: exercise 04.4 collapse. Without a bend between them, two layers are one, and one layer draws a "
     "straight line."),
    ("A step too large", "a",
     "Question 2: exercise 02.4 edge. Each step then lands further from the bottom than the one before."),
    ("Unseen images", "b",
     "Question 3: lesson 00. On images that it has trained on, a network may remember the answer; on others it has to "
     "read."),
)
