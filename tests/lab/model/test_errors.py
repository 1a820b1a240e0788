# SPDX-License-Identifier: Apache-2.0
"""Errors: exit codes, sentences and suggestions."""

from __future__ import annotations

import pytest

from sonde.model import errors
from sonde.model.errors import (
    DataMismatchError,
    MachineError,
    PlanError,
    RunFailedError,
    StoppedError,
    UserError,
    escape_unprintable,
    format_as_sentence,
    suggest_close_name,
)


def test_errors_end_commands_with_their_codes() -> None:
    codes = (errors.EXIT_OK, errors.EXIT_FAILED, errors.EXIT_BAD_INPUT, errors.EXIT_ENVIRONMENT)
    assert (*codes, errors.EXIT_MISMATCH, errors.EXIT_INTERRUPTED) == (0, 1, 2, 3, 4, 5)
    kinds = (RunFailedError, UserError, PlanError, MachineError, DataMismatchError, StoppedError)
    assert [kind.exit_code for kind in kinds] == [1, 2, 2, 3, 4, 5]


def test_an_error_stays_on_its_line() -> None:
    assert str(UserError("a\nb\x1b[31m ä")) == "a\\nb\\x1b[31m ä"
    assert escape_unprintable("plain ä") == "plain ä"


@pytest.mark.parametrize(
    ("text", "expected_sentence"),
    [("", ""), ("  ", ""), ("a", "A."), (" a. ", "A."), ("why?", "Why?"), ("go!", "Go!"), ("ABC d", "ABC d.")],
)
def test_clause_is_formatted_as_a_sentence(text: str, expected_sentence: str) -> None:
    assert format_as_sentence(text) == expected_sentence


@pytest.mark.parametrize(
    ("misspelled", "names", "expected_near"),
    [
        ("dirct", ["direct", "dirty"], ' Did you mean "direct"?'),
        ("zzz", ["direct"], ""),
        ("DIRECT", ["other", "direct"], ' Did you mean "direct"?'),
        ("QUEUE-DEPTH", ["queue_depth"], ' Did you mean "queue_depth"?'),
        ("queue_depth", ["QUEUE-DEPTH"], ' Did you mean "QUEUE-DEPTH"?'),
        ("abcde", ["abxyz"], ""),
        ("abcde", ["abcyz"], ' Did you mean "abcyz"?'),
        ("x", [], ""),
    ],
)
def test_close_name_is_suggested(misspelled: str, names: list[str], expected_near: str) -> None:
    assert suggest_close_name(misspelled, iter(names)) == expected_near
