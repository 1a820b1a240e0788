# SPDX-License-Identifier: Apache-2.0
"""The display of an active run: on a terminal, in a log, and in ASCII only."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from typing import Any

import pytest
from rich.console import Console

from sonde.findings.classification import Classification
from sonde.model.line_decoding import parse_record_line
from sonde.model.line_members import ByteCounts, IntervalSeconds, OperationCounts, PhaseRates, Rate, VerificationCounts
from sonde.model.lines import PhaseBeginLine, PhaseEndLine, RecordLine
from sonde.model.plan import Plan
from sonde.model.record import PhaseRecord
from sonde.terminal.phase_text import describe_phase_end, describe_preparation, format_rate_by_transfer
from sonde.terminal.run_display import Display, LiveDisplay, PlainDisplay, RunProgress, make_display
from sonde.terminal.run_tables import _describe_cache
from sonde.terminal.sparkline import ASCII_BLOCKS, BLOCK_CHARACTERS, make_sparkline

PLAN = Plan.from_document(
    {
        "id": "p",
        "title": "A plan",
        "target": {"path": "/x"},
        "phases": [
            {"id": "write", "op": "write"},
            {"id": "read", "op": "read", "before": [{"kind": "sync"}, {"kind": "fadvise"}], "stop": {"time": "10s"}},
        ],
    },
    "test",
)


def lines(*line_documents: dict[str, Any]) -> list[tuple[str, RecordLine]]:
    return [parse_record_line(json.dumps({"t": 0, **line})) for line in line_documents]


RUN = {"type": "run", "id": "x", "tasks": 4, "nodes": 2}
BEGIN = {"type": "phase_begin", "phase": "write", "op": "write", "planned_bytes": 10**9}
END = {
    "type": "phase_end",
    "phase": "write",
    "stopped_by": "volume",
    "bytes": {"transferred": 10**9},
    "ops": {"done": 954},
    "seconds": {"elapsed": 2.0, "fsync": 0.5},
    "rates": {"total": {"bytes": 10**9, "ops": 954, "seconds": 2.0, "bytes_per_s": 5e8, "ops_per_s": 477}},
}


def progress(percent: float, rate: float = 1e8, phase: str = "write", phase_s: float = 1.0) -> dict[str, Any]:
    return {"type": "progress", "phase": phase, "phase_s": phase_s, "bytes": int(percent * 1e7), "ops": 10,
            "bytes_per_s": rate, "ops_per_s": rate / 1e6, "percent": percent, "nodes_seen": 2, "active": 4}  # fmt: skip


def follow(line_documents: Iterable[dict[str, Any]]) -> RunProgress:
    state = RunProgress(PLAN)
    for _, line in lines(*line_documents):
        state.apply_record_line(line)
    return state


def test_percent_and_remaining_time_of_a_volume() -> None:
    state = follow([RUN, BEGIN, progress(25), progress(50)])
    assert state.percent_done == 50
    assert state.remaining_seconds == pytest.approx(5.0)  # 500 MB at 100 MB/s
    assert not state.is_flushing


def test_percent_and_remaining_time_of_a_clock() -> None:
    begin = {"type": "phase_begin", "phase": "read", "op": "read", "planned_bytes": 10**9}
    state = follow([RUN, begin, progress(90, phase="read", phase_s=4.0)])
    assert state.percent_done == pytest.approx(40.0)
    assert state.remaining_seconds == pytest.approx(6.0)


def test_remaining_time_without_bytes_follows_from_operations() -> None:
    begin = {"type": "phase_begin", "phase": "write", "op": "stat"}
    state = follow([RUN, begin, progress(20, rate=0.0, phase_s=2.0)])
    assert state.remaining_seconds == pytest.approx(8.0)


def test_unknown_is_not_zero() -> None:
    begin = {"type": "phase_begin", "phase": "write", "op": "write"}
    line = progress(0)
    del line["percent"]
    state = follow([RUN, begin, line])
    assert state.percent_done is None
    assert state.remaining_seconds is None


def test_waiting_for_a_flush_is_distinguished_from_transferring() -> None:
    assert follow([RUN, BEGIN, progress(100, rate=0)]).is_flushing
    assert not follow([RUN, BEGIN, progress(100, rate=1e8)]).is_flushing
    assert not follow([RUN, BEGIN, progress(50, rate=0)]).is_flushing


def test_waiting_text_between_phases_follows_the_plan() -> None:
    assert follow([RUN]).waiting == "preparing"
    assert follow([RUN, BEGIN, END]).waiting == "emptying the page cache of our files"
    second = [{**line, "phase": "read"} for line in (BEGIN, END)]
    assert follow([RUN, BEGIN, END, *second]).waiting == "removing our files"


def test_new_run_resets_progress() -> None:
    display = PlainDisplay(terminal()[0])
    display.begin_run("first", 1, 2, PLAN)
    for kind, line in lines(RUN, BEGIN, progress(50)):
        display.show_record_line(kind, line)
    assert list(display._progress.rates) != []
    display.begin_run("second", 2, 2, PLAN)
    assert display._progress.begin is None
    assert list(display._progress.rates) == []


def terminal(encoding: str = "utf-8") -> tuple[Console, io.BytesIO]:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="strict", write_through=True)
    return Console(file=file, force_terminal=True, width=100, color_system=None, legacy_windows=False), raw


def last_frame(raw: io.BytesIO, encoding: str = "utf-8") -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", raw.getvalue().decode(encoding))


@pytest.mark.parametrize(("encoding", "mark", "blocks"), [("utf-8", "✓", "▅█"), ("ascii", "-", "=#")])
def test_live_display_shows_progress_and_rate(encoding: str, mark: str, blocks: str) -> None:
    console, raw = terminal(encoding)
    display = LiveDisplay(console)
    display.begin_run("A plan", 2, 5, PLAN)
    for kind, line in lines(RUN, BEGIN, progress(25, 5e7), progress(50, 1e8)):
        display.show_record_line(kind, line)
    display._live.refresh()
    for kind, line in lines(END):
        display.show_record_line(kind, line)
    display.end_display()
    text = last_frame(raw, encoding)
    for fragment in ("A plan  2 of 5", "50 %", "100 MB/s", "6.7 s left", "4 tasks on 2 nodes", blocks, f"{mark} write"):
        assert fragment in text, fragment
    assert "500 MB/s   954 MiB in 2.00 s, of which 500 ms fsync" in text
    assert "emptying the page cache" in text


def test_display_states_how_many_tasks_and_nodes_are_visible() -> None:
    console, raw = terminal()
    display = LiveDisplay(console)
    display.begin_run("A plan", 1, 1, PLAN)
    for kind, line in lines(RUN, BEGIN, {**progress(50), "active": 3, "nodes_seen": 1}):
        display.show_record_line(kind, line)
    display.end_display()
    display.end_display()
    assert "3 of 4 tasks on 1 of 2 nodes" in last_frame(raw)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_remaining_time_of_many_runs_counts_down(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    console, raw = terminal(encoding)
    clock = [100.0]
    monkeypatch.setattr("sonde.terminal.run_display.time.monotonic", lambda: clock[0])
    display = LiveDisplay(console)
    display.set_run_position(5, 36, 1200.0)
    display.begin_run("A plan", 5, 36, PLAN)
    display._live.refresh()
    clock[0] += 300
    for kind, line in lines(RUN, BEGIN, progress(50)):
        display.show_record_line(kind, line)
    display._live.refresh()
    display.set_run_position(6, 36, None)
    display._live.refresh()
    display.end_display()
    dot = " ·" if encoding == "utf-8" else ","
    for text in (f"run 5 of 36{dot} about 20 min left in all", f"run 5 of 36{dot} about 15 min left", "run 6 of 36"):
        assert text in last_frame(raw, encoding), text


def test_plain_display_prints_the_remaining_time_of_many_runs() -> None:
    file = io.StringIO()
    display = PlainDisplay(Console(file=file, width=100))
    display.set_run_position(1, 3, None)
    display.begin_run("A plan", 1, 3, PLAN)
    display.set_run_position(2, 3, 720.0)
    display.begin_run("A plan", 2, 3, PLAN)
    assert file.getvalue().splitlines() == ["A plan  (1 of 3)", "A plan  (2 of 3), about 12 min left"]


def test_plain_display_prints_progress_at_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    display = PlainDisplay(Console(file=file, width=100))
    clock = [0.0]
    monkeypatch.setattr("sonde.terminal.run_display.time.monotonic", lambda: clock[0])
    display.begin_run("A plan", 1, 3, PLAN)
    for step, (kind, line) in enumerate(lines(RUN, BEGIN, *(progress(10.0 * i) for i in range(10)), END)):
        clock[0] = step
        display.show_record_line(kind, line)
    display.end_display()
    lines_printed = file.getvalue().splitlines()
    assert lines_printed[0] == "A plan  (1 of 3)"
    assert lines_printed[-1] == "  write: 500 MB/s, 954 MiB in 2.00 s, of which 500 ms fsync"
    assert len(lines_printed) == 4, "one line every five seconds"
    assert re.fullmatch(r"  write: \d+ %, 100 MB/s, \d+\.\d s left", lines_printed[1])


def test_errors_are_printed_immediately() -> None:
    error = {"type": "error", "phase": "write", "text": "write: no space left on device"}
    for make in (LiveDisplay, PlainDisplay):
        console, raw = terminal()
        display = make(console)
        display.begin_run("A plan", 1, 1, PLAN)
        for kind, line in lines(RUN, BEGIN, error):
            display.show_record_line(kind, line)
        display.end_display()
        assert "no space left on device" in last_frame(raw)


def test_display_type_depends_on_quiet_and_terminal() -> None:
    console, _ = terminal()
    assert type(make_display(console, quiet=True)) is Display
    assert type(make_display(console, quiet=False)) is LiveDisplay
    assert type(make_display(Console(file=io.StringIO()), quiet=False)) is PlainDisplay


def test_sparkline_scales_to_the_largest_displayed_value() -> None:
    assert make_sparkline([0, 1, 2, 4, 8], 8) == "▁▂▃▅█"
    assert make_sparkline([0, 0], 8) == "▁▁"
    assert make_sparkline([], 8) == ""
    assert make_sparkline([9, 9, 1, 1], 2) == "██", "only what is shown sets the scale"
    assert len(ASCII_BLOCKS) == len(BLOCK_CHARACTERS)


def test_small_transfers_are_counted_in_operations() -> None:
    assert format_rate_by_transfer(4096e3, 1e3) == "1,000 op/s"
    assert format_rate_by_transfer(1e9, 1e3) == "1.00 GB/s"
    assert format_rate_by_transfer(0.0, 0.0) == "0 B/s"


def test_phase_end_text_has_mismatches_and_stonewall() -> None:
    rates = PhaseRates(total=Rate(1, 1, 1, 1, 1))
    end = PhaseEndLine(
        bytes=ByteCounts(transferred=1 << 30),
        rates=rates,
        stopped_by="stonewall",
        verify=VerificationCounts(1 << 20, 2),
    )
    assert "2 mismatches in 1 MiB" in describe_phase_end(end)
    assert "stopped at the stonewall" in describe_phase_end(end)
    streams = [{"id": "in", "bytes_per_s": 2e9}, {"id": "out", "bytes_per_s": 1e9}, {"bytes": 3}]
    assert describe_phase_end(PhaseEndLine(streams=streams)).endswith("in 2.00 GB/s, out 1.00 GB/s")
    ended = PhaseEndLine(ops=OperationCounts(done=4000), seconds=IntervalSeconds(elapsed=2.0))
    assert describe_phase_end(ended) == "4,000 operations in 2.00 s"
    assert "3 operations failed" in describe_phase_end(PhaseEndLine(ops=OperationCounts(failed=3)))
    assert "1 operation failed" in describe_phase_end(PhaseEndLine(ops=OperationCounts(failed=1)))
    assert describe_phase_end(ended, is_measured=False) == "4,000 operations in 2.00 s, preparation, not rated"
    assert describe_preparation({"before": [{"kind": "drop_page_cache"}]}) == "emptying the page cache"
    assert describe_preparation({"before": [{"kind": "something new"}]}) == "something new"


@pytest.mark.parametrize("kind", [PlainDisplay, LiveDisplay])
def test_preparing_phase_is_labeled(kind: Any) -> None:
    text = io.StringIO()
    display: Display = kind(Console(file=text, width=200, color_system=None))
    phases = [{"id": "fill", "op": "write", "measure": False}, {"id": "w", "op": "rewrite"}]
    plan = Plan.from_document({"id": "p", "target": {"path": "/x"}, "phases": phases}, "test")
    display.begin_run("title", 1, 1, plan)
    for phase in ("fill", "w"):
        display.show_record_line("phase_end", PhaseEndLine(phase=phase, seconds=IntervalSeconds(elapsed=2.0)))
    display.end_display()
    labels = ["preparation, not rated" in line for line in text.getvalue().splitlines() if " in 2.00 s" in line]
    assert labels == [True, False]


@pytest.mark.parametrize(
    ("op", "cache", "direct", "cell"),
    [
        ("write", "unknown", False, "-"),
        ("rewrite", "unknown", False, "-"),
        ("write", "unknown", True, "direct"),
        ("read", "unknown", False, "unknown"),
        ("read", "cold", False, "cold"),
    ],
)
def test_cache_of_a_buffered_write_is_a_dash(op: str, cache: str, direct: bool, cell: str) -> None:
    begin = PhaseBeginLine(phase="p", op=op, cache=cache, direct=direct)
    phase = PhaseRecord(begin=begin, end=PhaseEndLine(phase="p"))
    assert _describe_cache(phase, Classification.STORAGE) == cell


@pytest.mark.parametrize("kind", [PlainDisplay, LiveDisplay])
def test_warning_of_a_full_file_system_appears_before_phases(kind: Any) -> None:
    text = io.StringIO()
    display: Display = kind(Console(file=text, width=200, color_system=None))
    finding = {
        "type": "finding",
        "id": "may_fill_file_system",
        "severity": "info",
        "text": "it is full",
        "advice": "stop",
    }
    for name, line in lines(RUN, finding, {**finding, "id": "other", "text": "unrelated"}):
        display.show_record_line(name, line)
    display.end_display()
    assert "It is full. Stop." in text.getvalue()
    assert "Unrelated" not in text.getvalue()
