"""R6: how an error is made."""

from . import Reading

readings = [
    Reading(
        "R6.1",
        "r6_try",
        "core.base.errors.MinflowError.__str__",
        "With which word does the line with the hint begin?",
        "Try",
        'lines.append(f"  Try: {clean_lines(self.hint)}")',
        "Look below `if self.hint`, or at the error that was printed.",
        "The parts stay attributes: the card in a notebook is made of them, not of the text.",
    ),
    Reading(
        "R6.2",
        "r6_names",
        "core.source_location.explain",
        "Which method of the error puts your names into the gaps?",
        "renamed",
        "error.renamed(names)",
        "Look for what is called on `error`.",
        "A parameter has its name in your model, fc1.weight; any other input has the op's name for it.",
    ),
    Reading(
        "R6.3",
        "r6_ours",
        "core.source_location.caller",
        "Which table says whether a file is minflow's own?",
        "IS_MINFLOW_FILE",
        "while IS_MINFLOW_FILE[(code := frame.f_code)",
        "Look at the condition of `while`.",
        "It is computed once per file, since every node of a tape asks for its line.",
    ),
    Reading(
        "R6.4",
        "r6_kind",
        "core.dispatch",
        "Which error does a ZeroDivisionError become?",
        "DivisionError",
        "(ZeroDivisionError, DivisionError),",
        "Each row has two: what was raised, and what it becomes.",
        "The original error is kept as its cause, and as `error.raw`.",
    ),
    Reading(
        "R6.5",
        "r6_first",
        "diagnosis.shape_suggestions.find_unique_change",
        "Which function gives the changes that are tried first?",
        "reshape_candidates",
        "for changes in (reshape_candidates, resize_candidates, dtype_candidates):",
        "Look at the loop over `changes`: it goes from left to right.",
        "The same numbers in another shape come first: forgetting to flatten is the most common mistake.",
    ),
]
