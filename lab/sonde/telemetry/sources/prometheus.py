# SPDX-License-Identifier: Apache-2.0
"""Prometheus: answers of its query API (``/api/v1/query_range``, saved as JSON) with metrics of exporters.

Exporters name the same counter differently; `_ALIASES` lists the names of node_exporter and of three Lustre exporters
(Whamcloud's lustrefs-exporter, HPE's and GSI's lustre_exporter). Tested on recorded answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.documents import parse_json
from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat

_KIB = 1024


@dataclass(frozen=True)
class _Alias:
    """The metric that a name of an exporter stands for, the label that names the part, and the factor to our unit."""

    metric: str
    source: str
    label: str
    factor: float = 1.0


_ALIASES: Mapping[str, _Alias] = {
    "node_disk_read_bytes_total": _Alias("disk_read_bytes", "disks", "device"),
    "node_disk_written_bytes_total": _Alias("disk_written_bytes", "disks", "device"),
    "node_disk_reads_completed_total": _Alias("disk_reads", "disks", "device"),
    "node_disk_writes_completed_total": _Alias("disk_writes", "disks", "device"),
    "node_disk_read_time_seconds_total": _Alias("disk_read_s", "disks", "device"),
    "node_disk_write_time_seconds_total": _Alias("disk_write_s", "disks", "device"),
    "node_disk_io_time_seconds_total": _Alias("disk_busy_s", "disks", "device"),
    "node_disk_io_time_weighted_seconds_total": _Alias("disk_queue_s", "disks", "device"),
    "node_network_receive_bytes_total": _Alias("network_received_bytes", "interfaces", "device"),
    "node_network_transmit_bytes_total": _Alias("network_sent_bytes", "interfaces", "device"),
    "node_infiniband_port_data_received_bytes_total": _Alias("fabric_received_bytes", "infiniband", "device"),
    "node_infiniband_port_data_transmitted_bytes_total": _Alias("fabric_sent_bytes", "infiniband", "device"),
    "node_netstat_Tcp_RetransSegs": _Alias("tcp_retransmitted_segments", "tcp", ""),
    "node_netstat_Tcp_OutSegs": _Alias("tcp_sent_segments", "tcp", ""),
    "node_memory_Dirty_bytes": _Alias("memory_dirty_bytes", "memory", ""),
    "node_memory_Writeback_bytes": _Alias("memory_writeback_bytes", "memory", ""),
    "node_memory_MemAvailable_bytes": _Alias("memory_available_bytes", "memory", ""),
    "lustre_read_bytes_total": _Alias("target_read_bytes", "lustre-targets", "target"),
    "lustre_write_bytes_total": _Alias("target_written_bytes", "lustre-targets", "target"),
    "lustre_read_kibibytes_total": _Alias("target_read_bytes", "lustre-targets", "target", _KIB),
    "lustre_write_kibibytes_total": _Alias("target_written_bytes", "lustre-targets", "target", _KIB),
    "lustre_read_samples_total": _Alias("target_reads", "lustre-targets", "target"),
    "lustre_write_samples_total": _Alias("target_writes", "lustre-targets", "target"),
}


def is_query_answer(text: str) -> bool:
    """Whether the text begins like an answer of the query API."""
    head = text[:400]
    return text.lstrip().startswith("{") and '"status"' in head and '"resultType"' in head


def read_query_answer(text: str, defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """The series of a matrix. Series of other metrics are skipped."""
    document = parse_json(text)
    if document.get("status") != "success" or document["data"].get("resultType") != "matrix":
        raise ValueError("it is no successful answer to a range query")
    builder = TelemetryBuilder("prometheus")
    for series in document["data"]["result"]:
        labels = series["metric"]
        alias = _ALIASES.get(labels.get("__name__", ""))
        if alias is None:
            builder.unreadable_lines += 1
            continue
        host = _find_host(labels, defaults)
        part = str(labels.get(alias.label, "")) if alias.label else ("tcp" if alias.source == "tcp" else "")
        for time, value in series["values"]:
            # One source per metric: series of different metrics have different times.
            number = _parse_value(value)
            if number is not None:
                builder.add(
                    host, f"{alias.source}:{alias.metric}", (alias.metric,), float(time), part, (number * alias.factor,)
                )
    return builder.build()


def _find_host(labels: Mapping[str, Any], defaults: TelemetryDefaults) -> str:
    instance = str(labels.get("nodename") or labels.get("host") or labels.get("instance") or "")
    return instance.rpartition(":")[0] or instance or defaults.host


def _parse_value(text: Any) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if abs(value) < 1e300 else None


QUERY_FORMAT = TelemetryFormat(
    "prometheus", "Prometheus: the answer of /api/v1/query_range as JSON", is_query_answer, read_query_answer
)
