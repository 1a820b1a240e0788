# SPDX-License-Identifier: Apache-2.0
"""Results of fio in JSON (json and json+). One file is one run; each job gives a phase for each direction.

Its bandwidth is bytes over the time of the job, in bytes per second; jobs that are reported as a group are one job.
Without `group_reporting`, `numjobs=4` gives four entries of one name: their numbers are added up as fio adds up those
of a group (`sum_thread_stats` in fio's stat.c: sum of bytes, longest time).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sonde.model.documents import parse_json
from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.sources.commands import shorten_to_minor_version
from sonde.sources.import_defaults import ImportDefaults

# Options that say where, or how it is reported.
_LOCATION_OPTIONS = (
    "directory",
    "filename",
    "name",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "output",
    "stonewall",
)
_JOB_DIRECTIONS = ("read", "write", "trim")


def is_fio_json(file_head: str) -> bool:
    """Whether it is fio's JSON; lines of text may stand before it."""
    return '"fio version"' in file_head


def read_fio_json(result_text: str, import_defaults: ImportDefaults) -> Sequence[ImportedRun]:
    """The run in fio's JSON."""
    document = parse_json(result_text[result_text.index("{") :].rpartition("}")[0] + "}")
    version = str(document["fio version"]).removeprefix("fio-")
    jobs = [
        job_options
        for job_options in document.get("jobs") or document["client_stats"]
        if job_options.get("jobname") != "All clients"
    ]
    global_options = document.get("global options", {})
    clones: dict[str, list[Mapping[str, Any]]] = {}
    for job in jobs:
        clones.setdefault(str(job["jobname"]), []).append(job)
    phases = [phase for entries in clones.values() for phase in _build_phases(entries, version, len(clones) > 1)]
    if not phases:
        raise ValueError("no job moved any data")
    options = [{**global_options, **job.get("job options", {})} for job in jobs]
    options_by_job = [{**global_options, **entries[0].get("job options", {})} for entries in clones.values()]
    time_ms = document.get("timestamp_ms", float(document["timestamp"]) * 1000 if "timestamp" in document else None)
    errors = sorted({int(job.get("error", 0)) for job in jobs} - {0})
    modes = sorted({str(job_options.get("rw", job_options.get("readwrite", "read"))) for job_options in options})
    return [
        ImportedRun(
            tool=f"fio {version}",
            name=f"fio-{'-'.join(modes)}",
            title=f"fio: {', '.join(list(clones)[:3])}{', …' if len(clones) > 3 else ''}",
            started=import_defaults.convert_to_utc(
                None if time_ms is None else datetime.fromtimestamp(float(time_ms) / 1000, UTC)
            ),
            experiment={
                "jobs": [
                    {name: job_options[name] for name in sorted(job_options) if name not in _LOCATION_OPTIONS}
                    for job_options in options_by_job
                ]
            },
            phases=phases,
            host=str(jobs[0].get("hostname", "")),
            target=str(options[0].get("directory") or str(options[0].get("filename", "")).rpartition("/")[0]),
            tasks=sum(
                max(_convert_to_count(job_options.get("numjobs")) or 1, len(entries))
                for job_options, entries in zip(options_by_job, clones.values(), strict=True)
            ),
            seconds=max(float(job.get("job_runtime", 0)) for job in jobs) / 1000 or None,
            status="failed" if errors else "done",
            text=f"fio reports error {errors[0]}." if errors else "",
        )
    ]


def _build_phases(
    job_entries: Sequence[Mapping[str, Any]], fio_version: str, has_several_entries: bool
) -> Iterator[ImportedPhase]:
    """The phases of the entries of one name, one for each direction."""
    for direction in _JOB_DIRECTIONS:
        results = [job[direction] for job in job_entries if (job.get(direction) or {}).get("io_bytes")]
        if not results:
            continue
        seconds = max(float(result["runtime"]) for result in results) / 1000
        # fio before 3.0 has KiB/s only
        rate = sum(float(result.get("bw_bytes", float(result.get("bw", 0)) * 1024)) for result in results)
        ops = sum(int(result.get("total_ios") or 0) for result in results)
        io_bytes = sum(int(result["io_bytes"]) for result in results)
        several_entries = len(results) > 1 and seconds > 0
        yield ImportedPhase(
            phase=f"{job_entries[0]['jobname']}.{direction}" if has_several_entries else direction,
            op=direction,
            definition=f"fio {shorten_to_minor_version(fio_version)} bw",
            bytes_per_s=io_bytes / seconds if several_entries else rate,
            ops_per_s=ops / seconds if several_entries and ops else sum(float(result["iops"]) for result in results),
            bytes=io_bytes,
            ops=ops or None,
            seconds=seconds,
            done=not any(job.get("error") for job in job_entries),
            also=_find_other_metrics(results),
        )


def _find_other_metrics(direction_results: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
    """Latencies of one entry; of several the maximum and the sum of the rates, for percentiles do not add up."""
    latencies = [result.get("clat_ns") or {} for result in direction_results]
    metrics: dict[str, Any] = {}
    if len(direction_results) == 1:
        percentiles = latencies[0].get("percentile") or {}
        metrics = {"clat_mean_ns": latencies[0].get("mean"), "clat_p99_ns": percentiles.get("99.000000")}
    maxima = [latency["max"] for latency in latencies if latency.get("max") is not None]
    means = [result["bw_mean"] for result in direction_results if result.get("bw_mean") is not None]
    metrics |= {"clat_max_ns": max(maxima, default=None), "bw_mean_KiB_per_s": sum(means) if means else None}
    return {name: value for name, value in metrics.items() if value is not None}


def _convert_to_count(json_value: Any) -> int | None:
    return int(json_value) if str(json_value).isdigit() else None
