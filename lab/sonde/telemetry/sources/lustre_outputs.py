# SPDX-License-Identifier: Apache-2.0
"""Lustre: repeated outputs of ``lctl get_param``, of servers and clients, one after another in a file.

Times are the snapshot times in the outputs; where an output has none, the line of ``date +%s`` before it counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat, parse_unix_or_local_time
from sonde.telemetry.source import ReadingsByPart
from sonde.telemetry.sources import lustre, lustre_health, lustre_histograms, lustre_jobs

_PARAMETER_LINE_PATTERN = re.compile(
    r"^(?:(?P<kind>obdfilter|osd-\w+|mdt|llite|osc|mdc)\.(?P<part>[^.=\s]+)\."
    r"(?P<name>stats|md_stats|job_stats|brw_stats|rpc_stats|recovery_status)|(?P<health>health_check))=",
    re.MULTILINE,
)
_TIME_LINE_PATTERN = re.compile(
    r"^(?P<time>\d{9,11}(?:\.\d+)?|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*)[ \t]*$", re.MULTILINE
)
_SNAPSHOT_TIME_PATTERN = re.compile(r"^snapshot_time\s*:?\s*(\d+(?:\.\d+)?)", re.MULTILINE)


def _parse_without_time(
    parse_output: Callable[[str], ReadingsByPart],
) -> Callable[[str], tuple[float | None, ReadingsByPart]]:
    return lambda text: (None, parse_output(text))


# Source, its columns, and time and values of all parts in a text; the part of the parameter stands before these.
_Reader = tuple[str, tuple[str, ...], Callable[[str], tuple[float | None, ReadingsByPart]]]
_READERS_BY_PARAMETER: dict[str, _Reader] = {
    "job_stats": ("lustre-jobs", lustre_jobs.COLUMNS, lustre_jobs.parse_job_stats_and_snapshot_time),
    "brw_stats": ("lustre-brw", lustre_histograms.COLUMNS, _parse_without_time(lustre_histograms.parse_histograms)),
    "rpc_stats": ("lustre-rpc", lustre_histograms.COLUMNS, _parse_without_time(lustre_histograms.parse_histograms)),
    "recovery_status": (
        "lustre-recovery",
        lustre_health.RECOVERY_COLUMNS,
        _parse_without_time(lambda text: {"": lustre_health.parse_recovery_status(text)}),
    ),
    "health_check": (
        "lustre-health",
        lustre_health.HEALTH_COLUMNS,
        _parse_without_time(lustre_health.parse_health_check),
    ),
}


def is_lctl_output(output_text: str) -> bool:
    """Whether a text is what `lctl get_param` prints of the parameters that are read here."""
    return _PARAMETER_LINE_PATTERN.search(output_text) is not None


def read_lctl_output(output_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """The counters in repeated outputs. Parameters without counters or without a time are counted as unreadable."""
    builder = TelemetryBuilder("lctl")
    marks = sorted(
        [*_PARAMETER_LINE_PATTERN.finditer(output_text), *_TIME_LINE_PATTERN.finditer(output_text)],
        key=lambda mark: mark.start(),
    )
    marked_time: float | None = None
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(output_text)], strict=True):
        if "time" in mark.groupdict():
            marked_time = parse_unix_or_local_time(mark["time"], telemetry_defaults.zone)
        elif not _add_counters_of_parameter(
            builder, mark, output_text[mark.end() : end], marked_time, telemetry_defaults
        ):
            builder.unreadable_lines += 1
    return builder.build_files()


def _add_counters_of_parameter(
    builder: TelemetryBuilder,
    parameter_match: re.Match[str],
    parameter_text: str,
    marked_time: float | None,
    telemetry_defaults: TelemetryDefaults,
) -> bool:
    """Adds the counters of one parameter; False when it has none, or no time."""
    name = parameter_match["health"] or parameter_match["name"]
    part = parameter_match["part"] or ""
    if name in ("stats", "md_stats"):
        return _add_stats_values(
            builder,
            parameter_match["kind"] == "llite",
            part,
            lustre.parse_stats_file(parameter_text),
            telemetry_defaults,
        )
    source, columns, parse = _READERS_BY_PARAMETER[name]
    snapshot = None
    if match := _SNAPSHOT_TIME_PATTERN.search(parameter_text) if name in ("brw_stats", "rpc_stats") else None:
        snapshot = float(match[1])
    time = snapshot if snapshot is not None else marked_time
    try:
        latest, readings = parse(parameter_text)
    except ValueError:
        return False
    # The snapshot times of jobs are those of their last requests.
    time = latest if time is None else time
    if time is None:
        return False
    for entry, values in readings.items():
        builder.add_sample(telemetry_defaults.host, source, columns, time, f"{part} {entry}".strip(), values)
    if name == "rpc_stats":
        outstanding = lustre_histograms.parse_outstanding_requests(parameter_text)
        builder.add_sample(
            telemetry_defaults.host, "lustre-outstanding", lustre_histograms.STATE_COLUMNS, time, part, outstanding
        )
    return bool(readings)


def _add_stats_values(
    builder: TelemetryBuilder,
    is_client: bool,
    part_name: str,
    stats: lustre.StatsFile,
    telemetry_defaults: TelemetryDefaults,
) -> bool:
    if stats.time is None or not stats.lines:
        return False
    if is_client:
        values = lustre.summarize_client(stats)
        builder.add_sample(
            telemetry_defaults.host, "lustre-client", lustre.CLIENT_COLUMNS, stats.time, part_name, values
        )
    else:
        values = lustre.summarize_target(stats)
        builder.add_sample(
            telemetry_defaults.host, "lustre-targets", lustre.TARGET_COLUMNS, stats.time, part_name, values
        )
    return True


LCTL_FORMAT = TelemetryFormat(
    "lctl",
    "Lustre: lctl get_param obdfilter.*.stats mdt.*.md_stats *.*.job_stats osd-*.*.brw_stats osc.*.rpc_stats"
    " health_check *.*.recovery_status, repeated into one file, with `date +%s` before each",
    "lctl",
    "run it on an OSS, MDS or client; it is part of the package lustre or lustre-client.",
    is_lctl_output,
    read_lctl_output,
)
