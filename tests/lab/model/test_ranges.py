# SPDX-License-Identifier: Apache-2.0
"""Names and addresses in ranges: what is written out is what was meant, and what is folded can be written out again."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.model.addresses import AddressError, expand_address_range, parse_network
from sonde.model.ranges import RangeError, cut_name_range, expand_name_range, fold_names_into_ranges

NAMES = st.from_regex(r"[a-z]{0,4}-?[a-z]{1,3}", fullmatch=True)


def test_a_bracket_keeps_the_width_of_its_first_number() -> None:
    assert expand_name_range("oss[08-11]") == ("oss08", "oss09", "oss10", "oss11")
    assert expand_name_range("n[8-11]") == ("n8", "n9", "n10", "n11")


def test_brackets_multiply_and_the_last_runs_fastest() -> None:
    assert expand_name_range("s[1-2]-d[00-02]x") == ("s1-d00x", "s1-d01x", "s1-d02x", "s2-d00x", "s2-d01x", "s2-d02x")


def test_a_bracket_lists_and_steps() -> None:
    assert expand_name_range("[1,3,5-9:2]") == ("1", "3", "5", "7", "9")


def test_a_name_without_brackets_is_itself() -> None:
    assert expand_name_range("mds") == ("mds",)


@pytest.mark.parametrize(
    "text", ["a[", "a]1[", "a[]", "a[1-]", "a[x-y]", "a[3-1]", "a[1-3:0]", "a[1-9999999]", "a[[1]]"]
)
def test_invalid_name_range_is_rejected(text: str) -> None:
    with pytest.raises(RangeError):
        expand_name_range(text)


@given(NAMES, st.integers(0, 500), st.integers(0, 60), st.integers(1, 5), NAMES)
def test_as_many_names_as_numbers_each_once_in_order(
    prefix: str, first: int, further_names: int, width: int, tail: str
) -> None:
    names = expand_name_range(f"{prefix}[{first:0{width}d}-{first + further_names}]{tail}")
    assert len(names) == len(set(names)) == further_names + 1
    numbers = [int(name.removeprefix(prefix).removesuffix(tail)) for name in names]
    assert numbers == list(range(first, first + further_names + 1))


@given(st.lists(st.tuples(NAMES, st.integers(0, 30), st.integers(0, 9)), min_size=1, max_size=4))
def test_as_many_names_as_the_product_of_the_brackets(parts: list[tuple[str, int, int]]) -> None:
    names = expand_name_range("".join(f"{head}[{first}-{first + more}]" for head, first, more in parts))
    total = 1
    for _, _, more in parts:
        total *= more + 1
    assert len(names) == total


@settings(max_examples=100)
@given(
    st.lists(
        st.one_of(NAMES, st.builds("{}{:0{}d}".format, NAMES, st.integers(0, 120), st.integers(1, 3))), max_size=30
    )
)
def test_folded_names_can_be_written_out_again(names: list[str]) -> None:
    folded = fold_names_into_ranges(names)
    assert [name for part in folded.split(", ") if part for name in expand_name_range(part)] == names


def test_a_run_of_names_is_folded_to_one_range() -> None:
    assert fold_names_into_ranges(expand_name_range("oss[001-036]")) == "oss[001-036]"
    assert fold_names_into_ranges(["a1", "a2", "a4", "b"]) == "a[1-2], a4, b"
    assert fold_names_into_ranges(["a9", "a10", "a11"]) == "a[9-11]"
    assert fold_names_into_ranges(["a09", "a10", "a100"]) == "a[09-10], a100"


def test_addresses_in_brackets_and_from_to() -> None:
    assert expand_address_range("10.100.0.[91-96]") == tuple(f"10.100.0.{end}" for end in range(91, 97))
    assert expand_address_range("10.0.0.254 .. 10.0.1.1") == ("10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1")
    assert expand_address_range("fd00::a .. fd00::c") == ("fd00::a", "fd00::b", "fd00::c")


@given(st.integers(0, 2**32 - 300), st.integers(0, 250))
def test_address_range_yields_each_address_once(first: int, further_addresses: int) -> None:
    low, high = ipaddress.IPv4Address(first), ipaddress.IPv4Address(first + further_addresses)
    addresses = [int(ipaddress.ip_address(address)) for address in expand_address_range(f"{low} .. {high}")]
    assert addresses == list(range(first, first + further_addresses + 1))


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.256",
        "10.0.0",
        "ten",
        "10.0.0.9 .. 10.0.0.1",
        "10.0.0.1 .. fd00::1",
        "0.0.0.0 .. 255.255.255.255",
        "10.0.0.[1-x]",
    ],
)
def test_invalid_address_range_is_rejected(text: str) -> None:
    with pytest.raises((AddressError, RangeError)):
        expand_address_range(text)


def test_an_address_inside_a_range_is_no_range() -> None:
    with pytest.raises(AddressError, match=r"10\.0\.0\.0/24"):
        parse_network("10.0.0.7/24")
    with pytest.raises(AddressError):
        parse_network("10.0.0.0/33")
    assert str(parse_network("fd00:1::/64")) == "fd00:1::/64"


@pytest.mark.parametrize(
    ("begin", "end", "expected"), [(0, 1, "/dev/n0p1"), (1, 4, "/dev/n[1-3]p1"), (2, 6, "/dev/n[2,3,7,8]p1")]
)
def test_cut_range_lists_its_names_alone(begin: int, end: int, expected: str) -> None:
    text = "/dev/n[0-3,7-8]p1"
    assert cut_name_range(text, begin, end) == expected
    assert expand_name_range(expected) == expand_name_range(text)[begin:end]


def test_range_of_several_brackets_is_not_cut() -> None:
    assert cut_name_range("/dev/n[0-1]p[1-2]", 0, 3) == ""
