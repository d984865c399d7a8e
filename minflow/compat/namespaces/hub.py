"""`flow.hub` and `utils.model_zoo`: minflow downloads nothing; the error for each name says how to load a file."""

from ...core.messages.suggestions import missing_names as _missing_names

__all__: list[str] = []
__getattr__ = _missing_names("flow.hub", globals())
