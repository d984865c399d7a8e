"""Typing errors of teachers on the command line: each command names its own usage, and what was meant."""

import pytest

from minflow import cli


@pytest.mark.parametrize(
    ("words", "usage", "said"),
    [
        (["exercises", "exam", "--sede", "3"], "exercises exam", "--sede; did you mean --seed?"),
        (["slides", "02", "--oot=s.html"], "slides", "--oot=s.html; did you mean --out?"),
        (["slides", "02", "03"], "slides", "unrecognized arguments: 03\n"),
        (["exercises", "grade", ".", "--memory", "0"], "exercises grade", "must be a number above 0, got '0'"),
        (["exercises", "grade", ".", "--seconds", "inf"], "exercises grade", "must be a number above 0, got 'inf'"),
        (["exercises", "grade", ".", "--jobs", "0"], "exercises grade", "must be a whole number from 1 on, got '0'"),
    ],
)
def test_options(words, usage, said, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    err = capsys.readouterr().err
    assert ended.value.code == 2 and err.startswith(f"usage: minflow {usage} [") and said in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["exercises", "exam", "mid-term"], "did you mean midterm?"),
        (["exercises", "exam", "mitdterm"], "did you mean midterm?"),
        (["exercises", "exam", "slop"], "did you mean slope"),
        (["exercises", "exam", "zzzzzz"], "exercises exam lists all exercises"),
        (["exercises", "build", "out", "--lesson", "2"], "Did you mean --lesson 02?"),
        (["exercises", "build", "out", "--lesson", "00,02"], "Did you mean --lesson 00 02?"),
        (["exercises", "try", "own/spred.py"], "there is no file or folder own/spred.py"),
        (["exercises", "grade", "README.md"], "README.md is not a notebook"),
        (["slides", "2"], "there is no notebook '2'; there are: 00_a_program_that_learns, 01_"),
    ],
)
def test_names(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").touch()
    (tmp_path / "own").mkdir()
    assert cli.main(words) == 1
    out, err = capsys.readouterr()
    assert said in err and "progress()" not in err and not out
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["README.md", "own"]
