"""Run mpiexec, and say which rank has ended all of them, and what each did.

mpiexec ends all ranks if one of them ends with an exit code, or without a word to MPI, but does not say which it was.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.base.errors import RankError
from ...core.base.locks import locked
from .board import BROKEN, COMPUTES, UNKNOWN, VARIABLE, WAITS, Board, alive_pipes, new_board, remove_board

FAILED, KILLED = 1, 9  # exit codes of a program with an error, and of one that SIGKILL has ended
LOOK = 0.1  # seconds between two looks at mpiexec, if ranks have not begun
LAST = 2.0  # seconds to wait for the last lines, if a process that ranks have started keeps their output open
BOX = (  # what Hydra prints if a process was killed, also if it has killed that itself
    b"=" * 80,
    b"=   ",
    b"YOUR APPLICATION TERMINATED WITH THE EXIT STRING",
    b"This typically refers to a problem with your application",
    b"Please see the FAQ page for debugging suggestions",
)


def supervise(words: Sequence[str], environment: Mapping[str, str], ranks: int) -> int:
    """Run a command of mpiexec and return the exit code. ranks: the number of them."""
    path = new_board()
    pipes = alive_pipes(path, ranks)
    with open(path, "rb") as file:
        locked(file.fileno())  # until this process ends, by which ranks see it
        board = Board(path, ranks)
        process = subprocess.Popen(words, env={**environment, VARIABLE: path}, stdout=subprocess.PIPE)
        output = threading.Thread(target=pass_on, args=(process.stdout,), daemon=True)
        output.start()
        try:
            died, code = first_to_end(process, board, pipes), process.wait()
            output.join(LAST)
            return report(board, died, code)
        except (KeyboardInterrupt, SystemExit) as error:
            process.terminate()  # mpiexec ends the ranks
            process.wait()
            output.join(LAST)
            return 130 if isinstance(error, KeyboardInterrupt) else int(error.code)  # type: ignore[arg-type]
        finally:
            for pipe in pipes:
                os.close(pipe)
            remove_board(path)


def pass_on(lines: Any) -> None:
    """Print lines of mpiexec, all of which begin with their rank, but for its text about a process that was killed."""
    try:
        for line in lines:
            if line != b"\n" and not line.startswith(BOX):
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader has ended, of which mpiexec learns
        lines.close()


def first_to_end(process: subprocess.Popen, board: Board, pipes: dict[int, int]) -> int | None:
    """Wait for mpiexec. Return the rank that has ended first before the end of its program, if any.

    pipes: as of `alive_pipes`. mpiexec ends the other ranks a moment later, but epoll tells which pipe was the first to
    close even if this process was late. None if the system has no epoll (macOS, Windows).
    """
    if not pipes:
        return None
    with select.epoll() as poller:
        for pipe in pipes:
            poller.register(pipe, 0)  # tells of the end alone
        while process.poll() is None and pipes:
            for pipe, _ in poller.poll(LOOK):
                rank = pipes.pop(pipe)
                os.close(pipe)
                if board.read(rank).state in (UNKNOWN, COMPUTES, WAITS, BROKEN):
                    return rank
    return None


def report(board: Board, died: int | None, code: int) -> int:
    """Say which rank has ended all, and what each did, unless a rank has said so. code: that of mpiexec.

    Return the exit code, which is not 0 if a rank has not come to the end of its program.
    """
    entries = [board.read(rank) for rank in range(board.size)]
    unfinished = [rank for rank, entry in enumerate(entries) if entry.state in (COMPUTES, WAITS, BROKEN)]
    if not unfinished or board.claimed:
        return board.claimed or code
    broken = [rank for rank in unfinished if entries[rank].state == BROKEN]
    first = broken or ([] if died is None else [died]) or unfinished
    code = entries[broken[0]].number if broken else 128 - code if code < 0 else code or FAILED
    number = code - 128 if code > 128 else code
    error = RankError(
        f"rank {' or '.join(map(str, first))} has ended before the end of its program, and so all ranks end",
        values={f"rank {rank}": board.describe(rank, alive=False) for rank in range(board.size)},
    )
    if not broken:
        name = f", that of {signal.Signals(number).name}" * (number in set(signal.Signals))
        error.values["exit code"] = f"{code}{name}"
        error.hint = "dmesg, where Linux says which process it has killed since memory ran out" * (number == KILLED)
    print(f"minflow: {error}", file=sys.stderr, flush=True)
    return code
