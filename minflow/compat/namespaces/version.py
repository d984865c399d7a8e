"""`flow.version`: the version of minflow; those of CUDA and ROCm are None."""

from ...core.base.version import __version__ as __version__
from ...core.messages.suggestions import missing_names as _missing_names
from ..torch_version import TorchVersion as TorchVersion

cuda = hip = xpu = rocm = None
debug = False
git_version = "unknown"

__all__ = ["TorchVersion", "__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
__getattr__ = _missing_names("flow.version", globals())
