# SPDX-License-Identifier: Apache-2.0
"""Invisible characters become visible, and all others stay as they are."""

from __future__ import annotations

import pytest

from sonde.model.escaping import escape_line, escape_text


@pytest.mark.parametrize(
    ("raw", "escaped"),
    [
        ("plain words", "plain words"),
        ("grün · 日本", "grün · 日本"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\x00\x7f\x85", "\\x00\\x7f\\x85"),
        ("\udc80\udcff", "\\x80\\xff"),
        ("\ud800\u202e\u200b", "\\ud800\\u202e\\u200b"),
        ("\U000e0001", "\\U000e0001"),
        ("\ue000\u2028\u2029", "\\ue000\\u2028\\u2029"),
        ("5\u00a0MB\u2009a", "5\u00a0MB\u2009a"),
        ("5\u00a0MB\u200b", "5\u00a0MB\\u200b"),
        (17, "17"),
    ],
)
def test_escaped_text_is_a_single_line(raw: object, escaped: str) -> None:
    assert escape_line(raw) == escaped


def test_too_long_line_is_cut_and_ends_with_an_ellipsis() -> None:
    assert escape_line("abcde", 5) == "abcde"
    assert escape_line("abcdef", 5) == "abcde…"
    assert escape_line("x" * 2000) == "x" * 2000
    assert escape_line("x" * 2001) == "x" * 2000 + "…"


def test_a_block_keeps_its_lines() -> None:
    assert escape_text("a\n\tb\r\u202e") == "a\n\tb\\r\\u202e"


@pytest.mark.parametrize(
    ("raw", "escaped"),
    [("\udc7f", "\\udc7f"), ("\udd00", "\\udd00"), ("\udc80", "\\x80"), ("\udcff", "\\xff"), ("\xad", "\\xad"),
     ("\U0010ffff", "\\U0010ffff"), ("ÿĀ", "ÿĀ"), ("\U00010000", "\U00010000"), ("é\n", "é\\n")],
)  # fmt: skip
def test_undecodable_bytes_differ_from_lone_surrogates(raw: str, escaped: str) -> None:
    assert escape_line(raw) == escaped
    assert escape_text(raw.replace("\n", "")) == escaped.replace("\\n", "")
