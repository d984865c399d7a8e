"""`flow.onnx`: a traced graph as an ONNX file, the exchange format that other runtimes read.

The packages `onnx` and `onnxruntime` are an extra: `pip install "minflow[onnx]"`.
Read next: `file.py`, `model.py`, `builder.py`, then one family of `forms/`.
"""

from ..core.messages.near import name_hints as _name_hints
from .file import export

__all__ = ["export"]

__getattr__ = _name_hints("flow.onnx", globals())
