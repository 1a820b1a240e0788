# SPDX-License-Identifier: Apache-2.0
"""The numbers of one run as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sonde.findings.assessment import assess_phase_rate
from sonde.findings.classification import Classification
from sonde.findings.explanations import list_help_commands
from sonde.model.errors import format_as_sentence
from sonde.model.limits import MAX_RESIDENCY_OF_COLD_FILE
from sonde.model.line_members import Rate
from sonde.model.lines import Finding, PhaseEndLine
from sonde.model.operations import WRITE_ONLY_OPS
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import RecordedRun, make_recorded_run
from sonde.model.units import (
    format_bytes,
    format_count_with_noun,
    format_latency,
    format_ops,
    format_rate,
    format_seconds,
)
from sonde.terminal.phase_text import describe_phase_end
from sonde.terminal.screen import make_plain_table
from sonde.terminal.target_tables import print_targets

_RATE_ROWS = (
    ("total", "total", "all bytes / first open to last close"),
    ("transfer", "transfer", "all bytes / first transfer to last"),
    ("steady", "steady", "while every task was moving data"),
    ("stonewall", "at stonewall", "bytes moved when the stonewall time was over"),
    ("task_sum", "sum of tasks", "rates of the tasks added up"),
)
# Green is a number about storage, yellow one about something else, red is wrong or failed.
NUMBER_CLASS_STYLES = {
    **dict.fromkeys(Classification, "yellow"),
    **dict.fromkeys((Classification.STORAGE, Classification.BURST), "green"),
    **dict.fromkeys((Classification.INVALID, Classification.FAILED), "red"),
}
_STATUS_STYLE = {"done": "green", "lost": "red", "failed": "red", "mismatch": "red", "interrupted": "yellow"}
_SEVERITY_SYMBOLS_AND_STYLES = {"invalid": ("✗", "red"), "warning": ("!", "yellow"), "info": ("·", "dim")}


def print_run_tables(
    console: Console, run_folder: Path, record: RecordReader, summary_document: Mapping[str, Any] | None = None
) -> None:
    """Everything about a run that fits on a screen; `summary_document` is its run.json."""
    run = make_recorded_run(record, run_folder, summary_document)
    _print_run_facts(console, run_folder, record)
    ended = [phase for phase in record.phases.values() if phase.end is not None]
    if ended:
        _print_rates(console, ended, run)
    _print_assessments(console, run)
    if ended:
        _print_latencies(console, ended)
        print_targets(console, run)
        _print_costs(console, ended)
    _print_findings(console, run)
    for problem in record.problems[:5]:
        console.print(Text(problem, style="yellow"))


def _print_run_facts(console: Console, run_folder: Path, record: RecordReader) -> None:
    run, end = record.run, record.end
    plan = run.plan if run else {}
    status = record.status
    head = Text(str(plan.get("title") or plan.get("id") or run_folder.name), style="bold")
    head.append(f"  {status}", style=_STATUS_STYLE.get(status, ""))
    console.print(head)
    sentences = [run_folder.name]
    if run and run.started:
        sentences.append(f"{run.started[:16].replace('T', ' ')} UTC")
    if end and end.seconds is not None:
        sentences.append(format_seconds(end.seconds))
    if run and run.tasks:
        sentences.append(
            f"{format_count_with_noun(run.tasks, 'task')} on {format_count_with_noun(run.nodes or 1, 'node')}"
        )
    console.print(Text("  ".join(sentences), style="dim"), soft_wrap=True)
    if run and run.simulated:
        faults = ", ".join(map(str, run.simulated.get("faults", []))) or "nothing wrong with it"
        text = f"Simulated, not measured: {run.simulated.get('system')}, {run.simulated.get('mount')}, {faults}"
        console.print(Text(text, style="yellow"), soft_wrap=True)
    if record.nodes:
        machine = record.nodes[0]
        system = machine.file_system
        target = plan.get("target", {}).get("path", "")
        memory = f", {format_bytes(machine.memory_bytes)} memory" if machine.memory_bytes else ""
        position = (
            f"{target} on {system.type or 'an unknown file system'} ({system.source or '-'}), {machine.host}{memory}"
        )
        console.print(Text(position, style="dim"), soft_wrap=True)
    console.print()


def _print_rates(console: Console, phases: Sequence[PhaseRecord], run: RecordedRun) -> None:
    entries = [entry for entry in _RATE_ROWS if any(getattr(_require_end(phase).rates, entry[0]) for phase in phases)]
    if len(phases) > 0 and all(not _has_several_tasks(phase) for phase in phases):
        entries = [entry for entry in entries if entry[0] != "task_sum"]
    table = make_plain_table()
    table.add_column("phase")
    table.add_column("what was done")
    for _, title, _ in entries:
        table.add_column(title, justify="right")
    table.add_column("operations", justify="right")
    table.add_column("cache")
    for phase in phases:
        end = _require_end(phase)
        cells = [_format_rate(getattr(end.rates, name)) for name, _, _ in entries]
        total = end.rates.total or end.rates.transfer
        ops = format_ops(total.ops_per_s) if total else "-"
        name = Text(phase.id, style="bold" if phase.begin.measured else "dim")
        table.add_row(
            name,
            describe_phase_end(end, phase.begin.measured),
            *cells,
            ops,
            _describe_cache(phase, assess_phase_rate(run, phase).classification),
        )
    console.print(table)
    legend = "; ".join(f"{title}: {meaning}" for _, title, meaning in entries)
    console.print(Text(legend, style="dim"))
    console.print()


def _has_several_tasks(phase: PhaseRecord) -> bool:
    return sum(len(table.rows) for table in phase.tasks) > 1


def _format_rate(rate: Rate | None) -> str:
    return format_rate(rate.bytes_per_s) if rate is not None and rate.bytes else "-"


def _describe_cache(phase: PhaseRecord, classification: Classification) -> str:
    end = _require_end(phase)
    if phase.begin.direct:
        return "direct"
    if end.residency is not None:
        # what was read again later came from memory, however little of it was there at the start
        later = (
            " at first"
            if classification is Classification.CACHE and end.residency <= MAX_RESIDENCY_OF_COLD_FILE
            else ""
        )
        return f"{end.residency:.0%} resident{later}"
    # a buffered write goes into the page cache, whatever was there before
    return "-" if phase.begin.op in WRITE_ONLY_OPS and phase.begin.cache == "unknown" else phase.begin.cache


def _print_assessments(console: Console, run: RecordedRun) -> None:
    """The assessment of each number, in the sentences of the page."""
    table = make_plain_table()
    table.add_column("phase", no_wrap=True)
    table.add_column("what its number is worth")
    for phase in run.phases:
        if phase.begin.measured:
            assessment = assess_phase_rate(run, phase)
            text = Text(
                replace_no_break_spaces(assessment.classification_text),
                style=NUMBER_CLASS_STYLES[assessment.classification],
            )
            for remark in assessment.detail_sentences:
                text.append(
                    f" {replace_no_break_spaces(remark)}",
                    style="yellow" if remark == assessment.caveat_sentence else "default",
                )
            table.add_row(phase.id, text)
    if table.row_count:
        console.print(table)
        console.print()


def _print_latencies(console: Console, phases: Sequence[PhaseRecord]) -> None:
    table = make_plain_table()
    for title in ("latency", "of"):
        table.add_column(title)
    for title in ("count", "min", "median", "95 %", "99 %", "99.9 %", "max"):
        table.add_column(title, justify="right")
    for phase in phases:
        name = phase.id
        for kind, item in _require_end(phase).latency.items():
            if item.count:
                spread = (item.min_ns, item.p50_ns, item.p95_ns, item.p99_ns, item.p999_ns, item.max_ns)
                cells = ["-" if value is None else format_latency(value) for value in spread]
                table.add_row(name, kind, f"{item.count:,}", *cells)
                name = ""
    if table.row_count:
        console.print(table)
        console.print()


def _print_costs(console: Console, phases: Sequence[PhaseRecord]) -> None:
    table = make_plain_table()
    table.add_column("time and CPU")
    for title in ("open", "transfer", "fsync", "close", "user CPU", "system CPU", "per system s", "max/mean task"):
        table.add_column(title, justify="right")
    for phase in phases:
        end = _require_end(phase)
        parts = [end.seconds.open, end.seconds.transfer, end.seconds.fsync, end.seconds.close]
        cells = [_format_seconds(value) for value in (*parts, end.cpu.user_s, end.cpu.system_s)]
        efficiency = end.cpu.bytes_per_system_s
        cells.append(f"{format_bytes(efficiency)}" if efficiency else "-")
        spread = end.imbalance.max_over_mean
        table.add_row(phase.id, *cells, f"{spread:.2f}" if spread is not None else "-")
    console.print(table)
    console.print(Text("open, transfer, fsync, close: from the first start of any task to the last end", style="dim"))
    console.print()


def _format_seconds(seconds: float | None) -> str:
    return "-" if seconds is None else format_seconds(seconds)


def _print_findings(console: Console, run: RecordedRun) -> None:
    record = run.record
    findings = sorted(
        run.all_findings,
        key=lambda finding: (
            list(_SEVERITY_SYMBOLS_AND_STYLES).index(finding.severity)
            if finding.severity in _SEVERITY_SYMBOLS_AND_STYLES
            else 9
        ),
    )
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.severity, finding.text, finding.advice), []).append(finding)
    for group in alike.values():
        console.print(_print_finding(group))
    if commands := list_help_commands(finding.id for finding in findings):
        console.print(Text(f"Explained by {commands}", style="dim"))
    for error in record.errors[:5]:
        console.print(Text(f"✗ {error.text}", style="red"))
    if len(record.errors) > 5:
        console.print(Text(f"✗ and {len(record.errors) - 5} more errors", style="red"))
    if findings or record.errors:
        console.print()


def _print_finding(equal_findings: list[Finding]) -> Text:
    """Findings with equal text in several phases are printed once, with the phases."""
    finding = equal_findings[0]
    mark, style = _SEVERITY_SYMBOLS_AND_STYLES.get(finding.severity, ("·", "dim"))
    text = Text(f"{mark} ", style=style)
    phases = ", ".join(dict.fromkeys(finding.phase for finding in equal_findings if finding.phase))
    if phases:
        text.append(f"{phases}: ", style="default")
    text.append(format_as_sentence(finding.text), style="default")
    if finding.advice:
        text.append(f" {format_as_sentence(finding.advice)}", style="dim")
    return text


def _require_end(phase: PhaseRecord) -> PhaseEndLine:
    if phase.end is None:
        raise ValueError(f"phase {phase.id} has not ended")
    return phase.end
