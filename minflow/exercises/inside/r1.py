"""R1: from `2 + 3` down to the kernel."""

from . import Reading

readings = [
    Reading(
        "R1.1",
        "r1_door",
        "core.dispatch.apply",
        "Which method of the mode runs an op?",
        "run",
        "return current().run(op, inputs, attrs)",
        "Look for `current()`: what is called on it?",
        "There are two modes, `Eager` and `Trace`, and each has its own `run`. An op knows nothing of either.",
    ),
    Reading(
        "R1.2",
        "r1_kernel",
        "core.ops.elementwise",
        "Which function of NumPy is the kernel of `sub`?",
        "subtract",
        'kernel(sub, ufunc="subtract")',
        "It is in the last line of a definition, after `ufunc=`.",
        "An op can have more than one kernel: a tuned one may take the place of the simple one.",
    ),
    Reading(
        "R1.3",
        "r1_table",
        "core.infer",
        "How many answers of shape rules are kept at most?",
        20_000,
        "INFER_CACHE_LIMIT = 20_000",
        "Look for the name that ends in LIMIT. Python reads 1_000 as 1000.",
        "When the table is full it is emptied: forgetting costs a little time, never a wrong answer.",
    ),
    Reading(
        "R1.4",
        "r1_dtype",
        "core.infer.consult",
        "Which function returns the dtype that integers become?",
        "default_dtype",
        "dtype = default_dtype()",
        'Look at the two lines below `op.elementwise == "float"`.',
        "It is float32, unless `flow.set_default_dtype` has changed it.",
    ),
    Reading(
        "R1.5",
        "r1_line",
        "core.eager.Eager.record",
        "Which function finds the line of your code?",
        "caller",
        "self.scope, self.place or caller(depth))",
        "Look at what a Node is made of: which of its parts is called with `depth`?",
        "It walks up the stack to the first frame that is not of minflow, and keeps no frame alive.",
    ),
]
