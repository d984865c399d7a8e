"""11.1 both: how long it takes with waiting and without."""

from ...definition import Exercise

exercise = Exercise(
    "11.1", "both", kind="predict", level="warm-up", answer="seconds",
    question="How long does a training take, with waiting and without?",
    hint="Two numbers of seconds, such as (1.0, 1.0). First: one after the other. Then: both at the same time.",
    fact="The slower of the two sets the pace. Making the other one faster gains nothing.",
    sibling="Washing takes 1 hour and drying 2, for each of 10 loads. One after the other: 10 * (1 + 2) = 30 hours. "
            "With both machines at work: the dryer runs 10 * 2 = 20 hours, and waits 1 hour for the first load: 21.",
)
exercise.solution((5.0, 3.02))
exercise.also_right([5, 3.02])
exercise.also_right(("5", "3.02"))


def as_floats(value):
    first, second = value
    return float(first), float(second)


def is_close(number, right, away=0.001):
    return abs(number - right) <= away * max(1, right)


def is_pair_of_numbers(value):
    try:
        return len(as_floats(value)) == 2
    except (TypeError, ValueError):
        return False


def is_any_close(*right):
    return lambda value: all(is_close(mine, one) for mine, one in zip(as_floats(value), right, strict=True))


@exercise.accept
def accept(value):
    waiting, not_waiting = as_floats(value)
    return is_close(waiting, 5) and is_close(not_waiting, 3.02)


exercise.wrong_value(
    "not two numbers", 5,
    "Two numbers of seconds in brackets, such as (1.0, 2.0): first with waiting, then without.",
    "Numbers, without quotes and units.", when=lambda value: not is_pair_of_numbers(value))
exercise.wrong_value(
    "the last step forgotten", (5, 3),
    "Nearly. When the last batch is loaded, after 3 seconds, is everything done?",
    "The last step is computed alone: one step more.",
    when=lambda value: is_close(as_floats(value)[0], 5) and is_close(as_floats(value)[1], 3))
exercise.wrong_value(
    "half", (5.0, 2.5),
    "It is half the time only if both take equally long. Which one is slower here?",
    "Loading 100 batches takes 100 * 0.03 seconds, whatever the other one does.")
exercise.wrong_value(
    "only computing", (5.0, 2.0),
    "The loading still has to be done: 100 times 30 ms.",
    "Which is busy for longer, the loader or the worker that computes?",
    when=lambda value: is_close(as_floats(value)[0], 5) and 1.99 <= as_floats(value)[1] <= 2.05)
exercise.wrong_value(
    "no gain", (5.0, 5.0),
    "Without waiting, which of them is idle while a batch is loaded? And while a step is computed?",
    "The next batch is loaded while this one is computed: the two times are not added.")
exercise.wrong_value(
    "milliseconds", (5000.0, 3000.0),
    "Give seconds: 1000 ms are one second.",
    "30 ms are 0.03 seconds.", when=lambda value: min(as_floats(value)) >= 1000)
exercise.wrong_value(
    "the ends counted too often", (5.0, 3.5),
    "That is too long: the first load is one of the hundred, and most steps are computed while a batch is loaded.",
    "100 loads, and then the last step alone: what is that together?",
    when=lambda value: is_close(as_floats(value)[0], 5) and 3 < as_floats(value)[1] < 4.99)
exercise.wrong_value(
    "turned", (3.0, 5.0),
    "Your two numbers are swapped: the first is the time with waiting.",
    "With waiting, each step takes a load and a computation.",
    when=lambda value: is_close(as_floats(value)[1], 5) and 2.99 <= as_floats(value)[0] <= 3.051)
exercise.wrong_value(
    "one step", (0.05, 0.03),
    "That is one step. There are 100.",
    "Multiply by the number of steps.", when=is_any_close(0.05, 0.03))
exercise.wrong_value(
    "multiplied", (0.06, 0.03),
    "The two times are added, not multiplied: first one, then the other.",
    "One step with waiting: 30 ms and then 20 ms.", when=lambda value: is_close(as_floats(value)[0], 0.06))
exercise.wrong_value(
    "faster than the loader", (5.0, 1.67),
    "Nothing can be faster than the loader alone, and it loads 100 batches, 30 ms each. Is it the gain that you give?",
    "Seconds are asked for: 100 loads, and then the last step alone.",
    when=lambda value: is_close(as_floats(value)[0], 5) and as_floats(value)[1] < 3)
exercise.wrong_value(
    "slower than with waiting", (5.0, 6.0),
    "Without waiting it cannot take longer than with waiting.",
    "While a step is computed, the next batch is loaded.",
    when=lambda value: is_close(as_floats(value)[0], 5) and as_floats(value)[1] > 5)
exercise.wrong_value(
    "another time with waiting", (50.0, 30.2),
    "Look at the first number again. With waiting, each of the 100 steps takes a load *and* a computation.",
    "100 * (0.03 + 0.02) seconds.",
    when=lambda value: not is_close(as_floats(value)[0], 5))
