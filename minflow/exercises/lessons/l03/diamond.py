"""03.1 diamond: a slope through paths that part and meet."""

from ...definition import Exercise, as_number

exercise = Exercise(
    "03.1", "diamond", kind="predict", level="core", answer="slope_of_d",
    question="How steep is a result whose parts meet again?",
    hint="Begin at d and go back. First the slopes of d with respect to c and to b, then on to a. Count every arrow of "
         "the picture.",
    fact="d is 2*a*a*a*a, whose slope is 8*a*a*a: 64 at a = 2. The tape finds it without this formula, from the slopes "
         "of single operations.",
    sibling="p = 3, q = p * p, r = q + p. Two arrows lead from p to q, one leads from p to r. The slope of q with "
            "respect to p is 3 + 3 = 6, one 3 for each arrow. On the path through q the slope of r with respect to p "
            "is 1 * 6 = 6; on the straight path it is 1. The paths meet, so add: 7. Check: r = p*p + p, and at 3.01 "
            "it is 12.0701, which is 0.0701 more for a nudge of 0.01.",
)
exercise.solution(64)

exercise.wrong_value(
    "half", 32,
    "32 is the value of d, and half of its slope. a is used twice in a*a, and b is used in c and in d: did you go all "
    "these paths?",
    "Slope of d with respect to b: straight, it is c = 8; through c, it is b * 2 = 8. Together? And the slope "
    "of b with respect to a: one a for each of the two arrows.")
exercise.wrong_value(
    "up to b", 16,
    "16 is the slope of d with respect to b, a quarter of the answer. There is one more stretch, from b to a.",
    "Multiply along the path: slope of d with respect to b times slope of b with respect to a. a meets itself in "
    "a*a: two arrows.")
exercise.wrong_value(
    "value of c", 8,
    "8 is c, the slope of d with respect to b on the straight path. b reaches d through c as well, and a comes "
    "before b.",
    "Write the slope of one operation at each arrow. Multiply along each path, add what arrives at b, then go to a.")
exercise.wrong_value(
    "added along a path", 20,
    "16 + 4: you added along a path. From d to b and on to a the slopes are multiplied.",
    "A nudge of a moves b by 4 times as much. Each of these moves d by 16 times as much.")
exercise.wrong_value(
    "multiplied where paths meet", 256,
    "You multiplied where two paths meet. Each brings a rise of its own, and these add up.",
    "Straight from b to d: 8. Through c: 8. Both at once: 8 + 8, not 8 * 8.")
exercise.wrong_value(
    "twice", 128,
    "That is twice too much: one path is counted twice. Count the arrows of the picture again.",
    "Three arrows lead from b: two to c, one to d. Two lead from a.")
exercise.wrong_value(
    "added everywhere", 24,
    "Add where paths meet, multiply along a path. Did you do the one in place of the other, or miss an arrow?",
    "At b the two paths meet: 8 + 8. From b to a there is one stretch: times 4.",
    when=lambda slope: as_number(slope) in (18, 24))
exercise.wrong_value(
    "one arrow to c", 48,
    "That is three quarters of it. How many arrows lead from b to c, and how many did you go along?",
    "c = b + b uses b twice. Through c the slope of d with respect to b is 4 + 4.")
exercise.wrong_value(
    "the end alone", 4,
    "That is the slope of one step alone. There are more steps on the way from d back to a.",
    "Write the slope of one operation at each arrow. Multiply along each path, add what arrives at b, then go to a.",
    when=lambda slope: as_number(slope) in (1, 2, 4))
exercise.wrong_value(
    "not above 0", 0,
    "Does d grow if a grows from 2 to 2.1? Then the slope is above 0.",
    "All slopes of single operations here are above 0: sums and products of them are, too.",
    when=lambda slope: as_number(slope) <= 0)
exercise.wrong_value(
    "nearly", 63,
    "Very close: the idea is right. Add and multiply once more, with care.",
    "All slopes at the arrows are whole numbers: 1, 2, 4 and 8.",
    when=lambda slope: 0 < abs(as_number(slope) - 64) < 4)
