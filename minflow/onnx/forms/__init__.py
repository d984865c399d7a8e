"""The forms of our ops in ONNX, one file for each family. Importing this lists all of them in FORMS."""

from . import (
    arithmetic as arithmetic,
)
