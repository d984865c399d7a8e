"""10.1 when: in which order a job's lines are printed."""

from ...definition import Exercise

exercise = Exercise(
    "10.1", "when", kind="predict", level="warm-up", answer="order",
    question="When does the function of a job run?",
    hint='Four texts in a list, each of "defined", "build" and "result": ["...", "...", "...", "..."].',
    fact="So a `print` or a counter in a job runs once, not at each step. To look at each step, use `flow.watch`.",
    sibling="A baker writes down a recipe when the first order comes, and from then on bakes by it. He opens the "
            "shop, and gets three orders: opened, written, baked, baked, baked. Nothing is written before there is an "
            "order, and nothing is written twice.",
)
exercise.solution(["defined", "build", "result", "result"])


def normalize_words(value):
    return [str(word).strip().lower() for word in value]


@exercise.accept
def accept(value):
    return isinstance(value, list | tuple) and normalize_words(value) == exercise.right


def is_one_of(*orders):
    return lambda value: " ".join(normalize_words(value)) in orders


exercise.wrong_value(
    "no list", "defined, build, result",
    "Write a list of texts, each in its own quotes, in the order in which they are printed.",
    "A set has no order, and one text is not a list: [\"...\", \"...\"].",
    when=lambda value: not isinstance(value, list | tuple))
exercise.wrong_value(
    "other words", ["defined", "built", "printed"],
    "Only three words are printed: \"defined\", \"build\" and \"result\". Write just these.",
    "Copy them from the question.",
    when=lambda value: set(normalize_words(value)) - {"defined", "build", "result"})
exercise.wrong_value(
    "defined late", ["build", "result", "result", "defined"],
    "The cell above ran before any call. What did it print, and how often did it run?",
    "\"defined\" is printed once, below the function, before it is called.",
    when=lambda value: "defined" not in value or value.count("defined") > 1 or value.index("defined") > 1)
exercise.wrong_value(
    "build first", ["build", "defined", "result", "result"],
    "The decorator does not run the function. What does it wait for?",
    "Your function runs when its first result is asked for: after \"defined\".",
    when=is_one_of("build defined result result", "build build defined result result"))
exercise.wrong_value(
    "build twice", ["defined", "build", "result", "build", "result"],
    "The first call wrote the computation down. What does the second call run?",
    'The second call does not run your Python: how often is "build" printed then?',
    when=is_one_of("defined build result build result", "defined build build result result"))
exercise.wrong_value(
    "build last", ["defined", "result", "result", "build"],
    "How could a call give a result before it is known what to compute?",
    "\"build\" comes before the first \"result\".",
    when=is_one_of("defined result result build", "defined result build result"))
exercise.wrong_value(
    "no build", ["defined", "result", "result"],
    "Your function must run to find out what is computed. When does it run?",
    "The function runs once. Its line is printed then, too.",
    when=is_one_of("defined result result", "result result"))
exercise.wrong_value(
    "three results", ["defined", "build", "result", "result", "result"],
    "Count the calls: each gives one result, the first one too.",
    "Two calls, two results.",
    when=is_one_of("defined build result result result"))
exercise.wrong_value(
    "one result", ["defined", "build", "result"],
    "The job is called twice. The second call gives a result as well.",
    "Two calls, two results.",
    when=is_one_of("defined build result"))
