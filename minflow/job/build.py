"""Trace a job function: its variables, watches and loss; then its gradients and the optimizer's updates.

With several virtual devices the function is traced once per device, on the same variables, and gradients are averaged.
On ranks each of them traces it once, see `scope.py`.
Errors that need not end the trace are collected, so that a learner sees all of them at once.
Read next: `function.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..compiler.plan_cache import Part
from ..core.arrays import copy_keeping_strides
from ..core.autograd import grad
from ..core.backend import Array, namespace
from ..core.base.errors import JobError, MinflowError
from ..core.functionalize import external_users_of, write_into
from ..core.functions.creation import full, ones, strided_look
from ..core.host import HostArray, host_array
from ..core.ir import OPTIMIZER, Source, Value, where_text
from ..core.mode import MODE, using
from ..core.random import Generator
from ..core.source_location import caller, here
from ..core.spec import DType, Spec, float32, float64
from ..core.tensor import Tensor
from ..core.trace import Trace
from ..diagnosis.failure import RecordedGraph, register_build_reader
from ..nn.graph.messages import remove_symbolic_tensors, symbolic_tensors_in, written_attributes
from ..nn.graph.side_effects import REGISTRIES, AttributeRecord, record_attributes
from . import scope
from .blob import (
    Blob,
    brought_together,
    distributed,
    like_gradient,
    moved,
    of_first,
    on_ranks,
    refuse_bounded,
    sbp_of,
    summed,
    whole,
)
from .build_context import BUILDING, current
from .checks import Initializer, Regularizer
from .session import Session, Variable
from .signature import LocalTensor, blobs_of, concatenate_parts, describe
from .typing import ListListNumpy, ListNumpy


class JobTrace(Trace):
    """A trace whose tensors are Blobs, and whose random numbers are drawn when a step is submitted, not when it runs.

    drawn: values fixed when a step is submitted: for each generator its key and first counter, and for each key of
    `lent` a copy of the array. lent: key -> the array of a captured tensor that shares memory with NumPy.
    """

    symbol = Blob

    def __init__(self) -> None:
        super().__init__()
        self.modules = CalledModules()
        self.drawn: dict[Any, Array] = {}
        self.lent: dict[Any, Array] = {}

    def symbol_of(self, tensor: Any) -> Any:
        """Refuse a field of a NumPy record array: its storage is not an array, so a step cannot have a copy of it."""
        path = tensor._alias.path or () if tensor._alias is not None else ()
        if any(stride % tensor.itemsize for op, attrs in path if op is strided_look for stride in attrs["strides"]):
            what = f"job {current().job.name} captures a field of a NumPy record array"
            hint = "flow.tensor(array) copies it; or give it to the job as an argument"
            raise JobError(what, values={"tensor": describe(tensor)}, where=here(), hint=hint)
        return super().symbol_of(tensor)

    def state_buffer(self, array: Any, tensor: Any) -> Any:
        """Replace memory shared with NumPy with a copy that is refilled for each step: see `queue/ordering.py`."""
        if tensor is None or id(array) in self.created or not external_users_of(tensor).lent:
            return array, None
        key = "lent", len(self.lent)
        self.lent[key] = self.drawn[key] = array
        return copy_keeping_strides(array), lambda: self.drawn[key]

    def resolve(self, tensor: Any) -> Any:
        """Refuse a Blob of another build: its value is not computed in this trace."""
        owned: Any = super().resolve(tensor)
        if tensor.array is None and not self.has(owned._value.node):
            what = f"a Blob of another build is used while job {current().job.name} is built"
            hint = "return it from its own job, and hand its array to this one; jobs share variables by name"
            values = {"blob": tensor.described() if isinstance(tensor, Blob) else describe(tensor)}
            raise JobError(what, where=here(), values=values, hint=hint)
        return owned

    def has(self, node: Any) -> bool:
        """True if `node` is a node or a source of this trace."""
        if isinstance(node, Source):
            return Value(node, 0, node.out_specs[0]) in self.leaves or any(node is known for known in self.graph.inputs)
        return node.number < len(self.graph.nodes) and self.graph.nodes[node.number] is node

    def run(self, op: Any, inputs: Any, attrs: Any) -> Any:
        """Add an op of the program on the ranks of the current placement; by default, and in gradients, on those of its
        largest input.
        """
        refuse_bounded(op, inputs)
        inputs = [self.input_of(op, x) for x in inputs]
        placements = {x.spec.placement: x.spec.size for x in inputs if isinstance(x, Tensor)}
        if not op.distributes and not op.communicates and placements.keys() - {None}:
            target = scope.current_ranks() if self.origin is None else None
            target = target or max(placements.keys() - {None}, key=placements.__getitem__)
            inputs = brought_together(op, inputs, target)
        return super().run(op, inputs, attrs)

    def draw(self, generator: Generator | None) -> Any:
        if generator not in self.draws:
            entry = self.draws[generator] = [0, None]
            self.drawn[generator] = host_array([0, 0], "int64")
            entry[1] = self.state(host_array([0, 0], "int64"), read=lambda: self.drawn[generator])
        return super().draw(generator)


class CalledModules(dict):
    """Modules that the job function has called, by id. before: their attributes and those of their submodules at the
    time of the call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.before: list[AttributeRecord] = []

    def __setitem__(self, key: int, module: Any) -> None:
        if key not in self:
            known = {id(row.owner) for row in self.before}
            for path, inner in module.named_modules(prefix=type(module).__name__):
                if id(inner) not in known:
                    self.before.append(record_attributes(path, inner))
        super().__setitem__(key, module)


class Watch:
    """A request of `flow.watch`. blobs: one per device. handler: receives NumPy arrays in the form given by `kind`."""

    def __init__(self, handler: Callable, kind: Any, prompt: str):
        self.blobs: list[Tensor] = []
        self.handler, self.kind, self.prompt = handler, kind, prompt


class JobBuild:
    """Runs a job's function once per device. inputs: for each device, the specs of its input arrays.

    ranks, mirror: the ranks of a job in the consistent and in the mirrored view; None if each runs it by itself.
    """

    def __init__(self, job: Any, session: Session, inputs: list[list[Any]]):
        self.job, self.session, self.inputs = job, session, inputs
        self.ranks = None if job.mirrored else job.together
        self.mirror = job.together if job.mirrored else None
        self.training = job.kind == "train"
        self.devices = len(inputs)
        self.trace = JobTrace()
        self.replica = 0
        self.named: dict[str, Any] = {}  # variable name -> the line that first asked for it, in this replica
        self.used: dict[str, tuple[Variable, Tensor]] = {}
        self.created: list[str] = []
        self.replaced: dict[str, Variable] = {}
        self.kept: dict[str, Variable] = dict(session.slots)
        self.assigned: list[tuple[Tensor, Tensor]] = []
        self.watched: list[Watch] = []
        self.watched_gradients: list[Watch] = []
        self.asked = 0  # number of watches in this replica
        self.optimizer: Any = None
        self.minimized_at: Any = None
        self.losses: list[Tensor] = []
        self.problems: list[MinflowError] = []
        self.collisions: set[tuple] = set()
        self.zeros: list[tuple[Value, str]] = []  # layers whose weights start at 0: value of the weight, name
        self.zero_warned = False
        self.numbers: dict[Any, Tensor] = {}
        self.outputs: list[list[Tensor]] = []
        self.value: Any = None

    # ---- called by layers and optimizers -----------------------------------------------------------------------------

    def name(self, name: str | None, default: str) -> str:
        """Full name of a layer, including the surrounding namespaces."""
        return scope.full_name(default if name is None else name)

    def add_error(self, error: MinflowError) -> None:
        """Record an error after which the trace can continue, so that later errors are found too."""
        if not any(str(error) == str(known) for known in self.problems):
            self.problems.append(error)

    def variable(
        self,
        name: str,
        shape: Any,
        dtype: DType = float32,
        initializer: Initializer | None = None,
        regularizer: Regularizer | None = None,
        trainable: bool = True,
        random_seed: int | None = None,
        reuse: bool = True,
        what: str = "flow.get_variable",
        distribute: Any = None,
    ) -> Blob:
        """The variable with this full name, as a Blob; created and filled if the session has none. reuse=False: it must
        be new in this job. distribute: over the ranks of the current placement, by default whole on each.
        """
        shape, line = tuple(shape), caller(2)
        if not reuse and name in self.named:
            first = self.named[name]
            if (first, line) not in self.collisions:  # a layer has several variables but is reported once
                self.collisions.add((first, line))
                same = f"two layers of job {self.job.name} have the same name {name!r}"
                hint = 'name="hidden" and name="output": other jobs share its elements by name'
                self.add_error(JobError(same, values={"first": f"at {where_text(first)}"}, where=here(), hint=hint))
            number = 2
            while f"{name}.{number}" in self.named:
                number += 1
            name = f"{name}.{number}"  # lets the trace continue; the job is refused at its end
        again = name in self.named
        self.named.setdefault(name, line)
        variable = self.session.variables.get(name)
        if variable is not None and (variable.shape != shape or variable.dtype is not dtype):
            self.replace(name, variable, shape, dtype, what, again)
            variable = None
        if variable is None:
            if name in self.session.slots:
                raise self.name_conflict(name)

            def fill(generator: Generator) -> HostArray:
                if initializer is None:
                    return namespace().zeros(shape, dtype.np)
                return initializer.fill(shape, dtype, generator)

            place = scope.current_ranks()
            variable = self.session.add(
                name,
                shape,
                dtype,
                trainable,
                regularizer,
                fill,
                random_seed,
                device=scope.current_device(),
                ranks=place,
                sbp=None if place is None else sbp_of(distribute, len(shape)),
            )
            self.created.append(name)
        if regularizer is not None:
            variable.regularizer = regularizer
        symbol = self.current_trace().resolve(variable.tensor)
        if trainable and dtype.floating:
            variable.trainable = True
            self.used.setdefault(name, (variable, symbol))
        elif symbol._needs:
            symbol = symbol.detach()
        return distributed(symbol, distribute)

    def name_conflict(self, name: str) -> JobError:
        """Error for a variable with the name of an optimizer state: a checkpoint would store both under one name."""
        what = f"job {self.job.name}: {name!r} names a variable and an optimizer state of another variable"
        values = {"optimizer": f"keeps it for {name.rpartition('-')[0]!r}"}
        hint = "another name; flow.clear_default_session() if the state belongs to an older job"
        return JobError(what, values=values, where=here(), hint=hint)

    def replace(self, name: str, old: Variable, shape: tuple, dtype: DType, what: str, again: bool) -> None:
        """Drop a variable whose shape a redefined job changes. Raises JobError if another job uses it."""
        users = [job.name for job in self.session.jobs.values() if job is not self.job and name in job.uses]
        users = [f"{user}, as it was defined again" if user == self.job.name else user for user in users]
        if users or again or self.replica:
            what = f"{what}: the variable {name!r} has another shape or dtype"
            hint = "another name; or flow.clear_default_session() to start again"
            values = {
                "it is": f"{old.dtype.name}{list(old.shape)}",
                "asked for": f"{dtype.name}{list(shape)}",
                "used by": ", ".join(users) or f"{self.job.name} itself",
            }
            raise JobError(what, where=here(), values=values, hint=hint)
        self.replaced.setdefault(name, old)
        del self.session.variables[name]

    def current_trace(self) -> Any:
        return MODE.get()

    def assign(self, blob: Tensor, new: Tensor) -> None:
        """Assign new elements to a variable at the end of the step; with several devices, those of the first device.
        Any other Blob, such as an argument, is written at once, as in eager mode.
        """
        if blob.array is None and not self.is_state(blob):
            blob.copy_(new)
        elif self.replica == 0:
            self.assigned.append((blob, new))

    def is_state(self, blob: Tensor) -> bool:
        """True if `blob` is the trace's symbol for a variable, or a view of one."""
        while blob._alias is not None:
            blob = blob._alias.base
        return any(blob is symbol for value, symbol in self.trace.leaves.items() if isinstance(value.node, Source))

    def slot(self, variable: Variable, suffix: str, value: float = 0.0, shape: Any = None) -> Tensor:
        """State that an optimizer keeps for a variable, under the name `<variable>-<suffix>`."""
        name, shape = f"{variable.name}-{suffix}", variable.shape if shape is None else tuple(shape)
        if name in self.session.variables:
            raise self.name_conflict(name)
        slot = self.session.slots.get(name)
        if slot is None or slot.shape != shape or slot.dtype is not variable.dtype:
            slot = self.session.add(
                name,
                shape,
                variable.dtype,
                False,
                None,
                lambda g: namespace().full(shape, value, variable.dtype.np),
                None,
                slot=True,
                device=variable.device,
                ranks=variable.ranks,
                sbp=variable.sbp,
            )
        return self.current_trace().resolve(slot.tensor)

    def at_step(self, function: Callable[[int], float], label: str = "learning_rate") -> Tensor:
        """A 0-d float64 that is read before every step: function(t), where t is the number of training steps this job
        has done.
        """
        if function not in self.numbers:
            steps, name = self.session.steps, self.job.name
            number = self.numbers[function] = self.current_trace().scalar(lambda: float(function(steps.get(name, 0))))
            number._value.node.name = label
        return self.numbers[function]

    def write(self, target: Tensor, new: Tensor) -> None:
        """Write a variable or a slot; `new` is cast to its dtype."""
        write_into(target, moved(new, target.spec.placement) if on_ranks(new) else new)

    def minimize(self, optimizer: Any, losses: list[Tensor]) -> None:
        """Train on these losses. The gradients are those of the mean over all their elements."""
        if not self.training:
            what = f"job {self.job.name} minimizes a loss, and its type is predict"
            self.add_error(JobError(what, where=here(), hint='@flow.global_function(type="train")'))
            return
        if self.optimizer is not None and self.optimizer[1] == self.replica:
            values = {"first": f"at {where_text(self.minimized_at)}"}
            hint = "one optimizer, with a list of losses: minimize([loss1, loss2])"
            self.add_error(JobError(f"job {self.job.name} minimizes twice", where=here(), values=values, hint=hint))
            return
        for loss in losses:
            if not isinstance(loss, Tensor) or not loss.spec.dtype.floating:
                what = "minimize takes a loss of floating dtype"
                hint = "loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)"
                raise JobError(what, values={"got": describe(loss)}, where=here(), hint=hint)
        if not losses or len({(loss.spec.shape, loss.spec.dtype) for loss in losses}) > 1:
            what = "losses that are minimized together must have the same shape and dtype"
            hint = "reduce each first"
            values = {f"loss {i}": describe(loss) for i, loss in enumerate(losses)}
            raise JobError(what, where=here(), values=values, hint=hint)
        if self.optimizer is None:
            self.optimizer, self.minimized_at = (optimizer, self.replica), caller(2)
        else:
            self.optimizer = (self.optimizer[0], self.replica)
        self.losses += losses

    def watch(self, blob: Tensor, handler: Callable, kind: Any, prompt: str, gradient: bool) -> None:
        """Pass the elements of a blob, or of its gradient, to a handler at every step."""
        known = self.watched_gradients if gradient else self.watched
        if self.replica == 0:
            known.append(Watch(handler, kind, prompt))
        index = sum(len(w.blobs) > self.replica for w in known)
        if index < len(known):
            known[index].blobs.append(blob)

    # ---- the trace ---------------------------------------------------------------------------------------------------

    def run(self) -> Part:
        """Build the graph of one step. If it fails, the session is unchanged."""
        mode = self.trace.replace(grad=self.training)
        token = BUILDING.set(self)
        try:
            with using(mode):
                for replica in range(self.devices):
                    self.replica, self.named, before = replica, {}, len(self.problems)
                    args = self.arguments()
                    with self.collecting():
                        self.value = self.job.function(*args)
                        self.job.signature.check_result(self.value)
                        self.outputs.append(blobs_of(self.value))
                        counts = len(self.outputs[0]), len(self.outputs[-1])
                        if counts[0] != counts[1]:
                            what = f"job {self.job.name} returns a different number of Blobs on each device"
                            hint = "lists of the same length on every device"
                            values = {"device 0": counts[0], f"device {replica}": counts[1]}
                            raise JobError(what, values=values, where=self.job.signature.where, hint=hint)
                    if len(self.problems) > before:
                        break
                self.check()
                part = self.finish(mode)
                self.refuse_leaked_blobs()
            part.graph.verify()
            return part
        except BaseException:
            remove_symbolic_tensors(self)
            self.roll_back()
            raise
        finally:
            self.trace.restore_buffers()
            BUILDING.reset(token)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Append an error that ends the trace to the problems that were found before it."""
        try:
            yield
        except MinflowError as error:
            if not self.problems:
                raise
            self.add_error(error)

    def arguments(self) -> list[Any]:
        """Symbols for the inputs of this replica, in the structure of the signature."""
        arrays = iter(self.inputs[self.replica])
        leaves = iter(self.job.signature.leaves())
        many = f"@{self.replica}" if self.devices > 1 else ""

        def inside(tree: Any) -> Any:
            if isinstance(tree, tuple):
                return tuple(inside(inner) for inner in tree)
            argument, arrays_of = next(leaves), next(arrays)
            if isinstance(arrays_of, list):  # a list of arrays for each device
                symbols = [self.symbol(array, f"{argument.path}[{i}]{many}") for i, array in enumerate(arrays_of)]
                return symbols if len(symbols) > 1 else symbols[0]
            return self.symbol(arrays_of, argument.path + many)

        return [inside(tree) for tree in self.job.signature.arguments.values()]

    def symbol(self, spec: Spec, name: str) -> Tensor:
        return self.trace.symbol_of_input(spec, name)

    def check(self) -> None:
        """Raise the collected errors, if any, as one."""
        if self.training and self.optimizer is None and not any("minimize" in str(p) for p in self.problems):
            rate = "flow.optimizer.PiecewiseConstantScheduler([], [0.1])"
            hint = f'flow.optimizer.SGD({rate}).minimize(loss); or type="predict"'
            what = f"the train job {self.job.name} has no optimizer"
            self.add_error(JobError(what, where=self.job.signature.where, hint=hint))
        if len(self.problems) == 1:
            raise self.problems[0]
        if self.problems:
            texts = [f"{i}. {problem}" for i, problem in enumerate(self.problems, 1)]
            defined = f"; it is defined {self.job.signature.where}" if self.job.signature.where else ""
            error = JobError(f"job {self.job.name} has {len(texts)} mistakes{defined}\n" + "\n".join(texts))
            error.problems = tuple(self.problems)
            raise error

    def finish(self, mode: Any) -> Part:
        """Append gradients and updates after everything that the function computes, so that its results are those
        before the update.
        """
        outputs: list[Value] = []

        def add(blobs: list[Tensor]) -> list[int]:
            with using(mode):
                outputs.extend(mode.resolve(whole(blob))._value for blob in blobs)
            return list(range(len(outputs) - len(blobs), len(outputs)))

        self.positions = [add(list(column)) for column in zip(*self.outputs)]
        self.lengths = {
            i: (*add([blob.bound[0]]), blob.bound[1])  # output -> (output with its length, axis)
            for column, blobs in zip(self.positions, zip(*self.outputs))
            for i, blob in zip(column, blobs)
            if getattr(blob, "bound", None) is not None
        }
        self.watch_positions = [(w, add(w.blobs)) for w in self.watched]
        if self.training:
            gradients = self.train(mode)
            self.watch_positions += [(w, add(g)) for w, g in zip(self.watched_gradients, gradients)]
        elif self.watched_gradients:
            what = f"flow.watch_diff in job {self.job.name}, which computes no gradients"
            raise JobError(what, where=self.job.signature.where, hint='type="train" with an optimizer')
        with using(mode.replace(grad=False)):
            for blob, new in self.assigned:
                self.write(blob, new if self.mirror is None else of_first(new, self.mirror))
        ir = self.trace.graph
        ir.outputs, ir.updates = outputs, self.trace.updates()
        self.refuse_foreign_writes(ir)
        self.refuse_foreign_hooks()
        for generator, entry in self.trace.draws.items():
            entry[1]._value.node.name = "generator"
        return Part("step", ir, self.trace.leaves, len(outputs), {})

    def train(self, mode: Any) -> list[list[Tensor]]:
        """Backpropagate from every element of the losses, then apply the optimizer. Returns the watched gradients: for
        each watch, one per device.
        """
        optimizer = self.optimizer[0]
        with using(mode):
            used = list(self.used.values())
            watched = [blob for w in self.watched_gradients for blob in w.blobs]
            scale, count = optimizer.loss_scale(self), self.number_of_losses()
            seeds = [
                full(loss.spec.shape, 1 / count, dtype=loss.spec.dtype)
                if loss.spec.shape and isinstance(count, int)
                else ones(loss.spec.shape, dtype=loss.spec.dtype) / count
                for loss in self.losses
            ]
            if scale is not None:
                seeds = [seed * scale for seed in seeds]
            seeds = [like_gradient(seed, loss.spec) for seed, loss in zip(seeds, self.losses)]
            needing = [loss for loss in self.losses if loss._needs]
            gradients = (
                grad(self.losses, [symbol for _, symbol in used] + watched, seeds, allow_unused=True)
                if needing and used
                else []
            )
            pairs = [
                (variable, symbol, self.added_up(g, symbol))
                for (variable, symbol), g in zip(used, gradients)
                if g is not None
            ]
            if not pairs:
                what = f"the loss of job {self.job.name} depends on no variable that can be trained"
                hint = "layers create variables: flow.layers.dense(...); trainable=True"
                values = {"loss": describe(self.losses[0]), "trainable": ", ".join(self.used) or "no variables"}
                raise JobError(what, values=values, where=f"at {where_text(self.minimized_at)}", hint=hint)
            shown = [
                ones(blob.spec.shape) * 0 if g is None else g * count if scale is None else g * count / scale
                for blob, g in zip(watched, gradients[len(used) :])
            ]
        with using(mode.replace(origin=OPTIMIZER, scope="", grad=False)):
            ready = []
            for variable, symbol, g in pairs:
                if scale is not None:
                    g = g / scale
                if variable.regularizer is not None:
                    g = g + variable.regularizer.penalty_gradient(symbol)
                ready.append((variable, symbol, g))
            optimizer.apply(self, ready)
        shown_of = iter(shown)
        return [[next(shown_of) for _ in w.blobs] for w in self.watched_gradients]

    def number_of_losses(self) -> Any:
        """The number of elements of the first loss, on all devices: an int, or a 0-d Blob if ranks may differ."""
        count = sum([loss.spec.size for loss in self.losses[:: max(len(self.losses) // self.devices, 1)]])
        if self.mirror is None:
            return count
        if not any([issubclass(leaf.kind, ListNumpy | ListListNumpy) for leaf in self.job.leaves]):
            return count * len(self.mirror.order)
        return summed(full((), count, dtype=float64), self.mirror)

    def added_up(self, g: Tensor, symbol: Tensor) -> Tensor:
        """The gradient of a variable, with the terms of all ranks."""
        return like_gradient(g, symbol.spec) if self.mirror is None else summed(g, self.mirror)

    def refuse_foreign_writes(self, ir: Any) -> None:
        """Refuse writes to anything but variables and slots: they would silently change a tensor defined outside the
        job.
        """
        owned = {id(v.tensor.array) for v in (*self.session.variables.values(), *self.session.slots.values())}
        written = [(source.name, source.out_specs[0]) for source in ir.updates if id(source.array) not in owned]
        written += [(name, old.spec) for _, name, old, _ in self.trace.restore_buffers()]
        for name, spec in written:
            what = f"job {self.job.name} writes a tensor that is not a variable of the session"
            hint = "flow.get_variable(name, shape) is what a job may write; a module trains in an nn.Graph"
            values = {"tensor": f"{name or 'captured'}: {spec}"}
            raise JobError(what, values=values, where=self.job.signature.where, hint=hint)

    before = property(lambda self: self.trace.modules.before, doc="See `CalledModules`.")

    def refuse_leaked_blobs(self) -> None:
        """Refuse a Blob that is stored in a module: it is useless after the build."""
        for path, _, now, _ in written_attributes(self):
            for name, value in now.items():
                if name not in REGISTRIES and (blob := next(symbolic_tensors_in(value), None)) is not None:
                    what = (
                        f"job {self.job.name} leaves a Blob in {path}.{name}, where it has no elements after the build"
                    )
                    values = {f"{path}.{name}": describe(blob)}
                    hint = "return it from forward; or keep it in a variable of forward"
                    raise JobError(what, values=values, where=self.job.signature.where, hint=hint)

    def refuse_foreign_hooks(self) -> None:
        """Refuse a hook on a tensor defined outside the job: it would never run, because gradients are computed for
        variables only.
        """
        for handle, tensor in self.trace.hooked:
            if handle.number in handle.hooks:
                what = f"job {self.job.name} registers a hook on a tensor that is not a variable of the session"
                hint = "w = flow.get_variable(name, shape) and w.register_hook(hook); a module trains in an nn.Graph"
                values = {"tensor": describe(tensor)}
                raise JobError(what, values=values, where=self.job.signature.where, hint=hint)

    def roll_back(self) -> None:
        """Restore the session after a failed trace: remove the variables that it created."""
        for name in self.created:
            self.session.variables.pop(name, None)
        self.session.variables.update(self.replaced)
        self.session.slots.clear()
        self.session.slots.update(self.kept)


def handler_argument(arrays: list[HostArray], kind: Any) -> Any:
    """The argument for a handler of this kind. arrays: one per device."""
    if kind is ListNumpy:
        return arrays
    if kind is ListListNumpy:
        return [[array] for array in arrays]
    if kind is LocalTensor:
        return LocalTensor.from_parts(arrays)
    return arrays[0] if len(arrays) == 1 else concatenate_parts(arrays)


@register_build_reader(JobBuild.run.__code__)
def recorded_graph(own: Mapping[str, Any]) -> RecordedGraph:
    """The graph recorded before the build failed, for the error card."""
    build = own["self"]
    names = {symbol._value.node: name for name, (_, symbol) in build.used.items() if symbol._value is not None}
    return RecordedGraph(f"job {build.job.name}", build.trace.graph, lambda source: names.get(source) or source.name)
