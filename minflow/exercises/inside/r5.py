"""R5: how a picture is made."""

from . import Reading

readings = [
    Reading(
        "R5.1",
        "r5_record",
        "views.show.picture",
        "Which function makes the record of any object?",
        "record_of",
        "record = record_of(x, values=values",
        "Look at the line that begins with `record =`.",
        "Each package records its own objects; the views know none of them.",
    ),
    Reading(
        "R5.2",
        "r5_shape",
        "views.draw.boxes",
        "As which shape is a leaf drawn?",
        "ellipse",
        'STATE_STYLE = {"shape": "ellipse"',
        'After "leaf" there is a name; the line above the table defines it.',
        "Shape says it as well as color: the picture can be read in black and white.",
    ),
    Reading(
        "R5.3",
        "r5_engines",
        "views.draw.engines.render_svg",
        "What is the name of the last engine?",
        "layout",
        'engines: tuple[str, ...] = ("dot", "wasi", "layout")',
        "Look at the first line of the function, in the brackets.",
        "If all engines fail, the text of the graph itself is drawn: a cell is never left without an answer.",
    ),
    Reading(
        "R5.4",
        "r5_cross",
        "views.draw.layout.order_rows",
        "Which function counts what should be few?",
        "count_crossings",
        "crossed = sum(count_crossings(a, b, below)",
        "Look at the line that begins with `crossed =`.",
        "It counts by insertion into a sorted list, row by row: fast even with many arrows.",
    ),
    Reading(
        "R5.5",
        "r5_safe",
        "views.draw.svg_writer.text",
        "Which function turns < into &lt;?",
        "escape",
        'element("text", escape(clean(words)), x=x, y=y, **look)',
        "Two functions wrap `words`. One is from Python's module html.",
        "The other one, `clean`, removes characters that break a line or change the writing direction.",
    ),
]
