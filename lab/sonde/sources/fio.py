# SPDX-License-Identifier: Apache-2.0
"""Results of fio in JSON (json and json+). One file is one run; each job gives a phase for each direction.

Its bandwidth is bytes over the time of the job, in bytes per second; jobs that are reported as a group are one job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sonde.model.imported import ImportedPhase, ImportedRun
from sonde.sources.about import About
from sonde.sources.commands import minor

# Options that say where, or how it is reported.
_NOT_WORK = ("directory", "filename", "name", "write_bw_log", "write_lat_log", "write_iops_log", "output", "stonewall")
_WAYS = ("read", "write", "trim")


def matches(head: str) -> bool:
    """Whether it is fio's JSON; lines of text may stand before it."""
    return '"fio version"' in head


def read(text: str, about: About) -> Sequence[ImportedRun]:
    """The run in fio's JSON."""
    document = json.loads(text[text.index("{") :].rpartition("}")[0] + "}")
    version = str(document["fio version"]).removeprefix("fio-")
    jobs = [one for one in document.get("jobs") or document["client_stats"] if one.get("jobname") != "All clients"]
    everywhere = document.get("global options", {})
    phases = [phase for job in jobs for phase in _phases(job, version, len(jobs) > 1)]
    if not phases:
        raise ValueError("no job moved any data")
    options = [{**everywhere, **job.get("job options", {})} for job in jobs]
    stamp = document.get("timestamp_ms", float(document["timestamp"]) * 1000 if "timestamp" in document else None)
    errors = sorted({int(job.get("error", 0)) for job in jobs} - {0})
    kinds = sorted({str(one.get("rw", one.get("readwrite", "read"))) for one in options})
    return [
        ImportedRun(
            tool=f"fio {version}",
            name=f"fio-{'-'.join(kinds)}",
            title=f"fio: {', '.join(str(job.get('jobname')) for job in jobs[:3])}{', …' if len(jobs) > 3 else ''}",
            started=about.moment(None if stamp is None else datetime.fromtimestamp(float(stamp) / 1000, UTC)),
            experiment={
                "jobs": [{name: one[name] for name in sorted(one) if name not in _NOT_WORK} for one in options]
            },
            phases=phases,
            host=str(jobs[0].get("hostname", "")),
            target=str(options[0].get("directory") or str(options[0].get("filename", "")).rpartition("/")[0]),
            tasks=sum(_whole(one.get("numjobs")) or 1 for one in options),
            seconds=max(float(job.get("job_runtime", 0)) for job in jobs) / 1000 or None,
            status="failed" if errors else "done",
            text=f"fio reports error {errors[0]}." if errors else "",
        )
    ]


def _phases(job: Mapping[str, Any], version: str, several: bool) -> Iterator[ImportedPhase]:
    for way in _WAYS:
        found = job.get(way) or {}
        if not found.get("io_bytes"):
            continue
        latency = found.get("clat_ns") or {}
        percentiles = latency.get("percentile") or {}
        also = {"clat_mean_ns": latency.get("mean"), "clat_p99_ns": percentiles.get("99.000000")}
        also |= {"clat_max_ns": latency.get("max"), "bw_mean_KiB_per_s": found.get("bw_mean")}
        rate = found.get("bw_bytes", float(found.get("bw", 0)) * 1024)  # fio before 3.0 has KiB/s only
        yield ImportedPhase(
            phase=f"{job['jobname']}.{way}" if several else way,
            op=way,
            definition=f"fio {minor(version)} bw",
            bytes_per_s=float(rate),
            ops_per_s=float(found["iops"]),
            bytes=int(found["io_bytes"]),
            ops=found.get("total_ios"),
            seconds=float(found["runtime"]) / 1000,
            done=not job.get("error"),
            also={name: value for name, value in also.items() if value is not None},
        )


def _whole(value: Any) -> int | None:
    return int(value) if str(value).isdigit() else None
