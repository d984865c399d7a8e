"""The teacher's pages refer to existing lessons, exercises, mistakes and commands."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from minflow import cli, course
from minflow.exercises import welcome
from minflow.exercises.registry import all_exercises, lessons

TOP = Path(__file__).parents[2]
PAGES = {file.stem: file.read_text(encoding="utf-8") for file in sorted((TOP / "docs/teaching").glob("*.md"))}
EXERCISES = {one.number: one for one in all_exercises()}
LESSONS = {one.number: one for one in welcome.lessons(TOP / "notebooks")}
NOTES = {part[:2]: part for part in PAGES["notes"].split("\n## ")[1:]}
EVERY = {f"{number:02}" for number in range(17)}
FEWEST_MISTAKES = 3
# Lessons whose exercises are not defined yet: they are described by the course plan.
PLANNED = EVERY - set(lessons())


def rows(text, first):
    """Return the rows of the tables whose header begins with that cell, as lists of cells."""
    tables = re.findall(rf"^\| {first} \|.*\n\|[-|]+\|\n((?:\|.*\n)*)", text, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|\n").split(" |")] for table in tables for line in table.splitlines()]


def headings(number):
    cells = json.loads(LESSONS[number].path.read_bytes())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return re.findall(r"^#+ (.+)$", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_exercise_numbers_and_names_match(page):
    named = re.findall(r"\b((?:0\d|1[0-6])\.\d)\b(?: `(\w+)`)?", PAGES[page])
    wrong = [
        (number, name)
        for number, name in named
        if number[:2] not in PLANNED and (number not in EXERCISES or (name and EXERCISES[number].name != name))
    ]
    assert not wrong


def test_every_lesson_has_its_notes():
    assert set(NOTES) == EVERY
    for number, part in NOTES.items():
        assert all(
            f"**{word}" in part for word in ("Aim:**", "On the board:**", "They ask:**", "Cut first:**", "End with:**")
        ), number
        if number in LESSONS:
            assert headings(number)[0].startswith(part.partition("\n")[0]), number


@pytest.mark.parametrize("number", sorted(LESSONS))
def test_notes_state_the_minutes_of_the_lesson(number):
    if LESSONS[number].minutes:
        assert f"\n\n{LESSONS[number].minutes} minutes. " in NOTES[number]


@pytest.mark.parametrize("number", sorted(EVERY - PLANNED))
def test_mistakes_are_known_to_the_checks(number):
    said = rows(NOTES[number], "exercise")
    assert len(said) >= FEWEST_MISTAKES
    for exercise, mistake, _ in said:
        assert mistake in [wrong.name for wrong in EXERCISES[exercise[:4]].wrongs], (exercise, mistake)


def test_plan_has_every_lesson_once():
    weeks = rows(PAGES["plan"], "week")
    assert [week[0] for week in weeks] == [str(n) for n in range(1, 13)]
    assert sorted(", ".join(week[1] for week in weeks).split(", ")) == sorted(EVERY)
    assert len(re.findall(r"^\d+\. ", PAGES["plan"], re.MULTILINE)) == 12, "goals of learners, week by week"
    for _, some, _, lab, _ in weeks:
        assert {number[:2] for number in re.findall(r"\d\d\.\d", lab)} <= set(some.split(", ")), lab


def test_workshops_name_existing_sections():
    shown = rows(PAGES["workshop"], "minutes")
    for _, some, *cells in shown:
        for section in re.findall(r'"(\d\. [^"]+)"', " ".join(cells)):
            assert any(section in headings(number) for number in some.split(", ")), section
    demonstration, day = PAGES["workshop"].split("## One day")[0], PAGES["workshop"].split("## One day")[1]
    assert sum(int(row[0]) for row in rows(demonstration, "minutes")) == 90
    assert sum(int(row[0]) for row in rows(day, "minutes") if row[1]) == 330 and "330 minutes of work" in day


def commands():
    """Return the commands that begin with minflow, in the text and in terminal blocks."""
    text = "\n".join([*PAGES.values(), (TOP / "README.md").read_text(encoding="utf-8")])
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)```", text, re.MULTILINE | re.DOTALL))
    return sorted(
        {
            *re.findall(r"`(minflow [^`\n]+)`", text),
            *re.findall(r"^(?:\S+/bin/)?(minflow(?: .+)?)$", blocks, re.MULTILINE),
        }
    )


@pytest.mark.parametrize("command", commands())
def test_commands_are_valid(command, capsys):
    words = shlex.split(command)[1:] or ["lab"]
    if words[0] == "exercises" and len(words) == 2:  # only mentioned
        with pytest.raises(SystemExit) as ended:
            cli.main([*words, "--help"])
        assert ended.value.code == 0 and words[1] in capsys.readouterr().out
        return
    options, others = cli.parser().parse_known_args(words)
    assert not others and callable(options.command)
    if words[0] in ("run", "slides"):
        assert words[1] in EVERY | {"NN"}


WRITING = re.compile(r"minflow (?:lab --folder \w|slides|exercises (?:build|exam|new|repair|similar|grade .*--out))")


@pytest.mark.parametrize("page", [page for page in PAGES if WRITING.search(PAGES[page])])
def test_pages_whose_commands_write_files_name_a_folder_beside_the_checkout(page):
    """In the checkout, git would see marks and solutions, and `minflow lab --folder` refuses."""
    assert "#a-folder-of-yours)" in PAGES[page]


def test_the_folder_beside_the_checkout_accepts_a_copy_of_the_course(monkeypatch):
    block = PAGES["README"].partition("## A folder of yours")[2].partition("```sh\n")[2].partition("```")[0]
    (folder,) = re.findall(r"^cd (.+)$", block, re.MULTILINE)
    monkeypatch.chdir(TOP)
    place = Path(folder) / re.search(r"`minflow lab --folder (\w+)`", PAGES["README"])[1]
    course.check_location(course.work_folder(str(place)))
    with pytest.raises(ValueError, match="inside the checkout"):
        course.check_location(course.work_folder(place.name))


def test_exams_page_installs_the_extra_of_similar():
    extras = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = re.findall(r"uv sync --inexact --extra (\w+)", PAGES["exams"])
    assert [extras[name][0].partition(">")[0] for name in named] == ["copydetect"]
