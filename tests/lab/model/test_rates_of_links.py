# SPDX-License-Identifier: Apache-2.0
"""Rates in bits and bytes, operations and shares: what leaves no doubt is read, the rest is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.model.errors import UnitError
from sonde.model.units import parse_link_rate, parse_op_rate, parse_share


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [("8 bit/s", 1), ("200 Gbit/s", 25e9), ("1 kbit/s", 125), ("1 Mbit/s", 125e3), ("1.6 Tbit/s", 2e11),
     ("2.4 GB/s", 2.4e9), ("1 GiB/s", 2**30), ("500kB/s", 5e5)],
)  # fmt: skip
def test_link_rate_is_parsed(text: str, bytes_per_s: float) -> None:
    assert parse_link_rate(text) == pytest.approx(bytes_per_s, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "expected_remedy"),
    [("10 Gb/s", "10 Gbit/s or 10 GB/s"), ("10 Gbps", "10 Gbit/s or 10 GB/s"), ("10 Kb/s", "10 kbit/s or 10 kB/s"),
     ("10 Gibit/s", "1GiB/s"), ("10 GB", "/s"), ("0 Gbit/s", "zero"), ("0 GB/s", "zero"), ("fast", "200 Gbit/s"),
     ("-1 GB/s", "negative"), ("10 G/s", "10GiB/s")],
)  # fmt: skip
def test_a_rate_that_is_doubtful_is_refused_with_a_remedy(text: str, expected_remedy: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_link_rate(text)
    assert expected_remedy in str(caught.value)


def test_a_rate_without_a_unit_is_refused() -> None:
    with pytest.raises(UnitError, match="bits or bytes"):
        parse_link_rate(5)  # type: ignore[arg-type]


@given(st.integers(1, 10**6), st.sampled_from(["k", "M", "G", "T"]))
def test_eight_bits_are_one_byte(number: int, prefix: str) -> None:
    assert parse_link_rate(f"{8 * number} {prefix}bit/s") == pytest.approx(parse_link_rate(f"{number} {prefix}B/s"))


@pytest.mark.parametrize(
    ("text", "expected_rate"), [("5500 op/s", 5500), ("65 kop/s", 65e3), ("1.2 Mop/s", 1.2e6), ("0.5op/s", 0.5)]
)
def test_operation_rate_is_parsed(text: str, expected_rate: float) -> None:
    assert parse_op_rate(text) == pytest.approx(expected_rate)


@pytest.mark.parametrize("text", ["5500", "5500/s", "5500 iops", "5500 op", "0 op/s", "-1 op/s", "5 Kop/s"])
def test_invalid_operation_rate_is_rejected(text: str) -> None:
    with pytest.raises(UnitError):
        parse_op_rate(text)
    with pytest.raises(UnitError, match="no unit"):
        parse_op_rate(5500)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "expected_share"), [("40 %", 0.4), ("0%", 0), ("100 %", 1), (0.25, 0.25), (1, 1), ("12.5 %", 0.125)]
)
def test_share_is_parsed_from_number_or_percentage(written: float | str, expected_share: float) -> None:
    assert parse_share(written) == pytest.approx(expected_share)


@pytest.mark.parametrize("written", ["101 %", 1.01, -0.1, "half", "40", True, None, float("nan")])
def test_invalid_share_is_rejected(written: float | str) -> None:
    with pytest.raises(UnitError):
        parse_share(written)
