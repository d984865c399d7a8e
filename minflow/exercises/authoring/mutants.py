"""Mutants of a solution: programs with one small mistake, which the check should refuse."""

import ast
import copy

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.Mod: ast.FloorDiv,
}


def mutants(source: str):
    """Yield (the change, source) for each mutant."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    inside = docstrings(tree) | {id(one) for node in nodes for one in annotations(node)}
    for i, node in enumerate(nodes):
        if id(node) in inside:
            continue
        for what, change in changes(node):
            other = copy.deepcopy(tree)
            if change(list(ast.walk(other))[i]) is not False:
                text = ast.unparse(ast.fix_missing_locations(other))
                if text != ast.unparse(tree):
                    yield f"line {getattr(node, 'lineno', 0)}: {what}", text + "\n"


def changes(node):
    """Yield (description, function that makes the change or returns False) for each change of this node alone."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield (
            f"other comparison in {ast.unparse(node)}",
            lambda one: one.ops.__setitem__(0, COMPARISONS[type(one.ops[0])]()),
        )
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield f"other operator in {ast.unparse(node)}", lambda one: setattr(one, "op", OPERATORS[type(one.op)]())
        if not isinstance(node.op, ast.Add | ast.Mult):
            yield f"swapped sides in {ast.unparse(node)}", swap_sides
    if isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        yield f"other operator in {ast.unparse(node)}", lambda one: setattr(one, "op", OPERATORS[type(one.op)]())
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield f"{node.value} + 1", lambda one: setattr(one, "value", one.value + 1)
    if isinstance(node, ast.Call) and len(node.args) > 1 and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
        yield f"swapped arguments in {ast.unparse(node)}", swap_arguments
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield f"no minus in {ast.unparse(node)}", lambda one: setattr(one, "op", ast.UAdd())
    for field in ("body", "orelse"):
        lines = getattr(node, field, None)
        for place in range(len(lines) if isinstance(lines, list) else 0):
            if isinstance(lines[place], ast.Expr) and isinstance(lines[place].value, ast.Constant):
                continue  # a docstring
            if not isinstance(lines[place], ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Return):
                text = ast.unparse(lines[place]).split("\n")[0]
                yield f"without {text}", lambda one, field=field, place=place: drop(getattr(one, field), place)


def swap_sides(one):
    one.left, one.right = one.right, one.left


def swap_arguments(one):
    one.args[0], one.args[1] = one.args[1], one.args[0]


def drop(lines, place):
    lines[place] = ast.Pass()


def docstrings(tree):
    """Return ids of nodes that are texts or types."""
    return {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for part in (node, node.value)
    }


def annotations(node):
    parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    parts += getattr(node, "decorator_list", [])
    return [one for part in parts if part is not None for one in ast.walk(part)]
