# SPDX-License-Identifier: Apache-2.0
"""Documents beyond the limits are refused with one sentence and exit code 2, whatever reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from make_record import write_run
from record_scene import Scene

from sonde.model.documents import MAX_NESTING_LEVELS, DocumentError, parse_json, parse_toml, parse_yaml
from sonde.model.errors import RecordError
from sonde.model.line_decoding import parse_record_line

Sonde = Callable[..., Any]
NESTING_DEPTH = 5000
TOML = {
    "lists": "a = " + "[" * NESTING_DEPTH + "]" * NESTING_DEPTH,
    "tables": "a = " + "{b = " * NESTING_DEPTH + "1" + "}" * NESTING_DEPTH,
    "dotted": ".".join("a" * NESTING_DEPTH) + " = 1",
    "header": "[" + ".".join("a" * NESTING_DEPTH) + "]",
    "digits": "a = " + "9" * 100_000,
    "hexadecimal": "a = 0x" + "f" * 100_000,
}
JSON = {
    "lists": '{"a": ' + "[" * NESTING_DEPTH + "]" * NESTING_DEPTH + "}",
    "tables": '{"a":' * NESTING_DEPTH + "1" + "}" * NESTING_DEPTH,
    "moderate": '{"a":' * 200 + "1" + "}" * 200,
    "digits": '{"a": ' + "9" * 100_000 + "}",
    "float": '{"a": ' + "9" * 400 + "}",
}


@pytest.mark.parametrize("text", TOML.values(), ids=TOML)
def test_toml_beyond_a_limit_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match=r"it is nested too deeply|more than 308 digits"):
        parse_toml(text)


@pytest.mark.parametrize("text", JSON.values(), ids=JSON)
def test_json_beyond_a_limit_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match=r"it is nested too deeply|more than 308 digits"):
        parse_json(text)


@pytest.mark.parametrize(
    "text", ["[" * NESTING_DEPTH, "- " * NESTING_DEPTH, "a: " + "9" * 100_000], ids=["lists", "blocks", "digits"]
)
def test_yaml_beyond_a_limit_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match=r"it is nested too deeply|more than 308 digits"):
        parse_yaml(text)


def test_yaml_with_an_alias_is_refused() -> None:
    # Nine such lines make a list of a billion entries.
    with pytest.raises(DocumentError, match=r"alias \*a; write the value out"):
        parse_yaml("a: &a [1, 2]\nb: &b [*a, *a]\n")
    assert parse_yaml("a: &a [1, 2]\nb: 1.5") == {"a": [1, 2], "b": 1.5}


def test_documents_within_the_limits_are_read() -> None:
    deepest = "[" * MAX_NESTING_LEVELS + "]" * MAX_NESTING_LEVELS
    assert parse_toml(f"a = {deepest[1:-1]}") == {"a": parse_json(deepest)[0]}
    assert parse_json("9" * 308) == 10**308 - 1
    assert parse_toml("a = -1e308\nb = 9223372036854775807") == {"a": -1e308, "b": 2**63 - 1}


@pytest.mark.parametrize("file_format", ["toml", "json"])
@pytest.mark.parametrize(
    "verb",
    [
        ("plan", "{}"),
        ("run", "{}"),
        ("simulate", "quick", "--system", "{}"),
        ("trend", "--events", "{}"),
        ("import", "{csv}", "--columns", "{}"),
    ],
)
def test_verbs_reject_too_deep_documents_in_one_sentence(
    sonde: Sonde, archive: Path, tmp_path: Path, verb: tuple[str, ...], file_format: str
) -> None:
    csv = tmp_path / "data.csv"
    csv.write_text("time,rate\n2026-01-01,1\n")
    for name, text in {"toml": TOML, "json": JSON}[file_format].items():
        file = tmp_path / f"{name}.{file_format}"
        file.write_text(text)
        result = sonde(*(word.format(file, csv=csv) for word in verb))
        assert result.code in (2, 3), (verb, name, result.err)
        assert len(result.sentences) == 1, (verb, name, result.err)
        assert "An error in Sonde itself" not in result.err, (verb, name, result.err)
        assert "\n" not in result.err.strip()


@pytest.mark.parametrize(
    "text", ["[" * NESTING_DEPTH + "]" * NESTING_DEPTH, "9" * 100_000, "[" * 200 + "]" * 200], ids=str.__len__
)
def test_setting_beyond_a_limit_is_refused(sonde: Sonde, text: str) -> None:
    result = sonde("plan", "quick", "--on", "/tmp", "--set", f"data.access.transfer={text}")
    assert result.code == 2
    assert "An error in Sonde itself" not in result.err


@pytest.mark.parametrize("text", JSON.values(), ids=JSON)
@pytest.mark.parametrize("name", ["run.json", "tags.json", "plan.json"])
def test_run_with_too_deep_document_does_not_break_list(sonde: Sonde, archive: Path, name: str, text: str) -> None:
    for number in range(2):
        write_run(archive / "2026-01" / f"20260101T000000Z-deep-0000000{number}", Scene())
    (archive / "2026-01" / "20260101T000000Z-deep-00000000" / name).write_text(text)
    for verb in (("list",), ("show", "20260101T000000Z-deep-00000000"), ("tag", "20260101T000000Z-deep-00000000")):
        result = sonde(*verb)
        assert "An error in Sonde itself" not in result.err, (verb, result.err)
    assert "20260101T000000Z-deep-00000001" in sonde("list").out


@pytest.mark.parametrize("number", ["9" * 400, "1e400", "-" + "9" * 5000])
def test_line_of_a_record_with_a_huge_number_is_broken_not_fatal(number: str) -> None:
    lines = (f'{{"type": "strange", "t": {number}}}', f'{{"type": "end", "t": {number}, "seconds": {number}}}')
    for line in lines if number != "1e400" else ():
        with pytest.raises(RecordError, match=r"too many digits|is not JSON"):
            parse_record_line(line)
    if number == "1e400":
        assert [parse_record_line(line)[1].t for line in lines] == [float("inf")] * 2
