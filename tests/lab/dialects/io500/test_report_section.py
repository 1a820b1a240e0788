# SPDX-License-Identifier: Apache-2.0
"""The page of a run of IO500 begins with what its users look for."""

from __future__ import annotations

from archive_builders import normalize_blanks

from sonde.dialects.io500.benchmark_interface import BenchmarkResult, PhaseRow
from sonde.dialects.io500.figures import PhaseFigures
from sonde.dialects.io500.phases import list_io500_phases
from sonde.dialects.io500.report_section import make_result_sections
from sonde.dialects.io500.score import Io500Score

SHORT_RUNTIME_OBJECTION = "Runtime is smaller than expected minimum runtime"


def make_benchmark_result(broken: bool) -> BenchmarkResult:
    """Every phase with a number of its own; one broke a rule."""
    rows = [
        PhaseRow(phase, PhaseFigures(value=index + 0.5), 10.0 + index)
        for index, phase in enumerate(list_io500_phases(False, False), 1)
    ]
    if broken:
        rows[0].broken.append(SHORT_RUNTIME_OBJECTION)
    return BenchmarkResult(
        rows, Io500Score(4.0, 9.0), not broken, 0, "", [], ["stonewall-time 1s != 300s"] if broken else []
    )


def test_report_section_has_scores_and_each_phase_with_unit() -> None:
    (section,) = make_result_sections(make_benchmark_result(broken=False))
    assert section.paragraphs == ["Bandwidth 4.000 GiB/s, metadata 9.000 kIOPS, total 6.000: valid by the rules."]
    text = normalize_blanks(str(section.parts[0]))
    for index, phase in enumerate(list_io500_phases(False, False), 1):
        if phase.is_measured:
            assert f"{phase.name} {index + 0.5:.3f} {phase.result_unit} {10 + index}.00 s valid" in text


def test_every_reason_for_invalid_is_reported() -> None:
    table, why = make_result_sections(make_benchmark_result(broken=True))
    assert "total 6.000: INVALID by the rules." in table.paragraphs[0]
    name = list_io500_phases(False, False)[0].name
    assert why.paragraphs == ["stonewall-time 1s != 300s.", f"{name}: {SHORT_RUNTIME_OBJECTION}."]
    assert normalize_blanks(str(table.parts[0])).count("INVALID") == 1
