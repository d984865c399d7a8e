"""03.2 parents_first: an order in which each node comes after all its inputs."""

import graphlib

from ...definition import Exercise, case

exercise = Exercise(
    "03.2", "parents_first", kind="write", level="core", answer="order", time_limit=4.0,
    question="In which order can you walk through a computation?",
    hint="Follow your code on paper with the smallest case that fails. When may a node go into the list? When all its "
         "inputs are in it.",
    fact="Read backwards, this is the order of backward: a node passes its gradient on only after all its users have "
         "added theirs. It is called a topological order, and `toposort` in minflow/core/ir.py makes it for every "
         "tape.",
    sibling="Getting dressed: shoes need socks and trousers, trousers need pants. Which order? Put `shoes` on a stack, "
            "a list of your own, and look at its top, the last entry. Does it have an input that is not done? Then "
            "put that one on top. Does it have none left? Then take it off the stack: it is done.\n\n"
            "`stack [shoes], done []`\n"
            "`stack [shoes, socks], done []`\n"
            "`stack [shoes], done [socks]`\n"
            "`stack [shoes, trousers], done [socks]`\n"
            "`stack [shoes, trousers, pants], done [socks]`\n"
            "`stack [shoes, trousers], done [socks, pants]`\n"
            "`stack [shoes], done [socks, pants, trousers]`\n"
            "`stack [], done [socks, pants, trousers, shoes]`",
)


@exercise.solution
def order(node, inputs):
    result, done = [], set()
    waiting = [node]
    while waiting:
        top = waiting[-1]
        # what must come before the node on top of the stack
        missing = [one for one in inputs(top) if one not in done]
        if missing:
            waiting.append(missing[0])
            continue
        # all its inputs are done: its turn, once
        waiting.pop()
        if top not in done:
            done.add(top)
            result.append(top)
    return result


@exercise.also_right
def order(node, inputs):
    """Visit each node twice: on the way down, and when all its inputs are done."""
    result, seen, stack = [], set(), [(node, False)]
    while stack:
        one, inputs_done = stack.pop()
        if inputs_done:
            result.append(one)
        elif one not in seen:
            seen.add(one)
            stack.append((one, True))
            stack += [(before, False) for before in inputs(one)]
    return result


@exercise.also_right
def order(node, inputs):
    """Start from the other end: a node is free when all its users are in the list. Reverse the list at the end."""
    users, found = {node: 0}, [node]
    for one in found:
        for before in inputs(one):
            if before not in users:
                users[before] = 0
                found.append(before)
            users[before] += 1
    backwards = [node]
    for one in backwards:
        for before in inputs(one):
            users[before] -= 1
            if users[before] == 0:
                backwards.append(before)
    return backwards[::-1]


@exercise.also_right
def order(node, inputs):
    steps, seen, result = [(node, iter(inputs(node)))], {node}, []
    while steps:
        one, rest = steps[-1]
        before = next((other for other in rest if other not in seen), None)
        if before is None:
            result.append(steps.pop()[0])
        else:
            seen.add(before)
            steps.append((before, iter(inputs(before))))
    return result


@exercise.wrong("recursion",
                "A chain of 5,000 nodes is too deep for Python's call stack. Keep a list of your own as the stack.",
                "Your function calls itself for each input. Put the nodes that wait into a list instead, and loop "
                "while it is not empty.")
def order(node, inputs):
    result = []

    def visit(one):
        if one not in result:
            for before in inputs(one):
                visit(before)
            result.append(one)

    visit(node)
    return result


@exercise.wrong("level by level",
                "The short path to a node came before the long one. The node must wait for the long one too.",
                "If you go level by level, a node gets the level of its *shortest* path. It needs that of its longest.")
def order(node, inputs):
    result = [node]
    for one in result:
        for before in inputs(one):
            if before not in result:
                result.append(before)
    return result[::-1]


@exercise.wrong("first met, turned round",
                "Reversing the list is not enough: a node that was met early may be needed late.",
                "Draw y = u + v with u = 2*x and v = 3*x. You meet y, v, x, u. In reverse, u comes before x.")
def order(node, inputs):
    result, stack = [], [node]
    while stack:
        one = stack.pop()
        if one not in result:
            result.append(one)
            stack += inputs(one)
    return result[::-1]


@exercise.wrong("node first",
                "You write a node down when you first meet it. Its inputs are computed *before* it.",
                "Write a node down when you leave it, after all its inputs: not when you arrive.")
def order(node, inputs):
    result, stack = [], [node]
    while stack:
        one = stack.pop()
        if one not in result:
            result.append(one)
            stack += inputs(one)
    return result


@exercise.wrong("node first, level by level",
                "You write a node down when you first meet it. Its inputs are computed *before* it.",
                "Write a node down when you leave it, after all its inputs: not when you arrive.")
def order(node, inputs):
    result = [node]
    for one in result:
        result += [before for before in dict.fromkeys(inputs(one)) if before not in result]
    return result


@exercise.wrong("no call",
                "`inputs` is a function. How do you ask it for the inputs of a node?",
                "`inputs(n)` calls it, `inputs[n]` looks into a dict or a list.")
def order(node, inputs):
    return inputs[node]


@exercise.wrong("the notebook's table",
                "Your code looks into a table that does not have this node. Where are the inputs of *this* graph?",
                "`inputs_of` belongs to the notebook's diamond. `inputs(n)` knows the graph that is asked for.")
def order(node, inputs):
    table, result = {"a": [], "b": ["a", "a"], "c": ["b", "b"], "d": ["c", "b"]}, []

    def visit(one):
        if one not in result:
            for before in table[one]:
                visit(before)
            result.append(one)

    visit(node)
    return result


@exercise.wrong("an attribute of the node",
                "A node is only a name here, without attributes. Which argument knows the inputs of a node?",
                "`inputs(node)` gives the list of inputs.")
def order(node, inputs):
    return [*node.inputs, node]


@exercise.wrong("no list",
                "The task asks for a list. What does your function return?",
                "Begin with an empty list, `result = []`, put a node in with `result.append(node)`, and return it. A "
                "set has no order.")
def order(node, inputs):
    return {node}


@exercise.wrong("sorted",
                "You sort the nodes by their names. The order depends on the arrows, not on the names.",
                "A node comes after its inputs, whatever it is called.")
def order(node, inputs):
    return sorted(ancestors(inputs, node))


@exercise.wrong("backwards",
                "The right idea, but in reverse: your list begins with the node itself.",
                "Inputs come first, and the given node comes last. Reverse your list.")
def order(node, inputs):
    result, seen, stack = [], set(), [(node, False)]
    while stack:
        one, inputs_done = stack.pop()
        if inputs_done:
            result.append(one)
        elif one not in seen:
            seen.add(one)
            stack.append((one, True))
            stack += [(before, False) for before in inputs(one)]
    return result[::-1]


@exercise.wrong("twice",
                "A node is in your list more than once. Remember which nodes are done.",
                "Before you append a node, ask whether it is in the list: two paths may lead to it.")
def order(node, inputs):
    result, stack = [], [(node, False)]
    while stack:
        one, inputs_done = stack.pop()
        if inputs_done:
            result.append(one)
        else:
            stack.append((one, True))
            stack += [(before, False) for before in inputs(one)]
    return result


@exercise.wrong("without the node",
                "The given node is missing. It belongs in the list, as the last one.",
                "Your list holds only what comes *before* the node. Append the node itself.")
def order(node, inputs):
    result, seen, stack = [], set(), [(node, False)]
    while stack:
        one, inputs_done = stack.pop()
        if inputs_done:
            result.append(one)
        elif one not in seen:
            seen.add(one)
            stack.append((one, True))
            stack += [(before, False) for before in inputs(one)]
    return result[:-1]


@exercise.wrong("one step back",
                "You go back only one step. The inputs have inputs too.",
                "Keep a list of nodes that are still to be looked at, and loop until it is empty.")
def order(node, inputs):
    return [*dict.fromkeys(inputs(node)), node]


@exercise.wrong("twice, by calls",
                "A node is in your list more than once, since two paths lead to it. Remember which nodes are done.",
                "Before you append a node, ask whether it is in the list already.")
def order(node, inputs):
    result = []

    def visit(one):
        for before in inputs(one):
            visit(before)
        result.append(one)

    visit(node)
    return result


@exercise.wrong("lists in a list",
                "There is a list in your list. You put in a whole list instead of its nodes.",
                "`result.append(nodes)` puts in the list itself, `result += nodes` puts in each of its nodes.")
def order(node, inputs):
    def visit(one):
        return [*map(visit, inputs(one)), one]

    return visit(node)


IN_ORDER = "each node once, after all its inputs"
CHAIN = {"a": [], "b": ["a"], "c": ["b"]}
DIAMOND = {"a": [], "b": ["a", "a"], "c": ["b", "b"], "d": ["c", "b"]}
TWO_WAYS = {"x": [], "u": ["x"], "v": ["x"], "y": ["u", "v"]}
SHORT_AND_LONG = {"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["b", "d"]}


class Report(str):
    """A sentence about a list. Two are equal if both lists have the same fault: many orders are right, and many
    are wrong in the same way."""

    fault: str

    def __new__(cls, fault: str, text: str = "") -> "Report":
        self = super().__new__(cls, text or fault)
        self.fault = fault
        return self

    def __eq__(self, other: object) -> bool:
        return self.fault == getattr(other, "fault", other)

    __hash__ = str.__hash__


def report(order, graph, node):
    """Report the first fault of the list, or that it is in order."""
    result = order(node, lambda one: list(graph[one]))
    if result is None:
        return result
    if not isinstance(result, list | tuple):
        return Report("no list", f"a {type(result).__name__}, not a list")
    shown = ", ".join(map(str, result)) if 0 < len(result) <= 8 else f"{len(result)} nodes"
    if any(isinstance(one, list | tuple) for one in result):
        return Report("nested", f"{shown}: there is a list in your list")
    right = list(graphlib.TopologicalSorter(ancestors(graph.get, node)).static_order())
    for one in right:
        if one not in result:
            return Report("missing", f"{shown}: {one} is missing")
    if strange := [one for one in result if one not in right]:
        return Report("strange", f"{shown}: {strange[0]} is not behind {node}")
    for one in right:
        if result.count(one) > 1:
            return Report("twice", f"{shown}: {one} is there {result.count(one)} times")
    for one in right:
        if early := [before for before in graph[one] if result.index(before) > result.index(one)]:
            text = f"{shown}: {one} comes before its input {early[0]}"
            both_ways = all(result.index(before) > result.index(one) for one in right for before in graph[one])
            return Report("turned" if both_ways and graph != SHORT_AND_LONG else "early", text)
    return Report(IN_ORDER)


def fault_of(order, graph, node):
    """The report as plain data."""
    found = report(order, graph, node)
    return found and (found.fault, str(found))


def as_report(fault):
    return fault and Report(*fault)


def walk(graph, node, **rest):
    return case(graph, node, run=fault_of, finish=as_report, expected=IN_ORDER, **rest)


def ancestors(inputs, node):
    """The part of the graph that the node depends on."""
    found = [node]
    for one in found:
        found += [before for before in dict.fromkeys(inputs(one)) if before not in found]
    return {one: inputs(one) for one in found}


def long_chain(order, length):
    """Report only the length: a chain has only one right list."""
    result = order(length - 1, lambda one: [one - 1] if one else [])
    if not isinstance(result, list | tuple):
        return "not a list"
    return IN_ORDER if list(result) == list(range(length)) else f"{len(result)} nodes, not in order"


def drawn(rng, nodes):
    """A random graph: node i has up to three inputs among the nodes before it, the last one reaches them all."""
    graph = {0: [], 1: [0], 2: [0], 3: [1, 2]}
    for i in range(4, nodes):
        graph[i] = [i - 1, *rng.integers(0, i, int(rng.integers(0, 3))).tolist()]
        rng.shuffle(graph[i])
    return graph


@exercise.cases
def cases(rng):
    yield walk({"a": []}, "a", text='a alone: inputs("a") is []')
    yield walk(CHAIN, "c", text="c is made of b, b of a")
    yield walk(TWO_WAYS, "y", text="y is made of u and v, u of x, v of x")
    yield walk(DIAMOND, "d", text="d is made of c and b, c of b and b, b of a and a")
    yield walk(SHORT_AND_LONG, "e",
               text="e is made of b and d, d of c, c of b, b of a")
    yield walk({**TWO_WAYS, "z": ["y"]}, "u",
               text="u, in the graph y of u and v, u of x, v of x")
    yield walk(drawn(rng, 9), 8, text="a random graph of 9 nodes")
    yield case(5000, run=long_chain, expected=IN_ORDER, text="a chain of 5,000 nodes")
    yield walk(drawn(rng, 14), 13, hidden=True)
    yield case(3000, run=long_chain, expected=IN_ORDER, hidden=True)
