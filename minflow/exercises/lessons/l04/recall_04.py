"""04.0 recall_04: what is left of the lessons before."""

from ...definition import recall

exercise = recall(
    "04.0",
    ("Where two ways meet", "b",
     "Question 1: exercise 03.1 diamond. Each way carries a part of the change, so their slopes are added."),
    ("The gradient that stays", "c",
     "Question 2: exercise 03.4 forgot. `backward` adds to what is there; `zero_grad` empties it before the next "
     "step."),
    ("(4, 3) meets (3,)", "a",
     "Question 3: exercise 01.1 shapes. Write both shapes with their right ends together: the row stretches."),
)
