"""The table of a class, from files that anyone may have written."""

import csv
import html
import html.parser
import json

from minflow import cli
from minflow.exercises.teach.pages import report


def line(minute, exercise, outcome, wrong="", **more):
    return json.dumps(
        {
            "time": f"2026-03-02T10:{minute:02}:00Z",
            "exercise": exercise,
            "attempt": 1,
            "outcome": outcome,
            "wrong": wrong,
            "seconds": 0.1,
            "source": str(minute),
            "versions": {},
        }
        | more
    )


def folder_of(tmp_path, **learners):
    for name, lines in learners.items():
        path = tmp_path / "class" / name / ".progress.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "class"


ANNA = [
    line(0, "slope", "not started"),
    line(1, "slope", "wrong", "one side"),
    line(4, "slope", "right"),
    line(9, "slope", "wrong", "turned"),
    line(10, "edge", "right"),
    line(11, "recall_02", "right"),
]
BO = [line(0, "slope", "wrong", "one side"), line(10, "slope", "nearly", "one side"), line(59, "slope", "stopped")]


def test_time_is_counted_until_the_answer_is_right(tmp_path):
    known = report.read(folder_of(tmp_path, anna=ANNA, bo=BO))
    anna, bo = known.learners["anna"]["slope"], known.learners["bo"]["slope"]
    assert (anna.right, anna.attempts, anna.minutes, anna.wrong) == (True, 2, 3.0, {"one side": 1})
    assert (bo.right, bo.attempts, bo.minutes, bo.wrong) == (False, 3, 10.0, {"one side": 2})  # 49 minutes were a pause
    assert [one.name for one in known.exercises] == ["slope", "edge"] and known.unknown == 0


def test_tables(tmp_path, capsys):
    folder = folder_of(tmp_path, anna=ANNA, bo=BO)
    assert cli.main(["exercises", "report", str(folder)]) == 0
    assert capsys.readouterr().out.split() == [str(folder / "report.csv"), str(folder / "report.html")]
    with open(folder / "report.csv", newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["learner", "points", "slope", "edge"],
            ["anna", "3", "right 2", "right 1"],
            ["bo", "0", "tried 3", ""],
        ]
    known = report.read(folder)
    assert [row[:4] for row in report.wrong_answers(known)] == [("slope", "one side", 2, 3)]
    assert report.exercise_row(known.exercises[0], known)[2:] == (2, 1, 0, "2", "3")
    assert report.unfinished(known) == [("bo", "slope", 3, 10, "one side")]


class Page(html.parser.HTMLParser):
    """Collects tags and texts; checks that every open tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_page_is_self_contained_and_accessible(tmp_path):
    text = report.as_html(report.read(folder_of(tmp_path, anna=ANNA, bo=BO)))
    page = Page(text)
    names = [tag for tag, _ in page.tags]
    assert "script" not in names and "link" not in names and "http" not in text and 'lang="en"' in text
    assert names.count("table") == names.count("caption") == 4
    assert all(attributes.get("scope") in ("row", "col") for tag, attributes in page.tags if tag == "th")
    assert {"\u2713 2", "~ 3", "\u00b7", "one side"} <= set(page.texts)  # signs, not only colors


def test_rare_mistakes_are_folded(tmp_path):
    from minflow.exercises.registry import find

    every = [(name, one.name) for name in ("slope", "edge", "gradient") for one in find(name).wrongs]
    known = report.read(
        folder_of(tmp_path, **{f"n{i}": [line(i, name, "wrong", wrong)] for i, (name, wrong) in enumerate(every)})
    )
    rarer = len(report.wrong_answers(known)) - report.COMMON
    text = report.as_html(known)
    assert rarer > 0 and f"<summary>{rarer} less common ones</summary>" in text and Page(text).tags


def test_hostile_names_and_lines(tmp_path):
    evil = "<script>alert(1)<\u2044script>"
    torn = [
        '{"time": "2026-',
        "",
        "null",
        "[]",
        "3",
        "[" * 5000,
        line(1, "none of ours", "right"),
        line(1, evil, "right"),
        line(4, "slope", "won"),
        '{"exercise": ["slope"]}',
        "\ufffd\x00",
        line(0, "slope", "wrong", evil),
        line(1, "slope", "wrong", {"a": 1}),
        line(2, "slope", "wrong", "turned", time=3),
        line(3, "slope", "wrong", time="yesterday"),
    ]
    folder = folder_of(tmp_path, **{evil: torn, "=HYPERLINK(1)": ANNA})
    (folder / "empty").mkdir()
    (folder / "odd" / ".progress.jsonl").mkdir(parents=True)
    (folder / ".progress.jsonl").write_text(BO[0])  # of no learner
    known = report.read(folder)
    work = known.learners[evil]["slope"]
    assert (work.right, work.attempts, work.wrong) == (False, 3, {"turned": 1})
    assert known.unknown == 11
    text = report.as_html(known)
    assert "<script>" not in text and "&lt;script&gt;" in text and Page(text).tags
    assert "\n'=HYPERLINK(1),3," in report.as_csv(known)


def test_the_copy_that_a_student_sends_is_read(tmp_path, capsys):
    folder = folder_of(tmp_path, anna=ANNA, bo=BO)
    (folder / "bo" / ".progress.jsonl").rename(folder / "bo" / "progress.jsonl")
    (folder / "anna" / "progress.jsonl").write_text("\n".join(ANNA[:2]), encoding="utf-8")  # an older copy
    (folder / "<carl>").mkdir()
    (folder / "<carl>" / "my-progress.jsonl").write_text(ANNA[2])
    (folder / ".ipynb_checkpoints").mkdir()
    known = report.read(folder)
    assert {name: works["slope"].attempts for name, works in known.learners.items()} == {"anna": 2, "bo": 3}
    assert cli.main(["exercises", "report", str(folder)]) == 0
    said = "No .progress.jsonl or progress.jsonl to read in: <carl>."
    assert capsys.readouterr().err == f"minflow exercises report: {said}\n"
    assert html.escape(said) in (folder / "report.html").read_text(encoding="utf-8")


def test_oversized_file_is_skipped(tmp_path, monkeypatch):
    folder = folder_of(tmp_path, anna=ANNA)
    monkeypatch.setattr(report, "MAX_BYTES", 10)
    assert report.read(folder).learners == {} and report.read(folder).unknown == 1


def test_empty_class(tmp_path, capsys):
    assert cli.main(["exercises", "report", str(tmp_path)]) == 1
    assert cli.main(["exercises", "report", str(tmp_path / "none")]) == 1
    assert ".progress.jsonl" in (err := capsys.readouterr().err) and "none" in err


def test_class_of_a_hundred_without_any_work(tmp_path):
    folder = folder_of(tmp_path, **{f"n{i}": [line(0, "slope", "not started")] for i in range(100)})
    known = report.read(folder)
    assert len(known.learners) == 100 and not known.exercises
    assert "Learners: 100." in report.as_html(known)


def test_links_to_files_of_others_are_not_followed(tmp_path):
    folder = folder_of(tmp_path, anna=ANNA)
    (folder / "bo").mkdir()
    (folder / "bo" / ".progress.jsonl").symlink_to(folder / "anna" / ".progress.jsonl")
    known = report.read(folder)
    assert list(known.learners) == ["anna"] and known.unknown == 1
