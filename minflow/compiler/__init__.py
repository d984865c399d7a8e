"""From a trace to results: passes, a plan with all values in one arena, and the executor that runs it.

Must not import any platform; kernels are attributes of ops. Read next: `uses.py`, `passes/`, then `plan.py`.
"""

from ..core.messages.suggestions import missing_names as _missing_names

__getattr__ = _missing_names("flow.compiler", globals())
globals().pop("__dir__")  # whose presence would list this package among the namespaces of `flow`
