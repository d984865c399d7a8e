"""13.0: what is left of lessons 07, 10 and 12."""

from ...definition import recall

exercise = recall(
    "13.0",
    ("going on", "b", "Lesson 12: a forgotten schedule shows only when the rate should have changed."),
    ("two devices", "a", "Lesson 10: each device has a copy of the model and a part of the batch."),
    ("a frozen number", "c", "Lesson 07: `build` runs once, so a Python number is read once."),
)
