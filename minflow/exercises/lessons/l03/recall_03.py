"""03.0: what is left of lessons 02, 01 and 00."""

from ...definition import recall

exercise = recall(
    "03.0",
    ("The slope of the loss with respect to a knob is -4. What makes the loss smaller?", "a",
     "Below 0 the loss falls as the knob grows. Lesson 02, a step downhill."),
    ("Numbers of shape (4, 1) are added to numbers of shape (4, 3). What happens?", "c",
     "An axis of size 1 stretches. Lesson 01, on broadcasting."),
    ("A network reads most digits right. When does that say that it has learned?", "b",
     "It may have remembered everything that it has seen. Lesson 00, seen and unseen."),
)
