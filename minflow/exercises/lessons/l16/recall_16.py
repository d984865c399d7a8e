"""16.0: what is left of lessons 15, 13 and 10."""

from ...definition import recall

exercise = recall(
    "16.0",
    ("In attention, a place takes a mean. A mean of what?", "c",
     "The shares come from questions and keys; the mean is that of the values. Lesson 15, on looking back."),
    ("x is S1, w is S0. Each device multiplies its two parts. How is x @ w placed?", "a",
     "Each device has a part of every sum: P, partial sums. Lesson 13, on products."),
    ("In the mirrored view, what is done with the slopes of all devices?", "b",
     "They are averaged, and all copies take the same step. Lesson 10, on two devices."),
)
