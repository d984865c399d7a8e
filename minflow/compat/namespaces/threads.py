"""How exact and on how many threads: what programs set before they begin."""

from __future__ import annotations

import os
from typing import Any

from ...core.base.errors import OutOfRangeError
from ...core.base.optional import install_command
from ...core.source_location import fail, warn

MOST = 1024  # threads: more than any machine that minflow runs on
PRECISIONS = ("highest", "high", "medium")


class Settings:
    """What was set. deterministic: accepted, since every kernel is."""

    threads: int | None = None
    precision = "highest"
    deterministic = False
    warn_only = False


def check_count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        fail(
            OutOfRangeError,
            f"{name}: the number of threads is a whole number of 1 or more",
            f"flow.{name}(1)",
            value=value,
        )
    return value


def get_num_threads() -> int:
    """How many threads a matrix product uses: what was set, else what OPENBLAS_NUM_THREADS or OMP_NUM_THREADS says,
    else the number of cores."""
    said = [os.environ.get(f"{name}_NUM_THREADS", "") for name in ("OPENBLAS", "MKL", "OMP")]
    return Settings.threads or next((int(n) for n in said if n.isdigit() and int(n)), os.cpu_count() or 1)


def set_num_threads(num: int) -> None:
    """Use `num` threads in matrix products: by the package threadpoolctl, where it is installed. Without it the number
    must be in OPENBLAS_NUM_THREADS before Python starts, which a warning says."""
    Settings.threads = check_count("set_num_threads", num)
    if num > MOST:
        fail(OutOfRangeError, f"set_num_threads: {num} threads", f"at most {MOST}; os.cpu_count() is usual", num=num)
    try:
        import threadpoolctl  # type: ignore[import-not-found]
    except ImportError:
        warn(
            "set_num_threads: numpy's BLAS reads its number of threads when it starts",
            f"OPENBLAS_NUM_THREADS={num} in the environment, before Python; or {install_command('threadpoolctl')}",
            num=num,
        )
        return
    threadpoolctl.threadpool_limits(num)


def get_num_interop_threads() -> int:
    """Operations run one after the other: 1."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Accepted: operations run one after the other."""
    check_count("set_num_interop_threads", num)


def set_float32_matmul_precision(precision: str) -> None:
    """ "highest", "high" or "medium": kept; products of float32 are always computed in float32."""
    if precision not in PRECISIONS:
        fail(
            OutOfRangeError,
            "set_float32_matmul_precision: no such precision",
            ", ".join(PRECISIONS),
            precision=precision,
        )
    Settings.precision = precision


def get_float32_matmul_precision() -> str:
    """What was set: "highest" at first."""
    return Settings.precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted: the same program with the same seed gives the same bits, always."""
    Settings.deterministic, Settings.warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What was set."""
    return Settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What was set."""
    return Settings.deterministic and Settings.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 "default", 1 "warn", 2 "error": kept."""
    use_deterministic_algorithms(debug_mode not in (0, "default"), warn_only=debug_mode in (1, "warn"))


def get_deterministic_debug_mode() -> int:
    """What was set, as a number."""
    return Settings.deterministic * (2 - Settings.warn_only)


def set_flush_denormal(mode: bool) -> bool:
    """False: numpy keeps numbers below 1e-38 as they are."""
    return False


def _assert(condition: Any, message: str = "") -> None:
    """assert condition, message"""
    assert condition, message
