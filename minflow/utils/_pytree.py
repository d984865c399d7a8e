"""`flow.utils._pytree`: map functions over nested containers of tensors, such as dicts of lists.

A leaf is anything that is not a registered container: tuples, lists, dicts, OrderedDicts, defaultdicts, deques and
named tuples are. Read next: `../func.py`, whose functions take such trees.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Any, NamedTuple

from ..core.base.errors import CallError
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import fail

PyTree = Any


class NodeDef(NamedTuple):
    """How a container is taken apart and rebuilt. flatten: container -> (children, context)."""

    flatten_fn: Callable
    unflatten_fn: Callable
    flatten_with_keys_fn: Callable | None = None


class Key(NamedTuple):
    """Entry of a path: an index, a key or the name of a field, as it is written."""

    key: Any
    text: str

    def __str__(self) -> str:
        return self.text


def SequenceKey(idx: int) -> Key:
    """The entry of an index of a list or tuple."""
    return Key(idx, f"[{idx!r}]")


def MappingKey(key: Any) -> Key:
    """The entry of a key of a dict."""
    return Key(key, f"[{key!r}]")


def GetAttrKey(name: str) -> Key:
    """The entry of a field of a named tuple or another object."""
    return Key(name, f".{name}")


def mapping_parts(tree: Any) -> tuple[list, Any]:
    return list(tree.values()), list(tree)


def _dict_flatten_with_keys(tree: Any) -> tuple[list[tuple[Key, Any]], list]:
    """The flatten_with_keys_fn of a dict: ([(key, child), ...], keys)."""
    return [(MappingKey(key), child) for key, child in tree.items()], list(tree)


SUPPORTED_NODES: dict[type, NodeDef] = {
    tuple: NodeDef(lambda tree: (list(tree), None), lambda children, context: tuple(children)),
    list: NodeDef(lambda tree: (list(tree), None), lambda children, context: list(children)),
    dict: NodeDef(mapping_parts, lambda children, keys: dict(zip(keys, children))),
    OrderedDict: NodeDef(mapping_parts, lambda children, keys: OrderedDict(zip(keys, children))),
    defaultdict: NodeDef(
        lambda tree: (list(tree.values()), (tree.default_factory, list(tree))),
        lambda children, context: defaultdict(context[0], zip(context[1], children)),
    ),
    deque: NodeDef(lambda tree: (list(tree), tree.maxlen), lambda children, maxlen: deque(children, maxlen)),
    namedtuple: NodeDef(lambda tree: (list(tree), type(tree)), lambda children, kind: kind(*children)),  # type: ignore[dict-item]
}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list, Any]],
    unflatten_fn: Callable[[Iterable, Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:
    """Make a class a container. flatten_fn: object -> (children, context).  unflatten_fn: (children, context) ->
    object.
    """
    if cls in SUPPORTED_NODES:
        fail(CallError, f"register_pytree_node: {cls.__name__} is registered already", "another class", cls=cls)
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def node_type(tree: Any) -> Any:
    """The registered class of a container; None for a leaf."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    return namedtuple if isinstance(tree, tuple) and hasattr(tree, "_fields") else None


_get_node_type = node_type


class TreeSpec:
    """The structure of a tree: the class and context of each container, without the leaves."""

    def __init__(self, type: Any, context: Any = None, children_specs: Iterable[TreeSpec] = ()):
        self.type, self.context, self._children = type, context, list(children_specs)
        self.num_children = len(self._children)
        self.num_leaves: int = sum(child.num_leaves for child in self._children) if type is not None else 1
        self.num_nodes: int = 1 + sum(child.num_nodes for child in self._children)

    def is_leaf(self) -> bool:
        """True if the tree is a single leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self._children[index]

    def unflatten(self, leaves: Iterable) -> Any:
        """Rebuild a tree of this structure."""
        return tree_unflatten(leaves, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_nodes))

    def __repr__(self) -> str:
        if self.is_leaf():
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self._children})"


class LeafSpec(TreeSpec):
    """The structure of a single leaf."""

    def __init__(self) -> None:
        super().__init__(None)


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """True for anything that is not a registered container, or for which `is_leaf(tree)` is true."""
    return node_type(tree) is None or (is_leaf is not None and is_leaf(tree))


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list, TreeSpec]:
    """Return (leaves in order, structure)."""
    if tree_is_leaf(tree, is_leaf):
        return [tree], LeafSpec()
    kind = node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    parts = [tree_flatten(child, is_leaf) for child in children]
    return [leaf for leaves, _ in parts for leaf in leaves], TreeSpec(kind, context, [spec for _, spec in parts])


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> Any:
    """Rebuild a tree from its leaves and structure. Raises CallError unless there is a leaf for each place."""
    listed = list(leaves)
    if not isinstance(treespec, TreeSpec) or len(listed) != treespec.num_leaves:
        have = getattr(treespec, "num_leaves", "none")
        what = f"tree_unflatten: {len(listed)} leaves for a structure with {have}"
        fail(CallError, what, "leaves, spec = tree_flatten(tree); tree_unflatten(leaves, spec)", treespec=treespec)
    return rebuild(iter(listed), treespec)


def rebuild(leaves: Any, spec: TreeSpec) -> Any:
    if spec.is_leaf():
        return next(leaves)
    return SUPPORTED_NODES[spec.type].unflatten_fn([rebuild(leaves, child) for child in spec.children()], spec.context)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


tree_iter = tree_leaves


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure without the leaves."""
    return tree_flatten(tree, is_leaf)[1]


def flatten_up_to(spec: TreeSpec, tree: Any) -> list:
    """The subtrees of `tree` at the leaves of a structure that is a prefix of it."""
    if spec.is_leaf():
        return [tree]
    children, context = SUPPORTED_NODES[spec.type].flatten_fn(tree) if node_type(tree) is spec.type else ([], None)
    if isinstance(tree, dict) and isinstance(spec.context, list) and {*tree} == {*spec.context}:
        children, context = [tree[key] for key in spec.context], spec.context  # in the order of the first tree
    if len(children) != spec.num_children or context != spec.context:
        what = f"tree_map: the trees differ: a {spec.type.__name__} of {spec.num_children} in the first"
        fail(CallError, what, "trees of the same structure, and dicts of the same keys", other=tree)
    return [leaf for child, part in zip(spec.children(), children) for leaf in flatten_up_to(child, part)]


def tree_map(func: Callable, tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Return a tree of func(leaf), or of func(leaf, leaves of `rests` at the same place, ...)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return rebuild(map(func, leaves, *[flatten_up_to(spec, rest) for rest in rests]), spec)


def tree_map_only(
    type_or_types_or_pred: Any, func: Callable, tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """tree_map of the leaves of some types, or for which a predicate is true; the others stay."""
    kinds = type_or_types_or_pred
    chosen = kinds if not isinstance(kinds, type | tuple | UnionType) else lambda leaf: isinstance(leaf, kinds)
    return tree_map(lambda leaf: func(leaf) if chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """True if pred(leaf) is true for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """True if pred(leaf) is true for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[tuple, Any]], TreeSpec]:
    """Return ([(path, leaf), ...], structure). path: a tuple of SequenceKey, MappingKey and GetAttrKey."""
    return list(paths(tree, (), is_leaf)), tree_structure(tree, is_leaf)


def paths(tree: Any, path: tuple, is_leaf: Any) -> Iterable[tuple[tuple, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[node_type(tree)]
    if node.flatten_with_keys_fn is not None:
        pairs = node.flatten_with_keys_fn(tree)[0]
    else:
        children = node.flatten_fn(tree)[0]
        fields = getattr(tree, "_fields", None)
        keys: Any = map(SequenceKey, range(len(children)))
        keys = map(MappingKey, tree) if isinstance(tree, dict) else map(GetAttrKey, fields) if fields else keys
        pairs = zip(keys, children)
    for key, child in pairs:
        yield from paths(child, (*path, key), is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[tuple, Any]]:
    """[(path, leaf), ...]; see tree_flatten_with_path."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable, tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """tree_map of func(path, leaf, ...)."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    return rebuild(
        map(func, *(zip(*pairs) if pairs else ((), ())), *[flatten_up_to(spec, rest) for rest in rests]), spec
    )


def keystr(kp: Iterable) -> str:
    """The text of a path, such as "['layers'][0]"."""
    return "".join(map(str, kp))


__all__ = ["GetAttrKey", "LeafSpec", "MappingKey", "PyTree", "SequenceKey", "TreeSpec", "keystr",
           "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_flatten_with_path",
           "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map",
           "tree_map_only", "tree_map_with_path", "tree_structure", "tree_unflatten"]  # fmt: skip
__getattr__ = _name_hints("flow.utils._pytree", globals())
