# SPDX-License-Identifier: Apache-2.0
"""The file of metrics of a run in progress: its text, when it exists, and what happens when it cannot be written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import MachineError, UserError
from sonde.model.lines import EndLine, ErrorLine, PhaseBeginLine, PhaseEndLine, ProgressLine, RecordLine, RunLine
from sonde.model.plan import Plan
from sonde.terminal.metrics_display import MetricsDisplay
from sonde.terminal.run_display import Display

PLAN = Plan.from_document(
    {"schema": "sonde-plan/2", "id": "p", "target": {"path": '/a"b\\c'}, "phases": [{"id": "w", "op": "write"}]}, "p"
)
SAMPLE = re.compile(r"^(sonde_\w+)(\{\w+=\"(?:[^\"\\\n]|\\.)*\"(?:,\w+=\"(?:[^\"\\\n]|\\.)*\")*\})? (\S+)$")


class Recorder(Display):
    """Records the calls that it receives."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin_run(self, title: str, number: int, count: int, plan: Plan) -> None:
        self.calls.append(f"begin {title}")

    def show_record_line(self, kind: str, line: RecordLine) -> None:
        self.calls.append(kind)

    def print_message(self, text: str) -> None:
        self.calls.append(text)

    def end_display(self) -> None:
        self.calls.append("close")


def read_values(path: Path) -> dict[str, tuple[str, float]]:
    """Labels and value by the name of the family; checks the form of every line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[-1] == "# EOF"
    values = {}
    for help_line, type_line, sample in zip(lines[:-1:3], lines[1:-1:3], lines[2:-1:3], strict=True):
        match = SAMPLE.match(sample)
        assert match, sample
        assert help_line.startswith(f"# HELP {match[1]} ")
        assert type_line == f"# TYPE {match[1]} gauge"
        values[match[1]] = (match[2] or "", float(match[3]))
    return values


def begin_display(path: Path, **options: Any) -> tuple[MetricsDisplay, Recorder]:
    recorder = Recorder()
    display = MetricsDisplay(recorder, path, **options)
    display.begin_run("title", 2, 5, PLAN)
    display.show_record_line("run", RunLine(t=0.0, tasks=4, nodes=1))
    return display, recorder


def begin_phase(display: MetricsDisplay) -> None:
    display.show_record_line("phase_begin", PhaseBeginLine(t=0.0, phase="w", index=0, op="write", planned_bytes=1000))


def report_progress(display: MetricsDisplay) -> None:
    progress = ProgressLine(t=1.0, phase="w", phase_s=0.5, bytes=250, ops=5, bytes_per_s=500.0, percent=25.0, active=3)
    display.show_record_line("progress", progress)


def test_file_has_the_state_of_the_phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.terminal.metrics_display._WRITE_INTERVAL_S", 0.0)
    path = tmp_path / "sonde.prom"
    display, recorder = begin_display(path)
    assert read_values(path)["sonde_run_number"] == ("", 2.0)
    assert read_values(path)["sonde_run_count"] == ("", 5.0)
    assert "sonde_phase_bytes" not in read_values(path)
    begin_phase(display)
    report_progress(display)
    labels = r'{plan="p",target="/a\"b\\c",phase="w",operation="write"}'
    assert read_values(path)["sonde_phase_bytes"] == (labels, 250.0)
    assert read_values(path)["sonde_phase_bytes_per_second"] == (labels, 500.0)
    assert read_values(path)["sonde_phase_ratio"] == (labels, 0.25)
    assert read_values(path)["sonde_phase_active_tasks"] == (labels, 3.0)
    display.show_record_line("error", ErrorLine(t=1.0, text="bad"))
    display.show_record_line("phase_end", PhaseEndLine(t=2.0, phase="w", stopped_by="volume"))
    assert read_values(path)["sonde_run_errors"][1] == 1.0
    assert "sonde_phase_bytes" not in read_values(path)
    display.show_record_line("end", EndLine(t=2.0, status="done", exit_code=0))
    display.end_display()
    assert list(tmp_path.iterdir()) == []
    assert recorder.calls == ["begin title", "run", "phase_begin", "progress", "error", "phase_end", "end", "close"]


def test_unknown_share_of_a_phase_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.terminal.metrics_display._WRITE_INTERVAL_S", 0.0)
    display, _ = begin_display(tmp_path / "m")
    begin_phase(display)
    display.show_record_line("progress", ProgressLine(t=1.0, phase="w", percent=None, active=None))
    values = read_values(tmp_path / "m")
    assert "sonde_phase_ratio" not in values
    assert "sonde_phase_active_tasks" not in values
    display.end_display()


def test_file_is_replaced_once_a_second_at_most(tmp_path: Path) -> None:
    path = tmp_path / "m"
    display, _ = begin_display(path)
    begin_phase(display)
    first = path.stat().st_ino
    report_progress(display)
    assert path.stat().st_ino == first
    display.end_display()


@pytest.mark.parametrize(
    ("name", "error", "expected_text"),
    [
        ("/dev/null", UserError, "--metrics: /dev/null is no regular file; name a new one."),
        ("", UserError, "is no regular file"),
        ("absent/m", MachineError, "absent/m cannot be written: No such file or directory."),
    ],
)
def test_path_that_cannot_be_a_file_is_refused(tmp_path: Path, name: str, error: type, expected_text: str) -> None:
    with pytest.raises(error, match=re.escape(expected_text)):
        MetricsDisplay(Recorder(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    assert Path("/dev/null").is_char_device()


def test_run_continues_when_the_metrics_file_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    display, recorder = begin_display(tmp_path / "m")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sonde.model.confined_files.ConfinedDirectory.create_file", refuse)
    begin_phase(display)
    begin_phase(display)
    display.end_display()
    complaint = f"The metrics are not written any more: {tmp_path / 'm'}: No space left on device."
    assert recorder.calls.count(complaint) == 1
    assert recorder.calls[-1] == "close"
