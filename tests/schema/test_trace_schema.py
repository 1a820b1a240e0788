# SPDX-License-Identifier: Apache-2.0
"""The trace format: the example is a real trace, schema and README name the same members, additions are allowed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

SCHEMA = Path(__file__).resolve().parents[2] / "schema" / "trace"
FORMAT: dict[str, Any] = json.loads((SCHEMA / "trace.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(FORMAT)
EXAMPLE: list[dict[str, Any]] = [
    json.loads(line) for line in (SCHEMA / "example.ndjson").read_text(encoding="utf-8").splitlines()
]
README = (SCHEMA / "README.md").read_text(encoding="utf-8")


def members(heading: str) -> set[str]:
    """First column of the table of README.md that follows the line `heading`."""
    body = README[README.index(f"\n{heading}:\n") :].split("\n\n")[1]
    return {name for row in body.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(FORMAT)


@pytest.mark.parametrize("line_index", range(len(EXAMPLE)))
def test_every_line_of_the_example_is_a_trace_line(line_index: int) -> None:
    VALIDATOR.validate(EXAMPLE[line_index])


def test_the_example_holds_every_type_of_line() -> None:
    types = {name.removeprefix("line_") for name in FORMAT["$defs"]}
    assert {line["type"] for line in EXAMPLE} == types
    assert all(f"| `{name}` |" in README for name in types)


@pytest.mark.parametrize("line_type", ["process", "file", "buffer"])
def test_readme_and_schema_name_the_same_members(line_type: str) -> None:
    described = members(f"`{line_type}`")
    in_schema = set(FORMAT["$defs"][f"line_{line_type}"]["properties"]) - {"type"}
    assert in_schema <= described


def test_missing_trace_member_is_rejected_and_a_new_one_accepted() -> None:
    line = dict(next(line for line in EXAMPLE if line["type"] == "file"))
    VALIDATOR.validate({**line, "new": 1})
    del line["read"]
    assert not VALIDATOR.is_valid(line)
