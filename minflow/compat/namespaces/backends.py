"""Flags of the libraries behind PyTorch's kernels: `backends.cudnn.benchmark = True` is stored and ignored.

minflow does not use these libraries, so each of them reports that it is not available. On a GPU, `allow_tf32` of
`backends.cuda.matmul` and of `backends.cudnn` has an effect. All kernels give the same bits on each run.
"""

from __future__ import annotations

import warnings as _warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core.base.dtypes import MatmulPrecision
from ...core.messages.suggestions import missing_name as _missing_name_error, missing_names as _missing_names


class BackendFlags:
    """Attributes of one library, stored and otherwise ignored."""

    __path__: tuple[str, ...] = ()  # so that `from minflow.backends.cuda import nothing` gets an error with a hint
    __spec__ = None

    def __init__(self, name: str, version: Any = None, **values: Any):
        self.__name__ = f"{__name__.partition('.')[0]}.backends.{name}"
        self.name, self.number, self.initial = name, version, values
        vars(self).update(values)

    def __getattr__(self, name: str) -> Any:
        raise _missing_name_error(f"flow.backends.{vars(self).get('name')}", name, dir(self))

    def is_available(self) -> bool:
        """Return False: minflow does not use this library."""
        return False

    is_built = is_available

    def version(self) -> Any:
        """Return the version of the library that was given to `__init__`."""
        return self.number

    @contextmanager
    def flags(self, **values: Any) -> Iterator[None]:
        """Set flags for a `with` block."""
        before = {name: getattr(self, name, None) for name in values}
        self.set_flags(**values)
        try:
            yield
        finally:
            self.set_flags(**before)

    def set_flags(self, **values: Any) -> None:
        """Set several flags."""
        for name, value in values.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"<flags of {self.name}, ignored>"


class ConvolutionFlags(BackendFlags):
    """Flags of convolutions on GPUs, of which `allow_tf32` has an effect."""

    @property
    def allow_tf32(self) -> bool:
        """True if float32 images and filters may be rounded to TF32."""
        return MatmulPrecision.convolutions_in_tf32

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        MatmulPrecision.convolutions_in_tf32 = bool(value)


cudnn = ConvolutionFlags(
    "cudnn",
    enabled=True,
    benchmark=False,
    deterministic=False,
    benchmark_limit=10,
    rnn=BackendFlags("cudnn.rnn"),
    conv=BackendFlags("cudnn.conv"),
    CUDNN_TENSOR_DTYPES=(),
)
mps, mkl, mkldnn = BackendFlags("mps"), BackendFlags("mkl"), BackendFlags("mkldnn", enabled=False)
openmp, opt_einsum = BackendFlags("openmp"), BackendFlags("opt_einsum", enabled=False, strategy=None)
compiler = BackendFlags(
    "compiler",
    suppress_errors=False,
    verbose=False,
    cache_size_limit=8,
    triton=BackendFlags("compiler.triton"),
    cpp=BackendFlags("compiler.cpp"),
)


class CudaFlags(BackendFlags):
    """Flags of matrix products and attention (`backends.cuda`)."""

    def flash_sdp_enabled(self) -> bool:
        return False

    mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled

    def math_sdp_enabled(self) -> bool:
        """Return True: attention is computed as products and a softmax."""
        return True

    def enable_flash_sdp(self, enabled: bool) -> None:
        """Do nothing."""

    enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = enable_flash_sdp

    def preferred_linalg_library(self, backend: str | None = None) -> str:
        """Return "default": LAPACK, whatever the argument."""
        return "default"

    preferred_blas_library = preferred_linalg_library

    def sdp_kernel(
        self,
        enable_flash: bool = True,
        enable_math: bool = True,
        enable_mem_efficient: bool = True,
        enable_cudnn: bool = True,
    ) -> Any:
        """Context manager that does nothing."""
        return self.flags()


class MatmulFlags(BackendFlags):
    """Flags of matrix products on GPUs, of which `allow_tf32` and its synonym `fp32_precision` have an effect."""

    @property
    def allow_tf32(self) -> bool:
        """True if float32 factors may be rounded to TF32. `flow.set_float32_matmul_precision` is the same setting."""
        return MatmulPrecision.tf32()

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        MatmulPrecision.float32 = "high" if value else "highest"

    @property
    def fp32_precision(self) -> str:
        """ "tf32" or "ieee", which is float32."""
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        self.allow_tf32 = value == "tf32"


cuda = CudaFlags(
    "cuda",
    matmul=MatmulFlags(
        "cuda.matmul", allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True
    ),
    cufft_plan_cache=BackendFlags("cufft", max_size=0, size=0),
)

__all__ = ["BackendFlags", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]
_missing_name = _missing_names("flow.backends", globals())


def __getattr__(name: str) -> Any:
    if name == "Switches":
        _warnings.warn("backends.Switches is now backends.BackendFlags", DeprecationWarning, stacklevel=2)
        return BackendFlags
    return _missing_name(name)
