"""08.4 doctor: find what is wrong with a training graph."""

import copy
import math

import minflow as flow

from ...definition import Exercise, case

nn = flow.nn

exercise = Exercise(
    "08.4", "doctor", kind="write", level="stretch", answer="complaints", time_limit=4.0,
    question="What is wrong with this training graph?",
    hint="Write one rule after the other, and try each on the graphs of this lesson. Which rule complains wrongly, or "
         "not at all?",
    fact="Such a check is worth a minute before each long training: much of what goes wrong in the first hours can be "
         "seen in the first step.",
    sibling='A check of a bicycle: `found = set()`; `if light_off: found.add("light")`; `if brake_loose: '
            'found.add("brake")`; `return found`. Each rule is checked by itself, since a bicycle may have both '
            "faults. And the seat that was taken off to look below it is put back at the end.",
)


@exercise.solution
def complaints(graph, x, y):
    import math

    found, before = set(), graph.state_dict()
    # one step, with the results of all ReLU modules kept
    relus = ["model." + name for name, module in graph.model.named_modules() if isinstance(module, nn.ReLU)]
    graph.keep(*relus)
    loss = graph(x, y).item()
    for row in graph.tree().record.rows:
        found |= {"never ran", "no gradient"} & set(row.badges)
    if math.isnan(loss):
        found.add("nan")
    classes = y.max().item() + 1
    if abs(loss - math.log(classes)) > 1:
        found.add("first loss")
    if any((graph.values(path) == 0).all() for path in relus):
        found.add("dead relu")
    # as it was before
    graph.load_state_dict(before)
    return found


@exercise.also_right
def complaints(graph, x, y):
    """Run eagerly, with hooks: nothing moves, and the slopes are cleared."""
    import math

    model, ran, dead, found = graph.model, set(), [], set()

    def look(module, inputs, output):
        ran.add(module)
        if isinstance(module, nn.ReLU):
            dead.append(bool((output == 0).all()))

    hooks = [module.register_forward_hook(look) for module in model.modules()]
    loss = graph.loss_fn(model(x), y)
    for hook in hooks:
        hook.remove()
    loss.backward()
    if any(module not in ran for module in model.modules()):
        found.add("never ran")
    if any(parameter.requires_grad and parameter.grad is None for parameter in model.parameters()):
        found.add("no gradient")
    model.zero_grad()
    number = loss.item()
    if number != number:
        found.add("nan")
    elif not -1 <= number - math.log(y.max().item() + 1) <= 1:
        found.add("first loss")
    return found | ({"dead relu"} if any(dead) else set())


@exercise.also_right
def complaints(graph, x, y):
    import math

    kept = graph.state_dict()
    paths = [f"model.{name}" for name, one in graph.model.named_modules() if type(one) is nn.ReLU]
    for path in paths:
        graph.keep(path)
    loss = float(graph(x, y))
    badges = " ".join(badge for row in graph.tree().record.rows for badge in row.badges)
    largest = [graph.values(path).max().item() for path in paths]
    graph.load_state_dict(kept)
    rules = {"never ran": "never ran" in badges, "no gradient": "no gradient" in badges, "nan": loss != loss,
             "first loss": abs(loss - math.log(int(y.max()) + 1)) > 1, "dead relu": 0 in largest}
    return {name for name, holds in rules.items() if holds}


ASKED = "never ran", "no gradient", "nan", "first loss", "dead relu"


def rules(nan=math.isnan, classes=lambda y: y.max().item() + 1, far=lambda away: abs(away) > 1, relu=None,
          back="graph", badges=("never ran", "no gradient"), first=False, all_relus=True, kind=nn.ReLU,
          before=lambda graph, x, y: None, early=False, words=ASKED, result=set):
    """The solution, with single rules replaced."""
    def complaints(graph, x, y):
        found, state, weights = [], graph.state_dict(), copy.deepcopy(graph.model.state_dict())
        before(graph, x, y)
        relus = ["model." + name for name, one in graph.model.named_modules() if isinstance(one, kind)]
        graph.keep(*relus)
        rows = graph.tree().record.rows if early else []
        loss = graph(x, y).item()
        seen = {badge for row in rows or graph.tree().record.rows for badge in row.badges}
        found += [badge for badge in sorted(seen) if badges is None or badge in badges]
        found += ["nan"] if nan(loss) else []
        found += ["first loss"] if far(loss - math.log(classes(y))) else []
        empty = [(graph.values(path) == 0).all() if relu is None else relu(graph.values(path)) for path in relus]
        found += ["dead relu"] if empty and (any(empty) if all_relus else all(empty)) else []
        found = [words[ASKED.index(one)] if one in ASKED else one for one in found]
        if back == "graph":
            graph.load_state_dict(state)
        elif back == "model":
            graph.model.load_state_dict(weights)
        return result(found[:1] if first else found)

    return complaints


def wrong(name, *hints, **changed):
    exercise.wrong(name, *hints)(rules(**changed))


wrong("a list",
      "`complaints` should return a *set*: each fault is in it once, and their order does not matter.",
      "`found = set()` at the beginning, then `found.add(...)`.",
      result=list)
wrong("braces",
      "Two braces make an empty dict. An empty set is `set()`.",
      "`found = set()` at the beginning, then `found.add(...)`.",
      result=dict.fromkeys)
wrong("other words",
      "A complaint must be one of the five texts, letter by letter.",
      '`found.add("nan")` adds the whole text. `found |= set("nan")` would add its letters.',
      words=("Never ran", "No gradient", "NaN", "First loss", "dead ReLU"))
wrong("any badge",
      "Do not report other badges: a layer may be frozen on purpose. Only two badges are in the list.",
      '`if "never ran" in row.badges`, and the same for "no gradient".',
      badges=None)
wrong("badges before the call",
      "A tree knows what ran only after a call of the graph. When do you read the badges?",
      "Call the graph first, then ask for `graph.tree()`.",
      early=True)
wrong("no dead relu",
      "A graph with a dead ReLU gets no complaint, even if all of them are dead. Do you find the modules?",
      "`isinstance(module, nn.ReLU)` finds them, however they are named. Give their paths to `graph.keep` before the "
      "call.",
      kind=nn.Tanh)
wrong("a later loss",
      "The *first* loss counts. A call of the graph is a training step, so the second call gives another loss.",
      "Name everything that you need with `graph.keep`, and call the graph once.",
      before=lambda graph, x, y: graph(x, y))
wrong("classes that occur",
      "You count the labels that occur in this batch. Others may be possible: the task says how to count.",
      "`y.max().item() + 1` classes, as labels count from 0.",
      classes=lambda y: len(set(y.tolist())))
wrong("left in eval mode",
      "The model is in another mode than before: `eval()` stays until `train()` is called.",
      "You can do without `eval()`: the tests are made for the mode in which the graph comes.",
      before=lambda graph, x, y: graph.model.eval())
wrong("only the model put back",
      "The parameters are as before, but the optimizer is not: it remembers the step that you took (its momentum).",
      "`graph.state_dict()` holds both; `graph.model.state_dict()` holds the model alone.",
      back="model")
wrong("trains while looking",
      "Everything is found, but the parameters have moved: a call of the graph is a whole training step. To put them "
      "back you need a copy, such as `graph.state_dict()`. `graph.model.state_dict()` is none: it moves with the "
      "model.",
      "Keep `graph.state_dict()` before the call, and give it to `graph.load_state_dict` at the end.",
      back="")
wrong("the first complaint only, and trains",
      "A graph may have several complaints. You stop at the first: and then the last lines, which put everything back, "
      "do not run.",
      "Check each rule by itself: `if`, not `elif`, and one `return` at the end.",
      first=True, back="")
wrong("NaN by ==",
      "NaN equals nothing, not even itself: `loss == math.nan` is never true.",
      "`math.isnan(loss)` asks for it.",
      nan=lambda loss: loss == math.nan)
wrong("ln of the batch size",
      "You take ln of the number of examples. It should be ln of the number of *classes*.",
      "The labels count from 0, so there are `y.max().item() + 1` classes.",
      classes=len)
wrong("one zero is dead",
      "A healthy graph gets a complaint. A ReLU gives zeros all the time: that is what it is for. When is it dead?",
      "All of its outputs are 0, for the whole batch: `(values == 0).all()`.",
      relu=lambda values: (values == 0).any())
wrong("the first complaint only",
      "A graph may have several complaints. You stop at the first.",
      "Check each rule by itself: `if`, not `elif`, and one `return` at the end.",
      first=True)
wrong("no gradient not met",
      "One graph has parameters that backward never reaches. They have no gradient at all, not a small one.",
      'The badge "no gradient" is in `graph.tree().record.rows`.',
      badges=("never ran",))
wrong("NaN is a far loss too",
      "NaN is neither far from ln(classes) nor near: no comparison with NaN is true, so the opposite always is.",
      "Ask `abs(loss - ln) > 1`, not `not abs(loss - ln) <= 1`; or check for NaN first.",
      far=lambda away: not abs(away) <= 1)
wrong("only too large",
      "A first loss that is far *below* ln(classes) is as strange: does the network know the answers before training?",
      "Use `abs` of the difference.",
      far=lambda away: away > 1)
wrong("one class too few",
      "You take the largest label. The labels count from 0: with labels 0 and 1, how many classes are there?",
      "ln of `y.max().item() + 1`.",
      classes=lambda y: y.max().item())
wrong("only if all are dead",
      "There are two ReLU modules in one graph, and one of them is dead. One is enough.",
      "`any` over the modules, `all` over the numbers of one.",
      all_relus=False)


class Patient(nn.Module):
    """8 numbers -> scores of 3 classes, with one fault or more."""

    def __init__(self, ailments):
        super().__init__()
        self.ailments = ailments
        self.first, self.bend = nn.Linear(8, 16), nn.ReLU()
        self.second, self.again = nn.Linear(16, 16), nn.ReLU()
        self.head = nn.Linear(16, 60 if "classes" in ailments else 2 if "two" in ailments else 3)
        if "never ran" in ailments:
            self.haed = nn.Linear(16, 3)

    def forward(self, x):
        h = self.bend(self.first(x))
        h = self.again(self.second(h.detach() if "no gradient" in self.ailments else h))
        return self.head(h)


class Train(nn.Graph):
    def __init__(self, model, rate):
        super().__init__()
        self.model, self.loss_fn = model, nn.CrossEntropyLoss()
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=rate, momentum=0.9))

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


def patient(*ailments):
    """(graph, x, y), of a batch of 12 examples."""
    generator = flow.Generator().manual_seed(len(ailments))
    model = Patient(ailments)
    with flow.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * flow.randn(parameter.shape, generator=generator))
        if "nan" in ailments:
            model.head.bias[0] = math.nan
        if "dead" in ailments:
            model.second.bias.fill_(-50.0)
        if "far" in ailments:
            model.head.bias[0] = 20.0
        if "knows" in ailments:
            model.head.bias[2] = 20.0
        if "all dead" in ailments:
            model.first.bias.fill_(-50.0)
            model.second.weight.fill_(0.0)
            model.second.bias.fill_(-50.0)
        if "gap" in ailments:
            model.head.weight.fill_(0.0)
            model.head.bias.copy_(flow.tensor([0.0, 1.545, 0.0]))
        if "two" in ailments:
            model.head.weight.fill_(0.0)
            model.head.bias.copy_(flow.tensor([2.4, 0.0]))
    if "frozen" in ailments:
        model.first.requires_grad_(False)
    y = (flow.full((12,), 2, dtype=flow.int64) if "knows" in ailments
         else 2 * (flow.arange(12) % 2) if "gap" in ailments
         else flow.arange(12) % (2 if "two" in ailments else 3))
    return Train(model, 300.0 if "jumps" in ailments else 0.1), flow.randn(12, 8, generator=generator), y


BADGES = "frozen", "shared", "checkpointed"


def sorted_complaints(complaints, *ailments):
    """The complaints as a text, sorted."""
    result = complaints(*patient(*ailments))
    if not isinstance(result, set | frozenset):
        return result if result is None else f"a {type(result).__name__}"
    if not result <= {*ASKED, *BADGES}:
        return "a word that is none of the five"
    return ", ".join(sorted(result)) or "nothing"


def as_before(complaints, *ailments):
    """Whether parameters, modes and the optimizer are unchanged."""
    (graph, x, y), (twin, *_) = patient(*ailments), patient(*ailments)
    complaints(graph, x, y)
    mine, theirs = (dict(one.model.named_parameters()) for one in (graph, twin))
    if any(repr(mine[name].tolist()) != repr(theirs[name].tolist()) for name in theirs):
        return "other parameters"
    if [one.training for one in graph.model.modules()] != [one.training for one in twin.model.modules()]:
        return "another mode"
    if [graph(x, y).item() for _ in range(3)] != [twin(x, y).item() for _ in range(3)]:
        return "its next steps are different"
    return "as it was"


@exercise.cases
def cases(rng):
    def diagnosis_case(expected, *ailments, text="", **more):
        return case(*ailments, run=sorted_complaints, expected=expected, text=text, **more)

    yield diagnosis_case("nothing", text="a healthy graph, 12 examples, 3 classes")
    yield diagnosis_case("never ran, no gradient", "never ran", text="a second head that is never called")
    yield diagnosis_case("no gradient", "no gradient", text="a `detach()` in the middle")
    yield diagnosis_case("nan", "nan", text="one parameter is NaN")
    yield diagnosis_case("first loss", "classes", text="a head of 60 classes for labels 0, 1, 2")
    yield diagnosis_case("dead relu", "dead", text="the second of two ReLU modules gives 0 for all")
    yield diagnosis_case("dead relu", "all dead", text="both ReLU modules give 0 for all")
    yield diagnosis_case("first loss", "knows",
                         text="labels 0, 1, 2 would be possible, all are 2, and the first loss is near 0")
    yield diagnosis_case("nothing", "two", text="labels 0 and 1, and the first loss is near 1.3: not far from ln 2")
    yield diagnosis_case("nothing", "gap", text="labels 0 and 2, and the first loss is 1.9: not far from ln 3")
    yield diagnosis_case("nothing", "frozen", text="a healthy graph whose first layer is frozen")
    yield diagnosis_case("nothing", "jumps", text="a graph that is healthy, but whose rate is 300")
    yield case("far", run=as_before, expected="as it was", text="the graph after the visit")
    yield diagnosis_case("dead relu, first loss, never ran, no gradient", "dead", "far", "never ran", hidden=True)
    yield case("classes", run=as_before, expected="as it was", hidden=True)
