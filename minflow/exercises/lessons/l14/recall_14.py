"""14.0: what is left of lessons 13, 11 and 08."""

from ...definition import recall

exercise = recall(
    "14.0",
    ("Two machines have half of a batch each, and a gradient each. What makes one step out of them?", "b",
     "Each saw other examples, and the step is for all of them, so take the mean. Lesson 13, on working together."),
    ("A job is called with a callback. When is the callback run?", "a",
     "The call returns at once; the callback comes when the numbers are there. Lesson 11, on waiting."),
    ("A network with ten classes is untrained. Its first loss is 7. What do you think?", "c",
     "Knowing nothing costs ln 10, about 2.3. A loss of 7 means: it is sure of itself, and wrong. Lesson 08, on first "
     "losses."),
)
