"""14.2 value: a number that remembers what it was computed from, and walks back."""

import cmath
import math

from ...definition import Exercise, case

exercise = Exercise(
    "14.2", "value", kind="write", level="core", answer="Value", time_limit=1.2, tolerance=(1e-9, 1e-9),
    question="What must a number remember so that slopes can be found?",
    hint="Draw the smallest case that fails, with a slope at each arrow. What should each value get, and when?",
    fact="These 40 lines are the heart of every engine. A real one adds arrays, more rules, and care for memory: its "
         "tape releases the arrays that a rule has used.",
    sibling="The same with one operation, minus, for u - v where u = 5 and v = 3. It gives 2. It keeps its inputs, "
            "(u, v), and the slope in each of them: (1, -1). On the way back the result has the slope 1 in itself, "
            "and adds 1 * 1 to the slope of u and -1 * 1 to that of v. And `7 - v`? Python first asks the 7, which "
            "does not know how to do it. Then it asks v: `v.__rsub__(7)`. There the 7 becomes a value too.",
)


@exercise.solution
class Value:
    """A number, `data`, that remembers what it was computed from. After `backward`, `grad` is its slope."""

    def __init__(self, data, inputs=(), slopes=(), op=""):
        self.data, self.grad = data, 0.0
        self.inputs, self.slopes, self.op = inputs, slopes, op

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1.0, 1.0), "add")

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data), "mul")

    # 2 + v and 2 * v: Python asks v, on the right
    __radd__, __rmul__ = __add__, __mul__

    def tanh(self):
        t = math.tanh(self.data)
        return Value(t, (self,), (1 - t * t,), "tanh")

    def backward(self):
        # parents first, with a list instead of recursion
        order, done, waiting = [], set(), [self]
        while waiting:
            top = waiting[-1]
            missing = [one for one in top.inputs if one not in done]
            if missing:
                waiting.append(missing[0])
                continue
            waiting.pop()
            if top not in done:
                done.add(top)
                order.append(top)
        # from the end back: all users of a value come before it
        self.grad = 1.0
        for value in reversed(order):
            for one, slope in zip(value.inputs, value.slopes):
                one.grad += slope * value.grad


@exercise.also_right
class Value:
    """Uses functions that pass slopes on, and visits each node twice."""

    def __init__(self, data):
        self.data, self.grad, self.inputs, self.pass_on = data, 0.0, (), lambda: None

    def result(self, data, inputs, pass_on):
        result = type(self)(data)
        result.inputs = inputs
        result.pass_on = lambda: pass_on(result.grad)
        return result

    def __add__(self, other):
        if not isinstance(other, type(self)):
            other = type(self)(other)

        def pass_on(g):
            self.grad += g
            other.grad += g

        return self.result(self.data + other.data, (self, other), pass_on)

    def __mul__(self, other):
        if not isinstance(other, type(self)):
            other = type(self)(other)

        def pass_on(g):
            self.grad += g * other.data
            other.grad += g * self.data

        return self.result(self.data * other.data, (self, other), pass_on)

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def tanh(self):
        t = math.tanh(self.data)

        def pass_on(g):
            self.grad += g * (1 - t**2)

        return self.result(t, (self,), pass_on)

    def backward(self):
        order, seen, stack = [], set(), [(self, False)]
        while stack:
            one, done = stack.pop()
            if done:
                order.append(one)
            elif one not in seen:
                seen.add(one)
                stack += [(one, True)] + [(before, False) for before in one.inputs]
        self.grad = 1.0
        for one in order[::-1]:
            one.pass_on()


class Counted:
    """A value that knows when it was made: the walk takes later ones first."""

    count = 0

    def __init__(self, data, *inputs):
        Counted.count += 1
        self.data, self.grad, self.pairs, self.number = float(data), 0.0, inputs, Counted.count

    @property
    def inputs(self):
        return tuple(one for one, _ in self.pairs)

    def __add__(self, other):
        if isinstance(other, Counted):
            return type(self)(self.data + other.data, (self, 1.0), (other, 1.0))
        return type(self)(self.data + other, (self, 1.0))

    def __mul__(self, other):
        if isinstance(other, Counted):
            return type(self)(self.data * other.data, (self, other.data), (other, self.data))
        return type(self)(self.data * other, (self, other))

    __radd__, __rmul__ = __add__, __mul__

    def tanh(self):
        t = math.tanh(self.data)
        return type(self)(t, (self, (1 - t) * (1 + t)))

    def backward(self):
        found, every = {self.number: self}, [self]
        for one in every:
            for before, _ in one.pairs:
                if before.number not in found:
                    found[before.number] = before
                    every.append(before)
        self.grad = 1.0
        for number in sorted(found, reverse=True):
            for before, slope in found[number].pairs:
                before.grad += slope * found[number].grad


@exercise.also_right
class Value(Counted):
    pass


Right = exercise.right


class Base(Right):
    """The right class, as a base for those that do one thing differently: results have the subclass."""

    def __init__(self, data, inputs=(), slopes=(), op=""):
        super().__init__(data, inputs, slopes, op)

    def lifted(self, x):
        return x if isinstance(x, Right) else type(self)(x)

    def slopes_of_mul(self, other):
        return other.data, self.data

    def __add__(self, other):
        other = self.lifted(other)
        return type(self)(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = self.lifted(other)
        return type(self)(self.data * other.data, (self, other), self.slopes_of_mul(other))

    __radd__, __rmul__ = __add__, __mul__

    def tanh(self):
        t = math.tanh(self.data)
        return type(self)(t, (self,), (1 - t * t,))

    def order(self):
        result, seen, stack = [], set(), [(self, False)]
        while stack:
            one, done = stack.pop()
            if done:
                result.append(one)
            elif one not in seen:
                seen.add(one)
                stack += [(one, True)] + [(before, False) for before in one.inputs]
        return result[::-1]

    def backward(self):
        self.grad = 1.0
        for value in self.order():
            value.speak()

    def speak(self):
        for one, slope in zip(self.inputs, self.slopes):
            one.grad += slope * self.grad


@exercise.wrong("= in place of +=",
                "In v + v two ways lead to v, and each brings a slope. Yours keeps only the last one.",
                "Where ways meet, slopes add: `+=`, not `=`.")
class Value(Base):
    def speak(self):
        for one, slope in zip(self.inputs, self.slopes):
            one.grad = slope * self.grad


@exercise.wrong("recursion",
                "A chain of 5,000 values is too deep for Python's call stack. You have an order that needs no "
                "recursion: your own from 03.2.",
                "Put the values that wait into a list, and loop while it is not empty.")
class Value(Base):
    def order(self):
        result, seen = [], set()

        def visit(one):
            if one not in seen:
                seen.add(one)
                for before in one.inputs:
                    visit(before)
                result.append(one)

        visit(self)
        return result[::-1]


@exercise.wrong("passed on too early",
                "A value passed on its slope before all of it had arrived. It must wait for all its users.",
                "Do not process values as you meet them. First make the list, parents first, then walk it from its "
                "end.")
class Value(Base):
    def order(self):
        result, seen = [self], {self}
        for one in result:
            new = [before for before in dict.fromkeys(one.inputs) if before not in seen]
            seen.update(new)
            result += new
        return result


@exercise.wrong("2 * v not known",
                "In 2 * v Python first asks the 2, which does not know how to do it. Then it asks v for a method "
                "named __rmul__.",
                "Add `__rmul__` and `__radd__`: they are called with the number on the left.")
class Value(Base):
    __radd__ = __rmul__ = None


@exercise.wrong("number not made a value",
                "In v * 2 the other one is a plain number without `data`. Make a value of it first.",
                "At the beginning of + and *: `if not isinstance(other, Value): other = Value(other)`.")
class Value(Base):
    def lifted(self, x):
        return x if isinstance(x, Right) else x.data  # a plain number has none

    def __radd__(self, other):
        return self + other

    __rmul__ = __radd__


@exercise.wrong("nothing to begin with",
                "The last value has no slope, so the walk has nothing to begin with. What is the slope of d in d "
                "itself?",
                "Before the walk, the last value has the grad 1.0.")
class Value(Base):
    def backward(self):
        for value in self.order():
            value.speak()


@exercise.wrong("the walk begins with 0",
                "The slope of the first walk is gone. `backward` *adds* to the value of `grad`, as in lesson 03.",
                "Clear nothing in `backward`: with `+=` each walk adds its own slopes.")
class Value(Base):
    def backward(self):
        for value in self.order():
            value.grad = 0.0
        super().backward()


@exercise.wrong("leaves alone",
                "Only the values at the beginning get a slope. d itself, and every value between, have one too.",
                "`grad` of every value on the way, whether it has inputs or not.")
class Value(Base):
    def backward(self):
        super().backward()
        for value in self.order():
            if value.inputs:
                value.grad = 0.0


@exercise.wrong("once for each way",
                "That is right, but slow: a value passes on its part once for each way. With 40 diamonds in a row "
                "there are 2**40 ways.",
                "Each value passes on its part once, after all its users have added theirs: that is what the order is "
                "for.")
class Value(Base):
    def backward(self):
        stack = [(self, 1.0)]
        while stack:
            one, g = stack.pop()
            one.grad += g
            stack += [(before, slope * g) for before, slope in zip(one.inputs, one.slopes)]


@exercise.wrong("own number as slope",
                "In u * v, the slope in u is v: how much the result rises depends on the *other* number.",
                "Nudge 3 in 3 * 2: the result rises twice as fast. Its slope is the 2.")
class Value(Base):
    def slopes_of_mul(self, other):
        return self.data, other.data


@exercise.wrong("slope of tanh without its square",
                "The slope of t = tanh(x) is 1 - t*t. Nudge it at 0.5 and compare.",
                "The t in it is the result of tanh, and it is squared.")
class Value(Base):
    def tanh(self):
        t = math.tanh(self.data)
        return type(self)(t, (self,), (1 - t,))


@exercise.wrong("slope of tanh from x",
                "The slope of tanh is 1 - t*t, with t the *result*: you took what went in.",
                "Compute t = tanh(x) first, keep it, and use it twice: as result and in the slope.")
class Value(Base):
    def tanh(self):
        return type(self)(math.tanh(self.data), (self,), (1 - self.data**2,))


@exercise.wrong("slope of a sum like that of a product",
                "In u + v the slope in u is 1, and in v too, whatever the numbers are.",
                "Nudge u in u + v by 0.001: the sum rises by 0.001.")
class Value(Base):
    def __add__(self, other):
        other = self.lifted(other)
        return type(self)(self.data + other.data, (self, other), (other.data, self.data))

    __radd__ = __add__


@exercise.wrong("lists for tuples",
                "Your `inputs` are lists. The table asks for a tuple.",
                "`(self, other)`, in round brackets; one alone is `(self,)`.")
class Value(Base):
    def __init__(self, data, inputs=(), slopes=(), op=""):
        super().__init__(data, list(inputs), slopes, op)


@exercise.wrong("results as lists",
                "Your `inputs` are lists. The table asks for a tuple.",
                "`(self, other)`, in round brackets; one alone is `(self,)`.")
class Value(Base):
    def __init__(self, data, inputs=(), slopes=(), op=""):
        super().__init__(data, list(inputs) if inputs else (), slopes, op)


@exercise.wrong("each value once for each way",
                "The slope of a value is passed on again whenever something new arrives, so the old part counts twice.",
                "Each value passes on its slope once, after all its users have added theirs: that is what the order "
                "is for.")
class Value(Base):
    def backward(self):
        self.grad, waiting = 1.0, [self]
        for _ in range(10_000):  # with 40 diamonds in a row it would never end
            if waiting:
                one = waiting.pop(0)
                one.speak()
                waiting += one.inputs


@exercise.wrong("children first",
                "Your walk begins at the wrong end: at the beginning of the program, the slopes have not arrived yet.",
                "From the last value back: the reversed order.")
class Value(Base):
    def backward(self):
        slopes = dict.fromkeys(self.order(), 0.0)
        slopes[self] = 1.0
        for value in self.order()[::-1]:
            value.grad += slopes[value]
            for one, slope in zip(value.inputs, value.slopes):
                slopes[one] += slope * slopes[value]


@exercise.wrong("only the direct inputs",
                "Only the direct inputs get a slope. Those that they were computed from get one too.",
                "Walk on: from each value to its inputs.")
class Value(Base):
    def backward(self):
        self.grad = 1.0
        self.speak()


@exercise.wrong("once for equal inputs",
                "In v + v the value v is used twice, and each use brings a slope. Yours counts one of them.",
                "A dict and a set hold each value once. Go through `inputs` itself.")
class Value(Base):
    def speak(self):
        for one, slope in dict(zip(self.inputs, self.slopes)).items():
            one.grad += slope * self.grad


@exercise.wrong("tanh without a rule",
                "The slope of tanh is 1 in yours, everywhere. At 3 the curve is nearly flat.",
                "With t for the result it is 1 - t*t.")
class Value(Base):
    def tanh(self):
        return type(self)(math.tanh(self.data), (self,), (1.0,))


@exercise.wrong("tanh of the value",
                "`math.tanh` takes a plain number. Which part of a Value is that?",
                "`math.tanh(self.data)`")
class Value(Base):
    def tanh(self):
        return type(self)(math.tanh(self), (self,), (0.0,))


@exercise.wrong("tanh gives a number",
                "`tanh` returns a plain number, which remembers nothing. It should be a new Value.",
                "A Value of the number, with `(self,)` as its inputs.")
class Value(Base):
    def tanh(self):
        return math.tanh(self.data)


@exercise.wrong("inputs forgotten in *",
                "The result of * does not know its inputs, so the walk ends there.",
                "Give the new Value `(self, other)` as its inputs, as + does.")
class Value(Base):
    def __mul__(self, other):
        return type(self)(self.data * self.lifted(other).data)

    __rmul__ = __mul__


@exercise.wrong("inputs forgotten with plain numbers",
                "If the other one is a plain number, the result does not know its inputs: the walk ends there.",
                "Make a value of the number first; then there is only one case.")
class Value(Base):
    def __mul__(self, other):
        if isinstance(other, Right):
            return super().__mul__(other)
        return type(self)(self.data * other)

    __rmul__ = __mul__


@exercise.wrong("changed in place",
                "`a * b + a` changes a itself: the old number is lost. The result should be a *new* Value.",
                "`return Value(...)`, and leave `self.data` as it is.")
class Value(Base):
    def __add__(self, other):
        self.data += self.lifted(other).data
        return self

    def __mul__(self, other):
        self.data *= self.lifted(other).data
        return self

    __radd__, __rmul__ = __add__, __mul__


@exercise.wrong("grad without a number",
                "At first `grad` is None in yours. It should be 0.0: to None nothing can be added.",
                "`self.grad = 0.0` in `__init__`.")
class Value(Base):
    def __init__(self, data, inputs=(), slopes=(), op=""):
        super().__init__(data, inputs, slopes, op)
        self.grad = None

    def backward(self):
        self.grad += 1.0


Value = Right  # the class that the solution's own code refers to


# ---- what is asked --------------------------------------------------------------------------------------------------

def number(x):
    return float(x.data)


def slopes(Value, f, *data):
    """The slopes of f at these numbers."""
    values = [Value(x) for x in data]
    f(*values).backward()
    return [float(one.grad) for one in values]


def result(Value, f, *data):
    return number(f(*map(Value, data)))


def remembered(Value, f):
    """True if a result holds its inputs."""
    a, b = Value(3.0), Value(2.0)
    inputs = f(a, b).inputs
    return [any(one is other for other in inputs) for one in (a, b)]


def kind_of_inputs(Value, f):
    """The type of `inputs`: of a value that was given, and of a result."""
    a, b = Value(3.0), Value(2.0)
    return [type(one.inputs).__name__ for one in (a, f(a, b))]


def of_itself(Value, x):
    last = Value(x) * Value(2.0)
    last.backward()
    return float(last.grad)


def two_walks(Value, x):
    v = Value(x)
    (v * 2.0).backward()
    (v * 3.0).backward()
    return float(v.grad)


def between(Value, x):
    """The slope of an intermediate value."""
    middle = Value(x) * 2.0
    (middle * 3.0).backward()
    return float(middle.grad)


def tanh(x):
    return x.tanh() if hasattr(x, "tanh") else cmath.tanh(x)


def nudged(f, *data, h=1e-20):
    """The slopes of f, by nudging in the imaginary direction, which loses no digits."""
    return [complex(f(*[x + 1j * h * (i == k) for k, x in enumerate(data)])).imag / h for i in range(len(data))]


def asks(f, *data, text, hidden=False):
    return case(f, *data, run=slopes, expected=nudged(f, *data), text=text, hidden=hidden)


def diamond(a):
    b = a * a
    c = b + b
    return c * b


def two_ways(a):
    b = a * 3.0
    return b + b * 4.0 * 5.0


def chain(v, n=5000):
    for _ in range(n):
        v = v * 1.0001
    return v


def doubled(v):
    for _ in range(40):
        v = v + v
    return v


def program(steps):
    """A function of three numbers that follows drawn steps."""
    def f(*values):
        values = list(values)
        for op, i, j in steps:
            x, y = values[i], values[j]
            values.append(x + y if op == "add" else x * y if op == "mul" else tanh(x) if op == "tanh" else 0.5 * y)
        return sum(values[-3:], values[3])

    return f


def drawn(rng):
    ops = [str(rng.choice(["add", "mul", "tanh", "half"])) for _ in range(8)]
    return program([(op, int(rng.integers(3 + i)), int(rng.integers(3 + i))) for i, op in enumerate(ops)])


@exercise.cases
def cases(rng):
    yield case(lambda a, b: a * b + a, 3.0, 2.0, run=result, expected=9.0, text="a = 3, b = 2: the data of a * b + a")
    yield case(lambda a, b: a * b, run=remembered, expected=[True, True], text="are a and b in (a * b).inputs?")
    yield case(lambda a, b: a * b, run=kind_of_inputs, expected=["tuple", "tuple"],
               text="the types of a.inputs and (a * b).inputs")
    yield case(5.0, run=of_itself, expected=1.0, text="after backward of d = 5 * 2: the grad of d itself")
    yield asks(lambda a, b: a + b, 3.0, 2.0, text="a = 3, b = 2, backward of a + b: the grads of a and b")
    yield asks(lambda a, b: a * b, 3.0, 2.0, text="a = 3, b = 2, backward of a * b: the grads of a and b")
    yield asks(tanh, 0.5, text="v = 0.5, backward of v.tanh(): its grad")
    yield asks(lambda v: v + v, 3.0, text="v = 3, backward of v + v")
    yield asks(lambda v: v * 2.0, 3.0, text="v = 3, backward of v * 2")
    yield case(3.0, run=two_walks, expected=5.0, text="v = 3, backward of v * 2, then of v * 3: the grad of v")
    yield case(3.0, run=between, expected=3.0, text="v = 3, b = v * 2, backward of b * 3: the grad of b")
    yield asks(lambda v: 2.0 * v + (1.0 + v), 3.0, text="v = 3, backward of 2 * v + (1 + v)")
    yield asks(diamond, 2.0, text="the diamond: a = 2, b = a * a, c = b + b, d = c * b: the grad of a")
    yield asks(two_ways, 2.0, text="b = a * 3, e = b + b * 4 * 5, a short and a long way: the grad of a")
    yield asks(chain, 1.0, text="a chain of 5,000 products")
    yield case(doubled, 1.0, run=slopes, expected=[2.0**40], text="40 times v = v + v: the grad of the first v")
    yield from [asks(drawn(rng), *rng.normal(size=3).tolist(), text="", hidden=True) for _ in range(4)]
