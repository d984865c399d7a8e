"""12.0: what is left of lessons 06, 09 and 11."""

from ...definition import recall

exercise = recall(
    "12.0",
    ("a queue", "b", "Lesson 11: a callback is called when its result is there; the caller does not wait."),
    ("fusion", "c", "Lesson 09: a fused operation computes the same numbers, with fewer visits to memory."),
    ("dropout", "a", "Lesson 06: dropout is on in train() and off in eval()."),
)
