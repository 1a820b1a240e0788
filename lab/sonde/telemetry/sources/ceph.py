# SPDX-License-Identifier: Apache-2.0
"""Ceph: repeated ``date +%s; ceph daemon osd.N perf dump`` (or ``ceph tell osd.N``), and ``ceph osd perf -f json``.

`perf dump` has the counters of one OSD below "osd": `op_r`, `op_w`, bytes `op_r_out_bytes`, `op_w_in_bytes`, and times
``"op_r_latency": {"avgcount": 3, "sum": 0.5, "avgtime": 0.16}`` in seconds. The document does not name its OSD: a line
with its name, like ``osd.3``, may stand before it. `osd perf` has means over the last seconds in milliseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat, split_output_at_time_lines

_COLUMNS = (
    "target_read_bytes", "target_written_bytes", "target_reads", "target_writes", "target_read_s", "target_write_s",
)  # fmt: skip
_LATENCY_COLUMNS = ("target_commit_latency_s", "target_apply_latency_s")
_OSD_NAME_LINE_PATTERN = re.compile(r"^(osd\.\d+)\s*$", re.MULTILINE)
_JSON_DECODER = json.JSONDecoder()


def is_osd_perf_output(output_text: str) -> bool:
    """Whether a text has outputs of perf dump of an OSD, or of osd perf."""
    return '"osd_perf_infos"' in output_text or ('"op_w_in_bytes"' in output_text and '"op_r_out_bytes"' in output_text)


def read_osd_perf_output(output_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """Counters and latencies of OSDs; the part is osd.N, or "osd" when no line says which."""
    builder = TelemetryBuilder("ceph")
    for time, output in split_output_at_time_lines(output_text, telemetry_defaults.zone):
        for name, document in _iterate_osd_documents(output):
            infos = document.get("osd_perf_infos") or (document.get("osdstats") or {}).get("osd_perf_infos")
            if infos is not None:
                for entry in infos:
                    latencies = entry["perf_stats"]
                    values = (latencies["commit_latency_ms"] / 1000, latencies["apply_latency_ms"] / 1000)
                    builder.add_sample(
                        telemetry_defaults.host, "ceph-latencies", _LATENCY_COLUMNS, time, f"osd.{entry['id']}", values
                    )
            elif isinstance(counters := document.get("osd"), Mapping):
                builder.add_sample(
                    telemetry_defaults.host, "ceph-targets", _COLUMNS, time, name or "osd", _select_osd_values(counters)
                )
            else:
                builder.unreadable_lines += 1
    return builder.build_files()


def _iterate_osd_documents(output_text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The JSON documents in an output, each with the name of the OSD in the text before it."""
    position = 0
    while (start := output_text.find("{", position)) >= 0:
        names = _OSD_NAME_LINE_PATTERN.findall(output_text[position:start])
        document, position = _JSON_DECODER.raw_decode(output_text, start)
        if isinstance(document, Mapping):
            yield names[-1] if names else "", document


def _select_osd_values(osd_counters: Mapping[str, Any]) -> tuple[float, ...]:
    return (
        float(osd_counters["op_r_out_bytes"]),
        float(osd_counters["op_w_in_bytes"]),
        float(osd_counters["op_r"]),
        float(osd_counters["op_w"]),
        float(osd_counters["op_r_latency"]["sum"]),
        float(osd_counters["op_w_latency"]["sum"]),
    )


CEPH_FORMAT = TelemetryFormat(
    "ceph",
    "Ceph: ceph tell osd.N perf dump, or ceph osd perf -f json, repeated, with `date +%s` and a line `osd.N` before"
    " each",
    "ceph",
    "run it where the keyring of the cluster is; it is part of the package ceph-common.",
    is_osd_perf_output,
    read_osd_perf_output,
)
