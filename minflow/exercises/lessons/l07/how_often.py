"""07.1 how_often: how many plans does a graph make?"""

import numbers

from ...definition import Exercise

exercise = Exercise(
    "07.1", "how_often", kind="predict", level="core", answer="n",
    question="How many plans does a graph make?",
    hint="Go through the six calls. For each, ask: was there an earlier call with this shape, in this mode?",
    fact="A plan is kept for each kind of input, and found again by its shapes, dtypes and modes: that costs one look "
         "into a table. `graph.why()` lists the plans, each with its reason.",
    sibling="A bakery makes a form for each kind of cake that is ordered, and keeps it. Orders: round, square, round, "
            "star, square. A form is made for the first round cake, the first square one and the first star: 3 forms "
            "for 5 orders. The second round cake costs only its dough.",
)

exercise.solution(3)

exercise.wrong_value("every call", 6,
                     "The first call makes a plan. Is a new one needed when the same shape comes again?",
                     "The second call is like the first in all that counts: its plan is used again.")
exercise.wrong_value("once for all", 1,
                     "A plan knows its shapes: another batch size needs a plan of its own.",
                     "`g(x[:2])` has the shape (2, 3), not (4, 3). Count again, and look at the modes too.")
exercise.wrong_value("modes forgotten", 2,
                     "The batch size is right. But `eval()` may change what is computed: think of dropout.",
                     "Count one more, for the first call in eval mode.")
exercise.wrong_value("plans thrown away", 4,
                     "Going back costs nothing: plans are kept. Which of your calls goes back to an old one?",
                     "Did you count the fourth or the sixth call? Both have a plan already.")
exercise.wrong_value("every change", 5,
                     "You count each call that differs from the one before it. A call only counts if it is *new*.",
                     "Write shape and mode beside each of the six calls. How many different lines are there?")
exercise.wrong_value("never", 0,
                     "There is at least one: each call runs a plan.",
                     "The first call has no plan yet.")
exercise.wrong_value("not one number", (1, 3, 5),
                     "One whole number: how many plans are there in the end?",
                     "Write it without quotes and brackets, such as `n = 6`.",
                     when=lambda value: not isinstance(value, numbers.Real) or value != int(value))
exercise.wrong_value("more than the calls", 12,
                     "There are only six calls, and none of them makes more than one plan.",
                     "A mode or a shape that is new needs a plan. The other calls have one already.",
                     when=lambda value: value > 6)
