"""Draw any ONNX file: its contents, as records, in the explorer's view. Read next: `view.py`, then `contents.py`."""
