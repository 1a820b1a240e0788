# SPDX-License-Identifier: Apache-2.0
"""Converts a survey of Lustre objects to runs of the archive: total, each OSS and each OST of a combination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from sonde.dialects.survey.plans import SurveyResult
from sonde.dialects.survey.variables import SurveyPoint, SurveySettings
from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.model.parents import TargetParents

_TOOL_NAME = "obdfilter-survey"
_MIB = 1 << 20


def normalize_target_name(device_name: str) -> str:
    """How records and described systems call the target of a device: "lustre-OST0000" and "lustre-OST0000-osc-…" are
    OST0000."""
    parts = device_name.split("-")
    return next((word for word in parts if word.startswith("OST")), device_name)


def make_imported_run(
    survey_settings: SurveySettings,
    point: SurveyPoint,
    survey_results: Sequence[SurveyResult],
    start_time: datetime,
    seconds: float,
    host_name: str,
    group_name: str,
    target_parents: TargetParents,
) -> ImportedRun:
    """One combination. The server of each OST is that of `target_parents`, or else this host if case=disk.

    The total is all data by the time of the slowest target, as in the line of the survey. That of an OST is its data
    by its own time, that of an OSS the sum of its OSTs.
    """
    names = [normalize_target_name(item) for item in survey_settings.targets]
    phases: list[ImportedPhase] = []
    for figure in survey_results:
        moved = survey_settings.compute_total_kib(point) * 1024
        phases.append(_make_phase(figure.name, figure.name, "", figure.rate, moved))
        rates_by_target = {name: rate for name, rate in zip(names, figure.each, strict=False) if rate is not None}
        for server, targets in _group_targets_by_server(survey_settings, names, host_name, target_parents).items():
            rates = [rates_by_target[name] for name in targets if name in rates_by_target]
            if len(rates) == len(targets):
                share = moved // len(names) * len(targets)
                phases.append(_make_phase(f"{figure.name} {server}", figure.name, ", one OSS", sum(rates), share))
        for name, rate in rates_by_target.items():
            phases.append(_make_phase(f"{figure.name} {name}", figure.name, ", one OST", rate, moved // len(names)))
    return ImportedRun(
        tool=_TOOL_NAME,
        name=f"survey-{point.record}k-{point.objects}obj-{point.threads}thr",
        started=start_time,
        experiment={
            "case": survey_settings.case,
            "osts": len(names),
            "size_mib": survey_settings.size,
            "record_kib": point.record,
            "objects": point.objects,
            "threads": point.threads,
        },
        phases=phases,
        title=f"obdfilter-survey: {point.objects} objects, {point.threads} threads, records of {point.record} KiB",
        host=host_name,
        target=" ".join(survey_settings.targets),
        file_system="lustre",
        tasks=point.threads * len(names),
        seconds=seconds,
        group=group_name,
        status="failed" if any(item.failed for item in survey_results) else "done",
        context={"osts": dict(_iterate_targets_with_server(survey_settings, names, host_name, target_parents))},
    )


def _make_phase(
    phase_name: str, test_name: str, part_name: str, mib_per_s: float, transferred_bytes: int
) -> ImportedPhase:
    op = "read" if "read" in test_name else "write" if test_name == "write" else "rewrite"
    per_s = mib_per_s * _MIB
    return ImportedPhase(
        phase=phase_name,
        op=op,
        definition=f"{_TOOL_NAME}{part_name}",
        bytes_per_s=per_s,
        bytes=transferred_bytes,
        seconds=transferred_bytes / per_s if per_s else None,
        backend="echo",
        cache="direct",
    )


def _iterate_targets_with_server(
    survey_settings: SurveySettings, target_names: Sequence[str], host_name: str, target_parents: TargetParents
) -> Iterator[tuple[str, str]]:
    for name in target_names:
        server = target_parents.find_server_of_target(name) or (host_name if survey_settings.case == "disk" else None)
        if server is not None:
            yield name, server


def _group_targets_by_server(
    survey_settings: SurveySettings, target_names: Sequence[str], host_name: str, target_parents: TargetParents
) -> Mapping[str, list[str]]:
    targets_by_server: dict[str, list[str]] = {}
    for name, server in _iterate_targets_with_server(survey_settings, target_names, host_name, target_parents):
        targets_by_server.setdefault(server, []).append(name)
    return targets_by_server
