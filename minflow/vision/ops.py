"""What is done with boxes of images. What it computes stands in `core/functions/judging.py`."""

from ..core.functions import nms as nms
from ..core.messages.near import missing_names as _missing_names

__getattr__ = _missing_names("flow.vision.ops", globals())
