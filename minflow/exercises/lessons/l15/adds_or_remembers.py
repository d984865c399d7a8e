"""15.4 adds_or_remembers: a measurement that distinguishes the two."""

from ...definition import Exercise, case

exercise = Exercise(
    "15.4", "adds_or_remembers", kind="measure", level="core", answer="verdict", time_limit=0.5, tolerance=(1e-9, 1e-9),
    question="Does it add, or does it remember?",
    hint="Take one sum of the smallest case that fails. Which symbols does your model write, one after the other, and "
         "when do you stop?",
    fact="Only questions that a model has never seen are honest. For models that have read the whole web, it is hard "
         "to find any.",
    sibling='A model is to continue "ab" until it writes ".", in at most 3 symbols. It writes "c": the text is "abc". '
            'It is asked again, with this text, and writes ".": finished, "abc.". Another one writes "c" for ever: '
            'after three symbols it is stopped, at "abccc". A share is the number of right ones / all.',
)


@exercise.solution
def verdict(model, seen, held_out):
    def right(text):
        # its own symbols, one after the other, until the end mark
        written = text[:text.index("=") + 1]
        for place in range(4):
            written += model(written)
            if written.endswith("."):
                break
        # the whole sum counts
        return written == text

    a = sum(map(right, seen)) / len(seen)
    b = sum(map(right, held_out)) / len(held_out)
    return a, b, "adds" if b >= a - 0.05 else "remembers"


@exercise.also_right
def verdict(model, seen, held_out):
    shares = []
    for sums in (seen, held_out):
        count = 0
        for question, _, result in [text.partition("=") for text in sums]:
            answer = ""
            while len(answer) < 4 and "." not in answer:
                answer += model(question + "=" + answer)
            count += answer == result
        shares.append(count / len(sums))
    return shares[0], shares[1], "remembers" if shares[0] - shares[1] > 0.05 else "adds"


@exercise.also_right
def verdict(model, seen, held_out):
    def write(text, left):
        return text if left == 0 or text[-1] == "." else write(text + model(text), left - 1)

    shares = [len([1 for text in sums if write(text.split("=")[0] + "=", 4) == text]) / len(sums)
              for sums in (seen, held_out)]
    return [*shares, ["remembers", "adds"][shares[1] >= shares[0] - 0.05]]


def answer_of(model, text, most=4):
    written = text[:text.index("=") + 1]
    while most and not written.endswith("."):
        written, most = written + model(written), most - 1
    return written


def expected_verdict(share, seen, held_out):
    a, b = (sum(map(share, sums)) / len(sums) for sums in (seen, held_out))
    return a, b, "adds" if b >= a - 0.05 else "remembers"


def shares_and_word(model, seen, held_out):
    """The right verdict."""
    return expected_verdict(lambda text: answer_of(model, text) == text, seen, held_out)


def symbols_right(mine, text):
    start = text.index("=") + 1
    return sum(one == other for one, other in zip(mine[start:], text[start:])) / len(text[start:])


@exercise.wrong("symbols counted",
                "You count right symbols. Two right digits out of three are a wrong sum.",
                "Compare whole texts: written == text.")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: symbols_right(answer_of(model, text), text), seen, held_out)


@exercise.wrong("fed with the true symbols",
                "Your model was helped: after a wrong symbol it was shown the right one. It must go on from what it "
                "wrote itself.",
                "Ask with what was *written* up to now, and count whole sums.")
def verdict(model, seen, held_out):
    def share(text):
        start = text.index("=") + 1
        mine = text[:start] + "".join([model(text[:i]) for i in range(start, len(text))])
        return symbols_right(mine, text)

    return expected_verdict(share, seen, held_out)


@exercise.wrong("seen sums alone",
                "You asked for seen sums only, or twice. A table of all seen sums would fool you.",
                "The second share is that of `held_out`.")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: answer_of(model, text) == text, seen, seen)


@exercise.wrong("end mark ignored",
                "You take 120 for 12: a number ends at the end mark.",
                "Compare the whole text, with its \".\".")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: answer_of(model, text).startswith(text[:-1]), seen, held_out)


@exercise.wrong("never stopped",
                "A model that never writes \".\" keeps you for ever. Allow at most four symbols.",
                "Count the symbols, or use a for loop with range(4).")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: answer_of(model, text, -1) == text, seen, held_out)


@exercise.wrong("first symbol alone",
                "You let it write one symbol. 12 has two, and the end mark is one too.",
                'Go on until ".", and append what it wrote to the question.')
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: answer_of(model, text, 1)[-1] == text[text.index("=") + 1], seen, held_out)


@exercise.wrong("counts in place of shares",
                "These are counts. There may be many more seen sums than held-out ones: compare shares.",
                "Divide by the number of sums, each by its own.")
def verdict(model, seen, held_out):
    a, b = (sum(answer_of(model, text) == text for text in sums) for sums in (seen, held_out))
    return a, b, "adds" if b >= a - 0.05 else "remembers"


@exercise.wrong("divided by the same number",
                "Both counts are divided by the number of the seen sums. Each set has its own number.",
                "len(held_out) for the second share.")
def verdict(model, seen, held_out):
    a, b = (sum(answer_of(model, text) == text for text in sums) / len(seen) for sums in (seen, held_out))
    return a, b, "adds" if b >= a - 0.05 else "remembers"


@exercise.wrong("only as good counts",
                "One sum in forty less still counts as adding: up to 5 points less are allowed.",
                "held >= seen - 0.05.")
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return a, b, "adds" if b >= a else "remembers"


@exercise.wrong("the second share alone",
                "Your word looks at one share only. A model that is bad at both does not remember.",
                "Compare the two shares: how far is the second below the first?")
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return a, b, "adds" if b > 0.5 else "remembers"


EITHER = ("The held-out sums went better than the seen ones, but you call that remembering.",
          "Only *below* counts: no abs.")


@exercise.wrong("far apart either way", *EITHER)
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return a, b, "adds" if abs(a - b) <= 0.05 else "remembers"


@exercise.wrong("less than 0.05 apart", *EITHER)
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return a, b, "adds" if abs(a - b) < 0.05 else "remembers"


@exercise.wrong("never remembers",
                "Your word is always \"adds\". Shares go from 0 to 1: which difference is too large?",
                "0.05, not 5.")
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return a, b, "adds"


@exercise.wrong("just below",
                "You call it remembering if the second share is exactly 0.05 below the first. At most 0.05 still adds.",
                "`<=`, or `>=` the other way round.")
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return a, b, "adds" if a - b < 0.05 else "remembers"


@exercise.wrong("a twentieth of the first share",
                "You allow a part of the first share. The rule is about points: 0.05, whatever the first share is.",
                "Subtract the shares, and compare with 0.05.")
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return a, b, "adds" if b >= 0.95 * a else "remembers"


@exercise.wrong("percent",
                "A share is a number from 0 to 1. Yours are percent.",
                "Right sums / all sums.")
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return 100 * a, 100 * b, word


@exercise.wrong("shares swapped",
                "The two shares are in the wrong order. Which one does the exercise name first?",
                "First that of `seen`, then that of `held_out`, then the word.")
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return b, a, word


@exercise.wrong("80 sums",
                "You divide by 80. How many sums are there in this case?",
                "`len(seen)`, and `len(held_out)`.")
def verdict(model, seen, held_out):
    a, b = (sum(answer_of(model, text) == text for text in sums) / 80 for sums in (seen, held_out))
    return a, b, "adds" if b >= a - 0.05 else "remembers"


@exercise.wrong("only the first sum",
                "Only the first sum of each list counts: your loop ends in its first round.",
                "`return` comes after the loop: how far is it indented?")
def verdict(model, seen, held_out):
    a, b = ((answer_of(model, sums[0]) == sums[0]) / len(sums) for sums in (seen, held_out))
    return a, b, "adds" if b >= a - 0.05 else "remembers"


WORD = ('The word must be "adds" or "remembers", letter by letter.',
        "Small letters, with an s at the end.")


@exercise.wrong("capital letters", *WORD)
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return a, b, word.capitalize()


@exercise.wrong("words without s", *WORD)
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return a, b, word[:-1]


@exercise.wrong("all symbols counted together",
                "That is the share of right symbols. A sum is right only if all of its symbols are.",
                "Compare whole texts, and count sums.")
def verdict(model, seen, held_out):
    shares = []
    for sums in (seen, held_out):
        right = [model(text[:i]) == text[i] for text in sums for i in range(text.index("=") + 1, len(text))]
        shares.append(sum(right) / len(right))
    return *shares, "adds" if shares[1] >= shares[0] - 0.05 else "remembers"


# ---- the model is asked for something else --------------------------------------------------------------------------

def asked_for(model, text, ask, most=4):
    """True if the right result is written when the model is asked with `ask(text, written)` each time."""
    written = ""
    while len(written) < most and "." not in written:
        written += model(ask(text, written))
    return written == text.partition("=")[2]


@exercise.wrong("goes on after the end mark",
                'Your model is asked again after it has written ".". When is a sum finished?',
                "Leave the loop at the end mark: `break`.")
def verdict(model, seen, held_out):
    def right(text):
        written = text[:text.index("=") + 1]
        for place in range(4):
            written += model(written)
        return written == text

    return expected_verdict(right, seen, held_out)


@exercise.wrong("the question again and again",
                "Your model always gets the same text, so it always writes its first symbol.",
                "Append each symbol to the text before you ask for the next one.")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: asked_for(model, text, lambda text, written: text.partition("=")[0] + "="),
                            seen, held_out)


@exercise.wrong("without the equals sign",
                'The text that your model gets has no "=". Which kind of text was it trained to go on from?',
                'The question ends with its "=".')
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: asked_for(model, text, lambda text, written: text.partition("=")[0] + written),
                            seen, held_out)


@exercise.wrong("asked once",
                "You ask the model once. `model(text)` gives one symbol, not the whole result.",
                "Ask again, with the text and what was written up to now.")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: model(text[:text.index("=") + 1]) == text.partition("=")[2], seen, held_out)


@exercise.wrong("end mark left out",
                "The end mark is missing in what you compare: the sums end with it.",
                "Append the symbol first, then look whether it is the end mark.")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: answer_of(model, text).rstrip(".") == text, seen, held_out)


@exercise.wrong("shown the true symbols",
                "Your model gets symbols that it has not written: those of the right result.",
                "Ask with what the *model* has written up to now.")
def verdict(model, seen, held_out):
    return expected_verdict(
        lambda text: asked_for(model, text, lambda text, written: text[:text.index("=") + 1 + len(written)]),
        seen, held_out)


@exercise.wrong("five symbols",
                "Your model may write five symbols. At most four are allowed.",
                "range(4), or `len(written) < 4`.")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: answer_of(model, text, 5) == text, seen, held_out)


@exercise.wrong("as many symbols as the result",
                "Your model stops when the result ends, even if it would go on. Only its own end mark or the fourth "
                "symbol stops it.",
                "range(4), and `break` at the end mark.")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: answer_of(model, text, len(text.partition("=")[2])) == text, seen, held_out)


@exercise.wrong("end mark not compared",
                "You compare the digits only. A sum is right if its end mark is there too.",
                "Compare the whole text, with its \".\".")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: answer_of(model, text).rstrip(".") == text.rstrip("."), seen, held_out)


@exercise.wrong("contained",
                "You ask whether the result is somewhere in what was written. 012 is not 12.",
                "`==`, not `in`.")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: text.partition("=")[2] in answer_of(model, text).partition("=")[2],
                            seen, held_out)


@exercise.wrong("computed again",
                "You compute the sum yourself. The text says what is right: with the last digit first, 48+57 is 501.",
                'Compare with the part of the text after its "=".')
def verdict(model, seen, held_out):
    def right(text):
        question = text.partition("=")[0]
        return answer_of(model, text) == f"{question}={sum(map(int, question.split('+')))}."

    return expected_verdict(right, seen, held_out)


@exercise.wrong("three symbols before the =",
                "In yours a question has three symbols. How long is one with two digits?",
                'Look for the "=": `text.index("=")`.')
def verdict(model, seen, held_out):
    def right(text):
        question, result, written = text[:3], text[4:], ""
        while len(written) < 4 and "." not in written:
            written += model(question + "=" + written)
        return written == result

    return expected_verdict(right, seen, held_out)


@exercise.wrong("three symbols",
                "You stop too early: \"105.\" has four symbols, and the end mark is one of them.",
                "range(4).")
def verdict(model, seen, held_out):
    return expected_verdict(lambda text: answer_of(model, text, 3) == text, seen, held_out)


@exercise.wrong("the words swapped",
                "The shares are right, the words are swapped. Which word fits if new sums go as well as seen ones?",
                "Held-out within 0.05 of seen, or better: it adds.")
def verdict(model, seen, held_out):
    a, b, word = shares_and_word(model, seen, held_out)
    return a, b, "remembers" if word == "adds" else "adds"


# ---- models that are not networks -----------------------------------------------------------------------------------

def true_sum(question):
    a, b = question.rstrip("=").split("+")
    return f"{int(a) + int(b)}."


def writes(answer):
    """A model that writes what `answer(question)` says, symbol by symbol; its last symbol again at the end."""
    def model(text):
        question, _, written = text.partition("=")
        whole = answer(question)
        return whole[min(len(written), len(whole) - 1)]

    return model


adder = writes(true_sum)
short = writes(lambda question: true_sum(question)[0] + ".")  # it stops after a digit
one_more = writes(lambda question: true_sum(question)[:-1] + "0.")
endless = writes(lambda question: true_sum(question)[:-1])
off_by_one = writes(lambda question: f"{int(true_sum(question)[:-1]) + 1}.")


def table(known):
    """A model that has learned these by heart, and otherwise says 19, which is not the result of any sum."""
    answers = dict(text.split("=") for text in known)
    return writes(lambda question: answers.get(question, "19."))


def stumbles(text):
    """A model that begins wrongly, but goes on rightly if the first digit is right."""
    question, _, written = text.partition("=")
    whole = true_sum(question)
    if not written:
        return "7"
    return whole[len(written)] if whole.startswith(written) else "7" if len(written) < 2 else "."


def first_zero(question):
    """The result after a 0: 012. for 12."""
    return "0" + true_sum(question)


def backwards(question):
    """The result with its last digit first."""
    return true_sum(question)[-2::-1] + "."


def asked(verdict, model, text):
    """The texts with which a model is asked to judge one sum, once."""
    texts = []

    def asks(question):
        texts.append(question)
        return model(question)

    verdict(asks, [text], ["1+1=2."])
    own = [one for one in texts if one[:3] == text[:3]]
    again = [i for i in range(1, len(own)) if own[i] == own[0] != own[i - 1]]
    return own[:again[0]] if again else own


def shown(verdict, model, text):
    """Texts with which the model is asked although it has not written them."""
    start = text[:text.index("=") + 1]
    own = [start]
    while len(own) < 4:
        own.append(own[-1] + model(own[-1]))
    return [one for one in asked(verdict, model, text) if one not in own]


def sums_of(pairs):
    return [f"{a}+{b}={a + b}." for a, b in pairs]


@exercise.cases
def cases(rng):
    every = sums_of([(int(i) // 10, int(i) % 10) for i in rng.permutation(100)])
    few = sums_of([(1, 1), (2, 3)]), sums_of([(1, 2), (3, 4)])
    large = sums_of([(6, 6), (9, 9), (1, 2)]), sums_of([(7, 5), (8, 8)])
    yield case(adder, *few, expected=(1.0, 1.0, "adds"), text="two seen and two others, a model that adds")
    yield case(adder, "6+6=12.", run=asked, expected=["6+6=", "6+6=1", "6+6=12"],
               text="6+6=12. alone, a model that adds: with which texts is it asked?")
    yield case(table(few[0]), *few, expected=(1.0, 0.0, "remembers"), text="the same sums, a table of the seen ones")
    yield case(short, *large, expected=(1 / 3, 0.0, "remembers"),
               text="6+6, 9+9, 1+2 and 7+5, 8+8, a model that stops after one digit")
    yield case(stumbles, *large, expected=(0.0, 0.0, "adds"), text="the same sums, a model whose first digit is a 7")
    yield case(one_more, *large, expected=(0.0, 0.0, "adds"), text="the same sums, a model that writes 120 for 12")
    yield case(endless, *few, expected=(0.0, 0.0, "adds"), text="a model that never writes the end mark")
    yield case(adder, sums_of([(57, 48), (1, 2)]), sums_of([(95, 9)]), expected=(1.0, 1.0, "adds"),
               text="57+48, 1+2 and 95+9, a model that adds")
    yield case(endless, sums_of([(57, 48), (1, 2)]), sums_of([(95, 9)]), expected=(0.0, 0.0, "adds"),
               text="the same sums, a model that never writes the end mark")
    yield case(table(few[0] + few[1][:1]), few[0], few[1], expected=(1.0, 0.5, "remembers"),
               text="a table with one of the others")
    yield case(table(every[:99]), every[:60], every[60:], expected=(1.0, 39 / 40, "adds"),
               text="60 seen, 40 others, of which one is wrong")
    yield case(table(every[2:]), every[:20], every[20:40], expected=(0.9, 1.0, "adds"),
               text="20 seen, of which two are wrong, 20 others, all right")
    yield case(stumbles, "6+6=12.", run=shown, expected=[],
               text="6+6=12. alone, a model whose first digit is a 7: texts that it did not write")
    yield case(table(every[:1]), every[:20], every[20:30], expected=(0.05, 0.0, "adds"),
               text="20 seen, of which one is right, 10 others, all wrong")
    yield case(table(every[:25] + every[50:73]), every[:50], every[50:], expected=(0.5, 0.46, "adds"),
               text="50 seen, of which 25 are right, 50 others, 23 of them right")
    long = sums_of([(600, 700), (999, 1)]), sums_of([(99999, 1)])
    yield case(adder, *long, expected=(0.0, 0.0, "adds"), text="600+700, 999+1 and 99999+1: more than four symbols")
    yield case(endless, *long, expected=(0.0, 0.0, "adds"),
               text="the same sums, a model that never writes the end mark")
    yield case(writes(first_zero), *large, expected=(0.0, 0.0, "adds"), hidden=True)
    turned = [[f"{question}={backwards(question)}" for question in some] for some in (("48+57", "6+7"), ("95+9",))]
    yield case(writes(backwards), *turned, expected=(1.0, 1.0, "adds"), text="48+57=501.: the last digit first")
    yield case(table(every[:80]), every[:80], every[80:], expected=(1.0, 0.0, "remembers"), hidden=True)
    yield case(adder, every[:70], every[70:], expected=(1.0, 1.0, "adds"), hidden=True)
    yield case(off_by_one, every[:30], every[30:], expected=(0.0, 0.0, "adds"), hidden=True)
