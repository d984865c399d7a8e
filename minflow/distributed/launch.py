"""Launch a program on several ranks: `minflow launch -n 4 program.py`, `python -m minflow.distributed.launch`.

    minflow launch -n 4 train.py --epochs 3            # processes, by mpiexec of the environment
    minflow launch -n 4 --virtual train.py             # threads of one process, without MPI
    python -m minflow.distributed.launch --nproc_per_node 4 train.py

The options are those of `oneflow.distributed.launch`. Each line of output begins with its rank. An error on one rank
ends all of them. Read next: `processes/supervisor.py`, `virtual.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn, TextIO

from ..core.base.errors import MinflowError, RankError
from ..core.context import current_context
from ..core.messages.suggestions import missing_names
from .places import cores, is_users
from .processes.board import VARIABLE, hold_pipe
from .processes.mpiexec import OVERSUBSCRIBE, launcher, library_of, version_of
from .processes.supervisor import supervise
from .ranked import RankedOutput, ranked_environment, ranked_main
from .virtual import virtual_ranks
from .world import launched_rank, launched_size

WORKER = "--minflow-rank"  # the first argument of a process that `launch` has started
FAILED = 1
# options of torch.distributed.run that say how machines find each other, or how its own processes work
RENDEZVOUS = (
    "rdzv_backend",
    "rdzv_endpoint",
    "rdzv_id",
    "rdzv_conf",
    "local_addr",
    "role",
    "monitor_interval",
    "start_method",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    ranks = "--nproc_per_node", "--nproc-per-node"
    parser.add_argument("-n", *ranks, dest="ranks", default="1", metavar="N", help="ranks on each machine (1), or auto")
    parser.add_argument("--virtual", action="store_true", help="threads of one process instead of processes")
    parser.add_argument("--nnodes", default="1", help="number of machines (1)")
    parser.add_argument("--node_rank", "--node-rank", type=int, default=0, help="the index of this machine (0)")
    parser.add_argument("--master_addr", "--master-addr", default="127.0.0.1", help="set as MASTER_ADDR")
    parser.add_argument("--master_port", "--master-port", type=int, default=29500, help="set as MASTER_PORT")
    parser.add_argument("--logdir", help="folder of the logs of --redirect_stdout_and_stderr (log)")
    parser.add_argument("--redirect_stdout_and_stderr", action="store_true", help="write output to LOGDIR/rank_N.log")
    parser.add_argument("--no_python", action="store_true", help="run the program itself, not by Python")
    parser.add_argument("-m", "--module", action="store_true", help="the program is the name of a module")
    parser.add_argument("--compat", action="store_true", help="import oneflow is minflow; torch, unless installed")
    parser.add_argument("--torch", action="store_true", help="--compat, and import torch is minflow even if installed")
    parser.add_argument("--max_restarts", "--max-restarts", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--standalone", action="store_true", default=None, help=argparse.SUPPRESS)
    for name in RENDEZVOUS:
        parser.add_argument(f"--{name}", f"--{name.replace('_', '-')}", help=argparse.SUPPRESS)
    parser.add_argument("program", help="the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def launch(options: argparse.Namespace) -> int:
    """Run a program on several ranks; return the exit code."""
    options.ranks = number_of_ranks(options.ranks)
    if options.nnodes not in ("1", "1:1"):
        raise RankError(
            f"minflow launch starts ranks on one machine, and --nnodes is {options.nnodes}",
            hint=f"mpiexec -n {2 * options.ranks} -hosts a,b {sys.executable} {options.program}: "
            "a program that mpiexec or srun starts has its ranks, too",
        )
    if options.max_restarts:
        raise RankError(
            f"--max_restarts is {options.max_restarts}, and the ranks are not started again after an error",
            hint="leave it out, save checkpoints, and start the program again from the last one",
        )
    if unused := [f"--{name}" for name in ("standalone", *RENDEZVOUS) if getattr(options, name) is not None]:
        print(f"minflow: without effect, since all ranks are on one machine: {', '.join(unused)}", file=sys.stderr)
    if options.node_rank:
        raise RankError(f"--node_rank is {options.node_rank}, and there is one machine", hint="leave it out")
    if options.logdir and not options.redirect_stdout_and_stderr:
        raise RankError("--logdir without --redirect_stdout_and_stderr has no effect", hint="add it")
    if options.no_python and (options.module or options.compat or options.torch):
        raise RankError("--no_python does not go with -m, --compat or --torch", hint="leave out --no_python")
    if options.virtual:
        if options.no_python or options.redirect_stdout_and_stderr:
            raise RankError("--virtual runs Python in one process", hint="without --no_python and --redirect_...")
        return run_virtual(options)
    return run_processes(options)


def number_of_ranks(text: str) -> int:
    """The number of ranks that an option gives; that of the cores for "auto" and "cpu", as of torch.distributed.run."""
    if text in ("auto", "cpu"):
        return cores()
    if not text.isdecimal() or int(text) < 1:
        raise RankError(f"there must be at least one rank, and --nproc_per_node is {text}", hint="-n 4, or -n auto")
    return int(text)


# ---- processes -------------------------------------------------------------------------------------------------------


def run_processes(options: argparse.Namespace) -> int:
    mpiexec = launcher()
    # ranks of Python label their lines, which mpiexec would break
    labels = ["--tag-output" if library_of(version_of(mpiexec)) == "Open MPI" else "-l"] * options.no_python
    worker = [sys.executable, "-m", __spec__.name if __spec__ else __name__, WORKER, *forwarded(options)]
    environment = OVERSUBSCRIBE | address(options)
    environment["OPENBLAS_NUM_THREADS"] = os.environ.get("OPENBLAS_NUM_THREADS", str(threads_per_rank(options.ranks)))
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    return supervise([mpiexec, "-n", str(options.ranks), *labels, *worker], os.environ | environment, options.ranks)


def address(options: argparse.Namespace) -> dict[str, str]:
    """Variables of os.environ that a program may read. Ranks find each other without them."""
    return {"MASTER_ADDR": options.master_addr, "MASTER_PORT": str(options.master_port)}


def threads_per_rank(ranks: int) -> int:
    return max(cores() // ranks, 1)


def forwarded(options: argparse.Namespace) -> list[str]:
    """The arguments of a worker."""
    words = ["--logdir", options.logdir] if options.logdir else []
    flags = "redirect_stdout_and_stderr", "no_python", "module", "compat", "torch"
    words += [f"--{name}" for name in flags if getattr(options, name)]
    return [*words, options.program, *options.arguments]


def work(words: Sequence[str]) -> int:
    """One rank: run the program, and end all ranks if it fails. Return the exit code."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = parser.parse_args(words)
    hold_pipe(os.environ[VARIABLE], launched_rank(), options.no_python)
    if options.no_python:
        run_other_program(options)
    from .mpi import MPICommunicator, raised
    from .world import world

    streams: Any = sys.stdout, sys.stderr
    for stream in streams:  # whole lines, since ranks print at the same time
        stream.reconfigure(line_buffering=True, write_through=False)
    ranks = world()
    sys.stdout, sys.stderr = RankedOutput(sys.stdout), RankedOutput(sys.stderr)
    os.environ.update(RANK=str(ranks.rank), WORLD_SIZE=str(ranks.size), LOCAL_RANK=str(ranks.local_rank))
    if options.redirect_stdout_and_stderr:
        sys.stdout = sys.stderr = log_file(options, ranks.rank)
    code, reason = 0, ""
    try:
        run_program(options)
    except SystemExit as error:
        code = exit_code(error)
        reason = f"has ended with exit code {code}"
    except BaseException as error:
        print_error(error)
        code, reason = FAILED, raised(error)
    for stream in (sys.stdout, sys.stderr):
        stream.close() if isinstance(stream, RankedOutput) else stream.flush()
    if code and isinstance(ranks, MPICommunicator):
        ranks.machine.board.fail(reason, code)
        ranks.machine.end_all(code)
    return code


def print_error(error: BaseException) -> None:
    """Print an error as `python program.py` does, without the lines that run the program."""
    trace = error.__traceback__
    while trace is not None and not is_users(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace or error.__traceback__), trace)


def log_file(options: argparse.Namespace, rank: int) -> TextIO:
    folder = Path(options.logdir or "log")
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / f"rank_{rank}.log").open("w", buffering=1, encoding="utf-8")


def run_other_program(options: argparse.Namespace) -> NoReturn:
    """Replace this process by a program, which may join the ranks in its turn."""
    rank, size = launched_rank(), launched_size()
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank))
    if options.redirect_stdout_and_stderr:
        with log_file(options, rank) as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
    try:
        os.execvp(options.program, [options.program, *options.arguments])
    except OSError as error:
        sys.exit(f"minflow: rank {rank} cannot run {options.program}: {error.strerror}")


def exit_code(error: SystemExit) -> int:
    """The exit code that Python gives to a SystemExit; prints its message, if any, and the rank that has failed."""
    code = error.code if isinstance(error.code, int) else FAILED if error.code else 0
    if code:
        rank = current_context().rank
        message = f": {error.code}" if error.code is not code else ""
        print(f"minflow: rank {rank} has ended with exit code {code}{message}", file=sys.stderr, flush=True)
    return code


def run_program(options: argparse.Namespace) -> None:
    """Run a program as `python program.py` does."""
    serve_other_names(options)
    sys.argv = [options.program, *options.arguments]
    if options.module:
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(options.program).resolve().parent)
        runpy.run_path(options.program, run_name="__main__")


def serve_other_names(options: argparse.Namespace) -> None:
    """Let programs import minflow as oneflow and torch, if the options say so."""
    if options.compat or options.torch:
        from ..compat.names import alias_libraries

        alias_libraries(options.torch)


# ---- threads ---------------------------------------------------------------------------------------------------------


def program_code(options: argparse.Namespace) -> tuple[CodeType, dict[str, Any]]:
    """The code of a program, and the names that its module has from the start, as `python` gives them."""
    try:
        if options.module:
            sys.path[0] = os.getcwd()
            _, spec, code = runpy._get_module_details(options.program)  # type: ignore[attr-defined]
            return code, {"__file__": spec.origin, "__spec__": spec, "__package__": spec.parent}
        sys.path[0] = str(Path(options.program).resolve().parent)
        text = Path(options.program).read_bytes()
        return compile(text, options.program, "exec"), {"__file__": options.program, "__spec__": None}
    except (ImportError, OSError) as error:
        hint = "the path of a Python file; -m for a module"
        raise RankError(f"there is no program {options.program!r}: {error}", hint=hint) from None


def run_virtual(options: argparse.Namespace) -> int:
    """Run a program on virtual ranks, each with a module `__main__` of its own."""
    serve_other_names(options)
    os.environ.update(address(options))
    code, names = program_code(options)
    sys.argv = [names["__file__"], *options.arguments]
    modules = [ModuleType("__main__") for _ in range(options.ranks)]

    def run() -> None:
        names_of_rank = vars(modules[current_context().rank])
        try:
            exec(code, names_of_rank)
        except SystemExit as error:
            if failed := exit_code(error):
                raise SystemExit(failed) from None

    for module in modules:
        vars(module).update(names, __builtins__=__builtins__)
    try:
        with (
            contextlib.closing(RankedOutput(sys.stdout)) as out,
            contextlib.closing(RankedOutput(sys.stderr)) as errors,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
            ranked_environment(),
            ranked_main(modules),
            virtual_ranks(options.ranks) as ranks,
        ):
            ranks.run(run)
    except SystemExit as error:
        return int(error.code or FAILED)
    except MinflowError:
        raise
    except Exception as error:
        print_error(error)
        return FAILED
    return 0


def main(words: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if words is None else words)
    if words[:1] == [WORKER]:
        return work(words[1:])
    parser = argparse.ArgumentParser(prog="minflow launch", description="Run a program on several ranks.")
    add_arguments(parser)
    try:
        return launch(parser.parse_args(words))
    except MinflowError as error:
        print(error, *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return FAILED


__getattr__ = missing_names("flow.distributed.launch", globals())
del globals()["__dir__"]  # otherwise completion would list imported names
if __name__ == "__main__":
    sys.exit(main())
