"""10.0 recall_10: what is left of the lessons before."""

from ...definition import recall

exercise = recall(
    "10.0",
    ("The same product twice", "b",
     "Question 1: lesson 09. Same inputs, same operation: a pass keeps one of the two, and both readers share it."),
    ("How often build runs", "a",
     "Question 2: exercise 07.1 how_often. The first call writes the computation down; the second runs the plan that "
     "was written."),
    ("The first loss", "c",
     "Question 3: exercise 04.1 start_value. Each of ten classes gets a share of about 1/10, and -ln(1/10) is ln 10."),
)
