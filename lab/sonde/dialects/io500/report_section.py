# SPDX-License-Identifier: Apache-2.0
"""Prints Sonde's figures next to those of IO500: after its output and on the page."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.charts.study import StudySection
from sonde.dialects.io500.benchmark_interface import BenchmarkResult, PhaseRow
from sonde.dialects.io500.figures import GIB, compute_sonde_figures
from sonde.model.units import format_latency

_SONDE_RATES_HEADING = """
By Sonde, in the same units: operations alone / first start to last end; all tasks together until the deadline; one call
phase                unit        IO500       Sonde    deadline     call p50          p99
"""


def format_table_of_sonde_rates(phase_rows: Sequence[PhaseRow]) -> str:
    """Returns a table with one line for each phase that the engine measured."""
    lines = []
    for row in phase_rows:
        if row.run is None:
            continue
        per_s, p50, p99 = compute_sonde_figures(row.run.record)
        scale = GIB if row.phase.tool == "ior" else 1000
        wall = row.figures.stonewall if row.phase.writes else None
        rate, until = (
            "" if value is None else f"{value:.3f}" for value in (None if per_s is None else per_s / scale, wall)
        )
        times = ["" if value is None else format_latency(value * 1e9) for value in (p50, p99)]
        lines.append(
            f"{row.phase.name:<20} {row.phase.result_unit} {row.figures.value:>11.3f} {rate:>11} {until:>11}"
            f" {times[0]:>12} {times[1]:>12}"
        )
    return _SONDE_RATES_HEADING + "\n".join(lines)


def make_result_sections(benchmark_result: BenchmarkResult) -> list[StudySection]:
    """Returns the sections with score, sub-scores, phases in IO500's units, and the reasons for INVALID."""
    score = benchmark_result.score
    sentences = [
        f"Bandwidth {score.bandwidth:.3f} GiB/s, metadata {score.metadata:.3f} kIOPS, total {score.total_score:.3f}:"
        f" {'valid by the rules' if benchmark_result.valid else 'INVALID by the rules'}."
    ]
    broken = [
        *benchmark_result.broken,
        *(f"{row.phase.name}: {text}" for row in benchmark_result.rows for text in row.broken),
    ]
    rows = [
        [
            Markup('<span class="name">{}</span>').format(row.phase.name),
            f"{row.figures.value:,.3f}",
            row.phase.result_unit,
            f"{row.seconds:,.2f} s",
            _convert_sonde_rate(row),
            "INVALID" if row.broken else "valid",
        ]
        for row in benchmark_result.rows
        if row.phase.is_measured
    ]
    columns = ["phase", "result", "unit", "time", "by Sonde", "rules"]
    sections = [
        StudySection("IO500", sentences, [render_html_table(columns, rows, "Results of IO500, each in its unit")])
    ]
    # names of phases stay as they are, so these sentences keep their first letter
    reasons = [reason if reason.endswith((".", "!")) else f"{reason}." for reason in broken]
    return [*sections, StudySection("Why it is INVALID", reasons, [])] if broken else sections


def _convert_sonde_rate(phase_row: PhaseRow) -> str:
    """Returns Sonde's rate of the phase, in IO500's unit."""
    per_s = compute_sonde_figures(phase_row.run.record)[0] if phase_row.run is not None else None
    return "" if per_s is None else f"{per_s / (GIB if phase_row.phase.tool == 'ior' else 1000):,.3f}"
