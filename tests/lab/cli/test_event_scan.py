# SPDX-License-Identifier: Apache-2.0
"""`sonde event scan`: events of logs enter the archive once; bad input is one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sonde.cli.event import command
from sonde.model.errors import UserError

LOG = (
    "2026-03-17T08:40:00Z oss3 kernel: md/raid:md3: Disk failure on sdq1, disabling device.\n"
    "2038-03-17T08:40:00Z oss3 kernel: md/raid:md3: Disk failure on sdr1, disabling device.\n"
)


def scan(tmp_path: Path, *arguments: str) -> Result:
    log = tmp_path / "messages"
    log.write_text(LOG, encoding="utf-8")
    every = ["scan", str(log), "--archive", str(tmp_path), *arguments]
    return CliRunner().invoke(command, every, standalone_mode=False)


def test_scan_adds_events_once(tmp_path: Path) -> None:
    first = json.loads(scan(tmp_path, "--json").stdout)
    assert [event["title"] for event in first["events"]] == ["sdq1 failed in md3 of oss3"]
    assert len(first["problems"]) == 1
    again = json.loads(scan(tmp_path, "--json").stdout)
    assert (again["events"], again["already_present"]) == ([], 1)
    list_result = CliRunner().invoke(command, ["list", "--json", "--archive", str(tmp_path)], standalone_mode=False)
    assert json.loads(list_result.stdout)[0]["tags"] == ["log", "error"]


def test_dry_run_adds_none(tmp_path: Path) -> None:
    assert "1 event would be added" in scan(tmp_path, "--dry-run").stdout
    assert not (tmp_path / "events.ndjson").exists()


@pytest.mark.parametrize(
    ("arguments", "expected_problem"),
    [
        (["--only", "lustr"], 'Did you mean "lustre"'),
        (["--rules", "absent.toml"], "There is no file of log rules"),
        (["--rules", "x.toml", "--only", "lustre"], "leave it out with --rules"),
        (["--boot", "yesterday"], "is no time"),
    ],
)
def test_wrong_option_is_rejected(tmp_path: Path, arguments: list[str], expected_problem: str) -> None:
    result = scan(tmp_path, *arguments)
    assert isinstance(result.exception, UserError)
    assert expected_problem in str(result.exception)
