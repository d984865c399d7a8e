"""Similar submissions: what counts, what does not, and a page that is safe to open."""

import re

import pytest

from minflow import cli
from minflow.exercises import cells
from minflow.exercises.registry import find
from minflow.exercises.teach import notebook as nb, similarity
from tests.exercises.teach.small_course import RIGHT, answered

OWN = """def slope(f, x, h=1e-3):
    table = {side: f(x + side * h) for side in (-1, 1)}
    total = 0.0
    for side, height in table.items():
        total += side * height
    distance = abs((x + h) - (x - h))
    return total / distance
"""
COPY = """def slope(func, place, h=1e-3):
    # my own idea
    values = {s: func(place + s * h) for s in (-1, 1)}
    summed = 0.0
    for s, v in values.items():
        summed += s * v
    way = abs((place + h) - (place - h))
    return summed / way
"""
OTHER = """def slope(f, x, h=1e-3):
    points = []
    while len(points) < 2:
        points.append(x - h if not points else x + h)
    first, last = [f(point) for point in points]
    return (last - first) / (points[1] - points[0])
"""


@pytest.fixture
def class_of(course_folder, tmp_path):
    def write(**answers):
        for name, answer in answers.items():
            nb.write(
                tmp_path / "in" / f"{name}.ipynb", answered({"slope": answer} if isinstance(answer, str) else answer)
            )
        return [str(tmp_path / "in")]

    return write


def names(found):
    return {tuple(file.split("/")[-1][:-6] for file in pair) for pair in found.pairs}


def test_copies_with_other_names_are_found_and_others_are_not(class_of):
    found = similarity.compare(class_of(anna=OWN, ben=COPY, cleo=OTHER))
    assert names(found) == {("anna", "ben")}
    ((match,),) = found.pairs.values()
    assert match.share > 0.9 and match.first.exercise == "slope"
    assert 6 in match.lines[0] and 6 in match.lines[1]


def test_stub_solution_and_other_right_answers_do_not_count(class_of):
    exercise = find("slope")
    right = {f"right{i}": cells.definition_source(answer) for i, answer in enumerate(exercise.other_solutions)}
    found = similarity.compare(class_of(stub=cells.answer_cell("slope"), solved=cells.solved_cell("slope"), **right))
    assert found.pairs == {} and found.short["slope"] == 1 + len(right)


def test_a_repeated_part_counts_although_the_solution_has_it(class_of):
    """copydetect's own removal drops an arbitrary occurrence and keeps the others."""
    whole = cells.solved_cell("slope")
    answer = similarity.fingerprint(find("slope"), whole + "\n\n" + whole)
    assert answer.token_coverage < similarity.LEAST


def test_values_are_not_compared(class_of):
    found = similarity.compare(class_of(anna=RIGHT, ben=RIGHT))
    assert {match.first.exercise for matches in found.pairs.values() for match in matches} <= {"slope", "same_scale"}


def test_unreadable_files_are_named(class_of, tmp_path):
    paths = class_of(anna=OWN)
    (tmp_path / "in" / "broken.ipynb").write_text("no notebook")
    found = similarity.compare(paths)
    assert len(found.files) == 1 and "it is not JSON" in found.remarks[0]


def test_the_page_is_safe_and_states_its_limits(class_of, tmp_path, capsys):
    evil = "    note = '</pre><script>alert(1)</script><img src=x onerror=alert(2)>'\n"
    head, _, rest = OWN.partition("\n")
    first = f"{head}\n{evil}{rest}"
    paths = class_of(**{"anna": first, "<b>ben": COPY.replace("    summed = 0.0\n", evil + "    summed = 0.0\n")})
    out = tmp_path / "similar.html"
    assert cli.main(["exercises", "similar", *paths, "--out", str(out)]) == 0, capsys.readouterr().err
    page = out.read_text()
    assert "&lt;/pre&gt;&lt;script&gt;" in page and "&lt;b&gt;ben" in page
    tags = {name.lower() for name in re.findall(r"</?\s*(\w+)", page)}
    assert not tags & {"script", "img", "iframe", "b", "link", "object"} and " on" not in "".join(
        re.findall("<[^>]*>", page)
    )
    assert "A number is not a proof" in page and "<mark>" in page and "Too short to compare" in page


def test_chinese_page(class_of, monkeypatch):
    monkeypatch.setenv("MINFLOW_LANG", "zh")
    assert '<html lang="zh">' in similarity.page(class_of(anna=OWN, ben=COPY))


def test_without_copydetect_the_error_says_how_to_install_it(class_of, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "copydetect", None)
    assert cli.main(["exercises", "similar", *class_of(anna=OWN), "--out", str(tmp_path / "x.html")]) == 1
    err = capsys.readouterr().err
    assert "copydetect" in err and "similarity" in err and not (tmp_path / "x.html").exists()
