"""R2: backward in one page."""

from . import Reading

readings = [
    Reading(
        "R2.1",
        "r2_seed",
        "core.autograd.seeds_for",
        "From which attribute of the mode does the seed take its number?",
        "seed",
        "filled(out.spec, MODE.get().seed)",
        "Look at `filled` in the last line: what is read from the mode?",
        "A graph that adds up the gradients of n batches begins with 1/n, so that the sum is a mean.",
    ),
    Reading(
        "R2.2",
        "r2_order",
        "core.autograd.backprop",
        "By which method does backprop take the next node?",
        "pop",
        "node = order.pop()",
        "Look below `while order`: what is called on the list?",
        "Taken from the end, the list is walked backward, and each node is released right after its turn.",
    ),
    Reading(
        "R2.3",
        "r2_saved",
        "core.autograd.rule_argument",
        "Which method of the mode returns a saved array?",
        "restore",
        "mode.restore(node, key",
        "Look at the last line: what is called on `mode`?",
        "Eager's compares versions first: overwritten arrays are refused, never used.",
    ),
    Reading(
        "R2.4",
        "r2_fit",
        "core.autograd.fit",
        "Which op brings a gradient back to a smaller shape?",
        "sum_to",
        "g = sum_to(g, shape=spec.shape)",
        "Look below `if g.shape != spec.shape`.",
        "Stretching copies a number, so its gradients are added: copy and sum belong together.",
    ),
    Reading(
        "R2.5",
        "r2_freed",
        "core.autograd.free_saved",
        "What is in `node.saved` after the node's turn?",
        "FreedMarker",
        "node.saved = FreedMarker(where)",
        "Look at what is assigned to `node.saved`, or at what the cell printed.",
        "It remembers the line of the first backward, so that the error can name it.",
    ),
]
