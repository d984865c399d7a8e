"""JSON that is readable and diffable: each entry of a top-level list or object has its own line.

    {
      "format": "minflow.graph",
      "nodes": [
        {"value": "%2", "op": "relu", "in": ["%1"]},
        {"value": "%3", "op": "sum", "in": ["%2"]}
      ]
    }

Input is not trusted and is read line by line: the memory that a line may need is bounded before it is parsed
(`[],[],[]` takes 20 times its size) and summed afterwards. Nonstandard JSON that Python accepts, and duplicate names,
are Malformed. Independent of graphs. Read next: `checks.py`.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from ..io.container import refuse_constant, unique_pairs
from .checks import MAX_INT64, Malformed

MAX_LINE_BYTES = 1 << 19  # bytes of a line
MAX_LINE_COST = 10_000_000  # bytes of memory for one line
MAX_DEPTH = 200  # nested lists and objects
KEY = re.compile(r'"([^"\\]+)": (.+)')
OPENING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|([\[{])|[\]}]', re.DOTALL)
# Most bytes that a name takes besides its text: 80 in the set of all names, 66 in the table of interned strings. Both
# double when full, and the old table is freed only after the new one is filled.
NAME_OVERHEAD = 150
# Bytes of memory per occurrence: of a dict, a list, a name in a dict, an entry, and half a string.
COSTS = {b"{": 200, b"[": 90, b":": 90, b",": 34, b'"': 40}


def parse_cost(text: bytes) -> int:
    """Approximate upper bound of the memory, in bytes, for parsing this JSON."""
    wide = 1 if text.isascii() and b"\\u" not in text else 4  # one wide character makes all characters of a string wide
    return wide * len(text) + sum(each * text.count(mark) for mark, each in COSTS.items())


def memory_size(x: Any, names: set[str]) -> int:
    """Memory of a parsed value in bytes. names: names that were already counted, because they are shared."""
    total, stack = 0, [x]
    while stack:
        x = stack.pop()
        if x is None or x is True or x is False or (type(x) is int and -6 < x < 257):  # shared objects of Python
            continue
        total += sys.getsizeof(x)
        if type(x) is list:
            stack += x
        elif type(x) is dict:
            stack += x.values()
            if not x.keys() <= names:
                total += sum(sys.getsizeof(name) + NAME_OVERHEAD for name in x if name not in names)
                names.update(x)
    return total


# ---- writing ---------------------------------------------------------------------------------------------------------


def encode_lines(data: dict[str, Any]) -> Iterator[bytes]:
    """The lines of an object. Raises Malformed for values that could not be read back."""
    yield b"{\n"
    for i, (name, value) in enumerate(data.items()):
        end = "," if i < len(data) - 1 else ""
        if not value or type(value) not in (list, dict):
            yield encode_line(f'  "{name}": {dumps(value, name)}{end}', name)
            continue
        listed = type(value) is list
        yield encode_line(f'  "{name}": {"[" if listed else "{"}', name)
        for j, entry in enumerate(value if listed else value.items()):
            place = f"{name}[{j}]" if listed else f"{name}.{entry[0]}"
            text = dumps(entry, place) if listed else dumps(dict([entry]), place)[1:-1]
            yield encode_line(f"    {text}{',' if j < len(value) - 1 else ''}", place)
        yield encode_line(f"  {']' if listed else '}'}{end}", name)
    yield b"}\n"


def dumps(x: Any, place: str, indent: int | None = None) -> str:
    """The JSON text of a value, which `parse` can read."""
    try:
        text = json.dumps(x, ensure_ascii=False, allow_nan=False, indent=indent)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Malformed(f"a JSON value ({error})", x, place) from None
    parse(text, place)
    return text


def encode_line(text: str, place: str) -> bytes:
    data = f"{text}\n".encode()
    if len(data) > MAX_LINE_BYTES:
        raise Malformed(f"an entry of at most {MAX_LINE_BYTES:,} bytes", text, place)
    return data


# ---- reading ---------------------------------------------------------------------------------------------------------


class LineReader:
    """Reader of the lines of an open file, whose values may take `budget` bytes of memory in total."""

    def __init__(self, file: BinaryIO, budget: int):
        self.file, self.budget_left, self.number = file, budget, 0
        self.names: set[str] = set()

    def next_line(self) -> str:
        """The next line without surrounding whitespace; "" after the last."""
        data = self.file.readline(MAX_LINE_BYTES + 1)
        self.number += 1
        if len(data) > MAX_LINE_BYTES:
            raise Malformed(f"a line of at most {MAX_LINE_BYTES:,} bytes", data[:200], self.place)
        if parse_cost(data) > MAX_LINE_COST:
            raise Malformed("a line with fewer parts", data[:200], self.place)
        try:
            return data.decode().strip(" \n")
        except UnicodeDecodeError as error:
            raise Malformed(f"UTF-8 ({error.reason} at byte {error.start})", data[:200], self.place) from None

    @property
    def place(self) -> str:
        return f"line {self.number}"

    def parse(self, text: str) -> Any:
        result = parse(text, self.place)
        self.budget_left -= memory_size(result, self.names)
        if self.budget_left < 0:
            self.refuse("the end: the file takes too much memory for its size", text)
        return result

    def refuse(self, wanted: str, text: str) -> NoReturn:
        raise Malformed(wanted, text, self.place)

    def read_object(self) -> dict[str, Any]:
        """Parse the lines as one object."""
        if (text := self.next_line()) != "{":
            self.refuse("only {", text)
        result: dict[str, Any] = {}
        more = True
        while (text := self.next_line()) != "}":
            match = KEY.fullmatch(text)
            if match is None or not more:
                self.refuse('a name and its value, `"name": value,`, or the end, }', text)
            name, rest = match[1], match[2]
            if name in result:
                self.refuse("a name that does not occur twice", name)
            if rest in ("[", "{"):
                result[name], more = self.read_entries(rest)
            else:
                more = rest.endswith(",")
                result[name] = self.parse(rest.removesuffix(","))
        if more or (text := self.next_line()):
            self.refuse("the end, with no comma before it and nothing after it", text)
        return result

    def read_entries(self, kind: str) -> tuple[Any, bool]:
        """Parse a list or dict with one entry per line. Returns it, and True if a comma follows."""
        close = "]" if kind == "[" else "}"
        found: list[Any] = []
        more = True
        while (text := self.next_line()) not in (close, f"{close},"):
            if not more:
                self.refuse(f"{close}, or a comma before it", text)
            more, entry = text.endswith(","), text.removesuffix(",")
            if kind == "[":
                found.append(self.parse(entry))
            elif len(pairs := self.parse(f"{{{entry}}}")) == 1:
                found += pairs.items()
            else:
                self.refuse("one name and its value", text)
        if more:
            self.refuse("an entry, because a comma precedes it", text)
        if kind == "[":
            return found, text.endswith(",")
        result = dict(found)
        if len(result) < len(found):
            self.refuse("an object without duplicate names", text)
        return result, text.endswith(",")


def parse(text: str, place: str) -> Any:
    """Parse a JSON text. Raises Malformed."""
    if text.count("[") + text.count("{") > MAX_DEPTH and depth(text) > MAX_DEPTH:
        raise Malformed(f"at most {MAX_DEPTH} nested lists and objects", text, place)
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"JSON ({error})", text, place) from None


def depth(text: str) -> int:
    deepest = now = 0
    for match in OPENING.finditer(text):
        if match[0][0] != '"':
            now += 1 if match[1] else -1
            deepest = max(deepest, now)
    return deepest


def parse_int(text: str) -> int:
    if len(text) > 20 or not -MAX_INT64 - 1 <= int(text) <= MAX_INT64:
        raise ValueError(f"{text[:40]} is beyond 64 bits")
    return int(text)


def parse_float(text: str) -> float:
    if not math.isfinite(x := float(text)):
        raise ValueError(f"{text[:40]} is beyond a float64")
    return x


def interned_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The dict of these pairs; its names are shared between lines."""
    return unique_pairs([(sys.intern(name), value) for name, value in pairs])


DECODER = json.JSONDecoder(
    object_pairs_hook=interned_pairs, parse_int=parse_int, parse_float=parse_float, parse_constant=refuse_constant
)
