"""Memory of a tape: every byte is attributed to the op that saved it, until backward frees it."""

import gc
import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import DTypeError
from minflow.views.front import show
from minflow.views.renderers.tape_memory import MAX_ROWS, headline, memory_record, memory_svg, memory_text, share_of
from minflow.views.show import picture


def without_lines(text: str) -> str:
    return re.sub(r"test_tape_memory\.py:\d+", "FILE:LINE", text)


def test_table(golden):
    w = flow.ones(50, 40, requires_grad=True)
    x = flow.ones(30, 50)
    h = (x @ w).tanh()
    loss = (h * h).exp().sum()
    view = picture(loss, memory=True, names={"w": w, "x": x, "h": h, "loss": loss})
    golden("tape_memory", without_lines(view.text))
    loss.backward()
    after = picture(loss, memory=True, names={"w": w, "loss": loss})
    assert re.fullmatch(
        r"tape of loss float32\[\]: no longer keeps arrays; backward at test_tape_memory\.py:\d+ freed what 4 "
        r"operations had saved\n\(besides the tape, \.grad of 1 leaf holds 8,000 bytes\)",
        after.text,
    )


def test_bytes_match_tracemalloc():
    """tracemalloc sees NumPy's arrays: the bytes freed with the tape are those that the record attributes to it alone.

    It also sees allocations of threads that earlier tests may have left: one of several tries has to agree.
    """
    w = flow.randn(300, 300, requires_grad=True)

    def forward():
        y = w
        for _ in range(5):
            y = (y @ w).tanh()
        return y.sum()

    def recorded_and_freed():
        tracemalloc.start()
        try:
            loss = forward()
            gc.collect()
            record = memory_record(loss, {"w": w, "loss": loss})
            before = tracemalloc.get_traced_memory()[0]
            del loss
            gc.collect()
            return record, before - tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    forward()  # one-time allocations happen now
    tries = [recorded_and_freed() for _ in range(3)]
    for record, _ in tries:
        assert record.alone == 5 * 300 * 300 * 4 and record.total - record.alone == w.nbytes
    assert any(record.alone <= freed < record.alone + 40_000 for record, freed in tries)


def test_composite_op_keeps_the_arrays_of_its_decomposition(kernels_of_numpy):
    """All of them: the bytes freed with the tape are those of the record. The result itself is not among them."""
    x, norm = flow.randn(300, 300, requires_grad=True), nn.LayerNorm(300)
    names = {"x": x, "weight": norm.weight, "bias": norm.bias}

    def recorded_and_freed():
        tracemalloc.start()
        try:
            loss = norm(x).sum()
            gc.collect()
            record = memory_record(loss, {"loss": loss, **names})
            before = tracemalloc.get_traced_memory()[0]
            del loss
            gc.collect()
            return record, before - tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    norm(x).sum()
    tries = [recorded_and_freed() for _ in range(3)]
    record = tries[0][0]
    kept = {row.keepers[0].partition(", at")[0]: row.nbytes for row in record.rows}
    assert kept == {
        "#1 layer_norm: input x": x.nbytes,
        "#1 layer_norm: result of its inner sub": x.nbytes,
        "#1 layer_norm: result of its inner mul": x.nbytes,
        "#1 layer_norm: result of its inner rsqrt": 300 * 4,
        "#1 layer_norm: input weight": 300 * 4,
    }
    assert any(record.alone <= freed < record.alone + 40_000 for record, freed in tries)


def test_backward_frees_in_the_listed_order():
    x = flow.randn(100, requires_grad=True)
    a = x.tanh()
    b = a.exp()
    record = memory_record(b.sum())
    last = {row.keepers[0].partition(":")[0]: row.last for row in record.rows}
    assert last == {"#2 exp": 2, "#1 tanh": 1} and record.operations == 3


def test_view_keeps_its_whole_storage():
    big = flow.randn(1000, 1000)
    x = flow.randn(10, requires_grad=True)
    y = (x * big[0, :10]).sum()
    del big
    row = memory_record(y).rows[0]
    assert row.nbytes == 4_000_000 and row.used == 40
    assert "part of a larger array: 40 bytes of 3.81 MiB are read" in memory_text(memory_record(y))


def test_array_saved_twice_counts_once():
    x = flow.randn(50, requires_grad=True)
    y = x.tanh()
    record = memory_record((y * y).sum())
    assert record.total == 200 and len(record.rows) == 1
    assert record.rows[0].keepers[0].startswith("#2 mul: input b and input a")


def test_retain_graph_and_saved_tensors_of_functions():
    class Square(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = flow.randn(25, requires_grad=True)
    y = Square.apply(x.exp()).sum()
    y.backward(retain_graph=True)
    record = memory_record(y)
    assert any("saved by its forward" in keeper for row in record.rows for keeper in row.keepers) and not record.freed
    y.backward()
    assert not memory_record(y).rows and memory_record(y).freed >= 1


def test_empty_and_unread_tapes():
    assert headline(memory_record(flow.ones(3))) == "tape of float32[3]: keeps nothing; no operation is recorded"
    x = flow.ones(30, requires_grad=True)
    assert "the gradient rules of its 2 operations read none" in headline(memory_record((x + 1).sum()))
    assert "text/html" not in picture(flow.ones(3), memory=True).bundle()


def test_long_tape_is_summarized_without_recursion():
    x = y = flow.ones(100, requires_grad=True)
    for _ in range(20_000):
        y = y.tanh()
    view = picture(y, memory=True, names={})
    assert f"{20_000 - MAX_ROWS:,} smaller arrays" in view.text and len(view.text) < 5000
    assert len(view.bundle()["text/html"]) < 20_000
    assert x.requires_grad


def test_show_accepts_one_kind_at_a_time(capsys):
    x = flow.ones(4, 5, requires_grad=True)
    show(x * x, memory=True)
    assert "also held by" in capsys.readouterr().out
    with pytest.raises(DTypeError, match="images and memory at once"):
        show(x, images=True, memory=True)
    with pytest.raises(DTypeError, match=r"memory=True\) takes a Tensor, not Linear"):
        show(nn.Linear(2, 3), memory=True)


def test_values_show_named_tensors_with_their_gradients():
    w = flow.tensor(np.linspace(-1, 1, 12).reshape(3, 4), requires_grad=True)
    h = (w * 2).tanh()
    h.retain_grad()
    dead = h.relu() * 0
    loss = (h + dead).sum()
    text = picture(loss, values=True, names={"w": w, "h": h, "dead": dead}).text
    assert "value h = -0.964 .. 0.964" in text and "value dead = 0 .. 0" in text and "none yet" in text
    loss.backward()
    text = picture(loss, values=True, names={"w": w, "h": h}).text
    assert "grad 1 .. 1, mean 1, norm 3.464" in text and "none yet" not in text
    assert "(backward ran at test_tape_memory.py:" in text


def test_zero_gradient_is_reported():
    w = flow.ones(20, requires_grad=True)
    loss = (w * 0).sum()
    loss.backward()
    assert "grad all 0" in picture(loss, values=True, names={"w": w}).text


def test_share_of_an_array_has_one_unit():
    assert share_of(156_800, 4_550_000) == "0.15 of 4.34 MiB" and share_of(3 << 30, 4 << 30) == "3.00 of 4.00 GiB"
    assert share_of(160, 4000) == "160 of 4,000 bytes" and share_of(40, 4 << 20) == "40 bytes of 4.00 MiB"


def test_picture_is_as_wide_as_its_lines():
    x = flow.randn(30, 50, requires_grad=True)
    record = memory_record((x * x).sum())
    keepers = ("#1 mul: " + "input a and " * 9 + "the end",)
    drawn = memory_svg(replace(record, rows=(replace(record.rows[0], keepers=keepers),)))
    assert keepers[0] in drawn and int(re.search(r'width="(\d+)"', drawn).group(1)) > 800
