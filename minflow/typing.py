"""Annotations for job functions: `import minflow.typing as tp`. The classes are in `job/typing.py`."""

from .core.messages.suggestions import missing_names as _missing_names
from .job.typing import Bundle as Bundle
from .job.typing import Callback as Callback
from .job.typing import Dict as Dict
from .job.typing import List as List
from .job.typing import ListListNumpy as ListListNumpy
from .job.typing import ListNumpy as ListNumpy
from .job.typing import Numpy as Numpy
from .job.typing import Tuple as Tuple

__getattr__ = _missing_names("flow.typing", globals())
