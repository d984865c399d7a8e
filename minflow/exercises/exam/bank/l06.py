"""Variants of lesson 06."""

from ..variants import Change, ask, mistake, question, vary


@ask("nonsense")
def nonsense(rng):
    kinds, images = int(rng.choice([4, 20, 50])), int(rng.choice([200, 400, 500]))
    one = question(
        "nonsense",
        "A network with many hidden units trains long on {images} pictures of {kinds} kinds, equally many of each. "
        "Their labels were shuffled. Which share of these pictures does it get right in the end, and which share of "
        "new pictures with true labels? Write `{answer} = (train, test)`.",
        images=images, kinds=kinds,
    )
    chance = 1 / kinds
    one.solution((1.0, round(chance, 3)))
    one.also_right([1.0, chance])

    @one.accept
    def near(shares):
        train, test = shares
        return 0.95 <= train <= 1 and 0.75 * chance <= test <= 1.5 * chance

    mistake(one, "percent", (100, 100 * chance), "Shares are between 0 and 1.", when=lambda shares: max(shares) > 1)
    mistake(one, "test above train", (chance, 0.9), "The pair is (train, test).",
            when=lambda shares: shares[0] < shares[1])
    mistake(one, "cannot learn", (chance, chance), "It can remember each picture with its label.",
            when=lambda shares: shares[0] < 0.5 and shares[1] <= shares[0])
    mistake(one, "learns all", (1.0, 0.95), "Nonsense teaches nothing about new pictures.",
            when=lambda shares: shares[1] >= 0.6)
    mistake(one, "half", (1.0, 0.5), "0.5 is a guess between two kinds.", when=lambda shares: 0.45 <= shares[1] < 0.6)
    mistake(one, "never right", (1.0, 0.0), "Even a blind guess is right now and then.",
            when=lambda shares: shares[1] == 0)
    mistake(one, "ten kinds", (1.0, 0.1), "0.1 is a guess among ten kinds.",
            when=lambda shares: 0.09 <= shares[1] <= 0.11)
    return one


FAIR = (
    "order = flow.randperm(len(images))",
    "images, labels = images[order], labels[order]",
    "{cut}",
    "test_x, test_y = images[1400:], labels[1400:]",
    "{scale}",
    "model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))",
    "optimizer, best = flow.optim.Adam(model.parameters(), lr=0.01), 0",
    "for epoch in range(40):",
    "    optimizer.zero_grad(); loss_of(model, train_x, train_y).backward(); optimizer.step()",
    "    {pick}",
    'print(f"the best accuracy is {{best:.3f}}")',
)
LEAKS = {  # place in the program -> (honest line, line that uses test images)
    "cut": ("train_x, train_y = images[:600], labels[:600]", "train_x, train_y = images[:1500], labels[:1500]"),
    "scale": ("scale = train_x.std(0) + 0.1", "scale = images.std(0) + 0.1"),
    "pick": ("best = max(best, share(model, images[600:800], labels[600:800]))",
             "best = max(best, share(model, test_x, test_y))"),
}


@ask("two_cheats")
def two_cheats(rng):
    leaks = [str(name) for name in rng.permutation(list(LEAKS))[:2]]
    gap = int(rng.integers(0, 4))  # numbers of the lines begin elsewhere
    lines = [line.format(**{name: both[name in leaks] for name, both in LEAKS.items()}) for line in FAIR]
    number = {name: gap + 1 + FAIR.index(next(line for line in FAIR if f"{{{name}}}" in line)) for name in LEAKS}
    right = {number[name] for name in leaks}
    honest = next(name for name in LEAKS if name not in leaks)
    one = question(
        "two_cheats",
        "`images` and `labels` are all data, and images from 1,400 on are for the test. In two lines of this program "
        "test images help: in a computation or in a decision. Which two are they? Write their numbers as a set: "
        "`{answer} = {{1, 2}}`.\n\n```python\n{program}\n```",
        program="\n".join(f"{line}  # {i}" for i, line in enumerate(lines, gap + 1)),
    )
    one.solution(right)
    one.also_right(sorted(right))

    @one.accept
    def both(value):
        return set(value) == right

    first, second = (number[name] for name in leaks)
    mistake(
        one, "only the first", {first}, "There is another one.", when=lambda value: set(value) == {first}, half=True
    )
    mistake(
        one, "only the second", {second}, "There is another one.", when=lambda value: set(value) == {second}, half=True
    )
    mistake(one, "the shuffle", {gap + 2, first}, "Mixing is right: images and labels stay together.",
            when=lambda value: set(value) & {gap + 1, gap + 2})
    mistake(one, "an honest line", {number[honest], second}, "This line uses no test image.",
            when=lambda value: number[honest] in value)
    mistake(one, "the print", {first, gap + 11}, "The last line only prints.", when=lambda value: gap + 11 in value)
    mistake(one, "the test images", {first, gap + 4}, "To set test images apart is right.",
            when=lambda value: gap + 4 in value)
    return one


vary(
    "batches",
    "Write the generator `{answer}(x, y, size, seed)`. It mixes the examples, and yields batches of `size` examples. "
    "Each example comes once, with its own label. If the last batch is smaller, yield it too. The seed decides the "
    "order. A generator is a function with `yield` in it.",
    [
        Change(
            "labels_first",
            "A batch is the pair `(y part, x part)`: the labels first.",
            edits={"yield x[chosen], y[chosen]": "yield y[chosen], x[chosen]"},
            undo=lambda answer: lambda *data: each(swapped, answer(*data)),
            redo=lambda answer: lambda *data: each(swapped, answer(*data)),
        ),
        Change(
            "batches_in_dicts",
            'A batch is a dict with the keys "x" and "y".',
            edits={"yield x[chosen], y[chosen]": 'yield {"x": x[chosen], "y": y[chosen]}'},
            undo=lambda answer: lambda *data: each(as_pair, answer(*data)),
            redo=lambda answer: lambda *data: each(as_dict, answer(*data)),
        ),
    ],
)


def each(change, batches):
    """Change the batches one by one; a list stays a list."""
    changed = (change(batch) for batch in batches)
    return changed if hasattr(batches, "__next__") else list(changed)


def swapped(pair):
    return pair[::-1] if isinstance(pair, tuple | list) else pair


def as_pair(batch):
    return (batch["x"], batch["y"]) if isinstance(batch, dict) and list(batch) == ["x", "y"] else repr(batch)


def as_dict(pair):
    return dict(zip("xy", pair)) if isinstance(pair, tuple | list) else pair


vary(
    "score",
    "Write `{answer}(model, x, y)`. It measures in eval mode. Afterwards the model must be in the mode that it was in "
    "before: `model.training` says which.",
    [
        Change("error_rate", "Return the share of x that the model reads *wrongly*, a float.", result="1 - ({})",
               without=("count",), stale="mistakes|wrong"),
        Change("score_in_percent", "Return how many percent of x the model reads correctly, a float.",
               result="100 * ({})", without=("percent",)),
    ],
)
