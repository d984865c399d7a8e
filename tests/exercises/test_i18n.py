"""The checker's texts in the learner's language, catalog files, and Chinese punctuation in code."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from minflow_widgets import LossCurve, figures

import minflow as flow
from minflow.exercises import i18n, registry
from minflow.exercises.card import card_text, make_card
from minflow.exercises.i18n import po
from minflow.exercises.i18n.fonts import use_fonts
from minflow.exercises.judge import judge
from minflow.views import words


@pytest.fixture
def chinese(monkeypatch, tmp_path):
    """A catalog with a few texts, for a learner who reads Chinese."""
    (tmp_path / "zh").mkdir()
    first = [po.Entry("Look {where}.", "看{where}。"), po.Entry("Wrong.", "错了。", fuzzy=True)]
    second = [po.Entry("{n} cases", "{m} 个"), po.Entry("{x}", "{"), po.Entry("a {set}", "集合 {set}")]
    (tmp_path / "zh" / "l02.po").write_text(po.write(first, "zh"), encoding="utf-8")
    (tmp_path / "zh" / "l03.po").write_text(po.write(second, "zh"), encoding="utf-8")
    monkeypatch.setattr(i18n, "FOLDER", tmp_path)
    monkeypatch.setenv("MINFLOW_LANG", "zh_CN.UTF-8")
    for kept in (i18n.languages, i18n.catalog):
        kept.cache_clear()
    yield
    monkeypatch.undo()
    for kept in (i18n.languages, i18n.catalog):
        kept.cache_clear()


def test_text_in_the_learners_language(chinese):
    assert i18n.say("Look {where}.", where="there") == "看there。"
    assert i18n.say("a {set}") == "集合 {set}"  # no values: braces are kept


def test_bad_translations_stay_english(chinese):
    assert i18n.say("Unknown {thing}", thing=3) == "Unknown 3"
    assert i18n.say("Wrong.") == "Wrong."  # its translation is of an older text
    assert i18n.say("{n} cases", n=4) == "4 cases"  # another name in braces
    assert i18n.say("{x}", x=5) == "5"  # not a format string


def test_a_name_means_what_its_lesson_says(monkeypatch):
    """ "turned" is a table with rows and columns swapped in lesson 01, and a difference with its sign swapped in 02."""
    monkeypatch.setenv("MINFLOW_LANG", "zh")
    assert registry.find("distances").say("turned") == "转置了"
    assert registry.find("slope").say("turned") == "方向反了"
    assert registry.find("slope").say("yours") == "你的"  # of the checker


def test_results_that_a_case_describes_are_translated(monkeypatch):
    monkeypatch.setenv("MINFLOW_LANG", "zh")
    exercise = registry.find("batches")
    (torn,) = [wrong for wrong in exercise.wrongs if wrong.name == "torn apart"]
    shown = card_text(make_card(judge(exercise, torn.answer, seed=0)))
    assert "'拆散了'" in shown and "'在一起'" in shown and "together" not in shown


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_pictures_speak_the_learners_language(monkeypatch):
    pytest.importorskip("matplotlib")
    assert legend_of(figures.line_and_points([0, 1], [1, 3], 1, 0)) == ["errors", "line", "points"]
    monkeypatch.setenv("MINFLOW_LANG", "zh")
    monkeypatch.setattr(words, "translation", i18n.say_in_picture)
    ax = figures.line_and_points([0, 1], [1, 3], 1, 0)
    assert legend_of(ax) == ["误差", "直线", "数据点"]  # and not 分数, the points of an exercise
    assert ax.get_title() == "w = 1，b = 0：均方误差是 2.5"
    assert figures.slope_at(abs, 1.0).get_title() == "从 0.5 到 1.5，走 1，升高 1：斜率 1"
    walk = figures.landscape(lambda w, b: w * w + b * b, (-1, 1), (-1, 1), [(1, 0), (0.5, 0)])
    assert walk.get_title().startswith("开始时损失 1，1 步之后 0.25") and legend_of(walk) == [
        "最低",
        "起点",
        "第 1 步",
    ]
    assert figures.confusion_matrix([0, 1], [0, 0]).get_title() == "2 个里对了 1 个 (50.0%)"


def test_tensors_and_curves_speak_the_learners_language(monkeypatch, capsys):
    monkeypatch.setenv("MINFLOW_LANG", "zh")
    monkeypatch.setattr(words, "translation", i18n.say_in_picture)
    flow.show(flow.arange(4.0), numbers=True)
    flow.show(flow.zeros(2, 1, 8, 8), images=True)
    shown = capsys.readouterr().out
    assert "4 个数：最小 0，平均 1.5，最大 3" in shown
    assert "2 张 8 x 8 的图像（各轴读作 图像, 通道, 高, 宽）" in shown and "0 是黑，1 是白" in shown
    with LossCurve() as curve:
        for step, loss in enumerate((0.9, 0.5)):
            curve.add(step, loss=loss)
    assert "第 1 步; loss 0.5 · 最低 0.5，在第 1 步" in curve.text() and ">步" in curve.svg()
    assert curve.svg().count("第 1 步") == 4  # in the line on top, in the legend, and twice in the alternative text


@pytest.mark.parametrize("kernel, gives", [(True, "最低"), (False, "lowest")])
def test_only_notebooks_translate_pictures(kernel, gives):
    start = "from minflow.diagnosis import notebook; notebook.in_notebook = lambda: True; " if kernel else ""
    program = start + "import minflow.exercises; from minflow.views.words import say; print(ascii(say('lowest')))"
    environment = {**os.environ, "MINFLOW_LANG": "zh"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert run.stdout.strip() == ascii(gives), run.stderr


@pytest.mark.parametrize(
    "named, gives",
    [
        ("", "en"),
        ("en", "en"),
        ("zh", "zh"),
        ("zh-CN", "zh"),
        ("ZH_cn", "zh"),
        ("fr", "en"),
        ("../zh", "en"),
        (".", "en"),
    ],
)
def test_language_comes_from_the_environment(chinese, monkeypatch, named, gives):
    monkeypatch.setenv("MINFLOW_LANG", named)
    i18n.jupyterlab_language.cache_clear()
    assert i18n.language() == gives


@pytest.mark.parametrize("folder, gives", [("zh", "zh"), ("lessons", "en"), ("zh-old", "en")])
def test_language_comes_from_the_folder_of_the_lessons(chinese, monkeypatch, tmp_path, folder, gives):
    place = tmp_path / "course" / folder
    place.mkdir(parents=True)
    monkeypatch.chdir(place)
    monkeypatch.setenv("MINFLOW_LANG", "")
    assert i18n.language() == gives
    monkeypatch.setenv("MINFLOW_LANG", "en")
    assert i18n.language() == "en"


@pytest.mark.parametrize(
    "text, gives",
    [
        ('{\n  // mine\n  "locale": "zh_CN"\n}', "zh"),
        ('{"locale": "default"}', "en"),
        ('{\n  // "locale": "zh_CN"\n}', "en"),
        ("\x00", "en"),
        (None, "en"),
    ],
)
def test_language_comes_from_jupyterlabs_settings(chinese, monkeypatch, tmp_path, text, gives):
    import jupyter_core.paths  # noqa: F401  (as in a kernel)

    monkeypatch.delenv("MINFLOW_LANG")
    monkeypatch.setenv("JUPYTERLAB_SETTINGS_DIR", str(tmp_path))
    file = tmp_path / "@jupyterlab" / "translation-extension" / "plugin.jupyterlab-settings"
    file.parent.mkdir(parents=True)
    if text is not None:
        file.write_text(text, encoding="utf-8")
    i18n.jupyterlab_language.cache_clear()
    assert i18n.language() == gives
    i18n.jupyterlab_language.cache_clear()


def test_translations_are_loaded_lazily():
    code = (
        "import sys; from minflow.exercises import i18n\n"
        "i18n.say('x {n}', n=1); assert not i18n.catalog.cache_info().currsize\n"
        "assert not {'nbformat', 'IPython', 'polib', 'jupyter_core'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "MINFLOW_LANG": "en"}, timeout=60)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30) | st.sampled_from(
    ["\n", "a\n", "\na", "a\n\nb", '"', "\\n", "\\", "\t", "\r\n", "x\u2028y", "#, fuzzy", "msgid"]
)


@given(st.lists(st.builds(po.Entry, texts, texts | st.just(""), st.booleans(), st.just("l02/slope.py"))))
def test_file_round_trip(entries):
    assert po.parse(po.write(entries, "zh")) == entries


@given(texts, texts)
def test_file_keeps_the_original_of_a_translation(text, before):
    entry = po.Entry(text, "译", fuzzy=True, before=before)
    assert po.parse(po.write([entry], "zh")) == [entry]


def test_files_of_other_programs_are_accepted():
    """As written by Poedit: wrapped lines, flags, comments, context, and obsolete texts."""
    text = (
        '# head\nmsgid ""\nmsgstr ""\n"Language: zh_CN\\n"\n\n# of the translator\n#. of the source\n#: a.py:3\n'
        '#: b.py:4\n#, python-brace-format, fuzzy\n#| msgid "before "\n#| "it"\nmsgctxt "hint"\nmsgid ""\n"one "\n'
        '"two\\n"\nmsgstr "一\\t"\n"\\"二\\""\n\n#~ msgid "old"\n#~ msgstr "旧"\n'
    )
    assert po.parse(text.replace("\n", "\r\n")) == [
        po.Entry("one two\n", '一\t"二"', True, "a.py:3 b.py:4", "before it")
    ]


@pytest.mark.parametrize(
    "source, found",
    [
        ("y = f（x）", [(1, 6, "（", "("), (1, 8, "）", ")")]),
        ("a = [1，2]", [(1, 7, "，", ",")]),
        ("if x：\n    y = “a”", [(1, 5, "：", ":"), (2, 9, "“", '"'), (2, 11, "”", '"')]),
        ("x\u3000= 1", [(1, 2, "\u3000", " ")]),
        ("x = 3 × 2 − 1", [(1, 7, "×", "*"), (1, 11, "−", "-")]),
        ("text = '（，）'  # 注释：好", []),
        ('"""文档：\n说明。"""\nx = 1；', [(3, 6, "；", ";")]),
        (r"'it\'s，' + ‘a’", [(1, 12, "‘", "'"), (1, 14, "’", "'")]),
        ("'not closed，\nx，", [(1, 12, "，", ","), (2, 2, "，", ",")]),
        ("变量 = 张量 + 1", []),
    ],
)
def test_chinese_punctuation_in_code_is_found(source, found):
    assert i18n.find_non_ascii(source) == found


def test_replaced_characters_are_invalid_in_python():
    for sign, plain in i18n.ASCII_FOR.items():
        assert not sign.isascii() and plain.isascii() and not sign.isidentifier()


def test_matplotlib_gets_a_font_of_the_language(monkeypatch):
    from matplotlib import font_manager, rcParams

    fonts = [SimpleNamespace(name=name, fname=name) for name in ("DejaVu Sans", "SimHei", "WenQuanYi Micro Hei")]
    manager = SimpleNamespace(ttflist=fonts[:1], addfont=lambda file: manager.ttflist.append(fonts[2]))
    monkeypatch.setattr(font_manager, "fontManager", manager)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: ["DejaVu Sans"])
    monkeypatch.setitem(rcParams, "font.family", ["sans-serif"])
    use_fonts("en")
    use_fonts("zh")
    assert rcParams["font.family"] == ["sans-serif"]
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: ["DejaVu Sans", "wqy.ttc"])  # installed later
    use_fonts("zh")
    use_fonts("zh")
    assert rcParams["font.family"] == ["sans-serif", "WenQuanYi Micro Hei"]
    monkeypatch.setitem(rcParams, "font.family", ["sans-serif"])
    manager.ttflist[:] = fonts
    use_fonts("zh")
    assert rcParams["font.family"] == ["sans-serif", "SimHei"]
