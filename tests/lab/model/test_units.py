# SPDX-License-Identifier: Apache-2.0
"""Sizes, durations and rates: what is accepted, what is refused and with which remedy, and how numbers are shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.model.errors import UnitError
from sonde.model.schemas import load_plan_schema
from sonde.model.units import (
    BYTE_UNITS,
    DURATION_UNITS,
    format_bytes,
    format_count_with_noun,
    format_exact_bytes,
    format_latency,
    format_ops,
    format_rate,
    format_seconds,
    format_significant_digits,
    format_wait,
    parse_bytes,
    parse_duration,
    parse_link_rate,
    parse_op_rate,
    parse_rate,
)


def complaint(parse: Callable[[str], float], text: str) -> str:
    """The error text of `parse` for `text`; empty when it accepts the text."""
    try:
        parse(text)
    except UnitError as reason:
        return str(reason)
    return ""


@pytest.mark.parametrize(
    ("text", "expected_bytes"),
    [
        ("0", None),
        ("4KiB", 4096),
        ("4 kB", 4000),
        ("1.5MiB", 1572864),
        ("10MB", 10**7),
        ("2TiB", 2**41),
        ("7B", 7),
        (9, 9),
    ],
)
def test_size_text_is_parsed_into_bytes_or_rejected(text: str | int, expected_bytes: int | None) -> None:
    if expected_bytes is None:
        with pytest.raises(UnitError, match="no unit"):
            parse_bytes(text)
    else:
        assert parse_bytes(text) == expected_bytes


@given(st.integers(0, 2**63 - 1))
def test_the_shortest_text_of_a_size_means_that_size(size: int) -> None:
    assert parse_bytes(format_exact_bytes(size)) == size


@given(st.integers(0, 10**6), st.sampled_from(sorted(BYTE_UNITS)), st.sampled_from(["", " ", "  "]))
def test_parse_bytes_multiplies_the_number_by_its_unit(number: int, unit: str, gap: str) -> None:
    if number * BYTE_UNITS[unit] < 2**63:
        assert parse_bytes(f"{number}{gap}{unit}") == number * BYTE_UNITS[unit]


def test_unit_factors_follow_si_and_iec_80000() -> None:
    """SI prefixes are powers of 1000, those of IEC 80000-13 powers of 1024; a byte has 8 bits, an hour 3600 seconds."""
    assert BYTE_UNITS == {
        "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15,
        "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50,
    }  # fmt: skip
    seconds = {"ns": "0.000000001", "us": "0.000001", "ms": "0.001", "s": "1", "min": "60", "h": "3600"}
    assert {unit: Decimal(text) for unit, text in seconds.items()} == DURATION_UNITS
    bits = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}
    assert {unit: parse_link_rate(f"8 {unit}/s") for unit in bits} == bits
    assert {unit: parse_op_rate(f"3 {unit}/s") for unit in ("op", "kop", "Mop")} == {
        "op": 3, "kop": 3000, "Mop": 3 * 10**6,
    }  # fmt: skip


@given(st.integers(0, 10**6), st.sampled_from(sorted(DURATION_UNITS)))
def test_durations_with_a_unit(number: int, unit: str) -> None:
    assert parse_duration(f"{number}{unit}") == pytest.approx(number * float(DURATION_UNITS[unit]), rel=1e-12)


@given(st.integers(1, 10**6), st.sampled_from(sorted(BYTE_UNITS)))
def test_rates_with_a_unit(number: int, unit: str) -> None:
    assert parse_rate(f"{number}{unit}/s") == pytest.approx(number * BYTE_UNITS[unit], rel=1e-15)


@given(st.text(max_size=20))
def test_random_text_parses_or_gets_a_one_sentence_error(text: str) -> None:
    for parse in (parse_bytes, parse_duration, parse_rate):
        sentence = complaint(parse, text)
        assert sentence == "" or sentence.endswith(".")


@given(st.text(alphabet="0123456789.kKMGTPiBns uh/mine ", max_size=12))
def test_schema_pattern_and_parser_accept_the_same_text(text: str) -> None:
    """The pattern in the schema and the parser must not drift apart."""
    for name, parse in (("bytes", parse_bytes), ("duration", parse_duration), ("rate", parse_rate)):
        pattern = next(
            variant["pattern"] for variant in load_plan_schema()["$defs"][name]["anyOf"] if "pattern" in variant
        )
        if re.search(pattern, text) is None:
            continue
        sentence = complaint(parse, text)
        assert not sentence or re.search("whole number|more than a file|zero", sentence), f"{name} {text!r}: {sentence}"


@pytest.mark.parametrize(
    ("text", "expected_fragments"),
    [
        ("4k", ["4KiB", "4kB", "4,096", "4,000"]),
        ("4K", ["4KiB", "4kB"]),
        ("1M", ["1MiB", "1MB"]),
        ("2g", ["2GiB", "2GB"]),
        ("4kb", ["4KiB", "4kB"]),
        ("4kib", ["4KiB"]),
        ("3mib", ["3MiB"]),
        ("10", ["10B", "10KiB"]),
        ("10XB", ["XB", "KiB"]),
        ("-4KiB", ["negative"]),
        ("", ["number and a unit"]),
        ("KiB", ["number and a unit"]),
        ("1e3MB", ["number and a unit"]),
        ("1,5GiB", ["number and a unit"]),
        ("0.3B", ["whole number"]),
        ("99999999PiB", ["more than a file"]),
    ],
)
def test_a_refused_size_comes_with_a_remedy(text: str, expected_fragments: list[str]) -> None:
    with pytest.raises(UnitError) as caught:
        parse_bytes(text)
    for word in expected_fragments:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected_pattern"),
    [
        ("10", "10s"),
        ("10m", "min"),
        ("3sec", "write s"),
        ("5d", "write h"),
        ("-1s", "negative"),
        ("soon", "number"),
        ("1S", "ends?"),
    ],
)
def test_a_refused_duration_comes_with_a_remedy(text: str, expected_pattern: str) -> None:
    with pytest.raises(UnitError, match=expected_pattern.replace("ends?", "duration")):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [("100MB", "/s"), ("10M/s", "10MiB/s"), ("0MB/s", "larger than 0"), ("5Mbit/s", "unknown unit")],
)
def test_a_refused_rate_comes_with_a_remedy(text: str, expected_text: str) -> None:
    with pytest.raises(UnitError, match=re.escape(expected_text)):
        parse_rate(text)


@pytest.mark.parametrize("value", [3, 2.5])
def test_plain_numbers_are_seconds_and_bytes_a_second(value: float) -> None:
    for parse in (parse_duration, parse_rate):
        assert parse(value) == value
        assert isinstance(parse(value), float)
    assert parse_duration(0) == 0.0


@pytest.mark.parametrize("value", [-1, -0.5, float("inf"), float("nan")])
def test_plain_numbers_below_zero_or_without_end_are_refused(value: float) -> None:
    for parse, message in ((parse_duration, "is not a duration"), (parse_rate, "is not a rate")):
        with pytest.raises(UnitError, match=message):
            parse(value)
    with pytest.raises(UnitError, match="larger than 0"):
        parse_rate(0)


@pytest.mark.parametrize("value", [True, False])
def test_truth_values_are_no_quantities(value: bool) -> None:
    for parse in (parse_bytes, parse_duration, parse_rate):
        with pytest.raises(UnitError):
            parse(value)


@pytest.mark.parametrize("value", [64.0, 1.5, None, ["4KiB"]])
def test_numbers_and_other_types_are_rejected_as_sizes(value: int) -> None:
    with pytest.raises(UnitError, match="is not a size"):
        parse_bytes(value)


@pytest.mark.parametrize("value", [-1, 2**63])
def test_numbers_out_of_range_are_no_sizes(value: int) -> None:
    with pytest.raises(UnitError, match="between 0"):
        parse_bytes(value)


@pytest.mark.parametrize(
    ("expected", "expected_text"),
    [
        (format_bytes(0), "0 B"),
        (format_bytes(4096), "4 KiB"),
        (format_bytes(1.5 * 2**30), "1.50 GiB"),
        (format_bytes(1023), "1023 B"),
        (format_bytes(1024**2 - 1), "1.00 MiB"),
        (format_rate(0), "0 B/s"),
        (format_rate(1.234e9), "1.23 GB/s"),
        (format_rate(999.6e6), "1.00 GB/s"),
        (format_rate(12.34e6), "12.3 MB/s"),
        (format_ops(815.4), "815 op/s"),
        (format_ops(85_234), "85,200 op/s"),
        (format_ops(1_234_567), "1.23 million op/s"),
        (format_ops(0.123), "0.123 op/s"),
        (format_latency(830), "830 ns"),
        (format_latency(83_100), "83.1 µs"),
        (format_latency(2.5e9), "2.50 s"),
        (format_seconds(0), "0 s"),
        (format_seconds(1e-4), "100 µs"),
        (format_seconds(3.42), "3.42 s"),
        (format_seconds(65), "1 min 05 s"),
        (format_seconds(7380), "2 h 03 min"),
        (format_wait(0.44), "0.4 s"),
        (format_wait(12.4), "12 s"),
        (format_wait(90), "1 min 30 s"),
        (format_wait(950), "16 min"),
        (format_wait(7200), "2 h 00 min"),
        (format_significant_digits(0), "0"),
        (format_significant_digits(0.00123), "0.00123"),
    ],
)
def test_numbers_are_formatted_with_units(expected: str, expected_text: str) -> None:
    assert expected == expected_text


@given(st.floats(1, 1e17))
def test_formatted_rate_has_three_significant_digits(rate: float) -> None:
    number, unit = format_rate(rate).removesuffix("/s").split(" ")
    assert float(number) * BYTE_UNITS[unit] == pytest.approx(rate, rel=0.006)
    assert "e" not in number


@given(st.floats(1, 1e15))
def test_formatted_latency_has_three_significant_digits(nanoseconds: float) -> None:
    number, unit = format_latency(nanoseconds).split(" ")
    factor = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number) * factor == pytest.approx(nanoseconds, rel=0.006)


@pytest.mark.parametrize(
    ("expected", "expected_text"),
    [
        (format_significant_digits(0.0012345), "0.00123"),
        (format_significant_digits(0.99949), "0.999"),
        (format_significant_digits(0.9995), "1.00"),
        (format_significant_digits(9.994), "9.99"),
        (format_significant_digits(9.995), "10.0"),
        (format_significant_digits(99.94), "99.9"),
        (format_significant_digits(99.95), "100"),
        (format_significant_digits(1234.5), "1234"),
        (format_significant_digits(-0.5), "-0.500"),
        (format_significant_digits(-12.34), "-12.3"),
        (format_significant_digits(-150.2), "-150"),
        (format_significant_digits(-2.0), "-2.00"),
        (format_exact_bytes(0), "0B"),
        (format_exact_bytes(999), "999B"),
        (format_exact_bytes(1000), "1kB"),
        (format_exact_bytes(1024), "1KiB"),
        (format_exact_bytes(2000), "2kB"),
        (format_exact_bytes(1_024_000), "1024kB"),
        (format_exact_bytes(3 << 50), "3PiB"),
        (format_exact_bytes(10**15), "1PB"),
        (format_bytes(1), "1 B"),
        (format_bytes(1024), "1 KiB"),
        (format_bytes(1023 * 1024), "1023 KiB"),
        (format_bytes(1024 * 1024), "1 MiB"),
        (format_bytes(1025), "1.00 KiB"),
        (format_bytes(1536), "1.50 KiB"),
        (format_bytes(3 << 40), "3 TiB"),
        (format_bytes(2 << 50), "2 PiB"),
        (format_bytes(1024 << 50), "1024 PiB"),
        (format_bytes(1000.5), "1000 B"),
        (format_rate(999.4), "999 B/s"),
        (format_rate(999.5), "1.00 kB/s"),
        (format_rate(0.5), "0.500 B/s"),
        (format_rate(2e12), "2.00 TB/s"),
        (format_rate(2e15), "2.00 PB/s"),
        (format_rate(2e18), "2000 PB/s"),
        (format_ops(99.96), "100 op/s"),
        (format_ops(999.4), "999 op/s"),
        (format_ops(1000), "1,000 op/s"),
        (format_ops(1234), "1,230 op/s"),
        (format_ops(9996), "10,000 op/s"),
        (format_ops(123_456), "123,000 op/s"),
        (format_ops(999_499), "999,000 op/s"),
        (format_ops(999_500), "1.00 million op/s"),
        (format_latency(0.5), "0.500 ns"),
        (format_latency(999.4), "999 ns"),
        (format_latency(999.6), "1.00 µs"),
        (format_latency(1.2e6), "1.20 ms"),
        (format_latency(5e12), "5000 s"),
        (format_seconds(-1.0), "0 s"),
        (format_seconds(0.9994), "999 ms"),
        (format_seconds(0.9995), "1.00 s"),
        (format_seconds(59.94), "59.9 s"),
        (format_seconds(59.95), "1 min 00 s"),
        (format_seconds(3599.4), "59 min 59 s"),
        (format_seconds(3599.6), "1 h 00 min"),
        (format_seconds(3659), "1 h 00 min"),
        (format_seconds(3660), "1 h 01 min"),
        (format_seconds(360_000), "100 h 00 min"),
        (format_wait(9.94), "9.9 s"),
        (format_wait(9.95), "10 s"),
        (format_wait(59.4), "59 s"),
        (format_wait(59.5), "59.5 s"),
        (format_wait(59.96), "1 min 00 s"),
        (format_wait(569), "9 min 29 s"),
        (format_wait(570), "10 min"),
        (format_wait(3569), "59 min"),
        (format_wait(3570), "59 min 30 s"),
        (format_count_with_noun(0, "run"), "0 runs"),
        (format_count_with_noun(1, "run"), "1 run"),
        (format_count_with_noun(2, "run"), "2 runs"),
        (format_count_with_noun(1024, "file"), "1,024 files"),
        (format_count_with_noun(2, "series"), "2 series"),
        (format_count_with_noun(2, "time series"), "2 time series"),
    ],
)
def test_numbers_for_people_at_their_borders(expected: str, expected_text: str) -> None:
    assert expected == expected_text


@pytest.mark.parametrize(
    ("text", "expected_rate"),
    [
        ("200 Gbit/s", 25e9),
        ("8 bit/s", 1.0),
        ("1 Tbit/s", 1.25e11),
        ("2.4 GB/s", 2.4e9),
        ("1 GiB/s", 2.0**30),
        ("5 B/s", 5.0),
    ],
)
def test_rates_of_links_are_in_bits_or_bytes(text: str, expected_rate: float) -> None:
    assert parse_link_rate(text) == expected_rate


def test_micro_sign_has_two_spellings_and_blanks_are_ignored() -> None:
    assert parse_duration("3 µs") == parse_duration(" 3us ") == 3e-6
    assert parse_bytes(" 4 KiB ") == 4096
    assert parse_rate(" 1MB/s ") == 1e6
