# SPDX-License-Identifier: Apache-2.0
"""How many bytes the storage under a run read during a phase: two bounds that hold for any sampling interval."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.model.json_access import get_text
from sonde.model.lines import NodeLine
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.telemetry.data import TelemetryData, load_telemetry
from sonde.telemetry.phase_telemetry import find_bytes_of_host, find_run_start_time

# File systems that may compress: their devices read fewer bytes than programs do.
_COMPRESSING_FILE_SYSTEMS = frozenset({"btrfs", "zfs", "f2fs", "bcachefs", "squashfs", "erofs"})


@dataclass(frozen=True)
class ReadCounters:
    """Bytes that the device (or the NFS client) `part` read during a phase, programs other than the run included."""

    part: str
    requested_bytes: float  # by the run on this host
    min_bytes: float  # between the samples inside the phase
    most_bytes: float  # between the samples around the phase
    busy_fraction: float | None  # least part of the phase in which the device had work; None for a network file system

    @property
    def min_fraction(self) -> float:
        return self.min_bytes / self.requested_bytes

    @property
    def max_fraction(self) -> float:
        return self.most_bytes / self.requested_bytes


def count_phase_reads(run: RecordedRun, phase: PhaseRecord) -> ReadCounters | None:
    """The counters of the storage under the target during a phase, on the node that was sampled.

    None if no counter applies: without telemetry, for file systems that compress, for network file systems other than
    NFS (their clients count bytes from their caches too), and if no samples enclose the phase.
    """
    epoch, end = find_run_start_time(run), phase.end
    if epoch is None or end is None or end.t <= phase.begin.t:
        return None
    telemetry = load_telemetry(run.folder)
    node = next((node for node in run.nodes if node.host in telemetry.hosts), None)
    if node is None:
        return None
    requested = find_bytes_of_host(run, phase, node.host)
    metric, part = _choose_read_counter(node)
    series = telemetry.find_series(metric, part, node.host) if part else None
    start, stop = epoch + phase.begin.t, epoch + end.t
    bounds = series.compute_increase_bounds(start, stop) if series else None
    if bounds is None or requested <= 0:
        return None
    return ReadCounters(part, requested, *bounds, _compute_busy_fraction(telemetry, part, node.host, start, stop))


def _choose_read_counter(node_line: NodeLine) -> tuple[str, str]:
    """Metric and part that count the reads of the file system; an empty part without one."""
    file_system = node_line.file_system
    if file_system.type.startswith("nfs"):
        return "nfs_read_bytes", file_system.mount_point
    if file_system.network or file_system.type in _COMPRESSING_FILE_SYSTEMS:
        return "", ""
    return "disk_read_bytes", get_text(file_system.block_device, "name")


def _compute_busy_fraction(
    telemetry: TelemetryData, device_name: str, host_name: str, start_time: float, stop_time: float
) -> float | None:
    series = telemetry.find_series("disk_busy_s", device_name, host_name)
    bounds = series.compute_increase_bounds(start_time, stop_time) if series else None
    return min(1.0, bounds[0] / (stop_time - start_time)) if bounds else None
