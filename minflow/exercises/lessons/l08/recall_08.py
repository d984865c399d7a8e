"""08.0 recall_08: what is left of the lessons before."""

from ...definition import recall

exercise = recall(
    "08.0",
    ("How often build runs", "c",
     "Question 1: lesson 07. At the first call `build` writes the computation down; the second one runs the plan."),
    ("A filter's knobs", "a",
     "Question 2: lesson 05. A filter uses its few numbers at every place, so the image's size does not count."),
    ("Too large a step", "b",
     "Question 3: lesson 02. Each jump across the valley lands farther away, so the loss grows."),
)
