# SPDX-License-Identifier: Apache-2.0
"""The record format: the example is a real record, schema and README name the same members, additions are allowed."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

SCHEMA = Path(__file__).resolve().parents[2] / "schema" / "record"
FORMAT: dict[str, Any] = json.loads((SCHEMA / "record.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(FORMAT)
DEFINITIONS: dict[str, Any] = FORMAT["$defs"]
LINE_TYPES = {name.removeprefix("line_") for name in DEFINITIONS if name.startswith("line_")}
EXAMPLE: list[dict[str, Any]] = [
    json.loads(line) for line in (SCHEMA / "example.ndjson").read_text(encoding="utf-8").splitlines()
]


def copy_first_line(line_type: str) -> dict[str, Any]:
    """A copy of the first line of a type in the example."""
    return copy.deepcopy(next(line for line in EXAMPLE if line["type"] == line_type))


def table(heading: str) -> dict[str, str]:
    """The table of README.md whose head begins with `heading`: first column -> the rest of the row."""
    text = (SCHEMA / "README.md").read_text(encoding="utf-8")
    body = text[text.index(f"| {heading} |") :].split("\n\n")[0]
    rows = [re.match(r"\| `(\w+)` \|(.*)\|$", line) for line in body.splitlines()]
    return {row[1]: row[2] for row in rows if row}


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(FORMAT)


@pytest.mark.parametrize("line_index", range(len(EXAMPLE)))
def test_every_line_of_the_example_is_a_record_line(line_index: int) -> None:
    VALIDATOR.validate(EXAMPLE[line_index])


def test_the_example_holds_every_type_of_line_but_errors() -> None:
    assert {line["type"] for line in EXAMPLE} >= LINE_TYPES - {"error"}


def test_the_example_begins_and_ends_as_a_record_does() -> None:
    assert EXAMPLE[0]["type"] == "run"
    assert EXAMPLE[-1]["type"] == "end"
    assert sum(line["type"] in ("run", "end") for line in EXAMPLE) == 2


def test_time_never_steps_back_in_the_example() -> None:
    times = [line["t"] for line in EXAMPLE]
    assert times == sorted(times)


def test_the_example_adds_up() -> None:
    """The series holds exactly the bytes of its phase, a histogram its operations; a rate is the quotient it names."""
    ends = {line["phase"]: line for line in EXAMPLE if line["type"] == "phase_end"}
    checked = 0
    for line in EXAMPLE:
        if line["type"] == "series" and line["scope"] == "all":
            assert sum(line["bytes"]) == ends[line["phase"]]["bytes"]["transferred"]
            assert sum(line["ops"]) == ends[line["phase"]]["ops"]["done"]
            checked += 1
        elif line["type"] == "histogram":
            assert sum(count for _, _, count in line["buckets"]) + line["overflow"] == line["count"]
            checked += 1
    assert checked >= 2 * len(ends)
    for end in ends.values():
        for rate in end["rates"].values():
            assert rate["bytes_per_s"] == pytest.approx(rate["bytes"] / rate["seconds"], rel=1e-6)


def test_readme_and_schema_name_the_same_line_types() -> None:
    assert set(table("type")) == LINE_TYPES


@pytest.mark.parametrize("line_type", sorted(LINE_TYPES - {"phase_end"}))
def test_members_of_the_readme_are_in_the_schema(line_type: str) -> None:
    row = table("type")[line_type].split("|", 1)[1]
    named_members = set(re.findall(r"`([a-z_0-9]+)(?:\[\])?`", re.sub(r"\([^)]*\)", "", row)))
    known_members = set(DEFINITIONS[f"line_{line_type}"]["properties"]) | {"all"}
    spread = {word for phrase in re.findall(r"`([a-z_0-9/ ]+ [a-z_0-9/ ]+)`", row) for word in phrase.split()}
    assert named_members - known_members - spread == set()


def test_members_of_phase_end_are_the_same_in_readme_and_schema() -> None:
    assert set(table("member")) | {"phase"} == set(DEFINITIONS["line_phase_end"]["properties"])


def test_unknown_members_and_types_are_allowed() -> None:
    line = copy_first_line("run")
    line["added_later"] = {"anything": 1}
    VALIDATOR.validate(line)
    VALIDATOR.validate({"type": "added_later", "t": 0.5})


WRONG: dict[str, tuple[str, list[str], Any]] = {
    "a line without a time": ("progress", ["t"], None),
    "another version": ("run", ["schema"], "sonde-record/3"),
    "a start in local time": ("run", ["started"], "2026-01-01T12:00:00+01:00"),
    "bytes below zero": ("phase_end", ["bytes", "transferred"], -1),
    "bytes as text": ("phase_end", ["bytes", "transferred"], "1 GiB"),
    "an unknown reason to stop": ("phase_end", ["stopped_by"], "boredom"),
    "a rate without its interval": ("phase_end", ["rates", "total", "seconds"], None),
    "a share in percent": ("treatment", ["residency_before"], 40),
    "a bucket with two numbers": ("histogram", ["buckets"], [[1, 2]]),
    "a slice without width": ("series", ["slice_s"], 0),
    "a finding without words": ("finding", ["text"], None),
    "a status of its own": ("end", ["status"], "fine"),
    "an exit code that a shell cannot tell": ("end", ["exit_code"], 256),
}


@pytest.mark.parametrize("case_name", WRONG)
def test_a_wrong_line_is_refused(case_name: str) -> None:
    kind, path, value = WRONG[case_name]
    line: Any = copy_first_line(kind)
    here = line
    for step in path[:-1]:
        here = here[step]
    if value is None:
        here.pop(path[-1])
    else:
        here[path[-1]] = value
    assert not VALIDATOR.is_valid(line)
