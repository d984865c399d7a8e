"""`flow.utils`: the room of `utils.data`."""

from . import data

__all__ = ["data"]
