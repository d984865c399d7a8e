"""11.0 recall_11: what is left of the lessons before."""

from ...definition import recall

exercise = recall(
    "11.0",
    ("What two jobs share", "b",
     "Question 1: lesson 10. Both asked for variables with the same names, so the session gave both the same numbers."),
    ("The first that differs", "a",
     "Question 2: exercise 08.3 first_part. A wrong result affects everything after it: look at the first one."),
    ("One filter", "c",
     "Question 3: lesson 05. The filter slides: the same few weights are used at every place of the image."),
)
