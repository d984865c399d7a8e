"""R3: from `graph(x)` to the plan."""

from . import Reading

readings = [
    Reading(
        "R3.1",
        "r3_trace",
        "core.trace.Trace.run",
        "What does Trace.run create instead of computing numbers?",
        "Node",
        "node = Node(op, values, attrs, specs",
        "Look for the line before `self.graph.nodes.append`.",
        "The tape of eager is made of the same class: one algorithm goes backward through both.",
    ),
    Reading(
        "R3.2",
        "r3_last",
        "compiler.passes",
        "Which pass runs last?",
        "reduce_memory",
        "PASSES: tuple[Pass, ...] = (dead_code, constant_folding, common_subexpressions, dead_code, reduce_memory)",
        "The last name in the brackets.",
        "It changes only the order of nodes, so that fewer values are needed at the same time.",
    ),
    Reading(
        "R3.3",
        "r3_exactly",
        "compiler.passes.common_subexpressions.common_subexpressions",
        "Which function makes 1, 1.0 and True differ in a key?",
        "exact_key",
        "key = (node.op, inputs, exact_key(node.attrs))",
        "Look at the line that begins with `key =`.",
        "It also keeps 0.0 and -0.0 apart: they are equal, but 1 divided by them is not.",
    ),
    Reading(
        "R3.4",
        "r3_align",
        "compiler.arena",
        "Every place begins at a multiple of how many bytes?",
        64,
        "ALIGN = 64",
        "The line above says it, and the sizes that the cell printed fit it.",
        "It is the size of a cache line: what a processor fetches from memory in one go.",
    ),
    Reading(
        "R3.5",
        "r3_late",
        "compiler.plan.Plan.prepare",
        "What is the class of a call that reads new arrays at each run?",
        "DynamicCall",
        "self.calls.append(DynamicCall(kernel, args, reads, self.slots, target=slot_of[outs[0]]))",
        "The cell above printed the class of each call: which one is not a partial?",
        "It copies its list of arguments at each run, and fills in the new arrays.",
    ),
]
