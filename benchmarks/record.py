"""Record runs of the benchmarks as JSON: the measured rows with the machine, the commit and the arguments.

A script makes its command line with `parser`, a `Run` before it measures, adds a row for each figure, and finishes:

    options = record.parser(__doc__).parse_args()
    run = record.Run("eager", options)
    run.add(name="mlp", seconds=0.0027, peer="PyTorch", peer_seconds=0.0024, ratio=[1.11, 1.14, 1.16], samples=40)
    run.finish()

`finish` writes the file that `--output` names, and with `--record` `results/SCRIPT.json`, which is committed and from
which `tables.py` generates the tables of the documentation. `load` reads such a file and checks it.

Schema 1. A run: "schema"; "script"; "source" ("measured", or "page": figures that the documentation stated before runs
were recorded); "date"; "arguments"; "settings" (environment variables of minflow); "commit" ({"hash", "dirty"} or null
if unknown); "machine"; "note" (optional: conditions in words); "rows". The machine: "processor"; if known "cores",
"memory" (bytes), "system", "python", "packages" ({name: version}), "blas" and "load" (average at the start and at the
end). A row has a "name"; "case" and "contestant" tell apart rows of one name. "seconds" is the wall time of one
step and "processors" its processor time, each the median of "samples" rounds; "peer_seconds" and "peer_processors" are
those of the contestant "peer" in the same rounds; "ratio" and "processors_ratio" have the quartiles of contestant /
peer over paired rounds. A contestant that cannot run has the reason in "unavailable". Other fields are texts, numbers,
or lists of them.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
SCHEMA = 1
PACKAGES = ("numpy", "numba", "scipy", "torch", "jax", "onnxruntime")
TITLES = {"numpy": "numpy", "numba": "numba", "torch": "PyTorch"}  # packages in a summary

TEXT, COUNT, NUMBER = "a text", "a whole number of at least 1", "a number above 0"
QUARTILES = "three rising numbers above 0"
MACHINE = {"processor": TEXT, "cores": COUNT, "memory": COUNT, "system": TEXT, "python": TEXT, "blas": TEXT}
MACHINE |= {"gpu": TEXT}
ROW = {"name": TEXT, "case": TEXT, "contestant": TEXT, "peer": TEXT, "unavailable": TEXT, "clock": TEXT}
ROW |= dict.fromkeys(("seconds", "peer_seconds", "processors", "peer_processors"), NUMBER) | {"samples": COUNT}
ROW |= {"ratio": QUARTILES, "processors_ratio": QUARTILES}


class DamagedRun(ValueError):
    """A file of results that breaks the schema. The message names the file, the place and the value."""


# ---- files -----------------------------------------------------------------------------------------------------------


def load(file: Path) -> dict[str, Any]:
    """Read a recorded run. Raises DamagedRun if it breaks the schema."""
    try:
        run = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DamagedRun(f"{file} cannot be read as JSON: {error}. {advice(file)}") from error
    if faults := [*faults_of(run)]:
        raise DamagedRun(f"{file} breaks the schema of recorded runs: {'; '.join(faults[:5])}. {advice(file)}")
    return run


def advice(file: Path) -> str:
    return (
        f"Restore it (git checkout -- {file.name}), or measure again: --record writes it. Schema: benchmarks/record.py"
    )


def faults_of(run: Any):
    """Yield the differences between a run and the schema, each with its place in the file and the value there."""
    if not isinstance(run, dict):
        yield f"the file must be an object, got {run!r:.60}"
        return
    expected = {"schema": SCHEMA, "source": ("measured", "page")}
    for key, allowed in expected.items():
        if run.get(key) not in (allowed if isinstance(allowed, tuple) else (allowed,)):
            yield f"{key} must be {allowed}, got {run.get(key)!r:.60}"
    yield from wrong_fields(run, {"script": TEXT, "date": TEXT}, "", required=("script", "date"))
    for key, kind in {"arguments": list, "settings": dict, "machine": dict, "rows": list}.items():
        if not isinstance(run.get(key), kind):
            yield f"{key} must be a {kind.__name__}, got {run.get(key)!r:.60}"
    commit = run.get("commit")
    if commit is not None and not (
        isinstance(commit, dict) and is_(TEXT, commit.get("hash")) and isinstance(commit.get("dirty"), bool)
    ):
        yield f'commit must be null or {{"hash": text, "dirty": boolean}}, got {commit!r:.60}'
    if isinstance(run.get("machine"), dict):
        yield from wrong_fields(run["machine"], MACHINE, "machine.", required=("processor",))
    seen: dict[str, int] = {}
    for index, row in enumerate(run["rows"] if isinstance(run.get("rows"), list) else ()):
        place = f"rows[{index}]"
        if not isinstance(row, dict):
            yield f"{place} must be an object, got {row!r:.60}"
            continue
        yield from wrong_fields(row, ROW, f"{place}.", required=("name",))
        for key, value in row.items():
            numbers = value if isinstance(value, list) else [value]
            if key not in ROW and not all(isinstance(one, str | int | float) for one in numbers):
                yield f"{place}.{key} must be a text, a number or a list of them, got {value!r:.60}"
        words = repr(sorted((key, value) for key, value in row.items() if isinstance(value, str)))
        words += repr([row.get(key) for key in ("threads", "share")])
        if seen.setdefault(words, index) != index:
            yield f"{place} has the same name, case and contestant as rows[{seen[words]}]: {row.get('name')!r}"


def wrong_fields(found: dict, fields: dict[str, str], place: str, required: tuple[str, ...]):
    for key, kind in fields.items():
        if key in required and key not in found:
            yield f"{place}{key} is missing"
        elif key in found and not is_(kind, found[key]):
            yield f"{place}{key} must be {kind}, got {found[key]!r:.60}"


def is_(kind: str, value: Any) -> bool:
    """True if a value of a JSON file is of this kind."""
    if kind == QUARTILES:
        return (
            isinstance(value, list)
            and len(value) == 3
            and value == sorted(value)
            and all(is_(NUMBER, v) for v in value)
        )
    if kind == TEXT:
        return isinstance(value, str) and value != ""
    right = isinstance(value, int) if kind == COUNT else isinstance(value, int | float)
    return right and not isinstance(value, bool) and 0 < value < float("inf")


# ---- a run -----------------------------------------------------------------------------------------------------------


def parser(doc: str, rounds: int | None = None, writes: bool = True) -> argparse.ArgumentParser:
    """Make a command line with `--output` and `--record` if it writes a run, and `--rounds` if a default is given."""
    made = argparse.ArgumentParser(description=doc.partition("\n\n")[0].replace("\n", " "))
    if not writes:
        return made
    made.add_argument("--output", metavar="FILE", type=Path, help="write the figures there as JSON")
    made.add_argument(
        "--record", nargs="?", const="", metavar="NAME", help="write them to results/NAME.json (the script)"
    )
    if rounds:
        made.add_argument("--rounds", type=int, default=rounds, help=f"rounds of alternation (default {rounds})")
    return made


class Run:
    """A run of a script: its rows, and the facts about the machine, which are read when it starts."""

    def __init__(self, script: str, options: argparse.Namespace):
        self.files = [options.output] if options.output else []
        if options.record is not None:
            self.files.append(RESULTS / f"{options.record or script}.json")
        words = [word for word in sys.argv[1:] if not word.startswith("--record")]
        settings = {k: v for k, v in os.environ.items() if k.startswith("MINFLOW_") and k != "MINFLOW_KERNELS"}
        self.rows: list[dict[str, Any]] = []
        self.facts = {
            "schema": SCHEMA,
            "script": script,
            "source": "measured",
            "date": datetime.date.today().isoformat(),
            "arguments": without_output(words),
            "settings": settings,
            "commit": commit(),
            "machine": machine(),
        }

    def say(self, text: str) -> None:
        """Print the machine and what the columns are."""
        print(f"{summary(self.facts['machine'])}\n{text}", flush=True)

    def add(self, **row: Any) -> dict[str, Any]:
        """Add a row, without fields that are None."""
        self.rows.append({key: value for key, value in row.items() if value is not None})
        return self.rows[-1]

    def finish(self) -> None:
        """Write the files. A run that breaks the schema is an error of the script: raises DamagedRun."""
        self.facts["machine"]["load"].append(load_average())
        run = {**self.facts, "rows": self.rows}
        if faults := [*faults_of(run)]:
            raise DamagedRun(f"{run['script']}.py measured rows that break the schema: {'; '.join(faults)}")
        for file in self.files:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dumped(run), encoding="utf-8")


def dumped(run: dict[str, Any]) -> str:
    """JSON with a line for each fact and each row, so that a difference of two runs can be read."""
    text = lambda value: json.dumps(rounded(value), ensure_ascii=False)
    facts = "".join(f" {text(key)}: {text(value)},\n" for key, value in run.items() if key != "rows")
    rows = ",\n".join(f"  {text(row)}" for row in run["rows"])
    return f'{{\n{facts} "rows": [\n{rows}\n ]\n}}\n'


def rounded(value: Any) -> Any:
    """The value with numbers of five digits: more are noise."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def without_output(words: list[str]) -> list[str]:
    """The arguments without `--output FILE`: where a run is written does not change it."""
    return [w for i, w in enumerate(words) if not w.startswith("--output") and words[i - 1 : i] != ["--output"]]


def commit() -> dict[str, Any] | None:
    """The commit of this checkout, and whether files differ from it; None outside a checkout."""
    git = ["git", "-C", str(FOLDER)]
    try:
        found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changes = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"hash": found, "dirty": any("benchmarks/results/" not in line for line in changes.splitlines())}


def machine() -> dict[str, Any]:
    found: dict[str, Any] = {"processor": processor(), "cores": cores()}
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found["memory"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    found |= {"system": f"{platform.system()} {platform.release()}", "python": platform.python_version()}
    found["packages"] = {}
    for name in PACKAGES:
        try:
            found["packages"][name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if name := blas():
        found["blas"] = name
    return found | {"load": [load_average()]}


def processor() -> str:
    """Name of the processor, with LLVM's name of its generation if numba is installed."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    try:
        from llvmlite import binding
    except ImportError:
        return name
    return f"{name} ({binding.get_host_cpu_name()})"


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def blas() -> str | None:
    """Name and version of NumPy's BLAS."""
    import numpy as np

    found = np.show_config("dicts").get("Build Dependencies", {}).get("blas", {})
    return f"{found['name']} {found.get('version', '')}".strip() if found.get("name") else None


def load_average() -> float:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0


# ---- words for people ------------------------------------------------------------------------------------------------


def summary(machine: dict[str, Any]) -> str:
    """One line about a machine: processor, cores, load, Python, packages."""
    parts = [machine["processor"]]
    if "cores" in machine:
        parts.append(f"{machine['cores']} core{'s' * (machine['cores'] > 1)}")
    if loads := machine.get("load"):
        parts.append(f"load {' to '.join(f'{load:.1f}' for load in loads)}")
    if "python" in machine:
        parts.append(f"Python {machine['python']}")
    versions = machine.get("packages", {})
    parts += [f"{title} {versions[name]}" for name, title in TITLES.items() if name in versions]
    return ", ".join([*parts, machine["blas"]] if "blas" in machine else parts)


def provenance(run: dict[str, Any]) -> str:
    """A sentence about where the figures of a run come from."""
    day = datetime.date.fromisoformat(run["date"])
    when = f"{day.day} {day:%B %Y}"
    if run["source"] == "page":
        text = f"Stated by this page on {when}, before runs were recorded: {summary(run['machine'])}"
    else:
        settings = "".join(f"{key}={value} " for key, value in run["settings"].items())
        command = f"{settings}python benchmarks/{run['script']}.py {shlex.join(run['arguments'])}".strip()
        state = run["commit"]
        at = f" at commit {state['hash'][:8]}{' with changes' * state['dirty']}" if state else ""
        text = f"Measured by `{command}`{at} on {when}: {summary(run['machine'])}"
    return f"{text}. {run['note']}" if "note" in run else f"{text}."
