"""Any ONNX file as a picture: what it holds, that as records, and the explorer's view of them. Read next: `view.py`,
then `contents.py`."""
