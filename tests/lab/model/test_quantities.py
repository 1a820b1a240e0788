# SPDX-License-Identifier: Apache-2.0
"""Numbers as they are printed: three digits and a unit, at the borders where the next unit or the next digit begins."""

from __future__ import annotations

import pytest

from sonde.model import quantities
from sonde.model.quantities import DisplayQuantity, replace_no_break_spaces


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        (quantities.display_byte_rate(1.9e9), "1.90 GB/s"),
        (quantities.display_byte_rate(999.4e6), "999 MB/s"),
        (quantities.display_byte_rate(999.96e6), "1.00 GB/s"),
        (quantities.display_byte_rate(0), "0 B/s"),
        (quantities.display_binary_byte_rate(2**40), "1.00 TiB/s"),
        (quantities.display_binary_byte_rate(0.9995 * 2**40), "1.00 TiB/s"),
        (quantities.display_binary_byte_rate(0.9994 * 2**40), "1023 GiB/s"),
        (quantities.display_binary_byte_rate(2**30), "1.00 GiB/s"),
        (quantities.display_binary_byte_rate(3 * 2**20), "3.00 MiB/s"),
        (quantities.display_binary_byte_rate(0.9995 * 2**20), "1.00 MiB/s"),
        (quantities.display_binary_byte_rate(5 * 2**10), "5.00 KiB/s"),
        (quantities.display_binary_byte_rate(1023.0), "1023 B/s"),
        (quantities.display_binary_byte_rate(7.0), "7.00 B/s"),
        (quantities.display_operation_rate(95_432.1), "95,400 op/s"),
        (quantities.display_operation_rate(1_234_567), "1.23 million op/s"),
        (quantities.display_transferred_bytes(1_073_741_824), "1.07 GB"),
        (quantities.display_transferred_bytes(2.5e15), "2.50 PB"),
        (quantities.display_transferred_bytes(3e12), "3.00 TB"),
        (quantities.display_transferred_bytes(0.9995e12), "1.00 TB"),
        (quantities.display_transferred_bytes(0.9994e12), "999 GB"),
        (quantities.display_transferred_bytes(4e6), "4.00 MB"),
        (quantities.display_transferred_bytes(5e3), "5.00 kB"),
        (quantities.display_transferred_bytes(999.4), "999 B"),
        (quantities.display_transferred_bytes(1), "1.00 B"),
        (quantities.display_transferred_bytes(0.5), "0.500 B"),
        (quantities.display_transferred_bytes(0), "0 B"),
        (quantities.display_configured_size(4096), "4 KiB"),
        (quantities.display_seconds(0), "0 s"),
        (quantities.display_seconds(0.0123), "12.3 ms"),
        (quantities.display_seconds(0.99949), "999 ms"),
        (quantities.display_seconds(0.9995), "1.00 s"),
        (quantities.display_seconds(1.302), "1.30 s"),
        (quantities.display_seconds(59.94), "59.9 s"),
        (quantities.display_seconds(59.95), "1 min 00 s"),
        (quantities.display_seconds(65), "1 min 05 s"),
        (quantities.display_seconds(3723), "1 h 02 min"),
        (quantities.display_nanoseconds(85_300), "85.3 µs"),
        (quantities.display_nanoseconds(2e6), "2.00 ms"),
        (quantities.display_percent(0.0), "0 %"),
        (quantities.display_percent(0.00049), "< 0.1 %"),
        (quantities.display_percent(0.0005), "0.1 %"),
        (quantities.display_percent(0.0123), "1.2 %"),
        (quantities.display_percent(0.0994), "9.9 %"),
        (quantities.display_percent(0.0995), "10 %"),
        (quantities.display_percent(0.5), "50 %"),
        (quantities.display_percent(0.99), "99 %"),
        (quantities.display_percent(0.9901), "99.0 %"),
        (quantities.display_percent(0.9994), "99.9 %"),
        (quantities.display_percent(0.9995), "99.9 %"),
        (quantities.display_percent(0.99999), "99.9 %"),
        (quantities.display_percent(1.0), "100 %"),
        (quantities.display_percent(1.5), "150 %"),
        (quantities.display_count_with_noun(0, "task"), "0 tasks"),
        (quantities.display_count_with_noun(1, "task"), "1 task"),
        (quantities.display_count_with_noun(1.4, "task"), "1 task"),
        (quantities.display_count_with_noun(5000, "task"), "5,000 tasks"),
        (quantities.display_count_with_noun(2, "process"), "2 processes"),
        (quantities.display_count_with_noun(2, "branch"), "2 branches"),
        (quantities.display_count_with_noun(1, "branch"), "1 branch"),
        (quantities.display_count(1234.5), "1,234"),
        (quantities.display_exact_seconds(0.0009999), "999.900 µs"),
        (quantities.display_exact_seconds(0.001), "0.001000 s"),
        (quantities.display_exact_seconds(0.999), "0.999000 s"),
        (quantities.display_exact_seconds(1.0), "1.0000 s"),
        (quantities.display_exact_seconds(99.99), "99.9900 s"),
        (quantities.display_exact_seconds(100.0), "100.00 s"),
        (quantities.display_exact_seconds(12345.678), "12,345.68 s"),
        (quantities.format_utc_time("2026-11-21T21:04:09Z"), "21 November 2026, 21:04 UTC"),
        (quantities.format_utc_time("2026-01-02T00:30:00+01:00"), "1 January 2026, 23:30 UTC"),
        (quantities.format_utc_time("2026-01-02T00:30:00"), "2 January 2026, 00:30 UTC"),
        (quantities.format_utc_time("yesterday"), "yesterday"),
    ],
)
def test_quantities_are_formatted_with_their_unit(quantity: object, expected: str) -> None:
    assert replace_no_break_spaces(str(quantity)) == expected


def test_a_number_and_its_unit_stay_on_one_line() -> None:
    for quantity in (
        quantities.display_byte_rate(1e9),
        quantities.display_operation_rate(2e6),
        quantities.display_seconds(65),
        quantities.display_seconds(5e3),
        quantities.display_percent(0.5),
        quantities.display_percent(0.99999),
        quantities.display_percent(1e-9),
        quantities.display_percent(0.01),
        quantities.display_count_with_noun(2, "task"),
        quantities.display_exact_seconds(1e-9),
        quantities.display_exact_seconds(0.5),
        quantities.display_exact_seconds(5),
        quantities.display_exact_seconds(500),
        quantities.display_transferred_bytes(5e9),
        quantities.display_configured_size(3 << 30),
    ):
        assert " " not in str(quantity)
        assert quantities.NO_BREAK_SPACE in str(quantity)
    assert quantities.FACT_SEPARATOR == "\N{NO-BREAK SPACE}· "


def test_digits_and_unit_are_separate_members() -> None:
    assert quantities.display_byte_rate(1e9) == DisplayQuantity("1.00", "GB/s")
    assert quantities.display_operation_rate(2e6) == DisplayQuantity("2.00", "million op/s")
    assert quantities.display_nanoseconds(1500) == DisplayQuantity("1.50", "µs")
    assert quantities.display_seconds(65).unit == ""
    assert (str(DisplayQuantity("7", "")), replace_no_break_spaces(str(DisplayQuantity("7", "a b")))) == ("7", "7 a b")
