"""02.0: what is left of lessons 00 and 01."""

from ...definition import recall

exercise = recall(
    "02.0",
    ("A tensor of shape (4, 3): what is the shape of its sum over axis 0?", "b",
     "The axis that you name is the one that goes. Lesson 01, the part that adds up rows and columns."),
    ("Three learning rates: what did the largest one do?", "c",
     "A rate that is too large does not only cost time: look at the three curves at the end of lesson 00."),
    ("Why is a network tried on digits that it has not seen?", "a",
     "Anyone who has seen the answers can repeat them. Lesson 00, seen and unseen."),
)
