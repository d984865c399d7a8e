"""Variants of lesson 02."""

from ..variants import Change, ask, mistake, question, vary

vary(
    "slope",
    "Write `{answer}(f, x, h=1e-3)`. `f` is any function of one number. Nudge `x` to *both* sides, from `x - h` to "
    "`x + h`, and call `f` two to four times.",
    [
        Change(
            "slope_in_percent",
            "Return how much `f` rises per unit of `x` at this place, in percent: 100 times the slope. For f = x**2 at "
            "3 it is 600.",
            result="100 * ({})",
        ),
        Change(
            "descent",
            "Return how much `f` *falls* per unit of `x` at this place: the slope with the opposite sign. For f = x**2 "
            "at 3 it is -6.",
            result="-({})",
        ),
        Change(
            "downhill_step",
            "Return the place after one step downhill with the learning rate 0.1: `x` minus 0.1 times the slope. For "
            "f = x**2 at 3 it is 2.4.",
            result="x - 0.1 * ({})",
        ),
    ],
)

vary(
    "gradient",
    "Write `{answer}(f, w, h=1e-3)`. `w` is a list of knobs, such as `[3.0, 1.0]`; `f` takes such a list and gives one "
    "number. Nudge each knob alone to both sides, by `h`. The list `w` must be the same after the call.",
    [
        Change(
            "descent_direction",
            "Return a list as long as `w`: the slope of each knob with the opposite sign.",
            result="[-slope for slope in ({})]",
        ),
        Change(
            "numbered_slopes",
            "Return a dict: for the index of each knob (0, 1, ...) its slope.",
            result="dict(enumerate({}))",
        ),
        Change(
            "gradient_step",
            "Return a list as long as `w`: the knobs after one step downhill, each minus 0.1 times its slope.",
            result="[knob - 0.1 * slope for knob, slope in zip(w, {})]",
        ),
    ],
)

vary(
    "fit_line",
    "Write `{answer}(x, y, rate, steps)`. Take `steps` steps with the learning rate `rate` down the mean squared error "
    "of the line `w * x + b`. `x` and `y` are tensors with one number for each point.",
    [
        Change(
            "fit_offset_first",
            "Start at `w = 0` and `b = 0`, and return the pair `(b, w)`.",
            edits={
                "return w, b": "return b, w",
                "return b, w": "return w, b",
                "return knobs[0].item(), knobs[1].item()": "return knobs[1].item(), knobs[0].item()",
            },
        ),
        Change(
            "fit_from_one",
            "Start at `w = 1` and `b = 0`, and return the pair `(w, b)`.",
            edits={
                "w, b = 0.0, 0.0": "w, b = 1.0, 0.0",
                "w, b, h = 0.0, 0.0, 1e-3": "w, b, h = 1.0, 0.0, 1e-3",
                "knobs = flow.zeros(2)": "knobs = flow.tensor([1.0, 0.0])",
                "w = b = 0.0": "w, b = 1.0, 0.0",
            },
            without=("starts at w = 1",),
        ),
    ],
)


@ask("edge")
def edge(rng):
    steep = int(rng.choice([2, 3, 4, 8, 10]))
    one = question(
        "edge",
        "A walk on the loss `{steep} * w**2` starts at w = 1. Each step goes from `w` to `w - rate * {slope} * w`. "
        "With a small rate `w` comes nearer to 0, with a large one it runs away. What is the largest rate that does "
        "not run away? Write `{answer} = ...`",
        steep=steep,
        slope=2 * steep,
    )
    one.solution(round(1 / steep, 4))
    one.also_right(1 / steep)

    @one.accept
    def near(limit):
        return abs(limit - 1 / steep) <= 0.02 / steep

    mistake(one, "lands at once", 0.5 / steep, "With this rate the walk lands at 0 in one step.")
    mistake(one, "slope 5w", 2 / steep, "The slope is twice as large: see the step.", half=True)
    mistake(one, "none works", 0.0, "Tiny rates are slow, but they come nearer.", when=lambda limit: limit <= 0)
    mistake(one, "a text", str(1 / steep), when=lambda limit: isinstance(limit, str))
    mistake(one, "still nearer", 0.75 / steep, "A larger rate still comes nearer.",
            when=lambda limit: 0 < limit < 0.98 / steep)
    mistake(one, "runs away already", 1.5 / steep, "With this rate w is farther from 0 after each step.",
            when=lambda limit: limit > 1.02 / steep)
    return one
