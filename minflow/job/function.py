"""flow.global_function: a Python function becomes a job, compiled at its first call and run by the stream.

    @flow.global_function(type="train")
    def train_job(x: tp.Numpy.Placeholder((100, 784)), y: tp.Numpy.Placeholder((100,), dtype=flow.int32)) -> tp.Numpy:
        ...

The function runs once for each kind of input, to record what it computes. Read next: `queue/stream.py`.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections import OrderedDict
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import numpy as np

from ..compiler.executor import INSIDE, LOCK, collector_waiting, run
from ..compiler.passes import PASSES
from ..core.base.display import Display
from ..core.base.errors import JobError
from ..core.messages.notices import look_at_results
from ..core.mode import EPOCH
from ..core.spec import default_dtype, spec_of
from ..core.where import NOTICES, here, warn
from ..nn.graph.compiled import CompiledPart
from ..nn.graph.key import Fingerprint
from ..nn.graph.notices import tell_reads
from ..nn.graph.python_state import Variables, moved, reads_of
from ..nn.graph.listing.reports import part_record
from ..views.records.structure import GraphRecord, recorder
from ..views.text.listing import clean
from . import scope
from .build import JobBuild, whole
from .checks import check_initializer, check_regularizer, dtype_of
from .config import FunctionConfig
from .current import building
from .session import SESSION, Session
from .signature import Signature, described, place
from .queue.step import Step
from .queue.stream import STREAM
from .typing import ListListNumpy, ListNumpy, text

PLANS = 16  # of one job; lists of arrays may come in many shapes
TYPES = ("train", "predict")


class CompiledJob:
    """A job for one kind of input, ready to run. seconds: of trace, passes and plan.  part: passes and plan, to look
    at."""

    def __init__(self, build: JobBuild):
        start = time.perf_counter()
        part = build.run()
        middle = time.perf_counter()
        self.part = CompiledPart(part, list(PASSES))
        self.seconds = {"trace": middle - start, "passes": self.part.pass_seconds, "plan": self.part.plan_seconds}
        self.plan, self.graph = self.part.plan, self.part.graph
        self.job, self.session, self.training = build.job, build.session, build.training
        self.value, self.positions, self.watches = build.value, build.positions, build.watch_positions
        self.drawn = build.trace.drawn
        self.draws = [(generator, entry[0]) for generator, entry in build.trace.draws.items()]
        self.uses = frozenset((*build.used, *build.named))
        schedule = getattr(build.optimizer[0], "lr_scheduler", None) if build.optimizer else None
        self.fingerprint = Fingerprint(())
        self.rate = getattr(schedule, "rate", None)  # steps done -> learning rate of the next one; None: there is none

    def submitted(self) -> list[tuple[Any, np.ndarray]]:
        """The random numbers of a step are numbered where it is submitted, on the caller's thread."""
        return [(generator, generator.draw(count)) for generator, count in self.draws]

    def rates_of(self, done: int) -> Callable[[], list[float]]:
        return lambda: [] if self.rate is None else [self.rate(done)]

    def run(self, arrays: list[np.ndarray], draws: list) -> tuple[Any, list[list[np.ndarray]]]:
        """One step, on the worker: what the call gives, and what is watched."""
        with LOCK:
            self.drawn.update(draws)
            results = run(self.plan, arrays)
            for cell in self.plan.cells:
                cell.version += 1
            if self.training:
                steps = self.session.steps
                if NOTICES.on:
                    done = steps.get(self.job.name, 0)
                    look_at_results(f"job {self.job.name}", results, 1, done + 1, self.rates_of(done), (self.job.function.__code__, 0))
                steps[self.job.name] = steps.get(self.job.name, 0) + 1
        given = self.job.signature.given_out(
            self.value, iter([[results[i] for i in column] for column in self.positions])
        )
        return given, [[results[i] for i in positions] for _, positions in self.watches]


class Job(Display):
    """A job function. name: of the Python function.  kind: "train" or "predict".  config: a FunctionConfig.

    Jobs of one session share variables by name. To define a job again, also while the old one runs, replaces the one of
    that name; variables whose shape stays keep their numbers.
    """

    def __init__(self, function: Callable, kind: str, config: FunctionConfig, session: Session):
        functools.update_wrapper(self, function)
        self.function, self.kind, self.config, self.session = function, kind, config, session
        self.name = function.__name__
        self.signature = Signature(function, self.name)
        self.plans: OrderedDict[Any, CompiledJob] = OrderedDict()
        self.modules: dict[int, Any] = {}  # nn.Modules that its function calls, by id
        self.fingerprint, self.epoch = Fingerprint(()), -1
        self.volatile: set[tuple[str, str]] = set()  # attributes of those that the function sets itself
        self.variables: Variables = {}  # that its function reads, and that are followed
        self.told: set[str] = set()  # what it reads and no plan follows
        self.leaves = list(self.signature.leaves())
        lists = any(issubclass(leaf.kind, ListNumpy | ListListNumpy) for leaf in self.leaves)
        self.mirrored = lists or config.view == "mirrored" or self.signature.result in (ListNumpy, ListListNumpy)
        session.enter(self)
        STREAM.counts.pop(self.name, None)  # its calls count from 1

    training = property(lambda self: self.kind == "train")
    compiled = property(
        lambda self: next(reversed(self.plans.values()), None), doc="The plan of the last new kind of input, or None."
    )
    steps = property(lambda self: self.session.steps.get(self.name, 0), doc="Training steps done.")

    @property
    def uses(self) -> frozenset[str]:
        """Names of the variables of its plans."""
        return frozenset().union(*[plan.uses for plan in self.plans.values()])

    @property
    def devices(self) -> int:
        return self.session.devices if self.mirrored else 1

    def __get__(self, instance: Any, owner: type) -> Any:
        """As an attribute of a class it stays what it is: a job takes no self."""
        return self

    def __reduce__(self) -> str:
        """As functions are: pickled by its name in its module; its copy is itself."""
        return self.__qualname__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Submit one step. Gives arrays, or a handle where the job is annotated with Callback or not at all.

        Arguments are checked and copied here, so the caller may use its arrays again at once.
        """
        step = self.submit(args, kwargs)
        if self.signature.style == "sync":
            return step.get()
        return None if self.signature.style == "none" else step

    def submit(self, args: tuple, kwargs: dict, callback: Callable | None = None, owner: Any = None) -> Step:
        STREAM.refuse_inside(f"calling {self.name}")
        bound = self.signature.bound(args, kwargs)
        devices = self.devices
        given = [self.signature.copied(argument, value, devices) for argument, value in bound]
        by_device = [list(column) for column in zip(*given)] if given else [[] for _ in range(devices)]
        plan = self.plan_for(by_device)
        arrays = [
            array for column in by_device for part in column for array in (part if isinstance(part, list) else [part])
        ]
        draws = plan.submitted()
        watched: list = []

        def work() -> Any:
            result, values = plan.run(arrays, draws)
            watched.extend(values)
            return result

        def handlers(result: Any) -> None:
            for (watch, _), values in zip(plan.watches, watched):
                watch.handler(whole(values, watch.kind))

        return STREAM.submit(self.name, work, callback, handlers if plan.watches else None, owner, self.config.depth, self)

    def plan_for(self, by_device: list[list[Any]]) -> CompiledJob:
        shapes = tuple(
            [
                tuple([tuple([a.shape for a in part]) if isinstance(part, list) else part.shape for part in column])
                for column in by_device
            ]
        )
        if (self.modules or self.variables) and (self.epoch != EPOCH.now or moved(self.fingerprint.contents)):
            self.look()
        key = id(self.fingerprint), shapes, default_dtype()
        plan = self.plans.get(key)
        if plan is None:
            plan = self.compile_for(key, by_device)
        return plan

    def look(self) -> None:
        """How the modules stand that the function calls, and which tensors its variables name: what is new is another
        plan."""
        epoch, modules = EPOCH.now, [(str(i), module) for i, module in enumerate(self.modules.values())]
        found = Fingerprint(modules, self.volatile, self.variables)
        known = [self.fingerprint, *[plan.fingerprint for plan in self.plans.values()]]
        self.fingerprint = next((f for f in known if f.key == found.key), found)
        self.epoch = epoch

    def compile_for(self, key: Any, by_device: list[list[Any]]) -> CompiledJob:
        inputs = [
            [[spec_of(a) for a in part] if isinstance(part, list) else spec_of(part) for part in column]
            for column in by_device
        ]
        # between two steps; in a context of its own, so that an interrupt anywhere leaves no mode behind
        with LOCK, collector_waiting():
            key = id(self.fingerprint), *key[1:]  # which another thread's build may have changed
            if key in self.plans:  # it has compiled it
                return self.plans[key]
            build, plan = copy_context().run(self.built, inputs)
            self.session.jobs.setdefault(self.name, self)  # the session may have been cleared since it was defined
            for name in build.replaced:
                for job in self.session.every_job():
                    job.plans = OrderedDict((k, p) for k, p in job.plans.items() if name not in p.uses)
            before, known = self.fingerprint, len(self.modules)
            self.modules.update(build.trace.modules)
            handlers = [watch.handler for watch in (*build.watched, *build.watched_gradients)]
            reads = reads_of((self.function, None), build.trace.modules.values(), handlers, around=True)
            self.variables = {**self.variables, **reads.variables}
            self.look()  # after the build, which may have met modules, or have set attributes of theirs
            if len(self.modules) == known and self.fingerprint is not before:
                entries = self.fingerprint.entries.items()
                first = {(name, f"variable {space}") for space, name in self.variables} - before.entries.keys()
                self.volatile |= {place for place, value in entries if before.entries.get(place) != value} - first
                self.look()
            plan.fingerprint = self.fingerprint
            self.plans[id(self.fingerprint), *key[1:]] = plan
            if len(self.plans) > PLANS:
                self.plans.popitem(last=False)
        modules = list(self.modules.values())  # by number in the fingerprint, by class to a reader
        held = {(type(modules[int(number)]).__name__, name): what for (number, name), what in self.fingerprint.opaque.items()}
        tell_reads(self.name, reads.and_attributes(held), self.told, self.function.__code__)
        if self.session.loading is not None:  # a checkpoint was loaded: tell what of it was not used
            self.session.loading.settle(self)
        return plan

    def built(self, inputs: list[list[Any]]) -> tuple[JobBuild, CompiledJob]:
        INSIDE.set(f"the job function {self.name}")
        build = JobBuild(self, self.session, inputs)
        return build, CompiledJob(build)

    def compile(self) -> CompiledJob:
        """Compile for inputs of the placeholders' shapes, without a step: so its variables exist."""
        columns = []
        for leaf in self.leaves:
            empty = np.empty(leaf.kind.shape, leaf.kind.dtype.np)
            if issubclass(leaf.kind, ListListNumpy):
                columns.append([[empty]] * self.devices)
            elif issubclass(leaf.kind, ListNumpy) or self.devices == 1:
                columns.append([empty] * self.devices)
            else:
                columns.append(self.signature.copied(leaf, empty, self.devices))
        return self.plan_for(
            [list(column) for column in zip(*columns)] if columns else [[] for _ in range(self.devices)]
        )

    def forget(self) -> None:
        """The session was cleared: nothing of the old variables stays."""
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


def global_function(type: str = "predict", function_config: FunctionConfig | None = None) -> Callable[[Callable], Job]:
    """Make the decorated function a job: "train" (it minimizes a loss) or "predict"."""
    if isinstance(type, FunctionConfig):
        warn(
            "global_function(config): the config is the second argument",
            'global_function(type="predict", function_config=config)',
        )
        type, function_config = "predict", type
    if callable(type):
        raise JobError("global_function is called before it decorates", values={"got": described(type)}, where=here(),
                       hint='@flow.global_function(type="predict"), with brackets')  # fmt: skip
    if type not in TYPES:
        raise JobError(
            "a job is of type train or predict",
            values={"got": repr(type)},
            where=here(),
            hint='@flow.global_function(type="train")',
        )
    if function_config is not None and not isinstance(function_config, FunctionConfig):
        hint = "get_config(), with brackets" if callable(function_config) else "config = flow.function_config()"
        raise JobError(
            "function_config is no FunctionConfig", values={"got": described(function_config)}, where=here(), hint=hint
        )
    config = function_config or FunctionConfig()

    def decorate(function: Callable) -> Job:
        if isinstance(function, Job):
            function = function.function
        if isinstance(function, staticmethod | classmethod):
            raise JobError(f"a {function.__class__.__name__} cannot be a job function", where=place(function.__func__),
                           hint="define the job in a function, or at the top of the file")  # fmt: skip
        if not inspect.isfunction(function) and not inspect.ismethod(function):
            raise JobError("a job is made of a Python function", values={"got": described(function)}, where=here(),
                           hint="def train_job(...): ... under the decorator; it may call a class, a partial or an object")  # fmt: skip
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise JobError(f"job {function.__name__} is a generator or async: a call would not run its body", where=place(function),
                           hint="def, and return; -> tp.Callback[tp.Numpy] makes its calls come back at once")  # fmt: skip
        return Job(function, kind, config, SESSION)

    kind = type
    return decorate


def clear_default_session() -> None:
    """Wait for every step; then forget all jobs' plans, all variables and optimizer states."""
    STREAM.sync()
    with LOCK:  # another thread may be building a job on these variables
        STREAM.counts.clear()  # the next step of a job is its first again
        SESSION.clear()


def sync_default_session(timeout: float | None = None) -> None:
    """Wait until every step that was submitted, and its callback, has ended; raises what went wrong in one of them.

    The steps of runs (`flow.start`) are waited for too; what goes wrong there is raised by `run.result()`.
    """
    STREAM.sync(timeout, everybody=True)


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
    """The variable of that name, as a Blob: made at the first time, then shared by all jobs of the session."""
    build, what = building("flow.get_variable"), "flow.get_variable"
    if not isinstance(name, str):
        raise JobError(f"{what}: the name is a text", values={"got": described(name)}, where=here(), hint=f'{what}("w", shape=(512, 784))')
    if not isinstance(shape, tuple | list) or any(not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1 for n in shape):
        raise JobError(f"{what}: the shape of {name!r} is a tuple of integers above 0", values={"got": repr(shape)[:80]}, where=here(),
                       hint="shape=(512, 784)")  # fmt: skip
    check_initializer(what, initializer)
    check_regularizer(what, regularizer)
    kind = build.job.config.data_type if dtype is None else dtype_of(what, dtype)
    return build.variable(scope.full_name(name), tuple(map(int, shape)), kind, initializer, regularizer, trainable is not False,
                          random_seed, reuse)  # fmt: skip


@recorder(Job)
def picture_record(job: Job, **_: Any) -> GraphRecord:
    """The operations of the job, for `show(job)`."""
    plan = job.compiled
    if plan is None:
        return GraphRecord((), (), (), f"job {job.name}: not compiled yet", "call the job once, or job.compile()")
    return part_record(plan.part, f"{job.kind} job {job.name}")


def jobs() -> list[Any]:
    """What is in flight: the steps in the queue, then the runs."""
    return STREAM.list()
