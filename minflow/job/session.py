"""The session: variables that jobs share by name, the jobs with their step counts, and settings.

Each rank has one, the default session; `flow.clear_default_session()` empties it. Read next: `build.py`.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

from ..core.backend import on_device, placed, to_host
from ..core.base.errors import JobError, clean
from ..core.base.placement import Placement as Ranks, Sbp
from ..core.context import PerContext, current_context, world
from ..core.host import HostArray, host_array
from ..core.ops.global_tensors import local_part, whole_array
from ..core.random import Generator, default_generator, derive_key
from ..core.source_location import here
from ..core.spec import Device, DType, Spec, cpu, spec_of
from ..core.tensor import Tensor
from .checks import Regularizer, check_name
from .queue.ordering import WriteOrdering
from .queue.stream import current_stream


class Variable:
    """A tensor that a job function trains or keeps, shared by name among the jobs of the session.

    tensor: the eager Tensor; plans write into its storage.  trainable: as in the job that created it.
    """

    def __init__(self, name: str, tensor: Tensor, trainable: bool, regularizer: Regularizer | None = None):
        self.name, self.tensor, self.trainable, self.regularizer = name, tensor, trainable, regularizer

    shape = property(lambda self: tuple(self.tensor.spec.shape))
    dtype = property(lambda self: self.tensor.spec.dtype)
    device = property(lambda self: self.tensor.spec.device)
    ranks = property(lambda self: self.tensor.spec.placement, doc="The ranks that hold it; None if each has its own.")
    sbp = property(lambda self: self.tensor.spec.sbp, doc="Its distribution over these ranks.")

    def numpy(self) -> HostArray:
        """Copy of the current elements. Waits for every submitted step; in a callback, the elements after its step.

        All ranks call it if it is on several.
        """
        current_stream().sync_for_read()
        with current_context().plan_lock:  # a run may keep submitting
            return self.copied()

    def copied(self) -> HostArray:
        """Copy of the elements, for a caller that holds the plan lock."""
        tensor = self.tensor
        return host_array(to_host(tensor.array)) if tensor.spec.placement is None else whole_array(tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def set(self, array: HostArray) -> None:
        """Overwrite the elements in place with an array of the same shape. Waits for every submitted step."""
        current_stream().sync()
        with current_context().plan_lock:
            self.write(array)

    def write(self, array: HostArray) -> None:
        """`set` for a caller that holds the plan lock."""
        spec = self.tensor.spec
        self.tensor.array[...] = placed(array if spec.placement is None else local_part(array, spec), spec.device)
        if self.tensor._version_counter is not None:
            self.tensor._version_counter.version += 1

    def __repr__(self) -> str:
        return clean(f"Variable({self.name!r}, shape={self.shape}, dtype=minflow.{self.dtype.name})")


class Session:
    """State shared by job functions.

    variables, slots: by name; slots are optimizer states.  jobs: by name, the latest of each name.  steps: job name ->
    finished training steps.  waiting: values that were loaded before their variable was created.  loading: report of
    the last load; it is updated whenever a job has compiled.  warned_of_gpu: True after the warning that gpu means cpu.
    agreed: True if its jobs run on several ranks, which have agreed on the default generator.
    alive: weak references to all jobs, including redefined ones and those from before the session was cleared.
    """

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.jobs: dict[str, Any] = {}
        self.alive: list[weakref.ref] = []
        self.stream = current_stream()
        self.order = WriteOrdering(self.stream, self.live_jobs)
        self.clear()

    def register(self, job: Any) -> None:
        """Register a job under its name. Needs no lock: each change of a list or dict is one instruction."""
        self.jobs[job.name] = job
        self.alive.append(weakref.ref(job, self.alive.remove))

    def live_jobs(self) -> list[Any]:
        """All jobs that are still referenced: their plans may write to a variable."""
        return [job for known in tuple(self.alive) if (job := known()) is not None]

    def clear(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.slots: dict[str, Variable] = {}
        self.steps: dict[str, int] = {}
        self.waiting: dict[str, Callable[[tuple, DType], HostArray]] = {}
        self.loading: Any = None
        self.warned_of_gpu = self.agreed = False
        for job in self.live_jobs():
            job.forget()
        self.stream.counts.clear()
        self.jobs = {}

    @property
    def devices(self) -> int:
        """Number of devices on each machine: flow.config.gpu_device_num or cpu_device_num."""
        return max(self.settings.get("gpu_device_num", 0), self.settings.get("cpu_device_num", 0), 1)

    @property
    def one_device(self) -> bool:
        """True if there is one device: each rank runs jobs by itself. If one was set, there is one on each machine."""
        if self.devices > 1:
            return False
        return self.settings.keys().isdisjoint(("gpu_device_num", "cpu_device_num")) or world().machines == 1

    @property
    def on_ranks(self) -> bool:
        """True if a job runs on several ranks together, which then also save together."""
        return self.agreed or any([job.together is not None for job in self.jobs.values()])

    def agree(self) -> None:
        """Before the first build for several ranks, take the default generator of the first one, so that all ranks
        create the same variables and draw the same numbers. Not inside a build, which would keep the other ranks of
        this process from theirs.
        """
        if not self.agreed:
            comm, mine = world(), default_generator
            state = mine.initial_seed(), int(mine.get_state()[1])
            first = comm.exchange(comm.fingerprint("the first job on several ranks"), state)[0]
            if first != state:
                mine.manual_seed(first[0])
                mine.take(first[1])
            self.agreed = True

    def sync(self) -> None:
        """Wait until every step and callback has ended."""
        self.stream.sync()

    def add(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: DType,
        trainable: bool,
        regularizer: Regularizer | None,
        fill: Callable[[Generator], HostArray],
        seed: int | None,
        slot: bool = False,
        device: Device = cpu,
        ranks: Ranks | None = None,
        sbp: tuple[Sbp, ...] | None = None,
    ) -> Variable:
        """Create a variable; a global tensor if `ranks` and `sbp` are given. Its initial elements depend only on the
        seed and its name, so neither the order of jobs nor the number of ranks matters.
        """
        check_name(name)
        if name.startswith("System-") and not slot:
            what = "names that begin with System- are reserved for other entries of a checkpoint"
            raise JobError(what, values={"name": name}, where=here(), hint='name="dense1"')
        loaded = self.waiting.get(name)  # removed when the job has compiled: this trace may still fail
        if loaded is not None:
            array = loaded(shape, dtype)
            if array.shape != shape or array.dtype != dtype.np:
                what = f"the loaded elements of variable {name} do not fit the job"
                hint = "load the checkpoint of this model, or give the layer another name"
                values = {"loaded": f"{array.dtype}{list(array.shape)}", "expected": f"{dtype.name}{list(shape)}"}
                raise JobError(what, where=here(), values=values, hint=hint)
        else:
            generator = Generator(derive_key(default_generator.initial_seed() if seed is None else seed, "init", name))
            size = math.prod(shape) * dtype.np.itemsize
            try:
                if size >= 2**62:  # beyond NumPy's largest request
                    raise MemoryError
                array = fill(generator)
            except MemoryError:
                what = f"variable {name} does not fit into memory"
                hint = "fewer units or filters; or a product of sizes was passed as one size"
                values = {"expected": f"{dtype.name}{list(shape)}", "GB": f"{size / 1e9:.3g}"}
                raise JobError(what, where=here(), values=values, hint=hint) from None
        spec, array = Spec(shape, dtype, device, ranks, sbp), host_array(array, dtype.np).reshape(shape)
        array = on_device(array if ranks is None else local_part(array, spec), device)
        tensor = Tensor(array, spec_of(array) if ranks is None else spec)
        tensor._label = name
        if dtype.floating and not slot:
            tensor.requires_grad_()
        variable = Variable(name, tensor, trainable, regularizer)
        (self.slots if slot else self.variables)[name] = variable
        return variable


default_session = PerContext(Session)
