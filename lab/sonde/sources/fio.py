# SPDX-License-Identifier: Apache-2.0
"""Results of fio in JSON (json and json+). One file is one run; each job gives a phase for each direction.

Its bandwidth is bytes over the time of the job, in bytes per second; jobs that are reported as a group are one job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sonde.model.documents import parse_json
from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.sources.commands import to_minor_version
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
_DIRECTIONS = ("read", "write", "trim")


def is_fio_json(head: str) -> bool:
    """Whether it is fio's JSON; lines of text may stand before it."""
    return '"fio version"' in head


def read_fio_json(text: str, about: ImportDefaults) -> Sequence[ImportedRun]:
    """The run in fio's JSON."""
    document = parse_json(text[text.index("{") :].rpartition("}")[0] + "}")
    version = str(document["fio version"]).removeprefix("fio-")
    jobs = [
        job_options
        for job_options in document.get("jobs") or document["client_stats"]
        if job_options.get("jobname") != "All clients"
    ]
    global_options = document.get("global options", {})
    phases = [phase for job in jobs for phase in _build_phases(job, version, len(jobs) > 1)]
    if not phases:
        raise ValueError("no job moved any data")
    options = [{**global_options, **job.get("job options", {})} for job in jobs]
    time_ms = document.get("timestamp_ms", float(document["timestamp"]) * 1000 if "timestamp" in document else None)
    errors = sorted({int(job.get("error", 0)) for job in jobs} - {0})
    modes = sorted({str(job_options.get("rw", job_options.get("readwrite", "read"))) for job_options in options})
    return [
        ImportedRun(
            tool=f"fio {version}",
            name=f"fio-{'-'.join(modes)}",
            title=f"fio: {', '.join(str(job.get('jobname')) for job in jobs[:3])}{', …' if len(jobs) > 3 else ''}",
            started=about.to_utc(None if time_ms is None else datetime.fromtimestamp(float(time_ms) / 1000, UTC)),
            experiment={
                "jobs": [
                    {name: job_options[name] for name in sorted(job_options) if name not in _LOCATION_OPTIONS}
                    for job_options in options
                ]
            },
            phases=phases,
            host=str(jobs[0].get("hostname", "")),
            target=str(options[0].get("directory") or str(options[0].get("filename", "")).rpartition("/")[0]),
            tasks=sum(_to_count(job_options.get("numjobs")) or 1 for job_options in options),
            seconds=max(float(job.get("job_runtime", 0)) for job in jobs) / 1000 or None,
            status="failed" if errors else "done",
            text=f"fio reports error {errors[0]}." if errors else "",
        )
    ]


def _build_phases(job: Mapping[str, Any], version: str, several: bool) -> Iterator[ImportedPhase]:
    for direction in _DIRECTIONS:
        results = job.get(direction) or {}
        if not results.get("io_bytes"):
            continue
        latency = results.get("clat_ns") or {}
        percentiles = latency.get("percentile") or {}
        other_metrics = {"clat_mean_ns": latency.get("mean"), "clat_p99_ns": percentiles.get("99.000000")}
        other_metrics |= {"clat_max_ns": latency.get("max"), "bw_mean_KiB_per_s": results.get("bw_mean")}
        rate = results.get("bw_bytes", float(results.get("bw", 0)) * 1024)  # fio before 3.0 has KiB/s only
        yield ImportedPhase(
            phase=f"{job['jobname']}.{direction}" if several else direction,
            op=direction,
            definition=f"fio {to_minor_version(version)} bw",
            bytes_per_s=float(rate),
            ops_per_s=float(results["iops"]),
            bytes=int(results["io_bytes"]),
            ops=results.get("total_ios"),
            seconds=float(results["runtime"]) / 1000,
            done=not job.get("error"),
            also={name: value for name, value in other_metrics.items() if value is not None},
        )


def _to_count(value: Any) -> int | None:
    return int(value) if str(value).isdigit() else None
