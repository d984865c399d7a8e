"""`flow.onnx`: export a traced graph to ONNX, the exchange format of other runtimes, and draw any ONNX file.

The packages `onnx` and `onnxruntime` are an extra: `pip install "minflow-learn[onnx]"`.
Read next: `file.py`, which writes; `reading/view.py`, which draws.
"""

from ..core.messages.suggestions import name_hints as _name_hints
from .file import ONNXProgram, export, is_in_onnx_export
from .options import OperatorExportTypes, TrainingMode
from .reading.view import OnnxView, show

__all__ = ["ONNXProgram", "OnnxView", "OperatorExportTypes", "TrainingMode", "export", "is_in_onnx_export", "show"]

__getattr__ = _name_hints("flow.onnx", globals())
