"""The session: the variables that jobs share by name, the jobs, how many steps each has done, and the settings.

There is one, the default session; `flow.clear_default_session()` empties it. Read next: `build.py`.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.executor import LOCK
from ..core.base.errors import JobError, clean
from ..core.random import Generator, default_generator, derive_key
from ..core.spec import DType, spec_of
from ..core.tensor import Tensor
from ..core.source_location import here
from .checks import Regularizer, check_name
from .queue.ordering import Order
from .queue.stream import STREAM


class Variable:
    """Numbers that a job function trains or keeps, known by name to every job of the session.

    tensor: the eager Tensor that owns them; plans write into its storage.  trainable: as in the job that made it.
    """

    def __init__(self, name: str, tensor: Tensor, trainable: bool, regularizer: Regularizer | None = None):
        self.name, self.tensor, self.trainable, self.regularizer = name, tensor, trainable, regularizer

    shape = property(lambda self: tuple(self.tensor.spec.shape))
    dtype = property(lambda self: self.tensor.spec.dtype)

    def numpy(self) -> np.ndarray:
        """Its numbers now, copied: waits for every step that was submitted; in a callback they are those of its
        step."""
        STREAM.settle()
        with LOCK:  # a run may go on submitting
            return self.tensor.array.copy()

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def set(self, array: np.ndarray) -> None:
        """New numbers, of the same shape, in place; waits for every step that was submitted."""
        STREAM.sync()
        with LOCK:
            self.tensor.array[...] = array
            if self.tensor.cell is not None:
                self.tensor.cell.version += 1

    def __repr__(self) -> str:
        return clean(f"Variable({self.name!r}, shape={self.shape}, dtype=minflow.{self.dtype.name})")


class Session:
    """variables, slots: by name; slots are what optimizers keep.  jobs: by name, the last one of that name.
    steps: job name -> training steps done.  waiting: numbers that were loaded before their variable was made.
    loading: what became of the last load; it is asked whenever a job has compiled.  warned_of_gpu: that gpu means cpu
    here.
    alive: of all jobs, also of those whose name another one has now, and of those from before the session was cleared.
    """

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.jobs: dict[str, Any] = {}
        self.alive: list[weakref.ref] = []
        self.order = Order(self.every_job)
        self.clear()

    def enter(self, job: Any) -> None:
        """A job is defined: it has its name now. Without a lock: each change of a list or dict is one instruction."""
        self.jobs[job.name] = job
        self.alive.append(weakref.ref(job, self.alive.remove))

    def every_job(self) -> list[Any]:
        """All jobs that somebody still holds: their plans may write into a variable."""
        return [job for known in tuple(self.alive) if (job := known()) is not None]

    def clear(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.slots: dict[str, Variable] = {}
        self.steps: dict[str, int] = {}
        self.waiting: dict[str, Callable[[tuple, DType], np.ndarray]] = {}
        self.loading: Any = None
        self.warned_of_gpu = False
        for job in self.every_job():
            job.forget()
        STREAM.counts.clear()
        self.jobs = {}

    @property
    def devices(self) -> int:
        """How many virtual devices there are: flow.config.gpu_device_num or cpu_device_num."""
        return max(self.settings.get("gpu_device_num", 0), self.settings.get("cpu_device_num", 0), 1)

    def sync(self) -> None:
        """Wait until every step and callback has ended."""
        STREAM.sync()

    def add(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: DType,
        trainable: bool,
        regularizer: Regularizer | None,
        fill: Callable[[Generator], np.ndarray],
        seed: int | None,
        slot: bool = False,
    ) -> Variable:
        """Make a variable. Its numbers depend on the seed and its name alone, so the order of jobs does not matter."""
        check_name(name)
        if name.startswith("System-") and not slot:
            what = "names that begin with System- are those of what a checkpoint keeps beside variables"
            raise JobError(what, values={"name": name}, where=here(), hint='name="dense1"')
        loaded = self.waiting.get(name)  # it goes when the job has compiled: this trace may yet fail
        if loaded is not None:
            array = np.asarray(loaded(shape, dtype))
            if array.shape != shape or array.dtype != dtype.np:
                what = f"the loaded numbers of variable {name} do not fit the job"
                hint = "load the checkpoint of this model, or give the layer another name"
                values = {"loaded": f"{array.dtype}{list(array.shape)}", "wanted": f"{dtype.name}{list(shape)}"}
                raise JobError(what, where=here(), values=values, hint=hint)
        else:
            generator = Generator(derive_key(default_generator.initial_seed() if seed is None else seed, "init", name))
            size = math.prod(shape) * dtype.np.itemsize
            try:
                if size >= 2**62:  # numpy cannot even ask for it
                    raise MemoryError
                array = np.asarray(fill(generator))
            except MemoryError:
                what = f"variable {name} does not fit into memory"
                hint = "fewer units or filters; a product of sizes may stand where one size was meant"
                values = {"wanted": f"{dtype.name}{list(shape)}", "GB": f"{size / 1e9:.3g}"}
                raise JobError(what, where=here(), values=values, hint=hint) from None
        array = np.array(array, dtype.np, order="C").reshape(shape)
        tensor = Tensor(array, spec_of(array))
        tensor.label = name
        if dtype.floating and not slot:
            tensor.requires_grad_()
        variable = Variable(name, tensor, trainable, regularizer)
        (self.slots if slot else self.variables)[name] = variable
        return variable


SESSION = Session()


def default_session() -> Session:
    return SESSION
