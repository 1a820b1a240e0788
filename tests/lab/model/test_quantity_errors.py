# SPDX-License-Identifier: Apache-2.0
"""Error messages about sizes, rates, shares, ranges and addresses, word for word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from error_text import get_error_text

from sonde.model.addresses import expand_address_range, parse_address, parse_network
from sonde.model.ranges import MAX_EXPANDED_NAMES, expand_name_range
from sonde.model.units import parse_bytes, parse_duration, parse_link_rate, parse_op_rate, parse_rate, parse_share

SIZES = "B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB"
KNOWN_UNITS = "ns, us, ms, s, min, h"


@pytest.mark.parametrize(
    ("parse", "value", "expected_sentence"),
    [
        (parse_bytes, True, "true is not a size; write a number and a unit, like 4KiB."),
        (parse_bytes, -1, "-1 is not a size; a size is between 0 and 9223372036854775807 bytes."),
        (parse_bytes, 2**63, "9223372036854775808 is not a size; a size is between 0 and 9223372036854775807 bytes."),
        (parse_bytes, 2**63 - 1, ""),
        (parse_bytes, 1.5, "1.5 is not a size; write a whole number of bytes, or a number and a unit, like 4KiB."),
        (parse_bytes, "-1 B", '"-1 B" is negative; a size is written like 4KiB or 10MB.'),
        (parse_bytes, "many", '"many" is not a size; write a number and a unit, like 4KiB or 10MB.'),
        (parse_bytes, " 10 ", '" 10 " has no unit; write 10B, 10KiB or 10MiB.'),
        (parse_bytes, "4k", '"4k" does not say which unit is meant: write 4KiB (4,096 bytes) or 4kB (4,000 bytes).'),
        (parse_bytes, "1.5M", '"1.5M" does not say which unit is meant: write 1.5MiB (1,572,864 bytes) or 1.5MB'
                              " (1,500,000 bytes)."),
        (parse_bytes, "0.0001gb", '"0.0001gb" does not say which unit is meant: write 0.0001GiB (107,374.1824 bytes) or'
                                  " 0.0001GB (100,000 bytes)."),
        (parse_bytes, "4Kib", '"4Kib" does not say which unit is meant: write 4KiB (4,096 bytes) or 4kB (4,000'
                              " bytes)."),
        (parse_bytes, "4XB", f'"4XB" has the unknown unit "XB"; sizes end in one of {SIZES}.'),
        (parse_bytes, "0.3B", '"0.3B" is 0.3 bytes, which is not a whole number.'),
        (parse_bytes, "9000PiB", '"9000PiB" is more than a file can hold (9223372036854775807 bytes).'),
        (parse_bytes, "9223372036854775807B", ""),
        (parse_bytes, "9223372036854775808B",
         '"9223372036854775808B" is more than a file can hold (9223372036854775807 bytes).'),
        (parse_duration, False, "false is not a duration; write a number and a unit, like 10s."),
        (parse_duration, -1, "-1 is not a duration; durations are not negative and not infinite."),
        (parse_duration, "-1s", '"-1s" is negative; a duration is written like 10s or 500ms.'),
        (parse_duration, "10", f'"10" has no unit; write 10s for seconds (known: {KNOWN_UNITS}).'),
        (parse_duration, "5 m", '"5 m" has the unknown unit "m"; write min for minutes or ms for milliseconds.'),
        (parse_duration, "5 SEC", '"5 SEC" has the unknown unit "SEC"; write s.'),
        (parse_duration, "5 hr", '"5 hr" has the unknown unit "hr"; write h.'),
        (parse_duration, "5 d", '"5 d" has the unknown unit "d"; write h.'),
        (parse_duration, "5 weeks", f'"5 weeks" has the unknown unit "weeks"; durations end in {KNOWN_UNITS}.'),
        (parse_rate, True, "true is not a rate; write a number and a unit, like 100MB/s."),
        (parse_rate, 0, "0 is not a rate; a rate is larger than 0 bytes per second."),
        (parse_rate, "-1MB/s", '"-1MB/s" is negative; a rate is written like 100MB/s.'),
        (parse_rate, "100MB", '"100MB" is not a rate; a rate ends in "/s", like 100MB/s.'),
        (parse_rate, "1M/s", '"1M/s" does not say which unit is meant: write 1MiB/s (1,048,576 bytes) or 1MB/s'
                             " (1,000,000 bytes)."),
        (parse_rate, "1Mbit/s", '"1Mbit/s" has the unknown unit "Mbit/s"; rates are written like 100MB/s or 1GiB/s.'),
        (parse_rate, "0MB/s", '"0MB/s" is zero; a rate is larger than 0 bytes per second.'),
        (parse_link_rate, 5, "5 does not say bits or bytes; write a unit, like 200 Gbit/s or 2.4 GB/s."),
        (parse_link_rate, "0 Gbit/s", '"0 Gbit/s" is zero; a rate is larger than 0 bytes per second.'),
        (parse_link_rate, "5 Gb/s", '"5 Gb/s" may be bits or bytes; write 5 Gbit/s or 5 GB/s.'),
        (parse_link_rate, "5 Kbps", '"5 Kbps" may be bits or bytes; write 5 kbit/s or 5 kB/s.'),
        (parse_link_rate, "5 b/s", '"5 b/s" may be bits or bytes; write 5 bit/s or 5 B/s.'),
        (parse_link_rate, "5 GB", '"5 GB" is not a rate; a rate ends in "/s", like 100MB/s.'),
        (parse_link_rate, "x", '"x" is not a rate; write a number and a unit, like 200 Gbit/s or 2.4 GB/s.'),
        (parse_link_rate, "5 GB/s", ""),
        (parse_op_rate, 5, "5 has no unit; write operations per second like 5500 op/s."),
        (parse_op_rate, "5", '"5" is not a rate of operations; write it like 5500 op/s, 65 kop/s or 1.2 Mop/s.'),
        (parse_op_rate, "5 op", '"5 op" is not a rate of operations; write it like 5500 op/s, 65 kop/s or 1.2 Mop/s.'),
        (parse_op_rate, "5 Gop/s",
         '"5 Gop/s" is not a rate of operations; write it like 5500 op/s, 65 kop/s or 1.2 Mop/s.'),
        (parse_op_rate, "0 op/s", '"0 op/s" is zero; a rate of operations is larger than 0.'),
        (parse_op_rate, "?", '"?" is not a rate of operations; write a number and a unit, like 5500 op/s.'),
        (parse_share, "40", '"40" is not a share; write a number from 0 to 1, or percent like "40 %".'),
        (parse_share, True, 'True is not a share; write a number from 0 to 1, or percent like "40 %".'),
        (parse_share, None, 'None is not a share; write a number from 0 to 1, or percent like "40 %".'),
        (parse_share, 1.5, '"1.5" is outside 0 to 1 (0 % to 100 %).'),
        (parse_share, "101 %", '"101 %" is outside 0 to 1 (0 % to 100 %).'),
        (parse_share, -0.1, '"-0.1" is outside 0 to 1 (0 % to 100 %).'),
    ],
)  # fmt: skip
def test_invalid_quantities_have_exact_error_messages(
    parse: Callable[[Any], float], value: Any, expected_sentence: str
) -> None:
    assert get_error_text(parse, value) == expected_sentence


@pytest.mark.parametrize(
    ("value", "expected_share"), [(0, 0.0), (1, 1.0), (0.4, 0.4), ("40 %", 0.4), (" 100% ", 1.0), ("0 %", 0.0)]
)
def test_a_share_is_a_number_or_percent(value: Any, expected_share: float) -> None:
    assert parse_share(value) == expected_share
    assert isinstance(parse_share(value), float)


@pytest.mark.parametrize(
    ("work", "text", "expected_sentence"),
    [
        (expand_name_range, "a[1", '"a[1" has a bracket without its partner; a range is written like oss[001-036].'),
        (expand_name_range, "a1]", '"a1]" has a bracket without its partner; a range is written like oss[001-036].'),
        (
            expand_name_range,
            "a[x]",
            '"a[x]": "x" is not a number or a range of them; write it like [001-036] or [1,3,5].',
        ),
        (
            expand_name_range,
            "a[1, ]",
            '"a[1, ]": "" is not a number or a range of them; write it like [001-036] or [1,3,5].',
        ),
        (expand_name_range, "a[1-3:0]", '"a[1-3:0]" has a step of 0; a step is 1 or more.'),
        (expand_name_range, "a[03-1]", '"a[03-1]" runs from 03 down to 1; write the smaller number first.'),
        (
            expand_name_range,
            "a[1-4000001]",
            '"a[1-4000001]" stands for more than 4,000,000 names, which cannot be meant.',
        ),
        (
            expand_name_range,
            "a[1-2000][1-2001]",
            '"a[1-2000][1-2001]" stands for 4,002,000 names; more than 4,000,000 cannot be meant.',
        ),
        (parse_address, "10.0.0", '"10.0.0" is not an IPv4 or IPv6 address; write it like 10.100.0.91 or fd00::91.'),
        (parse_network, "ten", '"ten" is not an address range; write it like 10.100.0.0/16 or fd00:100::/64.'),
        (parse_network, "10.0.0.7/24", '"10.0.0.7/24" is an address inside a range, not a range; write 10.0.0.0/24.'),
        (
            expand_address_range,
            "10.0.0.1 .. fd00::1",
            '"10.0.0.1 .. fd00::1" runs from IPv4 to IPv6; write both ends in one.',
        ),
        (
            expand_address_range,
            "10.0.0.2 .. 10.0.0.1",
            '"10.0.0.2 .. 10.0.0.1" runs downwards; write the smaller address first.',
        ),
        (
            expand_address_range,
            "10.0.0.0 .. 10.61.9.0",
            '"10.0.0.0 .. 10.61.9.0" stands for 4,000,001 addresses; more than 4,000,000 cannot be meant.',
        ),
        (expand_address_range, "10.0.0.1 .. 10.0.0.1", ""),
    ],
)
def test_invalid_ranges_have_exact_error_messages(
    work: Callable[[str], object], text: str, expected_sentence: str
) -> None:
    assert get_error_text(work, text) == expected_sentence


def test_ranges_accept_steps_and_surrounding_blanks() -> None:
    assert MAX_EXPANDED_NAMES == 4_000_000
    assert expand_name_range("a[0-9:3]x") == ("a0x", "a3x", "a6x", "a9x")
    assert str(parse_address(" 10.0.0.1 ")) == "10.0.0.1"
    assert str(parse_network(" 10.0.0.0/8 ")) == "10.0.0.0/8"
