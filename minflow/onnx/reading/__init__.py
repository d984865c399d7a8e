"""Any ONNX file as a picture: what it says as records, and the explorer's view of them. Read next: `records.py`, then
`view.py`."""
