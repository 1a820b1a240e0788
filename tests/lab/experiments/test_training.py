# SPDX-License-Identifier: Apache-2.0
"""Emulated accelerators in claims, in the terminal and in the report, always beside where their bytes came from."""

from __future__ import annotations

from dataclasses import replace

from phase_builders import make_phase, run_with

from sonde.experiments.claims.metrics import PHASE_METRICS
from sonde.model.line_members import TrainingResult
from sonde.model.lines import PhaseEndLine
from sonde.report.figures import list_phase_figures
from sonde.terminal.phase_text import describe_phase_end

TRAINING = TrainingResult(
    accelerators=2,
    batches=22,
    samples=88,
    first_batch_s=1.5,
    utilization=0.675,
    lowest_utilization=0.45,
    samples_per_s=1234.5,
    cached_bytes=300,
    storage_bytes=700,
)
NOT_RATED = TrainingResult(accelerators=1, batches=1, samples=4, first_batch_s=1.5)
NOT_ESTIMATED = replace(TRAINING, cached_bytes=None, storage_bytes=None)


def test_claims_use_utilization_and_samples() -> None:
    phase = make_phase("train")
    rated = replace(phase, end=PhaseEndLine(training=TRAINING))
    assert PHASE_METRICS["accelerator_utilization"](rated) == 0.675
    assert PHASE_METRICS["samples"](rated) == 1234.5
    for end in (PhaseEndLine(training=NOT_RATED), PhaseEndLine(), None):
        assert PHASE_METRICS["accelerator_utilization"](replace(phase, end=end)) is None
        assert PHASE_METRICS["samples"](replace(phase, end=end)) is None


def test_terminal_prints_estimated_source_and_utilization() -> None:
    assert describe_phase_end(PhaseEndLine(training=TRAINING)).endswith(
        "accelerators computed 67.5 % of the time, 1,234.5 samples/s, 70 % of the bytes from storage (estimated)"
    )
    assert describe_phase_end(PhaseEndLine(training=NOT_ESTIMATED)).endswith("how much came from storage is not known")
    assert "accelerators" not in describe_phase_end(PhaseEndLine(training=NOT_RATED))


def list_figures(training: TrainingResult) -> dict[str, str]:
    phase = make_phase("train")
    assert phase.end is not None
    phase = replace(phase, end=replace(phase.end, training=training))
    return {name: text.replace("\u00a0", " ") for name, text in list_phase_figures(run_with(phase), phase)}


def test_report_prints_estimated_source_and_samples() -> None:
    figures = list_figures(TRAINING)
    assert figures["Accelerators computed"] == "68 % of the time, the least busy one 45 %"
    assert figures["Samples"] == (
        "1,234 per second, the first batch after 1.50 s; 70 % of the bytes from storage (estimated)"
    )
    assert list_figures(NOT_ESTIMATED)["Samples"].endswith("; how much came from storage is not known")
    assert "Samples" not in list_figures(NOT_RATED)
