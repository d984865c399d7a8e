"""06.0 recall_06: what is left of the lessons before."""

from ...definition import recall

exercise = recall(
    "06.0",
    ("A moved digit", "b",
     "Question 1: lesson 05. A convolution uses the same few weights at every place of the image."),
    ("The tape's slopes", "a",
     "Question 2: lesson 03. One backward pass gives the slopes of all knobs; nudging needs two runs for each."),
    ("A mixed-up pair", "c",
     "Question 3: exercise 00.2 mixed_up. Rows are the truth, columns what was read; off the diagonal it was wrong."),
)
