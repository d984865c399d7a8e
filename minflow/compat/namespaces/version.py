"""`flow.version`: the version of minflow; those of CUDA and ROCm are None."""

from ...core.messages.suggestions import missing_names as _missing_names

__version__ = "0.1.0"
cuda = hip = xpu = rocm = None
debug = False
git_version = "unknown"

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
__getattr__ = _missing_names("flow.version", globals())
