"""Models other than image models: so far a small GPT for text. Read next: `gpt.py`."""

from ..core.messages.suggestions import name_hints as _name_hints
from .gpt import GPT, GPTConfig

__all__ = ["GPT", "GPTConfig"]

__getattr__ = _name_hints("flow.models", globals())
