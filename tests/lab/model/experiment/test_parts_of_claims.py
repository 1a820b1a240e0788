# SPDX-License-Identifier: Apache-2.0
"""Claims and the parts of them: units, printed numbers, and every sentence about a wrong one, word for word."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sonde.model.errors import UnitError
from sonde.model.experiment.claim_parser import (
    find_unit_of_value,
    parse_claim,
    parse_claim_value,
    parse_published_number,
    replace_quantities_by_numbers,
    wrap_value_in_claim,
)
from sonde.model.experiment.claims import (
    FUNCTIONS,
    METRICS,
    PER_CHOICES,
    SHAPES,
    ArithmeticExpression,
    ClaimComparison,
    ClaimError,
    MetricFunctionCall,
    MetricReference,
    NumberLiteral,
)

READ = MetricReference("bandwidth", "read", {})


@pytest.mark.parametrize(
    ("value", "expected_unit"),
    [
        ("bandwidth(w)", "B/s"),
        ("operations(w)", "op/s"),
        ("time(w)", "s"),
        ("residency(w)", "1"),
        ("largest(bandwidth(w), over=x)", "B/s"),
        ("smallest(time(w), over=x)", "s"),
        ("slope(bandwidth(w), over=x)", "1"),
        ("bandwidth(w) / bandwidth(r)", "1"),
        ("bandwidth(w) / 2", "B/s"),
        ("2 / bandwidth(w)", "1"),
        ("bandwidth(w) * 2", "B/s"),
        ("2 * time(w)", "s"),
        ("bandwidth(w) - bandwidth(r)", "B/s"),
        ("residency(w) + operations(w)", "op/s"),
        ("(bandwidth(w) + bandwidth(r)) / 2", "B/s"),
    ],
)
def test_a_value_has_the_unit_of_its_metric_or_none(value: str, expected_unit: str) -> None:
    assert find_unit_of_value(parse_claim_value(value)) == expected_unit


def test_number_literal_is_dimensionless() -> None:
    assert find_unit_of_value(NumberLiteral(3.0)) == "1"


@pytest.mark.parametrize(
    ("value", "unit", "expected_number"),
    [
        ("1.6 GB/s", "B/s", 1.6e9),
        ("20 kop/s", "op/s", 20e3),
        ("34.8 s", "s", 34.8),
        ("70 %", "1", 0.7),
        (3, "B/s", 3.0),
        (0.5, "1", 0.5),
    ],
)
def test_a_printed_number_is_read_by_its_unit(value: float | str, unit: str, expected_number: float) -> None:
    assert parse_published_number(value, unit) == pytest.approx(expected_number)
    assert isinstance(parse_published_number(value, unit), float)


def test_a_printed_number_of_another_unit_is_refused() -> None:
    for value, unit in (("1.6 GB/s", "s"), ("3 s", "B/s"), ("3 s", "1"), ("3 GB/s", "op/s")):
        with pytest.raises(UnitError):
            parse_published_number(value, unit)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("x >= 10 GB/s", "x >= 10000000000.0"),
        ("x >= 10 GB/s - 10 %", "x >= 9000000000.0"),
        ("x >= 10 GB/s + 10%", "x >= 11000000000.0"),
        ("x >= 10 GB/s \N{MINUS SIGN} 10 %", "x >= 9000000000.0"),
        ("x >= 1.5 kop/s", "x >= 1500.0"),
        ("x >= 7 op/s", "x >= 7.0"),
        ("x >= 2 KiB/s", "x >= 2048.0"),
        ("""f(a="1 GB/s", b='2 MB/s') > 3 MB/s""", """f(a="1 GB/s", b='2 MB/s') > 3000000.0"""),
        ("x1 GB/s", "x1 GB/s"),
        ("x >= 10 - 10 %", "x >= 10 - 10 %"),
    ],
)
def test_quantities_become_plain_numbers_but_not_in_quotation_marks(text: str, plain: str) -> None:
    assert replace_quantities_by_numbers(text) == plain


def test_a_value_is_one_side_of_a_claim() -> None:
    assert parse_claim_value("bandwidth(read)") == READ
    assert parse_claim_value(" bandwidth(read) / 2 ") == ArithmeticExpression("/", READ, NumberLiteral(2.0))
    claim = wrap_value_in_claim("text", READ)
    assert (claim.text, claim.comparisons) == ("text", (ClaimComparison(READ, ">", NumberLiteral(0.0)),))
    assert [*claim.iterate_metrics()] == [READ]
    assert [*claim.iterate_functions()] == []


def test_claim_iterates_metrics_and_functions_in_text_order() -> None:
    claim = parse_claim("1 < time(a) + slope(time(b), over=x) <= 2 * rise(time(c), over=y) and tail(time(d)) > 0")
    assert [metric.phase for metric in claim.iterate_metrics()] == ["a", "b", "a", "b", "c", "d"]
    assert [function.name for function in claim.iterate_functions()] == ["slope", "slope", "rise", "tail"]
    assert claim.text.startswith("1 < time(a)")
    assert parse_claim("  time(a) > 1 ").text == "time(a) > 1"


def test_options_of_a_metric_are_strings_numbers_or_booleans() -> None:
    (comparison,) = parse_claim('bandwidth(r, a=b, c="d e", f=3, g=2.5, h=true, i=false, j=True) > -1.5').comparisons
    options: dict[str, str | int | float | bool] = {
        "a": "b",
        "c": "d e",
        "f": 3,
        "g": 2.5,
        "h": True,
        "i": False,
        "j": True,
    }
    assert comparison.left_operand == MetricReference("bandwidth", "r", options)
    assert comparison.right_operand == NumberLiteral(-1.5)
    (bare,) = parse_claim("bandwidth() > 1").comparisons
    assert bare.left_operand == MetricReference("bandwidth", "", {})
    (tail,) = parse_claim("imbalance(bandwidth(r), per=node) > 1").comparisons
    assert tail.left_operand == MetricFunctionCall("imbalance", MetricReference("bandwidth", "r", {}), {"per": "node"})


METRIC_LIST = ", ".join(METRICS)


@pytest.mark.parametrize(
    ("parse", "text", "expected_sentence"),
    [
        (parse_claim, "time(a >", '"time(a >" cannot be read; write a comparison like bandwidth(read) /'
                                  " bandwidth(write) >= 1.3."),
        (parse_claim, "1 > 0", f'"1 > 0" names no metric; metrics are {METRIC_LIST}.'),
        (parse_claim, "time(a)", '"time(a)" compares nothing; write it with >=, <=, > or <, joined by "and".'),
        (parse_claim, "time(a) > 1 or time(b) > 1",
         '"time(a) > 1 or time(b) > 1" compares nothing; write it with >=, <=, > or <, joined by "and".'),
        (parse_claim, "time(a) > 1 and time(b)",
         '"time(b)" compares nothing; write it with >=, <=, > or <, joined by "and".'),
        (parse_claim, "time(a) != 1", '"time(a) != 1" compares with something other than >=, <=, >, < or ==.'),
        (parse_claim, "time(a) == 1",
         '"time(a) == 1": == is for forms only, like shape(bandwidth(read)) == "flat"; numbers that are measured are'
         " never equal, compare them with >= or <=."),
        (parse_claim, 'time(a) == "flat"',
         """"time(a) == "flat"": == is for forms only, like shape(bandwidth(read)) == "flat"; numbers that are"""
         " measured are never equal, compare them with >= or <=."),
        (parse_claim, 'time(a) > 1 + "flat"', """"1 + "flat"" calculates with a word."""),
        (parse_claim, "time > 1", '"time" stands alone; write a metric with its phase, like bandwidth(read).'),
        (parse_claim, "time(a) ** 2 > 1", '"time(a) ** 2" is not a metric, a function, a number or a word.'),
        (parse_claim, '-"flat" > time(a)', """"-"flat"" is not a metric, a function, a number or a word."""),
        (parse_claim, "time(a) > True", '"time(a) > True" has True, which is no number and no word.'),
        (parse_claim, 'shape(time(a)) == "falt"',
         '"falt" is no form; forms are flat, declining, rising, dips. Did you mean "flat"?'),
        (parse_claim, "tiem(a) > 1", 'there is no metric or function "tiem". Did you mean "time"?'),
        (parse_claim, "zzzzz(a) > 1", f'there is no metric or function "zzzzz". Metrics are {METRIC_LIST}.'),
        (parse_claim, "time(a, b) > 1",
         '"time(a, b)" names several phases; write one, and cells by name: transfer="4KiB".'),
        (parse_claim, "time(1) > 1", '"1" is no phase; write its id, in quotation marks if it has a dash.'),
        (parse_claim, "time([1]) > 1", '"[1]" is no value of an axis; write a number or a text like "4KiB".'),
        (parse_claim, "time(a, x=-1) > 1", '"-1" is no value of an axis; write a number or a text like "4KiB".'),
        (parse_claim, "time(a, **x) > 1", '"time(a, **x)" names cells twice or by **; write transfer="4KiB".'),
        (parse_claim, "slope() > 1", "slope takes one metric, like slope(bandwidth(read), over=transfer)."),
        (parse_claim, "variation(time(a), time(b)) > 1",
         "variation takes one metric, like variation(bandwidth(read))."),
        (parse_claim, "slope(3, over=x) > 1", '"3" is no metric; slope takes one metric.'),
        (parse_claim, "slope(time(a)) > 1", '"slope(time(a))" lacks over=…; write slope(…, over=…).'),
        (parse_claim, "scaling(time(a), over=x) > 1",
         '"scaling(time(a), over=x)" lacks at=…; write scaling(…, at=…).'),
        (parse_claim, "variation(time(a), over=x) > 1", '"variation(time(a), over=x)": variation has no over=….'),
        (parse_claim, "tail(time(a), pre=node) > 1",
         '"tail(time(a), pre=node)": tail has no pre=…. Did you mean "per"?'),
        (parse_claim, "tail(time(a), per=nodes) > 1",
         '"tail(time(a), per=nodes)": per is one of node, task, target. Did you mean "node"?'),
        (parse_claim, "bandwidth(a) > 2 KB/s",
         '"2 KB/s" does not say which unit is meant: write 2KiB/s (2,048 bytes) or 2kB/s (2,000 bytes).'),
        (parse_claim, "time(a) > 0 GB/s", '"0 GB/s" is zero; a rate is larger than 0 bytes per second.'),
        (parse_claim_value, "time(a) > 1 and time(b)",
         '"time(a) > 1 and time(b)" is a claim; write what a number is of, like bandwidth(write).'),
        (parse_claim_value, "1 < time(a)", ('"1 < time(a)" is a claim; write what a number is of, like'
                                           ' bandwidth(write).')),
    ],
)  # fmt: skip
def test_invalid_claims_have_exact_error_messages(
    parse: Callable[[str], object], text: str, expected_sentence: str
) -> None:
    with pytest.raises(ClaimError) as caught:
        parse(text)
    assert str(caught.value) == expected_sentence


def test_each_metric_has_its_unit_and_each_function_its_options() -> None:
    units = {
        "B/s": {"bandwidth", "bandwidth_stonewall", "cpu_rate", "bandwidth_per_unit", "bandwidth_per_target",
                "bandwidth_per_node"},
        "op/s": {"samples", "operations", "operations_slowest"},
        "s": {"time", "latency_p50", "latency_p99", "latency_max", "system_time", "user_time", "real_time",
              "command_user_time", "command_system_time"},
        "B": {"client_memory"},
        "1": {"accelerator_utilization", "share_of_peak", "duplex_efficiency", "residency", "errors", "calls"},
    }  # fmt: skip
    assert {name: unit for name, (unit, _) in METRICS.items()} == {
        name: unit for unit, names in units.items() for name in names
    }
    over, over_at = ("over",), ("over", "at")
    assert {name: signature[:2] for name, signature in FUNCTIONS.items()} == {
        "slope": (over, ()), "rank_correlation": (over, ()), "rise": (over, ()), "fall": (over, ()),
        "largest": (over, ()), "smallest": (over, ()), "spread": (over, ()), "scaling": (over_at, ()),
        "efficiency": (over_at, ()), "variation": ((), ()), "imbalance": (("per",), ()), "tail": ((), ("per",)),
        "shape": ((), ()),
    }  # fmt: skip
    assert (SHAPES, PER_CHOICES) == (("flat", "declining", "rising", "dips"), ("node", "task", "target"))
