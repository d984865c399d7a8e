"""Checkpoints of job functions: flow.train.CheckPoint and its manager, flow.checkpoint.get and save, load_variables.

A checkpoint holds every variable of the session by name, the optimizer states, the step of each train job, and the
state of the random generator, so that a resumed run continues as if it had not stopped. Saving and loading wait for the
queue. Values that are loaded before their variable exists are kept by name; the report says which were used. Read next:
`folder.py`.
"""

from __future__ import annotations

import datetime
import difflib
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ...core.backend import namespace, to_host
from ...core.base.errors import MinflowError, clean, clean_lines
from ...core.base.interrupts import uninterrupted
from ...core.context import current_context, world
from ...core.host import HostArray, HostScalar, host_array
from ...core.random import default_generator
from ...core.source_location import warn
from ...core.spec import DType, spec_of
from ...core.tensor import Tensor
from ...diagnosis.name_suggestions import similar_names
from ..queue.stream import current_stream
from ..session import Session, Variable, default_session
from . import folder
from .folder import DATA_FILE, DONE_FILE, FileVariable, check_path, refuse

T = TypeVar("T")
STEP_PREFIX = "System-Train-TrainStep-"  # followed by the name of a job: int64[1], its finished steps
RANDOM_STATE = "System-Random-State"  # int64[2]: state of the default generator
MAX_NAMES = 8  # names shown in a message


def first_names(names: Iterable[str]) -> str:
    """The first names, and the number of omitted ones."""
    names = list(names)
    return (
        ", ".join(map(clean, names[:MAX_NAMES]))
        + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")
        or "none"
    )


def plural(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def spec_text(array: Any) -> str:
    """ "float32[2, 3]"."""
    return f"{getattr(array.dtype, 'name', array.dtype)}{list(array.shape)}"


def saved_tensors(session: Session) -> dict[str, Variable]:
    """All tensors of the session that a checkpoint holds: variables, then optimizer states."""
    return {**session.variables, **session.slots}


def without_states(names: Iterable[str]) -> list[str]:
    """Names of a checkpoint without optimizer states ("<variable>-m"), which an evaluation does not need."""
    names = list(names)
    every = set(names)
    return [name for name in names if not any(name[:i] in every for i, letter in enumerate(name) if letter == "-")]


# ---- out of the session ----------------------------------------------------------------------------------------------


def get_all_variables() -> dict[str, Tensor]:
    """Name -> tensor: copies of every variable, of the optimizer states, and of the step of each train job.

    Waits for every submitted step; in a callback, returns the values after its step. If no job has run yet, the jobs
    are compiled first.
    """
    return {
        name: Tensor(array, spec_of(array))
        for name, array in snapshot(default_session(), "flow.get_all_variables").items()
    }


def snapshot(session: Session, what: str) -> dict[str, HostArray]:
    """Copies of all tensors, taken between two steps."""
    current_stream().sync_for_read()
    if not session.variables:
        make_variables(session, what)
    with (
        current_context().plan_lock
    ):  # a loop on another thread may keep submitting, but no step runs while this is held
        copies = {name: variable.copied() for name, variable in saved_tensors(session).items()}
        steps = {job.name: session.steps.get(job.name, 0) for job in session.jobs.values() if job.kind == "train"}
    return copies | {STEP_PREFIX + name: host_array([n], "int64") for name, n in steps.items()}


def make_variables(session: Session, what: str) -> None:
    """Compile the jobs so that their variables exist. Raises CheckpointError with the reasons if that fails."""
    reasons = {}
    for name, job in list(session.jobs.items()):
        try:
            job.compile()
        except MinflowError as error:
            reasons[f"job {name}"] = f"{type(error).__name__}: {error.what}"
    if session.variables:
        return
    if not session.jobs:
        hint = "define the job with @flow.global_function first: its layers create the variables"
        refuse(f"{what}: there are no variables yet, because no job function is defined", hint, variables="none")
    if reasons:
        what = f"{what}: there are no variables yet, and the jobs that would create them cannot be compiled"
        refuse(what, "call the job for the full error", **reasons)
    what = f"{what}: there are no variables: no job function has a layer or a flow.get_variable"
    refuse(what, "a job with flow.layers.dense(...), for example", jobs=first_names(session.jobs))


def save(path: str | os.PathLike, var_dict: Mapping[str, Any] | None = None) -> None:
    """Write variables into the folder `path`: all of the session, or name -> array, tensor or variable of a file.

    Atomic: the folder appears complete or not at all. It must not exist yet, or be empty. Raises CheckpointError if it
    is not empty, if a name cannot be a folder, or if it cannot be written.
    """
    save_as(path, var_dict, "flow.checkpoint.save")


def save_as(path: Any, var_dict: Any, what: str) -> None:
    place = check_path(path, what)
    current_stream().check_can_wait(what)
    # before waiting for the queue and copying
    on_first_rank(lambda: folder.refuse_full(place, what) if os.path.lexists(place) else None)
    if var_dict is None:
        arrays = snapshot(default_session(), what) | {RANDOM_STATE: default_generator.get_state()}
    else:
        arrays = {name: to_array(name, value, what) for name, value in check_mapping(var_dict, what).items()}
    on_first_rank(lambda: folder.write(place, arrays, what))


def on_first_rank(function: Callable[[], T]) -> T:
    """function(): by the first rank alone if jobs of the session run on several. Its result or its error is that of all
    ranks.
    """
    if not default_session().on_ranks:
        return function()
    current_stream().sync_for_read()
    comm, found, error = world(), None, None
    if comm.rank == 0:
        try:
            found = function()
        except Exception as failed:
            error = failed
    found, error = comm.exchange(comm.fingerprint("checkpoint"), (found, error))[0]
    if error is not None:
        raise error
    return found


def check_mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        what = f"{what}: variables must be a dict name -> array, got a {type(value).__name__}"
        refuse(what, '{"dense1-weight": array}', got=repr(value))
    for name in value:
        if not isinstance(name, str):
            refuse(
                f"{what}: the names of variables must be strings, got a {type(name).__name__}",
                f'"{name}"',
                name=repr(name),
            )
    return value


def to_array(
    name: str, value: Any, what: str, shape: tuple[int, ...] | None = None, dtype: DType | None = None
) -> HostArray:
    """Convert one entry to an array. shape, dtype: used if the file does not hold them."""
    if isinstance(value, FileVariable):
        return value.numpy() if value.shape is not None or shape is None else value.read(shape, dtype)
    if isinstance(value, Variable):
        return value.numpy()
    if isinstance(value, Tensor) and value.array is not None:
        return host_array(to_host(value.array))
    if isinstance(value, HostArray | HostScalar):
        array = host_array(value)
        if (kind := array.dtype.newbyteorder("=").name) in folder.META_NAMES:
            return array.astype(kind, copy=False)
        what = f"{what}: no variable can be of dtype {array.dtype}"
        refuse(what, 'array.astype("float32")', name=name, value=spec_text(array))
    symbolic = " of a job function, which has no elements" if isinstance(value, Tensor) else ""
    what = (
        f"{what}: {name!r} must be an array, a tensor or a variable of flow.checkpoint.get, "
        f"got a {type(value).__name__}{symbolic}"
    )
    refuse(what, 'np.array(x, "float32"), or let the job return the value', name=name, value=repr(value))


# ---- into the session ------------------------------------------------------------------------------------------------


class LoadReport:
    """Outcome of a load, by name. It is updated as jobs compile, until all of their variables exist.

    loaded: names assigned to a variable.  missing: variables without a loaded value; they keep their elements.
    unexpected: names without a variable (yet): a job that creates the variable later uses the value.
    """

    def __init__(self, session: Session, source: str, names: Iterable[str], whole: bool):
        self.session, self.source, self.names, self.whole = session, source, list(names), whole
        self.loaded: list[str] = []
        self.missing: list[str] = []
        self.known: set[str] = set()
        self.pending = {name for name, job in session.jobs.items() if not job.compiled}
        self.expecting = bool(session.jobs)  # True if there is a job that the values may belong to
        self.warned = False

    @property
    def unexpected(self) -> list[str]:
        taken = set(self.loaded)
        return [name for name in self.names if name not in taken]

    def update(self) -> list[str]:
        """Update to the variables that exist now. Returns the new ones."""
        there = saved_tensors(self.session)
        new = [name for name in there if name not in self.known]
        self.known.update(new)
        for name in there:
            self.session.waiting.pop(name, None)
        names = set(self.names)
        self.loaded += [name for name in new if name in names]
        self.missing += [name for name in new if name not in names]
        return new

    def job_compiled(self, job: Any) -> None:
        """Called when a job has compiled: warn about unused names, and raise CheckpointError if nothing was used."""
        new = [name for name in self.update() if name in self.session.variables]
        self.pending.discard(job.name)
        if new:  # a job without variables says nothing about the checkpoint
            self.report_mismatches([name for name in new if name in self.missing], self.expecting)
            self.expecting = True

    def report_mismatches(self, missing: list[str], sure: bool) -> None:
        """Raise CheckpointError if no name fits, warn if some do not. Optimizer states are not reported.

        missing: variables to warn about.  sure: True if the values were meant for the existing jobs.
        """
        if self.whole and not self.loaded:
            if sure and not self.pending and not self.warned and self.names:
                self.warned = True
                self.nothing_fits()
            return
        taken = set(self.loaded)
        left = [name for name in without_states(self.names) if name not in taken]
        left = left if self.expecting and not self.pending and not self.warned else []
        self.warned |= bool(left)
        unused = {"missing": missing if self.whole else [], "unexpected": left}
        if any(unused.values()):
            counts = {"missing": "variable(s) of the job not in it", "unexpected": "name(s) that no variable has"}
            what = f"{self.source} fits in part: " + ", ".join(
                f"{len(unused[k])} {counts[k]}" for k in unused if unused[k]
            )
            hint = "the report that load returns has all names; a name is made of scopes and layers, joined by -"
            warn(what, hint, loaded=UnquotedNames(self.loaded), **{k: UnquotedNames(v) for k, v in unused.items() if v})

    def nothing_fits(self) -> NoReturn:
        here = list(self.session.variables)
        near = max(
            [
                (difflib.SequenceMatcher(None, a, b).ratio(), a, b)
                for a in without_states(self.names)[:100]
                for b in here[:100]
            ]
        )
        hint = (
            f"{near[1]} may be {near[2]}: rename it in a dict for flow.load_variables"
            if near[0] > 0.6
            else "that of this model"
        )
        what = f"{self.source} has no variable of this session: it belongs to another model"
        refuse(what, hint, it_has=first_names(without_states(self.names)), expected=first_names(here))

    def __repr__(self) -> str:
        waits = f" (waiting for {', '.join(sorted(self.pending))})" if self.pending else ""
        return clean_lines(
            "\n".join(
                [
                    f"{self.source}: {plural(len(self.loaded), 'variable')} loaded",
                    f"  loaded      {first_names(self.loaded)}",
                    f"  missing     {first_names(self.missing)}",
                    f"  unexpected  {first_names(self.unexpected)}{waits}",
                ]
            )
        )


class UnquotedNames(list):
    """A list of names that is shown without quotes in a message."""

    def __repr__(self) -> str:
        return first_names(self)


class PendingValue:
    """A loaded value whose variable does not exist yet; called for the array when a job creates it."""

    def __init__(self, name: str, value: Any, what: str):
        self.name, self.value, self.what = name, value, what

    def __call__(self, shape: tuple[int, ...], dtype: DType) -> HostArray:
        if isinstance(self.value, bytes):  # a file without a meta
            if len(self.value) != math.prod(shape) * dtype.itemsize:
                what = f"{self.what}: {self.name} must be {dtype.name}{list(shape)}, got {len(self.value):,} bytes"
                refuse(what, "load the checkpoint of this model", name=self.name)
            return namespace().frombuffer(self.value, dtype.np.newbyteorder("<")).astype(dtype.np).reshape(shape)
        return self.value


def load_variables(value_dict: Mapping[str, Any], ignore_mismatch: bool = True) -> LoadReport:
    """Load variables by name from arrays, tensors, or the result of flow.checkpoint.get.

    ignore_mismatch: if True, names without a variable are kept until a job creates it; if False, they are an error.
    Raises CheckpointError, naming all of them, if shapes or dtypes differ; then nothing is loaded.
    """
    return load_values(
        check_mapping(value_dict, "flow.load_variables"), "flow.load_variables", "the dict", strict=not ignore_mismatch
    )


def load_values(
    values: Mapping[str, Any], what: str, source: str, strict: bool = False, whole: bool = False
) -> LoadReport:
    """Load values into the session, all or nothing. whole: the values are a whole model, so missing variables are
    reported, and it is an error if no name fits.
    """
    current_stream().check_can_wait(what)
    session = default_session()
    session.sync()
    there = saved_tensors(session)
    if strict and (unknown := [name for name in values if name not in there and not name.startswith("System-")]):
        near = similar_names(unknown[0], there, 3, 0.6)
        kind = "is not a variable" if len(unknown) == 1 else "are not variables"
        what = f"{what}: {first_names(repr(name) for name in unknown)} {kind}"
        hint = f"did you mean {' or '.join(near)}?" if near else "ignore_mismatch=True leaves them out"
        refuse(what, hint, unknown=first_names(unknown), there_are=first_names(there))
    new, later, steps, wrong, random = {}, {}, {}, {}, None
    for name, value in values.items():
        if name.startswith(STEP_PREFIX):
            steps[name.removeprefix(STEP_PREFIX)] = step_of(
                name, to_array(name, value, what, (1,), folder.as_dtype("int64")), what
            )
        elif name == RANDOM_STATE:
            random = to_array(name, value, what, (2,), folder.as_dtype("int64"))
            if random.dtype != "int64" or random.shape != (2,):
                what = f"{what}: {name} is not the state of a generator"
                refuse(what, "int64[2]: flow.default_generator.get_state()", found=spec_text(random))
        elif name in there:
            variable = there[name]
            array = to_array(name, value, what, variable.shape, variable.dtype)
            if array.shape == variable.shape and array.dtype == variable.dtype.np:
                new[name] = array
            else:
                wrong[name] = f"{spec_text(array)} is loaded, the variable is {spec_text(variable)}"
        elif isinstance(value, FileVariable) and value.shape is None:
            size = value.size_of(value.path)
            later[name] = PendingValue(name, value.read((size,), folder.as_dtype("uint8")).tobytes(), what)
        else:
            later[name] = PendingValue(name, to_array(name, value, what), what)
    if wrong:
        shown = dict(list(wrong.items())[:MAX_NAMES])
        more = {"and": f"{len(wrong) - MAX_NAMES} more"} if len(wrong) > MAX_NAMES else {}
        what = (
            f"{what}: {plural(len(wrong), 'variable')} of {source} {'does' if len(wrong) == 1 else 'do'} not fit, so "
            "nothing was loaded"
        )
        hint = (
            "the same sizes in the job as when it was saved; or leave them out: flow.load_variables({...}) of the "
            "others"
        )
        refuse(what, hint, **shown, **more)
    report = LoadReport(session, source, [name for name in values if not name.startswith("System-")], whole)
    if whole and not new and there and not report.pending and report.names:
        report.nothing_fits()
    with current_context().plan_lock, uninterrupted():  # no step and no Ctrl-C between the writes
        for name, array in new.items():
            there[name].write(array)
        session.steps.update(steps)
        if random is not None and any(job.kind == "train" for job in session.jobs.values()):
            default_generator.set_state(random)
    session.waiting.update(later)
    session.loading = report
    report.update()
    report.report_mismatches([name for name in report.missing if name in session.variables], sure=False)
    return report


def step_of(name: str, array: HostArray, what: str) -> int:
    if array.size != 1 or array.dtype.kind not in "iu" or array.item() < 0:
        what = f"{what}: {name} must be a number of steps"
        refuse(what, "int64[1], 0 or more", found=f"{spec_text(array)} {array.reshape(-1)[:4]}")
    return int(array.item())


def get(path: str | os.PathLike) -> dict[str, FileVariable] | FileVariable:
    """The variables of a checkpoint, read lazily by `.numpy()`; for the folder of one variable, that variable alone.

    Raises CheckpointError if there is no such folder, if it has no variables, or if one of them is damaged.
    """
    return variables_of(check_path(path, "flow.checkpoint.get"), "flow.checkpoint.get")


def variables_of(place: Path, what: str) -> dict[str, FileVariable] | FileVariable:
    if not os.path.isdir(place):
        no_folder(place, what)
    if os.path.isfile(place / DATA_FILE):
        return FileVariable(place)
    names = folder.entries(place)
    if DONE_FILE not in names and any(map(folder.is_temporary, names)):  # it holds a part of them
        hint = "another checkpoint; remove what is in this folder before the next save into it"
        refuse(f"{what}: the save into {place} did not finish", hint, folder=place, it_holds=first_names(names))
    variables = folder.variables_in(place)
    if not variables and DONE_FILE not in names:
        hint = (
            f'flow.load("{place}"): it was written by flow.save'
            if any(name.endswith(".safetensors") for name in names)
            else "the folder that was given to save"
        )
        what = f"{what}: the folder {place} is not a checkpoint: no folder in it has a file {DATA_FILE}"
        refuse(what, hint, folder=place, it_holds=first_names(names))
    return variables


def no_folder(place: Path, what: str) -> NoReturn:
    if os.path.exists(place):
        hint = (
            "flow.load reads files of flow.save"
            if place.suffix == ".safetensors"
            else "the folder that was given to save"
        )
        refuse(f"{what}: {place} must be a folder, got a file", hint, path=place)
    there = folder.entries(place.parent) if os.path.isdir(place.parent) else []
    there = [
        name for name in there if os.path.isfile(place.parent / name / DONE_FILE) and not folder.is_temporary(name)
    ]
    near = similar_names(place.name, there, 3, 0.4) or there
    what = f"{what}: there is no folder {place}"
    hint = f'"{place.with_name(near[0])}"' if near else "os.getcwd() says where a relative path begins"
    refuse(what, hint, folder=place.parent, **{"checkpoints_there": first_names(near)} if near else {})


class CheckPoint:
    """Save and load all variables of the session: flow.train.CheckPoint()."""

    def init(self) -> None:
        """Do nothing: each variable is initialized when a job creates it. To restart training, clear the session."""
        session = default_session()
        session.sync()
        done = {
            f"steps of {name}": UnquotedNames([str(n)])
            for name, n in session.steps.items()
            if n and name in session.jobs
        }
        if done:
            what = (
                "CheckPoint.init leaves the variables as training has left them: they are initialized when a "
                "job creates them"
            )
            warn(what, "flow.clear_default_session() and then the jobs defined again start over", **done)

    def save(self, path: str | os.PathLike) -> None:
        """Write all variables to the new folder `path`, as flow.checkpoint.save does."""
        save_as(path, None, "CheckPoint.save")

    def load(self, path: str | os.PathLike) -> LoadReport:
        """Load variables from the folder `path`; those of a job that has not run yet are loaded at its first call.

        Variables that are not in the folder are unchanged, and a warning names them. Raises CheckpointError if the
        folder is not a complete checkpoint, if a shape or dtype differs, or if no name fits; then nothing changes.
        """
        what, place = "CheckPoint.load", check_path(path, "CheckPoint.load")
        variables = variables_of(place, what)
        if isinstance(variables, FileVariable):
            what = f"{what}: {place} is the folder of one variable"
            refuse(what, f'"{place.parent}"; flow.checkpoint.get("{place}") reads it alone', folder=place)
        if not os.path.isfile(place / DONE_FILE):
            inside = [name for name in folder.entries(place) if os.path.isfile(place / name / DONE_FILE)]
            what = (
                f"{what}: {place} has no file {DONE_FILE}, so the save did not finish, or it is not the folder of one "
                "checkpoint"
            )
            hint = (
                f'"{place / inside[-1]}"'
                if inside
                else f'if it is complete anyway: flow.load_variables(flow.checkpoint.get("{place}"))'
            )
            refuse(what, hint, folder=place, variables=first_names(variables))
        return load_values(variables, what, f"the checkpoint {place}", whole=True)


class SimpleCheckPointManager:
    """Checkpoints in one folder, named by time: flow.train.SimpleCheckPointManager("./snapshots").

    root_path: the folder, created if necessary.  prefix: prefix of the names of its checkpoints.
    """

    def __init__(self, root_path: str | os.PathLike, prefix: str = "snapshot_"):
        self.root = check_path(root_path, "SimpleCheckPointManager")
        if not isinstance(prefix, str) or os.path.basename(prefix) != prefix or "\0" in prefix:
            what = "SimpleCheckPointManager: prefix must be the beginning of a name"
            refuse(what, 'prefix="snapshot_"', prefix=repr(prefix))
        self.prefix, self.checkpoint = prefix, CheckPoint()
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            what = f"SimpleCheckPointManager: {self.root} cannot be a folder: {error.strerror}"
            refuse(what, "another root_path", error, path=self.root)

    def list_checkpoints(self) -> list[str]:
        """Names of the complete checkpoints, oldest first."""
        names = [
            name for name in folder.entries(self.root) if name.startswith(self.prefix) and not folder.is_temporary(name)
        ]
        return [name for name in names if os.path.isfile(self.root / name / DONE_FILE)]

    def latest_checkpoint(self) -> str | None:
        """The name of the newest one, or None."""
        return next(reversed(self.list_checkpoints()), None)

    def initialize_or_restore(self) -> LoadReport | None:
        """Load the newest checkpoint; if there is none, save the first."""
        name = on_first_rank(self.latest_checkpoint)
        if name is not None:
            return self.checkpoint.load(self.root / name)
        self.checkpoint.init()
        self.save()
        return None

    def save(self) -> str:
        """Save a new checkpoint. Returns its name, which sorts after all others even if the clock went back."""
        name = on_first_rank(self.new_name)
        self.checkpoint.save(self.root / name)
        return name

    def new_name(self) -> str:
        now, latest = datetime.datetime.now(), self.latest_checkpoint()
        name = f"{self.prefix}{now:%Y%m%d_%H%M%S_%f}"
        return name if latest is None or name > latest else later_than(latest, self.prefix)


def later_than(latest: str, prefix: str) -> str:
    """A name one microsecond later; if the latest is not a time, the latest with one more letter."""
    try:
        then = datetime.datetime.strptime(latest.removeprefix(prefix), "%Y%m%d_%H%M%S_%f")
        return f"{prefix}{then + datetime.timedelta(microseconds=1):%Y%m%d_%H%M%S_%f}"
    except (ValueError, OverflowError):
        return f"{latest}_1"
