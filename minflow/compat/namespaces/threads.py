"""Process-wide settings for threads, precision, determinism and random numbers, such as `flow.set_num_threads`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core.base.dtypes import PRECISIONS, MatmulPrecision
from ...core.base.errors import OutOfRangeError
from ...core.base.optional import install_command
from ...core.host.blas import on_all_threads, set_threads
from ...core.random import get_rng_state, set_rng_state
from ...core.source_location import fail, warn

MAX_THREADS = 1024  # upper limit of threads, above the core count of any supported machine


class Settings:
    """Stored settings. deterministic: ignored, since every kernel is deterministic."""

    threads: int | None = None
    deterministic = False
    warn_only = False


def check_count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        what = f"{name}: the number of threads must be an integer of at least 1"
        fail(OutOfRangeError, what, f"flow.{name}(1)", value=value)
    return value


def get_num_threads() -> int:
    """Return the number of threads of a matrix product.

    It is the number set, else OPENBLAS_NUM_THREADS, MKL_NUM_THREADS or OMP_NUM_THREADS, else the number of cores.
    """
    env_counts = [os.environ.get(f"{name}_NUM_THREADS", "") for name in ("OPENBLAS", "MKL", "OMP")]
    return Settings.threads or next((int(n) for n in env_counts if n.isdigit() and int(n)), os.cpu_count() or 1)


def set_num_threads(num: int) -> None:
    """Use `num` threads in matrix products of all Python threads. Requires the package threadpoolctl.

    Without it, warns that OPENBLAS_NUM_THREADS must be set before Python starts. Raises OutOfRangeError if `num` is not
    between 1 and 1024.
    """
    Settings.threads = check_count("set_num_threads", num)
    if num > MAX_THREADS:
        what = f"set_num_threads: the number of threads must be at most {MAX_THREADS}, got {num}"
        fail(OutOfRangeError, what, "os.cpu_count() is usual", num=num)
    try:
        import threadpoolctl  # type: ignore[import-not-found]
    except ImportError:
        warn(
            "set_num_threads: numpy's BLAS reads the number of threads only when it starts",
            f"OPENBLAS_NUM_THREADS={num} in the environment, before Python; or {install_command('threadpoolctl')}",
            num=num,
        )
        return
    on_all_threads(threadpoolctl.threadpool_limits, num)  # also of other libraries; not within a kernel on one thread
    set_threads(num)


def get_num_interop_threads() -> int:
    """Return 1: ops run one after the other."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Do nothing: ops run one after the other."""
    check_count("set_num_interop_threads", num)


def set_float32_matmul_precision(precision: str) -> None:
    """Compute float32 products on a GPU in float32 ("highest") or TF32 ("high", "medium"). The CPU uses float32."""
    if precision not in PRECISIONS:
        what = "set_float32_matmul_precision: unknown precision"
        fail(OutOfRangeError, what, ", ".join(PRECISIONS), precision=precision)
    MatmulPrecision.float32 = precision


def get_float32_matmul_precision() -> str:
    """Return the precision of float32 products on a GPU, initially "highest"."""
    return MatmulPrecision.float32


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Store the setting. It has no effect: a program with the same seed always gives the same bits."""
    Settings.deterministic, Settings.warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Return the stored setting."""
    return Settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return the stored setting."""
    return Settings.deterministic and Settings.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Store the mode: 0 "default", 1 "warn" or 2 "error". It has no effect."""
    use_deterministic_algorithms(debug_mode not in (0, "default"), warn_only=debug_mode in (1, "warn"))


def get_deterministic_debug_mode() -> int:
    """Return the stored mode as a number."""
    return Settings.deterministic * (2 - Settings.warn_only)


def set_flush_denormal(mode: bool) -> bool:
    """Return False: NumPy does not flush denormals (below 1e-38) to zero."""
    return False


def _assert(condition: Any, message: str = "") -> None:
    """Run `assert condition, message`."""
    assert condition, message


@contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, _caller: str = "", _devices_kw: str = "", device_type: str = "cuda"
) -> Iterator[None]:
    """Restore the state of the default generator, which all devices share, at the end of a `with` block."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
