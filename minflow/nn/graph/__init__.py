"""nn.Graph: a program that is traced and compiled once, and run many times.

`graph.py` defines the class, `build.py` traces a `build`, `key.py` makes the key of a plan, `compiled.py` runs a
compiled plan, `state.py` saves and resumes. `introspection/graph/` inspects it, and is attached to the class only here,
when it is first used: a call of a graph enters none of its files, unless the build is logged or fails.
Read next: `graph.py`.
"""

from typing import TYPE_CHECKING, Any

from ...views.records.recorders import recorder
from . import config
from .build import Build, Observer
from .config import GraphConfig as GraphConfig, GraphModule as GraphModule
from .graph import RunningGraph, reserve

INSPECTION = (
    "changes compare compare_eager debug explain_sbp frozen grads keep lanes lr memory plan profile profiled "
    "rank_timeline stages threads timeline tree values why __repr__ _repr_mimebundle_"
).split()


class Inspected:
    """A member of `GraphListing` that is not imported yet. The first use of one imports all."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, graph: Any, kind: type | None = None) -> Any:
        from ...introspection.graph.listing.mixin import attach

        attach(self.owner)
        return vars(self.owner)[self.name].__get__(graph, kind)


if TYPE_CHECKING:
    from ...introspection.graph.listing.mixin import GraphListing
else:
    GraphListing = type("GraphListing", (), {name: Inspected() for name in INSPECTION})


class Graph(GraphListing, RunningGraph):
    __doc__ = RunningGraph.__doc__
    _level, _debug = -1, dict[str, Any]()  # arguments of `debug`

    def __init__(
        self,
        *,
        debug_v_level: int = -1,
        debug_ranks: int | list[int] | None = None,
        debug_max_py_stack_depth: int = 2,
        debug_only_user_py_stack: bool = True,
        debug_op_repr_with_py_stack: bool = False,
    ):
        super().__init__()
        if debug_v_level != -1:
            self.debug(
                debug_v_level,
                ranks=debug_ranks,
                max_py_stack_depth=debug_max_py_stack_depth,
                only_user_py_stack=debug_only_user_py_stack,
                op_repr_with_py_stack=debug_op_repr_with_py_stack,
            )

    def observer(self, build: Build) -> Observer:
        """The observer of a build, which logs it if `debug` says so."""
        if self._level < 0:
            return QuietBuild(self, build)
        from ...introspection.graph.listing.build_log import BuildLog

        return BuildLog(self, build)


class QuietBuild(Observer):
    """The observer of a build that is not logged, unless it fails."""

    traced_whole = False

    def __init__(self, graph: Graph, build: Build):
        self.graph, self.build = graph, build

    def traced(self) -> None:
        self.traced_whole = True

    def failed(self, error: BaseException) -> None:
        from ...introspection.graph.listing.mixin import report_failed_build

        report_failed_build(self.graph, self.build, error)


@recorder(Graph)
def graph_record(graph: Graph, **options: Any) -> Any:
    from ...introspection.graph.listing.reports import picture_record

    return picture_record(graph, **options)


reserve(Graph, "_level", "_debug")
graph_block = graph_config = config  # names of this module in OneFlow
