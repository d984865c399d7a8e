"""docs/onnx.md lists what can be exported: every layer and loss is exported, checked, and run in onnxruntime."""

from tests.onnx import page


def test_page_matches_the_package():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "python -m tests.onnx.page"
