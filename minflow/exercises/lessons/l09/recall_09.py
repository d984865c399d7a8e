"""09.0: what is left of lessons 03, 06 and 08."""

from ...definition import recall

exercise = recall(
    "09.0",
    ("a first loss", "b", "Lesson 08 compares the first loss with ln of the number of classes."),
    ("a gap", "a", "Lesson 06 draws two lines: accuracy on images that were seen, and on images that were not."),
    ("the diamond", "c", "Lesson 03: multiply along a path, add where paths meet."),
)
