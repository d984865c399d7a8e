"""Calls of functions of sequences: recurrent layers and functions, packing, attention. Read next: `calls.py`."""

from __future__ import annotations

from .draw import Draw

FLOATS = ("float32", "float32", "float32", "float64", "float16")
PROFILES = ("plain", "unit", "ties", "zeros", "saturated")


def given(d: Draw, *shape: int, dtype: str | None = None, **fixed) -> str:
    """A tensor of this shape, sometimes of a mismatched one."""
    return str(d.tensor(shape if d.chance(0.98) else (*shape, 1), dtype or d.x.dtype, layout="plain", **fixed))


def recurrent(**more: str):
    """A layer of input size 3, and its input: (T, N, I), (T, I), or without steps or sequences."""

    def make(d: Draw):
        kw = d.some(num_layers="1 2", bias="True False", batch_first="True False", bidirectional="True False", **more)
        x = d.tensor(d.one((3, 2, 3), (2, 1, 3), (1, 2, 3), (4, 3), (2, 0, 3), (2, 2, 2)), d.dtype_of(*FLOATS))
        return ["3", d.of("2 1 4")], kw, x

    return make


def cell(**more: str):
    return lambda d: (
        ["3", d.of("2 1 4")],
        d.some(bias="True False", **more),
        d.tensor(d.one((2, 3), (3,), (1, 3), (0, 3), (2, 2)), d.dtype_of(*FLOATS)),
    )


def layers(gates: int):
    """lstm(input, hx, params, ...) and similar, with one or two layers and directions; packed too."""

    def make(d: Draw):
        packed, biases, count, both, first = (d.chance(p) for p in (0.3, 0.7, 0.3, 0.4, 0.3))
        first, rows, directions = first and not packed, gates * 2, 1 + both
        batch, steps = 2, 3
        shape = (4, 3) if packed else (batch, steps, 3) if first else (steps, batch, 3)
        x = d.tensor(shape, d.dtype_of("float32", "float64"))
        state = lambda: given(d, (1 + count) * directions, batch, 2)
        hx = f"({state()}, {state()})" if gates == 4 else state()
        params = []
        for layer in range(1 + count):
            for _ in range(directions):
                params += [given(d, rows, 2 * directions if layer else 3, profile="unit"), given(d, rows, 2)]
                params += [given(d, rows), given(d, rows)] if biases else []
        args = [
            str(x),
            *(["L.tensor([2, 1, 1])"] if packed else []),
            hx,
            f"[{', '.join(params)}]",
            str(biases),
            str(1 + count),
            "0.0",
            "False",
            str(both),
            *([] if packed else [str(first)]),
        ]
        return args, {}

    return make


def one_step(gates: int):
    def make(d: Draw):
        d.tensor((2, 3), d.dtype_of(*FLOATS))
        hx = f"({given(d, 2, 2)}, {given(d, 2, 2)})" if gates == 4 else given(d, 2, 2)
        biases = [given(d, 2 * gates), given(d, 2 * gates)] if d.chance(0.6) else []
        return [str(d.x), hx, given(d, 2 * gates, 3), given(d, 2 * gates, 2), *biases], {}

    return make


# ---- nn.utils.rnn --------------------------------------------------------------------------------------------------


def padded(d: Draw):
    x = d.tensor(d.one((4, 3), (4, 3, 2), (3, 3, 1, 2)))
    first = d.chance(0.3)
    lengths = d.one(
        "[3, 2, 1]",
        "[3, 3, 1]",
        "L.tensor([3, 2, 2])",
        "[1, 3, 2]",
        "[3, 1]",
        "[3, 2, 0]",
        "[5, 1, 1]",
        *(["[3, 1, 2, 2]"] * first * 3),
    )
    return [str(x), lengths], {"batch_first": str(first), **d.some(enforce_sorted="True False False")}


def packing(d: Draw) -> str:
    """The text of a packed sequence."""
    x = d.tensor((3, 3, 2), layout="plain")
    lengths = d.one("[3, 2, 1]", "[2, 3, 1]", "[1, 1, 1]")
    return f"L.nn.utils.rnn.pack_padded_sequence({x}, L.tensor({lengths}), enforce_sorted=False)"


def lists(d: Draw, least: int = 0) -> list[str]:
    tail = d.one((), (2,), (2, 1))
    d.tensor((3, *tail))
    sizes = d.one((2, 1), (3,), (), (least, 2))
    return [f"[{d.x}, {', '.join(given(d, n, *tail) for n in sizes)}]"]


def unpadded(d: Draw):
    x = d.tensor(d.one((3, 2), (3, 2, 2)))
    return [str(x), d.one("L.tensor([3, 1])", "L.tensor([2, 2])", "L.tensor([1, 3])")], {}


# ---- attention -----------------------------------------------------------------------------------------------------


def attention(d: Draw):
    heads = d.one((), (2,), (1, 2))
    x = d.tensor((*heads, 2, 4), d.dtype_of(*FLOATS))
    args = [str(x), given(d, *heads, 3, 4), given(d, *heads, 3, d.one(4, 2))]
    kw = d.some(scale="0.5 None 0.0", enable_gqa="False True" if heads else "False")
    if d.chance(0.3):
        kw["is_causal"] = "True"
    if d.chance(0.5) and "is_causal" not in kw:
        kw["attn_mask"] = given(d, 2, 3, dtype=d.one("bool", x.dtype), grad=False, profile="plain")
    return args, kw


def attention_inputs(d: Draw, count: int, *shapes: tuple) -> str:
    """Several tensors of one shape, the first of which is x."""
    shape = d.choice(shapes)
    d.tensor(shape, d.dtype_of(*FLOATS))
    return ", ".join([str(d.x), *[given(d, *shape) for _ in range(count - 1)]])


def multi_head(d: Draw):
    inputs = attention_inputs(d, 3, (2, 1, 4), (3, 2, 4), (3, 4)).split(", ")
    biases = [given(d, 12, grad=False), "None", "None"] if d.chance(0.7) else ["None"] * 3
    zeros = d.of("True False False")
    last = [given(d, 4, 4, profile="unit"), given(d, 4) if d.chance(0.7) else "None"]
    kw = d.some(need_weights="True False", average_attn_weights="True False", training="False True")
    return [*inputs, "4", d.of("2 1 4"), given(d, 12, 4, profile="unit"), *biases, zeros, "0.0", *last], kw


BLOCK = dict(activation="'relu' 'gelu' 'x'", norm_first="True False", batch_first="True False", bias="True False")
LAYERS = {
    "MultiheadAttention": lambda d: (
        ["4", d.of("2 1 4 3")],
        d.some(bias="True False", add_bias_kv="True False", add_zero_attn="True False", batch_first="True False"),
        attention_inputs(d, 3, (2, 1, 4), (3, 2, 4), (3, 4)),
    ),
    "TransformerEncoderLayer": lambda d: (
        ["4", "2", "3", "0.0"],
        d.some(**BLOCK),
        attention_inputs(d, 1, (2, 1, 4), (3, 4)),
    ),
    "TransformerDecoderLayer": lambda d: (
        ["4", "2", "3", "0.0"],
        d.some(**BLOCK),
        attention_inputs(d, 2, (2, 1, 4), (3, 4)),
    ),
    "TransformerEncoder": lambda d: (
        ["L.nn.TransformerEncoderLayer(4, 2, 3, 0.0)", d.of("1 2")],
        {},
        attention_inputs(d, 1, (2, 1, 4), (3, 4)),
    ),
    "TransformerDecoder": lambda d: (
        ["L.nn.TransformerDecoderLayer(4, 2, 3, 0.0)", d.of("1 2")],
        {},
        attention_inputs(d, 2, (2, 1, 4), (3, 4)),
    ),
    "Transformer": lambda d: (
        ["4", "2", "1", "1", "3", "0.0"],
        d.some(**BLOCK),
        attention_inputs(d, 2, (2, 1, 4), (3, 4)),
    ),
    "RNN": recurrent(nonlinearity="'tanh' 'relu' 'x'"),
    "LSTM": recurrent(proj_size="0 1"),
    "GRU": recurrent(),
    "RNNCell": cell(nonlinearity="'tanh' 'relu' 'x'"),
    "LSTMCell": cell(),
    "GRUCell": cell(),
}
CALLS = {
    "F.scaled_dot_product_attention": attention,
    "F.multi_head_attention_forward": multi_head,
    "lstm": layers(4),
    "gru": layers(3),
    **dict.fromkeys(("rnn_tanh", "rnn_relu"), layers(1)),
    "lstm_cell": one_step(4),
    "gru_cell": one_step(3),
    **dict.fromkeys(("rnn_tanh_cell", "rnn_relu_cell"), one_step(1)),
    "pack_padded_sequence": padded,
    "pad_packed_sequence": lambda d: (
        [packing(d)],
        d.some(batch_first="True False", padding_value="1.5 0.0 -1", total_length="3 5 1"),
    ),
    "pad_sequence": lambda d: (
        lists(d),
        d.some(batch_first="True False", padding_value="1.5 0.0 -1", padding_side="'left' 'right' 'x'"),
    ),
    "pack_sequence": lambda d: (lists(d, 1), d.some(enforce_sorted="True False False")),
    "unpad_sequence": unpadded,
    "unpack_sequence": lambda d: ([packing(d)], {}),
    "invert_permutation": lambda d: ([d.one("L.tensor([2, 0, 1])", "L.tensor([0])", "None")], {}),
}
UNCALLED = {
    "nn.RNNBase": "what RNN, LSTM and GRU share",
    "nn.RNNCellBase": "what the cells share",
    "nn.utils.rnn.PackedSequence": "made by pack_padded_sequence, which is called",
}
