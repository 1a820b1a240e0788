# SPDX-License-Identifier: Apache-2.0
"""`sonde watch`: exit codes, what people do with incidents, units for systemd and cron, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from watch_builders import START, ModelRunner, make_watch, run_day

from sonde.cli.watch import command
from sonde.model.errors import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_OK, MachineError, UserError
from sonde.watch.archive_runner import ArchiveRunner
from sonde.watch.watch_state import StateStore

WATCH = 'schema = "sonde-watch/1"\n[[probes]]\nid = "a"\nplan = "quick"\non = "{on}"\n'


def invoke_watch(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, standalone_mode=False)


def write_watch_file(folder: Path) -> str:
    path = folder / "watch.toml"
    path.write_text(WATCH.format(on=folder), encoding="utf-8")
    return str(path)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive whose watch has one open incident."""
    watch = make_watch(tmp_path)
    runner = ModelRunner(tmp_path / "runs.ndjson", lambda name, day: 0.5 if day >= 10 else 1.0, [START])
    for day in range(14):
        run_day(watch, tmp_path, runner, day)
    return tmp_path


def test_status_shows_limits_and_incidents(archive: Path) -> None:
    text = invoke_watch("status", "--archive", str(archive)).stdout
    assert "slower" in text
    assert "2026-01-11-slower-1 (open)" in text
    document = json.loads(invoke_watch("status", "--json", "--archive", str(archive)).stdout)
    assert document["incidents"][0]["status"] == "open"


def test_acknowledged_incident_no_longer_fails_rounds(archive: Path) -> None:
    watch_file = archive / "watch.toml"
    watch_file.write_text('schema = "sonde-watch/1"\nquiet = ["00:00-23:59"]\n' + WATCH.format(on=archive)[25:])
    arguments = ("once", str(watch_file), "--archive", str(archive))
    assert invoke_watch(*arguments).return_value == EXIT_FAILED
    assert "acknowledged by ops" in invoke_watch("acknowledge", "last", "--by", "ops", "--archive", str(archive)).stdout
    assert invoke_watch(*arguments).return_value == EXIT_OK


def test_accepted_level_becomes_the_baseline(archive: Path) -> None:
    assert invoke_watch("accept", "last", "--archive", str(archive)).return_value == EXIT_OK
    state = StateStore(archive / "watch").load_state()
    assert state.list_open_incidents() == []
    assert max(state.histories["fs0-p0-write"].accepted) < 0.7e9
    assert isinstance(invoke_watch("accept", "last", "--archive", str(archive)).exception, UserError)


def test_silence_command_stores_end_of_silence(archive: Path) -> None:
    assert (
        "No notices about /fs0 until"
        in invoke_watch("silence", "/fs0", "--for", "2h", "--archive", str(archive)).stdout
    )
    assert StateStore(archive / "watch").load_state().silences["/fs0"] > START


def test_failed_probe_has_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next round tries it again in its next interval only; the reason is in the status."""

    def fail(runner: ArchiveRunner, probe: object, group: str) -> None:
        raise MachineError("The disk is full.")

    monkeypatch.setattr(ArchiveRunner, "run_probe", fail)
    arguments = ("once", write_watch_file(tmp_path), "--archive", str(tmp_path))
    assert invoke_watch(*arguments).return_value == EXIT_ENVIRONMENT
    assert "it failed: The disk is full." in invoke_watch("status", "--archive", str(tmp_path)).stdout


def test_installed_systemd_units_quote_special_paths(tmp_path: Path) -> None:
    folder = tmp_path / "a b%c"
    folder.mkdir()
    watch_file = write_watch_file(folder)
    assert (
        invoke_watch("install", watch_file, "--archive", str(folder), "--to", str(tmp_path / "units")).return_value == 0
    )
    service = (tmp_path / "units" / "sonde-watch.service").read_text(encoding="utf-8")
    assert f'"{tmp_path}/a b%%c/watch.toml"' in service
    cron = invoke_watch("install", watch_file, "--archive", str(folder), "--cron").stdout
    assert r"a b\%c/watch.toml'" in cron


@pytest.mark.parametrize(
    ("arguments", "expected_problem"),
    [
        (("once", "absent.toml"), "There is no watch file absent.toml"),
        (("acknowledge", "x"), 'There is no incident "x"'),
        (("silence", "--for", "soon"), "soon"),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], expected_problem: str, tmp_path: Path) -> None:
    exception = invoke_watch(*arguments, "--archive", str(tmp_path)).exception
    assert isinstance(exception, UserError)
    assert expected_problem in str(exception)


def test_damaged_state_is_reported_with_its_path(archive: Path) -> None:
    (archive / "watch" / "state.json").write_text('{"schema": "sonde-watch-state/1"', encoding="utf-8")
    exception = invoke_watch("status", "--archive", str(archive)).exception
    assert isinstance(exception, MachineError)
    assert "state.json cannot be used" in str(exception)


def test_second_watch_of_an_archive_is_refused(archive: Path) -> None:
    with StateStore(archive / "watch").hold_lock():
        exception = invoke_watch("acknowledge", "last", "--archive", str(archive)).exception
    assert isinstance(exception, MachineError)
    assert "Another `sonde watch`" in str(exception)
