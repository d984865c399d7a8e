"""12.3 other_answers: a loaded model answers differently each time."""

import re

from ...definition import Exercise

exercise = Exercise(
    "12.3", "other_answers", kind="explain", level="warm-up", answer="cause",
    question="Why does a loaded model answer differently each time?",
    hint='One of "file damaged", "rounding", "batch order", "weights missing" and "dropout".',
    fact="`model.eval()` switches dropout off. A graph is saved in the mode in which it was called: call it in eval() "
         "before you give it away.",
    sibling="A clock is wrong. Is it always three minutes late? Then it was set wrongly. Is it wrong by another "
            "amount each time you look? Then something *in it* moves that should not. Ask first whether a fault "
            "repeats: that rules out half of all causes.",
)
exercise.solution("dropout")
exercise.also_right("Dropout")
exercise.also_right("the dropout")


DENIAL = re.compile(r"\b(not|no|never|without)\b.*dropout")
CAUSES = "damage", "round", "order", "weight", "dropout"


def named(cause):
    """The causes that a text names, as words of CAUSES."""
    return [word for word in CAUSES if word in cause.lower()]


@exercise.accept
def names_dropout(cause):
    return named(cause) == ["dropout"] and not DENIAL.search(cause.lower())


def names(word):
    return lambda cause: isinstance(cause, str) and named(cause) == [word]


exercise.wrong_value("no text", 5,
                     'Copy one of the five causes, in quotes: cause = "rounding", for example.',
                     "It is a text.", when=lambda cause: not isinstance(cause, str))
exercise.wrong_value("several causes", "rounding or dropout",
                     "You name several causes. Choose the one that would change the answer from call to call.",
                     "What in a network draws new numbers at each call?", when=lambda cause: len(named(cause)) > 1)
exercise.wrong_value("not dropout", "not dropout",
                     "Why not? Dropout removes other numbers at each call, as long as it is on.",
                     "What else in the list draws new numbers at each call?", when=names("dropout"))
exercise.wrong_value("file damaged", "file damaged",
                     "A damaged file would be refused when it is loaded: its checksum would say so.",
                     "And the numbers in a file are the same at each call.", when=names("damage"))
exercise.wrong_value("rounding", "rounding",
                     "Rounding repeats: the same numbers on the same machine are rounded in the same way.",
                     "What in a network draws new numbers at each call?", when=names("round"))
exercise.wrong_value("batch order", "batch order",
                     "It is one image: there is no order in it.",
                     "What in a network draws new numbers at each call?", when=names("order"))
exercise.wrong_value("weights missing", "weights missing",
                     "A network with wrong weights answers wrongly, but in the same way twice.",
                     "What in a network draws new numbers at each call?", when=names("weight"))
exercise.wrong_value("random", "random numbers",
                     "Yes, something is drawn anew at each call, or the mode is the wrong one. Which of the five "
                     "causes does that?",
                     "Lesson 06 has a layer that removes numbers at random in train mode.",
                     when=lambda cause: any(word in cause.lower() for word in ("random", "generator", "seed", "train",
                                                                              "eval", "mode", "noise")))
exercise.wrong_value("none of the five", "batch norm",
                     'Choose one of the five: "file damaged", "rounding", "batch order", "weights missing", '
                     '"dropout". Which '
                     "of them gives another answer at each call?",
                     "What in a network draws new numbers at each call?", when=lambda cause: not named(cause))
