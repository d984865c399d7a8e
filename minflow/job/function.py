"""flow.global_function: a Python function becomes a job, compiled at its first call and run by the stream.

    @flow.global_function(type="train")
    def train_job(x: tp.Numpy.Placeholder((100, 784)), y: tp.Numpy.Placeholder((100,), dtype=flow.int32)) -> tp.Numpy:
        ...

The function runs once per set of input specs, to record what it computes. Read next: `queue/stream.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any

from ..compiler.plan_cache import PlanCache
from ..core.backend import empty, is_available
from ..core.base import events
from ..core.base.display import Display
from ..core.base.errors import ContextError, JobError, RankError, clean
from ..core.base.placement import Placement as Ranks
from ..core.context import current_context, world
from ..core.source_location import here, warn
from ..core.spec import Spec, default_dtype
from ..core.tensor import Tensor
from ..nn.graph.key import Fingerprint
from ..nn.graph.python_state import Variables
from ..views.records.recorders import recorder
from . import scope
from .build import handler_argument
from .build_context import building
from .checks import check_initializer, check_regularizer, dtype_of
from .compiled import CompiledJob, compile_job
from .config import FunctionConfig
from .queue.events import JobCalled
from .queue.step import Step
from .queue.stream import current_stream
from .scope import RanksMustAgree, all_devices, devices_per_machine, launch, ranks_of
from .session import Session, default_session
from .signature import Signature, def_line, describe
from .typing import ListListNumpy, ListNumpy, text

if TYPE_CHECKING:
    from ..views.records.graph import GraphRecord
    from ..views.text.reports import PlanReport

TYPES = ("train", "predict")


class Job(Display):
    """A job function. name: of the Python function.  kind: "train" or "predict".  config: a FunctionConfig.

    Jobs of one session share variables by name. Defining a job again, even while the old one runs, replaces the job of
    that name; variables whose shape does not change keep their elements.
    """

    def __init__(self, function: Callable, kind: str, config: FunctionConfig, session: Session):
        functools.update_wrapper(self, function)
        self.function, self.kind, self.config, self.session = function, kind, config, session
        self.name = function.__name__
        self.signature = Signature(function, self.name)
        self.plans = PlanCache(self.fingerprint)
        self.modules: dict[int, Any] = {}  # nn.Modules that its function calls or reads, by id()
        self.volatile: set[tuple[str, str]] = set()  # attributes of these that the function itself sets
        self.variables: Variables = {}  # Python variables that its function reads and that are tracked
        self.numbers: dict[int, Any] = {}  # (name, tensor) of tensors whose elements it reads, by id()
        self.noticed: set[str] = set()  # untracked reads that were reported
        self.leaves = list(self.signature.leaves())
        lists = any(issubclass(leaf.kind, ListNumpy | ListListNumpy) for leaf in self.leaves)
        self.mirrored = lists or config.view == "mirrored" or self.signature.result in (ListNumpy, ListListNumpy)
        session.register(self)
        current_stream().counts.pop(self.name, None)  # number its calls from 1

    training = property(lambda self: self.kind == "train")
    compiled = property(
        lambda self: next(reversed(self.plans.values()), None), doc="The plan that was used last, or None."
    )
    style = property(lambda self: self.signature.style, doc='"sync", "async" or "none": see `Signature`.')
    steps = property(lambda self: self.session.steps.get(self.name, 0), doc="Training steps done.")

    @property
    def plan(self) -> PlanReport:
        """The calls of the plan that was used last, as in `graph.plan`, without times. Raises JobError before that."""
        from ..introspection.graph.listing.roofline import plan_report

        current_stream().sync()
        if self.compiled is None:
            what = f"job {self.name} has not been called yet, so it has no plan"
            raise JobError(what, where=here(), hint=f"call it once, or {self.name}.compile()")
        return plan_report(f"{self.kind} job {self.name}", self.compiled.parts)

    @property
    def uses(self) -> frozenset[str]:
        """Names of the variables that its plans use."""
        return frozenset().union(*[plan.uses for plan in self.plans.values()])

    @property
    def devices(self) -> int:
        """The number of parts of its arguments."""
        if not self.mirrored:
            return 1
        return self.session.devices if (ranks := self.together) is None else len(ranks.order)

    @property
    def together(self) -> Ranks | None:
        """The ranks that run it together; None if each runs it by itself. In the mirrored view, the ranks of its
        devices.
        """
        place = self.config.place
        if place is None or (self.mirrored and len(place.devices) == 1):
            ranks = ranks_of_session(self.session)
        else:
            ranks = place.ranks()
        if self.mirrored and ranks is not None and len(ranks.order) != world().size:
            values = {"devices": len(ranks.order), "ranks": world().size}
            what = f"job {self.name} has the mirrored view, which needs one device for each rank"
            hint = f"flow.config.cpu_device_num({devices_per_machine()}); or {launch(len(ranks.order))}"
            raise RankError(what, values=values, where=here(), hint=hint)
        return ranks

    def own_parts(self, arguments: list[list[Any]]) -> list[list[Any]]:
        """For each device of this rank, its arguments. arguments: for each one the arrays of all devices."""
        by_device = [list(column) for column in zip(*arguments)] if arguments else [[] for _ in range(self.devices)]
        if not self.mirrored or (ranks := self.together) is None:
            return by_device
        return [by_device[ranks.order.index(world().rank)]]

    def __get__(self, instance: Any, owner: type) -> Any:
        """Return the job itself: as a class attribute it is not bound, because a job takes no self."""
        return self

    def __reduce__(self) -> str:
        """Pickle by qualified name, as functions are; a copy is the job itself."""
        return self.__qualname__  # type: ignore[attr-defined]  # set by `update_wrapper`

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Submit one step. Returns arrays, or a handle if the job is annotated with Callback or has no return
        annotation.

        Arguments are checked and copied here, so the caller may reuse its arrays at once. A step also sees captured
        modules, tensors and arrays as they are now, whatever is written to them before it runs.
        """
        if JobCalled in events.LISTENERS:
            events.emit(JobCalled(self))
        step = self.submit(args, kwargs)
        if self.signature.style == "sync":
            return step.get()
        return None if self.signature.style == "none" else step

    @staticmethod
    def argument(value: Any) -> Any:
        """An argument of a batch, as a call of the job takes it."""
        return value.numpy(force=True) if isinstance(value, Tensor) else value

    def check_rank(self) -> None:
        """Raise ContextError if the job belongs to the session of another rank."""
        if self.session is not default_session():
            raise ContextError(
                f"the job {self.name} is called on another rank than the one that defined it",
                values={"called by": current_context(), "defined by": self.session.stream.context},
                where=here(),
                hint="define the job in the function that each rank runs",
            )

    def submit(self, args: tuple, kwargs: dict, callback: Callable | None = None, owner: Any = None) -> Step:
        self.check_rank()
        current_stream().check_can_wait(f"calling {self.name}")
        bound = self.signature.pair_arguments(args, kwargs)
        devices = self.devices
        by_device = self.own_parts([self.signature.copy_argument(leaf, value, devices) for leaf, value in bound])
        plan = self.plan_for(by_device, owner)
        arrays = [
            array for column in by_device for part in column for array in (part if isinstance(part, list) else [part])
        ]
        arguments = plan.arguments(plan.local_parts(arrays))
        waits = owner is None and self.signature.style == "sync"
        draws = plan.capture_values(waits)
        watched: list = []

        def work() -> Any:
            result, values = plan.run(arguments, draws)
            watched.extend(values)
            return result

        def handlers(result: Any) -> None:
            for (watch, _), values in zip(plan.watches, watched):
                watch.handler(handler_argument(values, watch.kind))

        return current_stream().submit(
            self.name,
            work,
            callback,
            handlers if plan.watches else None,
            owner,
            self.config.depth,
            self,
            plan.reads,
            waits,
        )

    def plan_for(self, by_device: list[list[Any]], owner: Any = None) -> CompiledJob:
        shapes = tuple(
            [
                tuple([tuple([a.shape for a in part]) if isinstance(part, list) else part.shape for part in column])
                for column in by_device
            ]
        )
        inputs = shapes, default_dtype(), self.together
        plan = self.plans.find(inputs)
        if plan is None:
            make = functools.partial(compile_job, self, inputs, by_device, owner)
            if inputs[-1] is not None:
                self.session.agree()
            try:
                plan = self.plans.compile(inputs, make)
            except RanksMustAgree:  # for a placement inside the function
                self.session.agree()
                plan = self.plans.compile(inputs, make)
        return plan

    def fingerprint(self) -> Fingerprint:
        """State of the modules that the function calls or reads, and the tensors that its Python variables refer to. A
        plan is used only if this is unchanged.
        """
        modules = [(str(i), module) for i, module in enumerate(self.modules.values())]
        return Fingerprint(modules, self.volatile, self.variables, self.numbers.values())

    def compile(self) -> CompiledJob:
        """Compile for inputs of the placeholders' shapes without running a step, so that the variables exist."""
        columns: list[Any] = []
        for leaf in self.leaves:
            array = empty(Spec(leaf.kind.shape or (), leaf.kind.dtype))
            if issubclass(leaf.kind, ListListNumpy):
                columns.append([[array]] * self.devices)
            elif issubclass(leaf.kind, ListNumpy) or self.devices == 1:
                columns.append([array] * self.devices)
            else:
                columns.append(self.signature.copy_argument(leaf, array, self.devices))
        return self.plan_for(self.own_parts(columns))

    def forget(self) -> None:
        """Drop all plans: the session was cleared, and they write to the old variables."""
        self.plans.clear()

    def __repr__(self) -> str:
        arguments = ", ".join(f"{leaf.path}: {text(leaf.kind)}" for leaf in self.leaves)
        state = (
            f"{self.steps} steps done"
            if self.training and self.plans
            else "compiled"
            if self.plans
            else "not compiled yet"
        )
        return clean(f"<{self.kind} job {self.name}({arguments}): {state}>")


def ranks_of_session(session: Session) -> Ranks | None:
    """The ranks of the devices of a session; None for one device, or if this program has one rank."""
    if session.one_device:
        return None
    kind = "cuda" if "gpu_device_num" in session.settings and is_available("cuda") else "cpu"
    return ranks_of(kind, all_devices(session.devices), False)


def global_function(type: str = "predict", function_config: FunctionConfig | None = None) -> Callable[[Callable], Job]:
    """Make the decorated function a job. type: "train" (it minimizes a loss) or "predict"."""
    if isinstance(type, FunctionConfig):
        what = "global_function(config): the config is the second argument"
        warn(what, 'global_function(type="predict", function_config=config)')
        type, function_config = "predict", type  # type: ignore[assignment]  # an error in the order
    if callable(type):
        what = "global_function must be called before it decorates"
        hint = '@flow.global_function(type="predict"), with parentheses'
        raise JobError(what, values={"got": describe(type)}, where=here(), hint=hint)
    if type not in TYPES:
        what = "type must be train or predict"
        raise JobError(what, values={"got": repr(type)}, where=here(), hint='@flow.global_function(type="train")')
    if function_config is not None and not isinstance(function_config, FunctionConfig):
        hint = "get_config(), with parentheses" if callable(function_config) else "config = flow.function_config()"
        what = "function_config must be a FunctionConfig"
        raise JobError(what, values={"got": describe(function_config)}, where=here(), hint=hint)
    config = function_config or FunctionConfig()

    def decorate(function: Callable) -> Job:
        if isinstance(function, Job):
            function = function.function
        if isinstance(function, staticmethod | classmethod):
            what = f"a {function.__class__.__name__} cannot be a job function"
            hint = "define the job in a function, or at the top of the file"
            raise JobError(what, where=def_line(function.__func__), hint=hint)
        if not inspect.isfunction(function) and not inspect.ismethod(function):
            what = "a job is made of a Python function"
            hint = "def train_job(...): ... under the decorator; it may call a class, a partial or an object"
            raise JobError(what, values={"got": describe(function)}, where=here(), hint=hint)
        if (
            inspect.isgeneratorfunction(function)
            or inspect.iscoroutinefunction(function)
            or inspect.isasyncgenfunction(function)
        ):
            what = f"job {function.__name__} is a generator or async: a call would not run its body"
            hint = "def, and return; -> tp.Callback[tp.Numpy] makes its calls return at once"
            raise JobError(what, where=def_line(function), hint=hint)
        return Job(function, kind, config, default_session())

    kind = type
    return decorate


def clear_default_session() -> None:
    """Stop all runs of `flow.start` and wait for every step; then delete all plans, variables and optimizer states.

    A line reports each run that was stopped; its state is "stopped".
    """
    current_stream().check_can_wait("waiting for the queue")
    for run in current_stream().runs:
        if not run.done():
            run.end("flow.clear_default_session()")
    current_stream().sync()
    # between two steps, and while no other thread builds a job on these variables
    with current_stream().hold_idle(), current_context().plan_lock:
        current_stream().counts.clear()  # steps are numbered from 1 again
        default_session().clear()


def sync_default_session(timeout: float | None = None) -> None:
    """Wait until every submitted step and its callback has ended. Raises the error of a failed step.

    This includes the steps of runs (`flow.start`); their errors are raised by `run.result()`.
    """
    current_stream().sync(timeout, all_threads=True)


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    model_name: str | None = None,
    random_seed: int | None = None,
    distribute: Any = None,
    reuse: bool = True,
) -> Any:
    """The variable of this name, as a Blob: created on first use, then shared by all jobs of the session.

    distribute: over the ranks of the job, such as flow.distribute.split(0); by default each has all elements.
    """
    build, what = building("flow.get_variable"), "flow.get_variable"
    if not isinstance(name, str):
        wrong = f"{what}: name must be a string"
        raise JobError(wrong, values={"got": describe(name)}, where=here(), hint=f'{what}("w", shape=(512, 784))')
    if not isinstance(shape, tuple | list) or any(
        not isinstance(n, Integral) or isinstance(n, bool) or n < 1 for n in shape
    ):
        what = f"{what}: the shape of {name!r} must be a tuple of integers of at least 1"
        raise JobError(what, values={"got": repr(shape)[:80]}, where=here(), hint="shape=(512, 784)")
    check_initializer(what, initializer)
    check_regularizer(what, regularizer)
    kind = build.job.config.data_type if dtype is None else dtype_of(what, dtype)
    options = (initializer, regularizer, trainable is not False, random_seed, reuse)
    return build.variable(scope.full_name(name), tuple(map(int, shape)), kind, *options, distribute=distribute)


@recorder(Job)
def picture_record(job: Job, opening: Any = None) -> GraphRecord:
    """The graph of the job's ops, for `show(job)`."""
    from ..introspection.graph.listing.reports import part_record
    from ..views.records.graph import GraphRecord

    plan = job.compiled
    if plan is None:
        return GraphRecord((), (), (), f"job {job.name}: not compiled yet", "call the job once, or job.compile()")
    return part_record(plan.part, f"{job.kind} job {job.name}", opening)


def jobs() -> list[Any]:
    """Handles of everything in flight: the queued and running steps, then the runs."""
    return current_stream().list()
