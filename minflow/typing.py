"""Annotations for job functions: `import minflow.typing as tp`. The classes are in `job/typing.py`."""

from .core.messages.suggestions import missing_names as _missing_names
from .job.typing import (
    Bundle as Bundle,
    Callback as Callback,
    Dict as Dict,
    List as List,
    ListListNumpy as ListListNumpy,
    ListNumpy as ListNumpy,
    Numpy as Numpy,
    Tuple as Tuple,
)

__getattr__ = _missing_names("flow.typing", globals())
