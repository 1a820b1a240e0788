# SPDX-License-Identifier: Apache-2.0
"""--color, --quiet, --export and configuration files."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from archive_builders import store_run
from record_scene import Scene

from sonde.cli.output_options import read_defaults
from sonde.model import configuration


@pytest.fixture
def stored_runs(archive: Path) -> Path:
    """An archive with two runs."""
    for day in (1, 2):
        store_run(archive, f"2026110{day}T000000Z-quick-{day}", Scene())
    return archive


def test_export_csv_has_exact_numbers_in_base_units(sonde: Any, stored_runs: Path) -> None:
    result = sonde("list", "--export", "csv")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert [row["run"] for row in rows] == ["20261101T000000Z-quick-1", "20261102T000000Z-quick-2"]
    (document,) = sonde("show", "20261101T000000Z-quick-1", "--json").json
    exact = document["phases"][0]["rates"]["total"]["bytes_per_s"]
    assert float(rows[0]["fastest write (bytes/s)"]) == pytest.approx(exact, rel=1e-12)


def test_export_json_holds_every_table(sonde: Any, stored_runs: Path) -> None:
    tables = json.loads(sonde("show", "--export", "json").out)
    assert len(tables) > 1
    assert all(set(row) == set(table["columns"]) for table in tables for row in table["rows"])


def test_exported_columns_have_distinct_names(sonde: Any, stored_runs: Path) -> None:
    """JSON would have one value for two columns of one name."""
    first, second = "20261101T000000Z-quick-1", "20261102T000000Z-quick-2"
    (table, *_) = json.loads(sonde("compare", first, second, "--export", "json").out)
    assert table["columns"][3:6] == ["runs", "after (bytes/s)", "after runs"]
    assert table["columns"][-1] == "comment"
    assert len(set(table["columns"])) == len(table["columns"]) == len(table["rows"][0])
    (table,) = json.loads(sonde("doctor", "--export", "json").out)
    assert table["columns"] == ["state", "check", "result"]


def test_export_markdown_is_one_table(sonde: Any, stored_runs: Path) -> None:
    lines = sonde("list", "--export", "md").out.splitlines()
    assert len(lines) == 4
    assert {line.count(" | ") for line in (lines[0], *lines[2:])} == {lines[0].count(" | ")}
    assert set(lines[1]) <= set("|-:")


def test_exported_markdown_has_the_numbers_of_csv(sonde: Any, stored_runs: Path) -> None:
    (row, *_) = csv.DictReader(io.StringIO(sonde("list", "--export", "csv").out))
    title, _, first, *_ = sonde("list", "--export", "md").out.splitlines()
    assert dict(zip(title.split("|")[1:-1], first.split("|")[1:-1], strict=True)) == {
        f" {name} ": f" {value} " for name, value in row.items()
    }


def test_export_parquet_reads_back(stored_runs: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sonde", "list", "--export", "parquet"]
    done = subprocess.run(
        command, capture_output=True, check=True, env={**os.environ, "SONDE_ARCHIVE": str(stored_runs)}
    )
    table = pyarrow.parquet.read_table(pyarrow.BufferReader(done.stdout))
    assert table.num_rows == 2
    assert str(table.schema.field("tasks").type) == "int64"


def test_export_and_json_exclude_each_other(sonde: Any, stored_runs: Path) -> None:
    for arguments in (("--json", "--export", "csv"), ("--export", "csv", "--json")):
        result = sonde("list", *arguments)
        assert result.code == 2
        assert "exclude each other" in result.err


def test_export_without_table_prints_message_to_stderr(sonde: Any, archive: Path) -> None:
    result = sonde("list", "--export", "csv")
    assert result.out == ""
    assert "holds nothing yet" in result.err


@pytest.mark.parametrize("arguments", [("--color", "always", "list"), ("list", "--color", "always")])
def test_color_always_writes_codes_into_pipe(sonde: Any, stored_runs: Path, arguments: tuple[str, ...]) -> None:
    assert "\x1b[" in sonde(*arguments).out
    assert "\x1b[" not in sonde("list").out  # the next command has its own settings


def test_quiet_suppresses_messages_but_not_errors(sonde: Any, stored_runs: Path) -> None:
    (stored_runs / "2026-11" / "broken").mkdir()
    assert "broken" in sonde("list").err
    assert sonde("list", "--quiet").err == ""
    assert sonde("show", "missing", "--quiet").err.startswith("sonde: ")


def write_configuration(monkeypatch: pytest.MonkeyPatch, path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("SONDE_CONFIG", str(path))


def test_configured_option_is_default_of_verb(
    sonde: Any, stored_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_configuration(monkeypatch, tmp_path / "config.toml", "[list]\nlast = 1\n[baseline.show]\njson = true\n")
    assert sonde("list").out.count("-quick-") == 1
    assert sonde("list", "-n", "5").out.count("-quick-") == 2
    assert sonde("baseline", "show").json == []


def test_options_of_both_files_apply_to_one_subcommand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "SITE_FILE", tmp_path / "site.toml")
    text = '[run]\nrepeat = 3\nnote = "site"\n[event.add]\nkind = "upgrade"\nend = "2d"\n'
    (tmp_path / "site.toml").write_text(text, encoding="utf-8")
    write_configuration(monkeypatch, tmp_path / "config.toml", '[run]\nnote = "user"\n[event.add]\nend = "1d"\n')
    assert read_defaults(("run", "event")) == {
        "run": {"repeat": 3, "note": "user"},
        "event": {"add": {"kind": "upgrade", "end": "1d"}},
    }


def test_archive_is_from_option_then_variable_then_file(
    sonde: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SONDE_ARCHIVE", raising=False)
    write_configuration(monkeypatch, tmp_path / "config.toml", f'archive = "{tmp_path}/configured"\n')
    assert sonde("doctor", "--config", "--json").json["settings"][0] == {
        "setting": "archive",
        "value": f"{tmp_path}/configured",
        "from": f"{tmp_path}/config.toml",
    }
    monkeypatch.setenv("SONDE_ARCHIVE", str(tmp_path / "variable"))
    assert sonde("doctor", "--config", "--json").json["settings"][0]["from"] == "$SONDE_ARCHIVE"
    stated = sonde("doctor", "--config", "--json", "--archive", tmp_path / "stated").json["settings"][0]
    assert (stated["value"], stated["from"]) == (f"{tmp_path}/stated", "command line")


def test_source_of_color_is_option_then_file_then_variable(
    sonde: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_color(*options: str) -> tuple[str, str]:
        setting = sonde("doctor", "--config", "--json", *options).json["settings"][1]
        return setting["value"], setting["from"]

    assert find_color() == ("auto", "default")
    monkeypatch.setenv("NO_COLOR", "1")
    assert find_color() == ("auto", "$NO_COLOR")
    write_configuration(monkeypatch, tmp_path / "config.toml", 'color = "always"\n')
    assert find_color() == ("always", f"{tmp_path}/config.toml")
    assert find_color("--color", "never") == ("never", "command line")


@pytest.mark.parametrize(
    ("text", "expected_sentence"),
    [
        ("archivex = 'x'", 'Did you mean "archive"?'),
        ("archive = 3", "archive must be the path"),
        ("color = 'pink'", "color must be one of auto, always, never"),
        ("quiet = 1", "quiet must be true or false"),
        ("[list]\nlats = 1", 'Did you mean "last"?'),
        ("[list]\nlast = 'x'", "is not a whole number"),
        ("[list]\nlast = 0", "is not in the range x>=1. The value is from"),
        ("[baseline.show]\nx = 1", 'sets "x" in [baseline.show], and `sonde baseline show` has no such option'),
        ("[list", "is not TOML"),
        ("[list]\nlast = " + "[" * 200 + "]" * 200, "is nested too deeply"),
        ("# " + "x" * (1 << 20), "is larger than a configuration file can be (1 MiB)"),
    ],
)
def test_wrong_configuration_is_rejected_in_one_sentence(
    sonde: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected_sentence: str
) -> None:
    monkeypatch.delenv("SONDE_ARCHIVE", raising=False)
    write_configuration(monkeypatch, tmp_path / "config.toml", text)
    result = sonde(*(("baseline", "show") if "baseline" in text else ("list",)))
    assert result.code == 2
    assert expected_sentence in result.err
    assert str(tmp_path / "config.toml") in result.err
    assert len(result.err.splitlines()) == 1
    assert result.out == ""


def test_missing_stated_configuration_file_is_rejected(sonde: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_CONFIG", "/nowhere/config.toml")
    assert "There is no file /nowhere/config.toml" in sonde("list").err
