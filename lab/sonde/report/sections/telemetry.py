# SPDX-License-Identifier: Apache-2.0
"""The device under the target during a phase: its rate, and how busy it was, as the kernel counted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sonde.charts.axes import Axis, Tick, build_amount_axis, build_time_axis
from sonde.charts.markup import Markup
from sonde.charts.plot import Chart, Panel
from sonde.findings.phase_summary import AssessedPhase
from sonde.model.run import RecordedRun
from sonde.report.sections.section import ChartWidth, PhaseSection
from sonde.telemetry.data import TelemetryData, load_telemetry
from sonde.telemetry.phase_telemetry import (
    PhaseTelemetry,
    describe_telemetry_gaps,
    find_run_start_time,
    format_device,
    summarize_phase_telemetry,
)

# Fewer sampling intervals make no curve.
_MIN_INTERVALS = 3


def _draw_telemetry(run: RecordedRun, assessed_phase: AssessedPhase) -> Iterator[tuple[ChartWidth, Markup]]:
    data = load_telemetry(run.folder)
    summary = summarize_phase_telemetry(run, assessed_phase.phase, data)
    if summary is None or summary.device is None:
        return
    chart = build_device_chart(run, assessed_phase, data, summary)
    if chart is not None:
        yield "wide", chart.render()


def build_device_chart(
    run: RecordedRun, assessed_phase: AssessedPhase, telemetry: TelemetryData, phase_telemetry: PhaseTelemetry
) -> Chart | None:
    """The chart of the device under the target; None with too few samples in the phase."""
    epoch, end, device = find_run_start_time(run), assessed_phase.phase.end, phase_telemetry.device
    if epoch is None or end is None or device is None:
        return None
    start, stop = epoch + assessed_phase.phase.begin.t, epoch + end.t
    edges, rates = _sum_rates_within_phase(
        telemetry, ("disk_read_bytes", "disk_written_bytes"), device.device, start, stop, phase_telemetry.host
    )
    _, busy = _sum_rates_within_phase(telemetry, ("disk_busy_s",), device.device, start, stop, phase_telemetry.host)
    if len(rates) < _MIN_INTERVALS:
        return None
    time_axis = build_time_axis(stop - start)
    scale = build_amount_axis(float(rates.max()), "B/s")
    rate_panel = Panel(
        time_axis, scale, 90, f"{device.device} on {phase_telemetry.host}: read and written, {scale.unit}"
    )
    positions = [float(edge - start) for edge in edges]
    rate_panel.add_path(
        "area dull", rate_panel.make_area_path(positions, [0.0] * len(rates), [float(rate) for rate in rates])
    )
    rate_panel.add_path(
        "line dull", rate_panel.make_step_path(positions, [float(rate) for rate in rates]), "Rate of the device"
    )
    percent = Axis(0.0, 1.0, (Tick(0.0, "0"), Tick(0.5, "50"), Tick(1.0, "100")))
    busy_panel = Panel(time_axis, percent, 40, "Time with requests outstanding, %")
    fractions = [min(1.0, float(value)) for value in busy]
    busy_panel.add_path(
        "count", busy_panel.make_area_path(positions, [0.0] * len(fractions), fractions), "Busy fraction"
    )
    sentences = [
        f"{format_device(device)}.",
        *phase_telemetry.describe_in_sentences(),
        *describe_telemetry_gaps(run, telemetry),
    ]
    return Chart(
        kind="device",
        title="The device during this phase",
        summary=" ".join(sentences),
        panels=[rate_panel, busy_panel],
        x_unit=f"{time_axis.unit} since the phase began",
        caption=Markup(" ").join(sentences),
    )


def _sum_rates_within_phase(
    telemetry: TelemetryData,
    metric_names: tuple[str, ...],
    device_name: str,
    start_s: float,
    stop_s: float,
    host_name: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges of the sampling intervals within the phase, and the sum of the rates of the metrics in each."""
    series = [
        entry for metric in metric_names if (entry := telemetry.find_series(metric, device_name, host_name)) is not None
    ]
    if len(series) < len(metric_names):
        return np.array([]), np.array([])
    inside = series[0].times[(series[0].times > start_s) & (series[0].times < stop_s)]
    edges = np.concatenate(([start_s], inside, [stop_s]))
    total = sum((np.interp(edges, entry.times, entry.values) for entry in series), np.zeros(edges.size))
    return edges, np.diff(total) / np.maximum(np.diff(edges), 1e-9)


SECTION = PhaseSection(35, _draw_telemetry)
