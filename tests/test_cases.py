"""`cases.py`: a test of several cases names each failing case and runs the others."""

import inspect
import re

import pytest

from tests.cases import Cases, in_cases


def test_every_failing_case_is_reported():
    ran = []
    with pytest.raises(BaseExceptionGroup) as caught, Cases() as case:
        for i in range(4):
            with case(f"example {i}"):
                ran.append(i)
                assert i % 2, f"{i} is even"
        with case("key"):
            {}["x"]
        with case("refusal"), pytest.raises(ValueError):
            pass
    assert ran == [0, 1, 2, 3]
    assert re.fullmatch(
        r"4 of 6 cases fail: example 0, example 2, key, refusal\n"
        r"  example 0: 0 is even\n  example 2: 2 is even\n  key: KeyError: 'x'\n"
        r"  refusal: Failed: DID NOT RAISE .*ValueError.*",
        caught.value.message,
    )
    assert [error.__notes__ for error in caught.value.exceptions][2] == ["in the case key"]
    assert [error.__traceback__.tb_frame.f_code.co_name for error in caught.value.exceptions] == [
        "test_every_failing_case_is_reported"
    ] * 4


def test_error_between_cases_keeps_earlier_failures():
    with pytest.raises(ExceptionGroup, match="(?s)2 of 1 cases fail.*first: one.*outside the cases: KeyError"):
        with Cases() as case:
            with case("first"):
                raise AssertionError("one")
            {}["x"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, pytest.skip.Exception])
def test_interrupt_and_skip_are_not_failures(error):
    with pytest.raises(error), Cases() as case, case("interrupted"):
        raise error("x")
    with Cases() as case, case("passes"):
        pass


@pytest.mark.parametrize("a", [1, 2])
@in_cases("b, c", [(3, abs), (4, round)])
@in_cases("d", [5])
def check_numbers(a, b, c, d, request):
    assert (a + b) % 2 == 0 and c(d) == 5, f"{a} and {b}"


def test_each_row_is_a_case(request):
    """A decorated test requests only the other arguments, and names the failing rows."""
    assert list(inspect.signature(check_numbers).parameters) == ["a", "request"]
    assert check_numbers.pytestmark[0].args == ("a", [1, 2])
    with pytest.raises(ExceptionGroup, match=r"1 of 2 cases fail: b=4, c=round\n.*d=5") as caught:
        check_numbers(a=1, request=request)
    assert "1 and 4" in str(caught.value.exceptions[0])
