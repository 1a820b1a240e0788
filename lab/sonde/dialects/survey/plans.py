# SPDX-License-Identifier: Apache-2.0
"""Surveys directories: a plan for each combination, and its result line from the record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sonde.dialects.survey.variables import SurveyPoint, SurveySettings
from sonde.model.lines import SeriesLine
from sonde.model.plan import Plan
from sonde.model.record import RecordReader

_OPERATIONS_BY_TEST = {
    "write": "write",
    "rewrite": "rewrite",
    "rewrite_again": "rewrite",
    "read": "read",
    "reread": "reread",
}
_MIB = 1 << 20
_SAMPLE_INTERVAL_S = 1.0  # between two looks at the rate, as the original takes them


@dataclass(frozen=True)
class SurveyResult:
    """MiB/s over all targets, and the least and most of one target in a second; None when it was too short. `each` has
    the rate of each target over the test, in the order of the targets, None if it is unknown; empty for directories."""

    name: str
    rate: float
    least: float | None = None
    most: float | None = None
    failed: bool = False
    each: tuple[float | None, ...] = ()


def build_point_plan(survey_settings: SurveySettings, point: SurveyPoint) -> Plan:
    """Returns the plan of a combination. Each object is a file; its threads use separate parts of it."""
    targets = [target.rstrip("/") or "/" for target in survey_settings.targets]
    name = f"survey-{point.record}k-{point.objects}obj-{point.threads}thr"
    per_thread = point.record * survey_settings.count_records_per_thread(point) * 1024
    phases: list[dict[str, Any]] = []
    for test in survey_settings.tests:
        phase: dict[str, Any] = {"id": test, "op": _OPERATIONS_BY_TEST[test]}
        if survey_settings.verify and "read" in test:
            phase["verify"] = "on_read"
        phases.append(phase)
    phases.append({"id": "destroy", "op": "remove", "measure": False})
    document = {
        "schema": "sonde-plan/2",
        "id": name,
        "title": f"obdfilter-survey: {point.objects} objects, {point.threads} threads, records of {point.record} KiB",
        "target": {"path": targets[0], "use_existing": True},
        "tasks": {"processes": point.threads * len(targets)},
        "data": {
            "files": {
                "mapping": "per_group",
                "group_size": point.threads // point.objects,
                "paths": [f"{target}/sonde-survey-object" for target in targets],
            },
            "access": {"transfer": point.record * 1024, "block": per_thread},
            "io": {"direct": not survey_settings.buffered, **({"fsync": "end"} if survey_settings.buffered else {})},
        },
        "phases": phases,
        "observe": {"slice": "100ms"},
    }
    return Plan.from_document(document, "obdfilter-survey")


def format_result_line_start(survey_settings: SurveySettings, point: SurveyPoint) -> str:
    """Returns the start of a result line, before the measurement."""
    count = len(survey_settings.targets)
    return (
        f"ost {count:2d} sz {survey_settings.compute_total_kib(point):8d}K rsz {point.record:4d}K"
        f" obj {point.objects * count:4d} thr {point.threads * count:4d} "
    )


def format_result_line_end(survey_results: Sequence[SurveyResult]) -> str:
    """Returns the part of an output line after the parameters: for each test its name, rate and range of rates."""
    line = ""
    for result in survey_results:
        line += f"{result.name} {result.rate:7.2f} "
        if result.failed:
            line += f"{'ERROR':>17s} "
        elif result.least is None or result.most is None:
            line += f"{'SHORT':>17s} "
        else:
            line += f"[{result.least:7.2f}, {result.most:7.2f}] "
    return line


def compute_survey_results(record: RecordReader, survey_settings: SurveySettings) -> list[SurveyResult]:
    """The tests of one plan. All targets run at the same time, so the rate of one is taken as its share of all."""
    test_results = []
    for name in survey_settings.tests:
        phase = record.phases.get(name)
        if phase is None or phase.end is None:
            continue
        moved, elapsed = phase.end.bytes.transferred or 0, phase.end.seconds.elapsed or 0.0
        samples = compute_rate_samples(phase.total_series, len(survey_settings.targets))
        failed = bool(phase.errors)
        test_results.append(
            SurveyResult(
                name,
                moved / elapsed / _MIB if elapsed else 0.0,
                min(samples, default=None),
                max(samples, default=None),
                failed,
            )
        )
    return test_results


def compute_rate_samples(series: SeriesLine | None, target_count: int) -> list[float]:
    """MiB/s of one target in each whole second; the last, which ends early, is none."""
    if series is None or series.slice_s <= 0:
        return []
    width = max(1, math.ceil(_SAMPLE_INTERVAL_S / series.slice_s - 1e-9))
    sample_count = (len(series.bytes) - 1) // width
    return [
        sum(series.bytes[index * width : (index + 1) * width]) / (width * series.slice_s) / target_count / _MIB
        for index in range(sample_count)
    ]
