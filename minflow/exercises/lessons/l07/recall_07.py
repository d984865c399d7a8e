"""07.0 recall_07: what is left of the lessons before."""

from ...definition import recall

exercise = recall(
    "07.0",
    ("A network in the wrong mode", "b",
     "Question 1: lesson 06, two modes. In train mode, dropout switches off other units each time."),
    ("Layers without a bend", "a",
     "Question 2: lesson 04. Several straight layers are still straight: without a bend, three layers are worth one."),
    ("Two shapes that meet", "c",
     "Question 3: lesson 01. Write the shapes under each other, right ends together; a 1 stretches."),
)
