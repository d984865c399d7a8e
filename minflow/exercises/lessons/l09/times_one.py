"""09.2 times_one: a pass that turns x * 1 into x."""

import numpy as np

import minflow as flow
from minflow.compiler.passes.rewrite import rewrite
from minflow.core.ir import Value, outputs_of

from ...definition import Exercise, case

exercise = Exercise(
    "09.2", "times_one", kind="write", level="core",
    question="How does a compiler drop a multiplication that changes nothing?",
    hint="For each `mul` ask: is one of its two inputs the number 1? Then its readers can read the other one.",
    fact="A pass must be exact: x * 1 is x to the last bit, NaN and -0 included. x + 0 is not: -0 + 0 is 0.",
    sibling="A pass that drops `neg(neg(x))`: leave out each `neg` node whose input comes from another `neg`, and let "
            "its readers read the input of the inner one. The shape is the same, so nothing else changes. The inner "
            "`neg` may have other readers: `dead_code` removes it if it has none.",
)


@exercise.stub
def times_one(graph):
    kept, instead = [], {}
    for node in graph.nodes:
        # your code here: what does not stay is told to its readers
        # in `instead`: outputs_of(node)[0] -> what they read now
        kept.append(node)
    return rewrite(graph, kept, instead)


@exercise.solution
def times_one(graph):
    kept, instead = [], {}
    for node in graph.nodes:
        same = None
        if node.op.name == "mul":
            x, y = node.inputs
            # the 1 may be on either side
            for value, one in ((x, y), (y, x)):
                # a number is its own input, a tensor is a Value
                if isinstance(one, int | float) and one == 1:
                    same = value
        if same is None:
            kept.append(node)
        else:
            instead[outputs_of(node)[0]] = same
    return rewrite(graph, kept, instead)


def parts(node):
    """The Value and the number of a product with a number, else (None, None)."""
    numbers = [x for x in node.inputs if isinstance(x, int | float)]
    values = [x for x in node.inputs if not isinstance(x, int | float | complex)]
    return (values[0], numbers[0]) if node.op.name == "mul" and len(numbers) == len(values) == 1 else (None, None)


def beside_one(node):
    """The Value beside a number 1, whatever the operation is; else None."""
    values = [x for x in node.inputs if not isinstance(x, int | float)]
    return values[0] if len(values) == 1 and 1 in [x for x in node.inputs if isinstance(x, int | float)] else None


def rewriting(graph, goes, reads=lambda node: parts(node)[0]):
    """The graph without the nodes for which `goes` is true; their readers read `reads` of the node."""
    gone = [node for node in graph.nodes if goes(node)]
    return rewrite(graph, [node for node in graph.nodes if node not in gone],
                     {outputs_of(node)[0]: reads(node) for node in gone})


@exercise.also_right
def times_one(graph):
    return rewriting(graph, lambda node: parts(node)[1] == 1)


@exercise.also_right
def times_one(graph):
    instead = {}
    for node in graph.nodes:
        if node.op.name != "mul" or 1 not in [x for x in node.inputs if not isinstance(x, Value)]:
            continue
        value = next(x for x in node.inputs if isinstance(x, Value))
        instead[Value(node, 0, node.out_specs[0])] = value
    gone = {value.node for value in instead}
    return rewrite(graph, (node for node in graph.nodes if node not in gone), instead)


@exercise.wrong("right side only",
                "x * 1 goes, but 1 * x stays. The 1 may be on either side.",
                "Look at both orders of `node.inputs`.")
def times_one(graph):
    return rewriting(graph, lambda node: parts(node)[1] == 1 and node.inputs[1].__class__ in (int, float)
                    )


@exercise.wrong("always the first input",
                "For 1 * x, your readers get the 1. They should read the *other* input.",
                "If `node.inputs[0]` is the number, take `node.inputs[1]`.")
def times_one(graph):
    return rewriting(graph, lambda node: parts(node)[1] == 1, lambda node: node.inputs[0])


@exercise.wrong("not told",
                "You dropped a product whose result is still used. Say in `instead` which value replaces it.",
                "Set `instead[outputs_of(node)[0]]`: the key is the result that went, the value is the other input.")
def times_one(graph):
    from minflow.compiler.passes.rewrite import rewrite

    return rewrite(graph, [node for node in graph.nodes if parts(node)[1] != 1], {})


@exercise.wrong("not at the end",
                "The product stays if its result is an output of the graph. But `rewrite` replaces outputs too.",
                "A node whose result is an output may be dropped like any other.")
def times_one(graph):
    return rewriting(graph, lambda node: parts(node)[1] == 1
                     and not any(one.node is node for one in graph.outputs))


@exercise.wrong("left side only",
                "1 * x goes, but x * 1 stays. The 1 may be on either side.",
                "Look at both orders of `node.inputs`.")
def times_one(graph):
    return rewriting(graph, lambda node: parts(node)[1] == 1 and node.inputs[0].__class__ in (int, float))


@exercise.wrong("nearly 1",
                "1.0000001 is not 1, and a pass keeps every bit. Compare exactly.",
                "`number == 1`, without a tolerance.")
def times_one(graph):
    return rewriting(graph, lambda node: parts(node)[1] is not None and abs(parts(node)[1] - 1) < 1e-6
                    )


@exercise.wrong("any number",
                "x * 2 is not x: which number may go?",
                "Check whether the number is 1.")
def times_one(graph):
    return rewriting(graph, lambda node: parts(node)[0] is not None)


@exercise.wrong("division too",
                "1 / x is not x. Only in a product do both sides count the same.",
                'Check `node.op.name == "mul"`.')
def times_one(graph):
    return rewriting(graph, lambda node: node.op.name in ("mul", "div") and beside_one(node) is not None, beside_one)


@exercise.wrong("once",
                "x * 1 * 1 still has a product: the second one reads the first, which has gone.",
                "Drop every such node, whatever its inputs are; `rewrite` follows the chain.")
def times_one(graph):
    gone = []
    return rewriting(graph, lambda node: parts(node)[1] == 1
                     and not any(getattr(x, "node", None) in gone for x in node.inputs) and not gone.append(node))


@exercise.wrong("nothing done",
                "Products with 1 are still there. Is your condition true for each of them? And do you return what "
                "`rewrite` gives?",
                "`node.op.name == \"mul\"` finds a product. Print its two inputs, too.")
def times_one(graph):
    return graph


@exercise.wrong("kept as well",
                "The readers read the other input now, but the product is still in the graph, unread. What do you do "
                "with its node?",
                "Only nodes that stay go into `kept`: `else`, or `continue`.")
def times_one(graph):
    return rewrite(graph, graph.nodes, {outputs_of(node)[0]: parts(node)[0] for node in graph.nodes
                                        if parts(node)[1] == 1})


@exercise.wrong("sums too",
                "x + 1 is not x. Which operation leaves x as it is when one input is 1?",
                'Check `node.op.name == "mul"`.')
def times_one(graph):
    return rewriting(graph, lambda node: node.op.name in ("mul", "add") and beside_one(node) is not None, beside_one)


@exercise.wrong("every operation with 1",
                "Only a product with 1 leaves x as it is; 1 / x and x + 1 do not. Which operation is this node?",
                'Check `node.op.name == "mul"`.')
def times_one(graph):
    return rewriting(graph, lambda node: beside_one(node) is not None, beside_one)


@exercise.wrong("every product",
                "You drop all products. Which ones leave x as it is?",
                "One of the two inputs must be the number 1.")
def times_one(graph):
    return rewriting(graph, lambda node: node.op.name == "mul", lambda node: node.inputs[0])


@exercise.wrong("the 1 itself",
                "Your readers get the number 1. They should read the *other* input.",
                "If `node.inputs[0]` is the number, take `node.inputs[1]`, and the other way round.")
def times_one(graph):
    return rewriting(graph, lambda node: parts(node)[1] == 1, lambda node: parts(node)[1])


@exercise.wrong("node instead of value",
                "Your readers get a node. They read a value, one of the inputs of the product.",
                "`node.inputs[0]` is the value; `.node` is the operation that made it.")
def times_one(graph):
    return rewriting(graph, lambda node: parts(node)[1] == 1, lambda node: parts(node)[0].node)


@exercise.wrong("a list as the key",
                "`outputs_of` gives a list of results. Which entry do the readers read?",
                "A product has one result: `outputs_of(node)[0]`.")
def times_one(graph):
    return rewrite(graph, [], {outputs_of(node): parts(node)[0] for node in graph.nodes if parts(node)[1] == 1})


@exercise.wrong("no graph",
                "Your pass gives nothing back. A pass takes a graph and returns a graph.",
                "`rewrite` makes the new graph: return it.")
def times_one(graph):
    rewriting(graph, lambda node: parts(node)[1] == 1)


@exercise.wrong("two inputs for all",
                "Not every operation has two inputs: exp has one. Look first whether the node is a product.",
                "Take the two inputs apart only if `node.op.name` is \"mul\".")
def times_one(graph):
    gone = {}
    for node in graph.nodes:
        a, b = node.inputs
        if node.op.name == "mul" and parts(node)[1] == 1:
            gone[outputs_of(node)[0]] = a if isinstance(b, int | float) else b
    return rewrite(graph, [node for node in graph.nodes if outputs_of(node)[0] not in gone], gone)


def compiled(times_one, build, array):
    """How many products the graph has, how many of them it does not need, and whether its result is the eager one."""
    class Program(flow.nn.Graph):
        def build(self, x):
            return build(x)

    program, x, graphs = Program(), flow.tensor(array), []
    program.passes += [times_one, lambda graph: graphs.append(graph) or graph]
    expected = build(x)
    try:
        result = program(x)
    except flow.GraphError as error:  # the pass did not return a graph
        return str(error).split("\n")[0]
    exact = result.dtype is expected.dtype and result.shape == expected.shape and np.array_equal(
        result.numpy(), expected.numpy(), equal_nan=True)
    products = [node for node in graphs[-1].nodes if node.op.name == "mul"]
    read = {value.node for node in graphs[-1].nodes for value in node.inputs if isinstance(value, Value)}
    unread = [node for node in products if node not in read | {value.node for value in graphs[-1].outputs}]
    return f"{len(products)} products, {len(unread)} of them unread, {'the same' if exact else 'other'} bits"


def outcome(products):
    return f"{products} products, 0 of them unread, the same bits"


FLOATS = np.array([1.5, -0.0, np.nan, np.inf], np.float32)
WHOLE = np.array([1, 2, 3], np.int32)


@exercise.cases
def cases(rng):
    yield case(lambda x: x * 1, FLOATS, run=compiled, text="x * 1", expected=outcome(0))
    yield case(lambda x: 1 * x + x, FLOATS, run=compiled, text="1 * x + x", expected=outcome(0))
    yield case(lambda x: x * 2, FLOATS, run=compiled, text="x * 2", expected=outcome(1))
    yield case(lambda x: (x * 1 * 1).exp(), FLOATS, run=compiled, text="exp(x * 1 * 1)",
               expected=outcome(0))
    yield case(lambda x: x * 1.0, WHOLE, run=compiled, text="x * 1.0, x of whole numbers",
               expected=outcome(0))
    yield case(lambda x: x * 1.0000001, np.array([3.0, 7.0]), run=compiled, text="x * 1.0000001",
               expected=outcome(1))
    yield case(lambda x: 1 / x + x * x, FLOATS, run=compiled, text="1 / x + x * x",
               expected=outcome(1))
    yield case(lambda x: x + 1, FLOATS, run=compiled, text="x + 1", expected=outcome(0))
    yield case(lambda x: (x * 1).relu() * 3 * 1, FLOATS, run=compiled, hidden=True,
               expected=outcome(1))
    yield case(lambda x: x.sum() * 1 + (x * x).sum() * 1.0, FLOATS, run=compiled, hidden=True,
               expected=outcome(1))
