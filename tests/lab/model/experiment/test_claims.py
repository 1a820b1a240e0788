# SPDX-License-Identifier: Apache-2.0
"""Claims are read as they are meant, and judged by interval: four outcomes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.model.experiment.claim_parser import parse_claim
from sonde.model.experiment.claim_verdicts import ClaimVerdict, combine_verdicts, compare_interval_with_threshold
from sonde.model.experiment.claims import (
    FUNCTIONS,
    METRICS,
    ArithmeticExpression,
    ClaimComparison,
    ClaimError,
    MetricFunctionCall,
    MetricReference,
    NumberLiteral,
    ShapeName,
)


def test_a_ratio_of_two_cells() -> None:
    (comparison,) = parse_claim('bandwidth(write, offset="0B") / bandwidth(write, offset="256KiB") >= 1.3').comparisons
    dividend = MetricReference("bandwidth", "write", {"offset": "0B"})
    right = MetricReference("bandwidth", "write", {"offset": "256KiB"})
    assert comparison == ClaimComparison(ArithmeticExpression("/", dividend, right), ">=", NumberLiteral(1.3))


def test_chained_comparison_is_split_and_joined_by_and() -> None:
    claim = parse_claim("0.5 <= duplex_efficiency(full) <= 1.05 and time(full) > 60")
    efficiency = MetricReference("duplex_efficiency", "full", {})
    assert claim.comparisons == (
        ClaimComparison(NumberLiteral(0.5), "<=", efficiency),
        ClaimComparison(efficiency, "<=", NumberLiteral(1.05)),
        ClaimComparison(MetricReference("time", "full", {}), ">", NumberLiteral(60)),
    )


def test_quoted_phase_name_may_contain_a_dash() -> None:
    (comparison,) = parse_claim('operations("random-read") > 0').comparisons
    assert comparison.left_operand == MetricReference("operations", "random-read", {})


def test_claim_with_functions_and_shapes_is_parsed() -> None:
    claim = parse_claim('shape(bandwidth(read)) == "flat" and efficiency(bandwidth(w), over=pool, at=FS3) >= 0.8')
    assert claim.comparisons[0] == ClaimComparison(
        MetricFunctionCall("shape", MetricReference("bandwidth", "read", {}), {}), "==", ShapeName("flat")
    )
    assert list(claim.iterate_functions())[1].options == {"over": "pool", "at": "FS3"}
    assert [metric.phase for metric in claim.iterate_metrics()] == ["read", "w"]


def test_arithmetic_binds_as_usual() -> None:
    (comparison,) = parse_claim("time(a) + 2 * time(b) - -1 <= 9").comparisons
    assert comparison.left_operand == ArithmeticExpression(
        "-",
        ArithmeticExpression(
            "+",
            MetricReference("time", "a", {}),
            ArithmeticExpression("*", NumberLiteral(2), MetricReference("time", "b", {})),
        ),
        NumberLiteral(-1),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 > 0",
        "bandwidth(read)",
        "bandwidth(read) > 1 or 1 > 0",
        "not bandwidth(read) > 1",
        "bandwidth(read) != 1",
        "bandwidth(read) is 1",
        "bandwidth(read, write) > 1",
        "bandwidth(1) > 1",
        "bandwidth(read, **x) > 1",
        "bandwidth(read)() > 1",
        "bandwidth[0] > 1",
        "(lambda: 1)() > bandwidth(read)",
        "__import__('os') > 1",
        "bandwidth(read) > 'flat'",
        "bandwidth(read) > True",
        "slope(3, over=x) > 1",
        "slope(bandwidth(r), x) > 1",
        "imbalance(bandwidth(r), per=rack) > 1",
        "variation(bandwidth(r), over=x) > 1",
        "bandwidth(read) ** 2 > 1",
        "bandwidth > 1",
        "shape(bandwidth(r)) >= 'flat'",
        "'flat' == 'flat'",
        "bandwidth(read" + "(" * 300,
        "bandwidth(read, t=-1) > 0",
        "'flat' + bandwidth(read) > 1",
    ],
)
def test_invalid_claim_gets_a_one_sentence_error(text: str) -> None:
    with pytest.raises(ClaimError) as caught:
        parse_claim(text)
    assert "\n" not in str(caught.value)
    assert str(caught.value)[-1] in ".?"


@given(st.text(alphabet="bandwith(read)><=.0123456789 ,\"'and+-*/_[]{}:", max_size=60))
def test_any_text_is_a_claim_or_refused(text: str) -> None:
    with contextlib.suppress(ClaimError):  # anything else is an error of ours
        assert parse_claim(text).comparisons


def test_names_of_metrics_and_functions_do_not_overlap() -> None:
    assert not METRICS.keys() & FUNCTIONS.keys()


@pytest.mark.parametrize(
    ("low", "high", "operator", "threshold", "expected_verdict"),
    [
        (1.3, 1.5, ">=", 1.3, ClaimVerdict.HOLDS),
        (1.2, 1.29, ">=", 1.3, ClaimVerdict.FAILS),
        (1.2, 1.3, ">=", 1.3, ClaimVerdict.UNDECIDED),
        (1.2, 1.5, ">=", 1.3, ClaimVerdict.UNDECIDED),
        (1.3, 1.5, ">", 1.3, ClaimVerdict.UNDECIDED),
        (1.31, 1.5, ">", 1.3, ClaimVerdict.HOLDS),
        (1.2, 1.3, ">", 1.3, ClaimVerdict.FAILS),
        (0.8, 1.0, "<=", 1.0, ClaimVerdict.HOLDS),
        (1.1, 1.2, "<=", 1.0, ClaimVerdict.FAILS),
        (0.8, 1.2, "<=", 1.0, ClaimVerdict.UNDECIDED),
        (0.8, 1.0, "<", 1.0, ClaimVerdict.UNDECIDED),
        (1.0, 1.2, "<", 1.0, ClaimVerdict.FAILS),
    ],
)
def test_interval_is_compared_with_the_threshold(
    low: float, high: float, operator: str, threshold: float, expected_verdict: ClaimVerdict
) -> None:
    assert compare_interval_with_threshold(low, high, operator, threshold) == expected_verdict


@pytest.mark.parametrize("operator", [">=", "<=", ">", "<"])
@pytest.mark.parametrize("threshold", [1.0, 3e9, -0.25])
def test_bound_within_rounding_equals_the_threshold(operator: str, threshold: float) -> None:
    exact = compare_interval_with_threshold(threshold, threshold, operator, threshold)
    assert exact == (ClaimVerdict.HOLDS if "=" in operator else ClaimVerdict.FAILS)
    for off in (1 - 9e-7, 1 - 1e-12, 1 + 1e-12, 1 + 9e-7):
        assert compare_interval_with_threshold(off * threshold, off * threshold, operator, threshold) == exact
    less, more = sorted((threshold * (1 - 1e-5), threshold * (1 + 1e-5)))
    assert compare_interval_with_threshold(less, less, operator, threshold) == (
        ClaimVerdict.HOLDS if "<" in operator else ClaimVerdict.FAILS
    )
    assert compare_interval_with_threshold(more, more, operator, threshold) == (
        ClaimVerdict.HOLDS if ">" in operator else ClaimVerdict.FAILS
    )


def test_verdict_tolerance_scales_with_the_subtracted_values() -> None:
    assert compare_interval_with_threshold(-1.0, -1.0, ">=", 0.0) == ClaimVerdict.FAILS
    assert compare_interval_with_threshold(-1.0, -1.0, ">=", 0.0, verdict_scale=3e9) == ClaimVerdict.HOLDS
    assert compare_interval_with_threshold(-1e4, -1e4, ">=", 0.0, verdict_scale=3e9) == ClaimVerdict.FAILS


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(-10, 10), st.sampled_from([(">=", "<"), (">", "<=")]))
def test_a_claim_and_its_opposite_never_both_hold(
    low: float, width: float, threshold: float, opposite_operators: tuple[str, str]
) -> None:
    high = low + width
    verdict, other = (
        compare_interval_with_threshold(low, high, operator, threshold) for operator in opposite_operators
    )
    assert (verdict == ClaimVerdict.HOLDS) == (other == ClaimVerdict.FAILS)
    assert (verdict == ClaimVerdict.UNDECIDED) == (other == ClaimVerdict.UNDECIDED)


def test_reversed_interval_and_unknown_operator_raise_value_error() -> None:
    with pytest.raises(ValueError, match="not an interval"):
        compare_interval_with_threshold(2, 1, ">=", 0)
    with pytest.raises(ValueError, match="compares no interval"):
        compare_interval_with_threshold(1, 2, "==", 0)


def test_combined_verdict_fails_on_any_failure() -> None:
    holds, fails, open_, absent = ClaimVerdict
    assert combine_verdicts([holds, fails, open_, absent]) == fails
    assert combine_verdicts([holds, open_, absent]) == absent
    assert combine_verdicts([holds, open_]) == open_
    assert combine_verdicts([holds, holds]) == holds
    assert combine_verdicts([]) == absent


@pytest.mark.parametrize(
    ("text", "expected_limit"),
    [
        ("bandwidth(write) >= 10 GB/s", 10e9),
        ("bandwidth(write) >= 10 GB/s - 10 %", 9e9),
        ("bandwidth(write) >= 2GiB/s + 5%", 1.05 * 2 * (1 << 30)),
        ("operations(stat) >= 65 kop/s", 65e3),
        ('bandwidth(write, transfer="1 MB/s") >= 3 MB/s', 3e6),
    ],
)
def test_a_limit_has_its_unit_and_its_tolerance(text: str, expected_limit: float) -> None:
    claim = parse_claim(text)
    (comparison,) = claim.comparisons
    assert isinstance(comparison.right_operand, NumberLiteral)
    assert comparison.right_operand.value == pytest.approx(expected_limit)
    assert claim.text == text
    assert all(value == "1 MB/s" for metric in claim.iterate_metrics() for value in metric.coordinates.values())


def test_claim_verdicts_have_their_archived_spellings() -> None:
    assert [verdict.value for verdict in ClaimVerdict] == ["holds", "fails", "undecided", "not judged"]


def test_zero_threshold_is_compared_exactly() -> None:
    assert compare_interval_with_threshold(-1e-300, 1.0, ">=", 0.0) == ClaimVerdict.UNDECIDED
    assert compare_interval_with_threshold(0.0, 0.0, ">=", 0.0) == ClaimVerdict.HOLDS
    assert compare_interval_with_threshold(2.0, 2.0, ">", 1.0, verdict_scale=1e6) == ClaimVerdict.FAILS, (
        "exactly a millionth of what was subtracted"
    )
    assert compare_interval_with_threshold(2.0000001, 3.0, ">", 1.0, verdict_scale=1e6) == ClaimVerdict.HOLDS
