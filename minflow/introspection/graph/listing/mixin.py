"""The display methods of a graph, which `nn.Graph` gets when it is first inspected.

Read next: `text.py` (print), `build_log.py` (`debug`), `accessors.py` (values), `reports.py` (records for views).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ....core.base.display import Display
from ....diagnosis.failure import RecordedGraph, register_build_reader
from ....nn.graph.compiled import compile_graph
from . import text
from .accessors import GraphAccessors
from .build_failure import report_failed_build as report_failed_build
from .build_log import BuildLog, set_debug_options
from .reports import GraphReports, require_compiled

if TYPE_CHECKING:
    from ....views.text.reports import PlanReport, Report


class GraphListing(GraphAccessors, GraphReports):
    """Members of nn.Graph for printing; with those for values and reports."""

    def debug(self, v_level: int = 0, *, ranks: Any = None, max_py_stack_depth: int = 2, **other: Any) -> None:
        """Print the progress of the next build: 0 phases and times, 1 modules, 2 operations, 3 also their source lines;
        -1 turns it off. open=True, or names: list the parts of composite operations below them. See `build_log.py`.
        """
        set_debug_options(self, v_level, ranks, max_py_stack_depth, other)

    @property
    def plan(self: Any) -> PlanReport:
        """The calls of a step in running order: shapes, platform of the kernel, position in the arena, source line, and
        for a timed call (see `profile`) microseconds, GFLOP/s or GB/s and their share of the processor's peak, which is
        measured the first time (half a second). `graph.plan.slowest(10)` has the ten slowest.

        Platforms: "compiled" (kernels compiled for this processor), "numpy" (fast NumPy code), "reference" (the code in
        the definition of the op). `flow.kernels` lists those of eager code.
        """
        from .roofline import plan_report

        compiled = require_compiled(self)
        return plan_report(self.name, compiled.parts, compiled.timing)

    def explain_sbp(self: Any, name: Any) -> Report:
        """Why an operation on global tensors has its sbp: its rows (SBP signatures), the bytes that each rank would
        send to box the inputs to each of them, and which one was chosen and why.

        name: that of an operation in a listing, such as "model.fc1-matmul-0"; or an op, such as "matmul", for all of
        them. Raises GraphError for another name, for a graph without global tensors, and before the first call.
        """
        from ....views.text.reports import Report
        from ..ranks.sbp_choices import sbp_calls

        return Report(sbp_calls(self, name))

    def profiled(self: Any, compiled: Any, arrays: list) -> Any:
        """Run a call; time its operations and record its threads."""
        from .profiling import profiled_call

        return profiled_call(self, compiled, arrays)

    def threads(self: Any) -> Report:
        """Timeline of the threads in the call timed by `graph.profile()`: a lane for each thread, a bar for each chunk
        of work that it took, and its idle time, in the run with the median duration. Threads inside NumPy's own
        matrix products are not recorded.
        """
        from .threads import threads_report

        return threads_report(self)

    def rank_timeline(self: Any) -> Report:
        """Timeline of all ranks in the last call timed by `graph.profile()`: a lane for each rank, communication with
        its waits apart from computation, and the bytes that boxing sent. All ranks call it.
        """
        from ....views.text.reports import Report
        from ..ranks.timeline import rank_lanes

        return Report(rank_lanes(self))

    def __repr__(self: Any) -> str:
        return text.listing_text(self, self.repr_style)

    def _repr_mimebundle_(self: Any, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ....views.html.page import with_listing

        return with_listing(Display._repr_mimebundle_(self, include, exclude))


def attach(kind: type) -> None:
    """Give a class the members of GraphListing in place of `nn.graph.Inspected`."""
    for part in (GraphAccessors, GraphReports, GraphListing):
        for name, member in vars(part).items():
            if name in vars(kind) and name not in ("__module__", "__doc__", "__dict__", "__weakref__"):
                setattr(kind, name, member)


@register_build_reader(compile_graph.__code__)
def recorded_graph(own: Mapping[str, Any]) -> RecordedGraph:
    """The part of a graph that a failed build recorded, for the card of its error."""
    build = own["build"]
    log = build.observer if isinstance(build.observer, BuildLog) else BuildLog(build.graph, build)
    return RecordedGraph(build.graph.name, build.trace.graph, log.source_name)
