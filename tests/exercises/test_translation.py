"""Translations: each text has an up-to-date one, and both have the same code, formulas and names."""

import json
from pathlib import Path

import pytest

from minflow import cli, course
from minflow.core.messages.invocation import command
from minflow.exercises import i18n, registry, translate
from minflow.exercises.i18n import po
from minflow.exercises.translate import checks, code, notebook, pages

TOP = Path(__file__).parents[2]
NOTEBOOKS = TOP / "notebooks"


# ---- what is in the repository --------------------------------------------------------------------------------------


def test_chinese_is_up_to_date():
    lines = translate.check("zh", NOTEBOOKS)
    assert not lines, "\n" + "\n".join(lines)


def test_chinese_lesson_differs_only_in_texts(tmp_path):
    for built in translate.build("zh", NOTEBOOKS, tmp_path):
        other, english = (json.loads(path.read_bytes()) for path in (built, NOTEBOOKS / built.relative_to(tmp_path)))
        for book in (other, english):
            for cell in book["cells"]:
                source = "".join(cell["source"])
                cell["source"] = (
                    code.skeleton(source) if cell["cell_type"] == "code" else len(notebook.markdown.split(source))
                )
        assert other == english


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.rglob("*.ipynb")), ids=lambda path: path.stem)
def test_lesson_without_translations_keeps_its_bytes(path):
    assert notebook.translate_notebook(path.read_bytes(), {}) == path.read_bytes()


def test_glossary_has_one_word_per_concept():
    lines = [line.split("\t") for line in (i18n.FOLDER / "zh" / "glossary.tsv").read_text("utf-8").splitlines()[1:]]
    english, chinese = [line[0] for line in lines], [line[1].partition("|")[0] for line in lines]
    assert len(set(english)) == len(english)
    twice = {word for word in chinese if chinese.count(word) > 1}
    assert twice <= {"反向传播"}, "only backward pass and backpropagation are the same concept"


def test_all_texts_of_the_checker_are_found():
    texts = pages.checker_texts()
    assert "one side" not in texts and all(where.startswith("exercises/") for where in texts.values())


def test_all_words_of_pictures_are_found():
    texts = pages.picture_texts()
    assert texts["rise"] == "minflow_widgets/figures/lines.py" and texts["as text"] == "views/html/page.py"
    assert "rise" not in pages.checker_texts()


def test_all_texts_of_an_exercise_are_found():
    texts = list(pages.exercise_texts(registry.find("slope")))
    assert {
        "How steep is a curve at one place?",
        "one side",
        "is f called two to four times?",
        "From x to x + h is one side. Walk from x - h to x + h.",
    } <= set(texts)


# ---- gates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "english, chinese, found",
    [
        ("Call `f(x)` 3 times.", "调用 `f(x)` 3 次。", []),
        ("Call `f(x)`.", "调用 `f（x）`。", ["code only in English: `f(x)`", "code only in zh: `f（x）`"]),
        ("so $x^2$", "所以 $x^3$", ["formulas only in English: $x^2$", "formulas only in zh: $x^3$"]),
        (
            "see [the tape](03_tape.ipynb)",
            "见[记录带](03.ipynb)",
            ["addresses only in English: 03_tape.ipynb", "addresses only in zh: 03.ipynb"],
        ),
        ("of 1,797 pictures", "共 1,797 张图片", []),
        ("97.7 % of all", "97.8 %", ["numbers only in English: 97.7", "numbers only in zh: 97.8"]),
        ("right: {right} of {of}", "{of} 中对了 {right}", []),
        ("right: {right}", "对了 {right_}", ["names in braces: ['right'], ['right_']"]),
        ("press <kbd>Enter</kbd>", "按回车", ["HTML only in English: <kbd>, </kbd>"]),
        ("a **loss**, that", "**损失**是", []),
        (
            "a **loss** (bad), that",
            "**损失（坏）**是",
            [
                "a star that opens and does not close: ...**损失（坏）*...",
                "a star that opens and does not close: ...*损失（坏）**是...",
            ],
        ),
        ("a **loss** (bad), that", "**损失**（坏）是", []),
        (
            "**`x`** is",
            "变量**`x`**",
            ["Markdown does not see this star: ...变量**`x`**...", "Markdown does not see this star: ...量**`x`**..."],
        ),
        ("h*h is small", "h*h 很小", []),
        ("first, second", "第一,第二", ["a sign of half width: ...第一,第二..."]),
        (
            "It is (nearly) so.",
            "是 (几乎) 这样.",
            ["a sign of half width: ...是 (几乎) 这样....", "a sign of half width: ...) 这样...."],
        ),
        ("It is -ln(share).", "它是 -ln(份额)。", []),
        ("the `x` of", "这个`x`的", ["a space is missing: ...这个x的..."]),
        ("Python is", "Python是", ["a space is missing: ...ython是..."]),
        ("two tensors", "两个向量", ["'tensor' is 张量 in the glossary"]),
        ("loss = r.sum()", "loss = r.sum()", []),
        ("gradient(f) is a tensor", "gradient(f) 是张量", []),
        ("a static graph", "动态图", ["'static graph' is 静态图 in the glossary"]),
        ("one\ntwo", "一\n\n二", ["an empty line ends a paragraph"]),
    ],
)
def test_differences_are_named(english, chinese, found):
    assert checks.differences(english, chinese, form=True) == found


# ---- texts of code cells --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, texts",
    [
        ("x = 1  # the start", ["the start"]),
        ("# loss.backward()\n# x = 1\n# step", ["step"]),
        (
            'print("knobs", f"{n} of {m:.2f}", x["key"], "a" if x == "key" else "no", name="key")',
            ["knobs", "{n} of {m:.2f}", "no"],
        ),
        ('print(*[f"{n} knobs" for n in x], "one" + "two", draw("key name"))', ["{n} knobs", "one", "two"]),
        ('ax.set(title="time", color="gray"); ax.set_title("loss"); show(x, labels=["red"])', ["time", "loss", "red"]),
        ('t = {"no eyes": a, "all": b, 3: c}; u = {"seen": 1}; words = "two words"', ["no eyes", "all", "two words"]),
        (
            'on_devices(("before", parts, "S0"), numbers=True); h = {f"{name}: loss": x for name, x in t}',
            ["before", "{name}: loss"],
        ),
        ('assert "never ran" in t; source(f, "def g"); legend(loc="lower right")', []),
        ('def f():\n    """Add x."""\n    return "# no comment", b"two words"', ["Add x.", "# no comment"]),
        ('p = """import os\nprint(1)"""', []),
        ('print("é", "two")', ["two"]),
        ("%time x = 'two words'", ["two words"]),
    ],
)
def test_comments_and_shown_strings_of_code_are_texts(source, texts):
    assert code.texts(source) == texts


def test_strings_of_an_answer_are_not_texts():
    assert code.texts('x = "two words"  # or another', comments_only=True) == ["or another"]
    assert code.translate('x = "two words"  # it', {"two words": "?", "it": "!"}, True) == 'x = "two words"  # !'


def test_code_is_the_same_program_after_translation():
    source = 'print(f"{a} of {b:.1f}", t["no eyes"])  # it is f(a)\nsource("no eyes")'
    table = {"{a} of {b:.1f}": "{b:.1f} 中的 {a}", "no eyes": "盲", "it is f(a)": "是 f(a)"}
    other = code.translate(source, table)
    assert other == 'print(f"{b:.1f} 中的 {a}", t["盲"])  # 是 f(a)\nsource("no eyes")'
    assert code.same_program(source, other)
    for changed in ('print(f"{b} 中的 {a}")', 'print(f"{b:.1f} 中的 {a}", t["盲", 1])', 'print("'):
        assert not code.same_program(source, changed)


def test_translation_that_changes_the_program_is_reported(work):
    text = lesson(("code", "a-01", 'print(f"{x} is {y}", "so \\n it is")'))
    (work / "course" / "00_a.ipynb").write_text(text, encoding="utf-8")
    (file,) = translate.update("zh", work / "course")
    fill_in(file, {"{x} is {y}": "{y} 是 {y}", "so \\n it is": '就" + "是'})
    assert translate.check("zh", work / "course") == [
        "00_a: '{x} is {y}': parts in braces: {x} {y}, in zh: {y} {y}",
        "00_a: cell a-01: its code is another program when translated",
    ]
    fill_in(file, {"{x} is {y}": "{y} 是 {x}", "so \\n it is": "就\\n是"})
    assert translate.check("zh", work / "course") == []


def test_words_of_markdown_do_not_change_code(work):
    text = lesson(("markdown", "a-00", "loss"), ("code", "a-01", 'x["loss"]; print("the loss")'))
    book = json.loads(notebook.translate_notebook(text.encode(), {"loss": "损失", "the loss": "这个损失"}))
    assert ["".join(cell["source"]) for cell in book["cells"]] == ["损失", 'x["loss"]; print("这个损失")']


# ---- from English to PO files and back ------------------------------------------------------------------------------


def lesson(*cells):
    return (
        json.dumps(
            {
                "cells": [
                    {"cell_type": kind, "id": name, "metadata": {}, "source": source.splitlines(True)}
                    for kind, name, source in cells
                ],
                "metadata": {},
                "nbformat": 4,
                "nbformat_minor": 5,
            },
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )


ENGLISH = lesson(
    ("markdown", "a-00", "# A title\n\nOne long sentence about loss.\n\n- an item"),
    ("code", "a-01", "print('a word')  # one"),
    ("markdown", "a-words", "| word | meaning |\n|---|---|\n| loss | how wrong |\n| `x` | an item |"),
)


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A course of one lesson without exercises, and a folder for translations."""
    monkeypatch.setattr(i18n, "FOLDER", tmp_path / "words")
    monkeypatch.setattr(registry, "course_lessons", dict)
    monkeypatch.setattr(pages, "checker_texts", dict)
    monkeypatch.setattr(pages, "exam_texts", dict)
    monkeypatch.setattr(pages, "picture_texts", dict)
    for cache in (checks.glossary, checks.terms, i18n.languages):
        cache.cache_clear()
    (tmp_path / "words" / "zh").mkdir(parents=True)
    (tmp_path / "words" / "zh" / "not_yet.txt").write_text("# none\n")
    (tmp_path / "words" / "zh" / "glossary.tsv").write_text("loss\t损失\nwrong\t错\ttable\n", "utf-8")
    for page in ("checker", "exam", "pictures"):
        (tmp_path / "words" / "zh" / f"{page}.po").write_text(po.write([], "zh"))
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "00_a.ipynb").write_text(ENGLISH, encoding="utf-8")
    yield tmp_path
    monkeypatch.undo()
    for cache in (checks.glossary, checks.terms, i18n.languages):
        cache.cache_clear()


CHINESE = {
    "A title": "标题",
    "One long sentence about loss.": "关于损失的一个长句子。",
    "an item": "一项",
    "word": "词",
    "meaning": "含义",
    "loss": "损失",
    "how wrong": "差多少",
    "a word": "一个词",
    "one": "一",
}


def translate_all(file, **other):
    fill_in(file, CHINESE | other)


def fill_in(file, table):
    entries = po.read(file)
    for entry in entries:
        entry.translation, entry.fuzzy, entry.before = table[entry.text], False, ""
    file.write_text(po.write(entries, "zh"), encoding="utf-8")


def test_from_english_to_chinese(work):
    (line,) = translate.check("zh", work / "course")
    assert line.startswith(
        "00_a: 9 texts are new or changed, 0 are gone, such as 'A title'. "
        f"Run: {command('exercises', 'translate', '--update', 'zh')}."
    )
    (file,) = translate.update("zh", work / "course")
    assert file == work / "course" / "zh" / "00_a.po" and translate.update("zh", work / "course") == []
    assert {entry.text: entry.where for entry in po.read(file)}["an item"] == "a-00 a-words"
    (line,) = translate.check("zh", work / "course")
    assert "9 texts are not translated, such as 'A title'" in line
    translate_all(file)
    assert translate.check("zh", work / "course") == []
    (built,) = translate.build("zh", work / "course", work / "built")
    book = json.loads(built.read_text(encoding="utf-8"))
    assert ["".join(cell["source"]) for cell in book["cells"]] == [
        "# 标题\n\n关于损失的一个长句子。\n\n- 一项",
        "print('一个词')  # 一",
        "| 词 | 含义 |\n|---|---|\n| 损失 | 差多少 |\n| `x` | 一项 |",
    ]


def test_changed_text_makes_its_translation_outdated(work):
    (file,) = translate.update("zh", work / "course")
    translate_all(file)
    (work / "course" / "00_a.ipynb").write_text(ENGLISH.replace("One long", "Another long"), encoding="utf-8")
    (line,) = translate.check("zh", work / "course")
    assert "1 texts are new or changed, 1 are gone, such as 'Another long sentence about loss.'" in line
    translate.update("zh", work / "course")
    (entry,) = [entry for entry in po.read(file) if entry.fuzzy]
    assert entry == po.Entry(
        "Another long sentence about loss.", "关于损失的一个长句子。", True, "a-00", "One long sentence about loss."
    )
    (line,) = translate.check("zh", work / "course")
    assert "1 texts are not translated" in line and "fuzzy entries in 00_a.po" in line
    (built,) = translate.build("zh", work / "course", work / "built")
    assert "Another long sentence" in built.read_text(encoding="utf-8"), "an outdated translation is not shown"
    (work / "words" / "zh" / "not_yet.txt").write_text("00_a\n")
    assert translate.check("zh", work / "course") == []  # the English text may land first
    translate_all(file, **{"Another long sentence about loss.": "另一个关于损失的长句子。"})
    (line,) = translate.check("zh", work / "course")
    assert line == "00_a: all of it is translated: remove its name from i18n/zh/not_yet.txt"


def test_translations_are_shared_between_pages(work):
    translate_all(*translate.update("zh", work / "course"))
    other = lesson(("markdown", "b-00", "# Another\n\nAnother long sentence."), ("markdown", "b-01", "an item"))
    (work / "course" / "01_b.ipynb").write_text(other, encoding="utf-8")
    (file,) = translate.update("zh", work / "course")
    assert [(entry.translation, entry.fuzzy) for entry in po.read(file)] == [("", False), ("", False), ("一项", False)]


def test_faults_are_reported_with_untranslated_texts(work):
    (work / "words" / "zh" / "not_yet.txt").write_text("00_*\n")
    assert translate.update("zh", work / "course") == []
    (file,) = translate.update("zh", work / "course", "00_a")
    translate_all(file, **{"how wrong": "错 3 个", "loss": "误差"})
    assert translate.check("zh", work / "course") == [
        "00_a: 'loss': 'loss' is 损失 in the glossary",
        "00_a: 'loss': a table of words has '误差', i18n/zh/glossary.tsv '损失'",
        "00_a: 'how wrong': numbers only in zh: 3",
    ]


def test_orphaned_translation_is_named(work):
    (work / "course" / "00_a.ipynb").unlink()
    (work / "course" / "zh").mkdir()
    (work / "course" / "zh" / "00_b.po").write_text(po.write([], "zh"))
    (line,) = translate.check("zh", work / "course")
    assert line.endswith("00_b.po: its page no longer exists; delete or rename the file")


@pytest.mark.parametrize(
    "source, texts",
    [
        ('say("a" "b", n=1)', ["ab"]),
        ('say("a" if x else "b")', ["a", "b"]),
        ('T = {"k": "a", "m": ("b", "c")}\nwords.say(T[k])', ["a", "b", "c"]),
        ("say(one.text); say(hints[0]); say()", []),
    ],
)
def test_say_translates(source, texts):
    assert pages.literal_texts(source) == texts


@pytest.mark.parametrize("source", ['say(f"{x}")', 'say("a" + b)', 'say("%s" % b)'])
def test_say_refuses_composed_texts(source):
    with pytest.raises(ValueError, match="line 1: say"):
        pages.literal_texts(source)


# ---- the commands ---------------------------------------------------------------------------------------------------


def test_command(work, monkeypatch, capsys):
    monkeypatch.setattr(course, "source", lambda: work / "course")
    assert cli.main(["exercises", "translate", "--check", "zh"]) == 1
    assert f"Run: {command('exercises', 'translate', '--update', 'zh')}." in capsys.readouterr().out
    assert cli.main(["exercises", "translate", "--update", "zh"]) == 0
    assert f"updated: {work / 'course' / 'zh' / '00_a.po'}" in capsys.readouterr().out
    translate_all(work / "course" / "zh" / "00_a.po")
    assert cli.main(["exercises", "translate", "--check", "zh", "00_a"]) == 0
    assert capsys.readouterr().out == "All required translations are up to date.\n"
    assert cli.main(["exercises", "translate", "--build", "zh", str(work / "built")]) == 0
    assert "标题" in (work / "built" / "00_a.ipynb").read_text(encoding="utf-8")
    assert cli.main(["exercises", "translate", "--check", "fr"]) == 1
    assert "There is no language 'fr'; there are: zh" in capsys.readouterr().out


def test_learners_copy_in_two_languages(work, monkeypatch):
    """Each language has its own folder, changed lessons of both are kept, and there is one record."""
    monkeypatch.setattr(course, "source", lambda: work / "course")
    content = notebook.in_language("zh", work / "course")
    translate_all(*translate.update("zh", work / "course"))
    folder = work / "mine"
    course.update(folder)
    course.update(folder, "zh", content)
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) == [
        course.RECORD_NAME,
        "00_a.ipynb",
        "zh",
        "zh/00_a.ipynb",
    ]
    copy = json.loads((folder / "00_a.ipynb").read_text(encoding="utf-8"))
    assert copy["cells"] == json.loads(ENGLISH)["cells"]
    assert "标题" in (folder / "zh" / "00_a.ipynb").read_text(encoding="utf-8")
    (folder / "zh" / "00_a.ipynb").write_text("mine")
    (work / "course" / "00_a.ipynb").write_text(ENGLISH.replace("print", "print_"), encoding="utf-8")
    assert course.update(folder)[0] == [folder / "00_a.ipynb"]
    assert course.update(folder, "zh", content)[1] == [folder / "zh" / "00_a.new.ipynb"]
    assert (folder / "zh" / "00_a.ipynb").read_text() == "mine"
    assert course.update(folder, "zh", content) == ([], [])
