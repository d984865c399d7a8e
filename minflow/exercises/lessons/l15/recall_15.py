"""15.0: what is left of lessons 14, 12 and 09."""

from ...definition import recall

exercise = recall(
    "15.0",
    ("A layer adds a bias of shape (3,) to rows of shape (50, 3). What is the bias's gradient, if g is (50, 3)?", "b",
     "Each number of the bias is used in all rows, and where paths meet, slopes add: g.sum(0). Lesson 14, on arrays."),
    ("You save a training to go on tomorrow. What is needed besides the model's weights?", "c",
     "The optimizer remembers, the generator has drawn, the schedule has counted. Lesson 12, on going on."),
    ("What does a compiler gain when it fuses two operations into one?", "a",
     "The result between the two is never written to memory. Lesson 09, at its end."),
)
