"""benchmarks/compare.py: its statistics, and runs on a tiny repository whose clock is a variable."""

import os
import signal
import subprocess
import sys

import pytest

from tests import benchmarks

WORK = """
import os, random, time

clock, draw = 0.0, random.Random(int(os.environ["PYTHONHASHSEED"]) * 2 + {seed})
time.process_time = lambda: clock

def step():
    global clock
    clock += {cost} * draw.uniform(1.0, 1.04)
"""
MEASUREMENTS = """
PREPARE = ()
FIRST_CALLS = {"first": lambda: __import__("work").step}
STEPS = {"often": lambda: __import__("work").step, "new name": lambda: __import__("work").other}
"""


@pytest.fixture
def bench():
    with benchmarks.loaded("compare") as module:
        yield module


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with three commits: "base", "same" and "slow", which takes 10 % longer."""
    place = tmp_path / "repository"
    place.mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(place)]
    subprocess.run([*git, "init", "-q"], check=True)
    for seed, (name, cost) in enumerate({"base": 0.02, "same": 0.02, "slow": 0.022}.items()):
        (place / "work.py").write_text(WORK.format(seed=seed % 2, cost=cost))
        (place / "measurements.py").write_text(MEASUREMENTS)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", name], check=True)
        subprocess.run([*git, "tag", name], check=True)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.chdir(place)
    return place


def command(*words):
    return [sys.executable, str(benchmarks.FOLDER / "compare.py"), *words, "--measurements", "measurements.py"]


def compared(*words):
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("ratios", "ends"), [
    ([1, 2, 3, 4, 5, 6], (1, 3.5, 6)),  # 2 / 64 outside
    ([8, 7, 6, 5, 4, 3, 2, 1], (1, 4.5, 8)),  # 2 / 256; the second ones: 18 / 256
    ([*range(1, 10)], (2, 5, 8)),  # 20 / 512
    ([*range(1, 13)], (3, 6.5, 10)),  # 158 / 4096
])  # fmt: skip
def test_interval_contains_the_median_in_95_of_100_cases(bench, ratios, ends):
    assert bench.interval(ratios) == ends


def test_outliers_do_not_move_the_interval(bench):
    calm = [1.0, 1.01, 1.02, 0.99, 0.98, 1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0]
    low, _, high = bench.interval([*calm[:-2], 50.0, 0.01])
    assert 0.98 <= low < high <= 1.02


@pytest.mark.parametrize(("low", "high", "said"), [
    (1.051, 1.3, "slower"),
    (1.05, 1.3, "unclear"),
    (0.9, 1.06, "unclear"),
    (1.01, 1.05, "equal"),
    (0.97, 1.0, "equal"),
    (0.8, 0.999, "faster"),
])  # fmt: skip
def test_only_an_interval_above_the_limit_is_slower(bench, low, high, said):
    assert bench.verdict(low, high, 5.0) == said


def test_a_commit_is_as_fast_as_itself(repository, tmp_path):
    status, said = compared("base", "same", "--only", "first", "often", "--output", str(tmp_path / "run.json"))
    assert status == 0 and "more than 5 % slower: none" in said, said
    with benchmarks.loaded("record") as record:
        rows = record.load(tmp_path / "run.json")["rows"]
    assert [(row["name"], row["verdict"], row["samples"]) for row in rows] == [
        ("first", "equal", 12),
        ("often", "equal", 12),
    ]
    assert all(0.96 < row["interval"][0] <= row["interval"][2] < 1.04 for row in rows)
    assert rows[1]["processors"] == pytest.approx(0.02, rel=0.02)  # the fastest run of a process
    assert not [*(tmp_path / "temporary").iterdir()]


def test_a_slowdown_of_ten_percent_is_found(repository, tmp_path):
    status, said = compared("base", "slow", "--rounds", "6")
    assert status == 1 and "more than 5 % slower: first, often" in said, said
    assert "new name                   not compared: A: AttributeError" in said and "; B: AttributeError" in said
    assert compared("slow", "base", "--rounds", "6")[0] == 0, "faster"
    assert compared("base", "slow", "--rounds", "6", "--limit", "15")[0] == 0
    assert not [*(tmp_path / "temporary").iterdir()]


def test_a_folder_is_compared_with_its_changes(repository):
    (repository / "work.py").write_text(WORK.format(seed=1, cost=0.03))
    status, said = compared("slow", ".", "--rounds", "6", "--only", "often")
    assert status == 1 and "more than 5 % slower: often" in said, said


@pytest.mark.parametrize(("words", "fault"), [
    (["base", "nowhere"], "'nowhere' is neither a folder nor a commit of this repository"),
    (["base", "same", "--only", "never"], "no measurement contains never: first, often, new name"),
    (["base"], "two commits and at least 6 rounds are needed"),
    (["base", "same", "--rounds", "5"], "two commits and at least 6 rounds are needed"),
])  # fmt: skip
def test_wrong_arguments_are_refused(repository, words, fault):
    status, said = compared(*words)
    assert status == 2 and fault in said and "Traceback" not in said, said


@pytest.mark.parametrize("code", ["__import__('os')._exit(3)", "exit('no such library')"])
def test_a_process_that_ends_is_an_error(repository, tmp_path, code):
    (repository / "measurements.py").write_text(
        f"PREPARE = ()\nFIRST_CALLS = {{}}\nSTEPS = {{'end': lambda: lambda: {code}, 'next': lambda: print}}\n"
    )
    status, said = compared("base", "same")
    assert status == 2 and "no answer of" in said and "to 'end'" in said and "Traceback" not in said, said
    assert not [*(tmp_path / "temporary").iterdir()]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_removes_the_files(repository, tmp_path, number):
    (repository / "measurements.py").write_text(
        "PREPARE = ()\nFIRST_CALLS = {}\n"
        "def wait():\n    open('started', 'w').close()\n    import time; time.sleep(100)\n"
        "STEPS = {'wait': wait}\n"
    )
    process = subprocess.Popen(command("base", "same"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not [*(tmp_path / "temporary").glob("*/?/started")]:
        assert process.poll() is None
    process.send_signal(number)
    assert process.wait(timeout=60) != 0
    assert not [*(tmp_path / "temporary").iterdir()]


def test_every_measurement_runs(bench):
    """The default ones are valid minflow code; a step that runs often is prepared only."""
    file = benchmarks.FOLDER / "measurements.py"
    chosen = bench.selected(bench.load_measurements(file), [])
    assert len(chosen) > 15 and {"import", "first call, GPT", "graph, lenet"} <= chosen.keys()
    for name, (prepare, _) in chosen.items():
        if not name.startswith("first call"):
            prepare()()
    small = bench.load_measurements(file).deep_graph(3)
    assert small().item() == pytest.approx(small().item(), rel=0.1)
