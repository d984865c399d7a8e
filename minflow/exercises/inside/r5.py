"""R5: how a picture is made."""

from . import Reading

readings = [
    Reading(
        "R5.1",
        "r5_record",
        "views.show.view_of",
        "Which function makes the record of any object?",
        "record_of",
        "record = record_of(x, values=values",
        "Look at the line that begins with `record =`.",
        "Each room says itself how its objects are recorded; the views know none of them.",
    ),
    Reading(
        "R5.2",
        "r5_shape",
        "views.draw.boxes",
        "As which shape is a leaf drawn?",
        "ellipse",
        'STATE = {"shape": "ellipse"',
        'Behind "leaf" stands a name; the line above the table says what it is.',
        "Shape says it as well as colour: the picture can be read in black and white.",
    ),
    Reading(
        "R5.3",
        "r5_engines",
        "views.draw.engines.render_svg",
        "What is the name of the engine that stands last?",
        "layout",
        'engines: tuple[str, ...] = ("dot", "wasi", "layout")',
        "Look at the first line of the function, in the brackets.",
        "If all engines fail, the text of the graph itself is drawn: a cell is never left without an answer.",
    ),
    Reading(
        "R5.4",
        "r5_cross",
        "views.draw.layout.order",
        "Which function counts what should be few?",
        "crossings",
        "crossed = sum(crossings(a, b, below)",
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
        "Two functions are around `words`. One is Python's own, from the module html.",
        "The other one, `clean`, takes out letters that break a line or turn the direction of writing.",
    ),
]
