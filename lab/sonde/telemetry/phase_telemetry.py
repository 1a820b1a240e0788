# SPDX-License-Identifier: Apache-2.0
"""Telemetry of one phase: the device under the target, other traffic, the processors, the network.

Each number is computed once here; `describe` turns them into the sentences of every surface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sonde.model.errors import UserError
from sonde.model.json_access import get_object, get_text
from sonde.model.quantities import display_count_with_noun, display_percent, display_transferred_bytes
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.telemetry.data import TelemetryData

# A device is at its limit when it had work nearly all the time. A device that serves several requests at once may still
# take more: the sentence gives the queue, which tells the two apart.
_MIN_BUSY_FRACTION = 0.95
# Bytes of the device beyond, or below, those of the run before a sentence says so: a tenth is metadata and read-ahead.
_OTHER_TRAFFIC_FACTOR = 1.5
_MAX_MEMORY_DEVICE_FRACTION = 0.5
_MIN_STOLEN_FRACTION = 0.05
_MIN_RETRANSMITTED_FRACTION = 0.001
# The counters are those between the samples nearest to the ends of a phase. Where these are further away, as a fraction
# of the length of the phase, the numbers are not stated; above the second limit no sentence compares bytes.
_MAX_SAMPLE_DISTANCE_FRACTION = 0.3
_MAX_SAMPLE_DISTANCE_FRACTION_FOR_TRAFFIC = 0.1


@dataclass(frozen=True)
class DeviceTelemetry:
    """One block device during a phase."""

    device: str
    read_bytes: float
    written_bytes: float
    busy_fraction: float  # of the time: at least one request was outstanding
    queue: float  # requests outstanding on average
    read_latency_s: float | None  # mean time of a read; None without reads
    write_latency_s: float | None


@dataclass(frozen=True)
class PhaseTelemetry:
    """The counters of one phase on one host. None where the host has no such counter."""

    host: str
    seconds: float  # between the samples nearest to the ends of the phase
    offset_fraction: float  # sum of the distances of these samples from the ends, as a fraction of the phase
    device: DeviceTelemetry | None  # the device under the target
    other_devices: tuple[DeviceTelemetry, ...]  # those that moved data, busiest first
    transferred_bytes: float  # by the run on this host, as far as the record says
    moves_reads: bool
    moves_writes: bool
    stolen_fraction: float | None  # of all processor time
    processor_fraction: float | None  # of all processor time, used by all programs
    other_processor_fraction: float | None  # of all processor time, used by others than the tasks of the run
    io_stall_fraction: float | None  # of the time: some task waited for I/O
    network_received_bytes: float | None
    network_sent_bytes: float | None
    retransmitted_segments: float | None
    retransmitted_fraction: float | None

    @property
    def device_bytes(self) -> float | None:
        """Bytes that the device under the target moved."""
        return self.device.read_bytes + self.device.written_bytes if self.device else None

    @property
    def run_share_of_device_bytes(self) -> float | None:
        """Bytes of the run over bytes of the device: 1 when all traffic was the run's and none stayed in memory."""
        return self.transferred_bytes / self.device_bytes if self.device_bytes else None

    def describe_in_sentences(self) -> list[str]:
        """Sentences about what limited or disturbed the phase; empty if nothing did."""
        return [*self._describe_device(), *self._describe_traffic(), *self._describe_node()]

    def _describe_device(self) -> list[str]:
        device = self.device
        if device is None or device.busy_fraction < _MIN_BUSY_FRACTION:
            return []
        return [
            f"{device.device} was busy {display_percent(device.busy_fraction)} of the time with {device.queue:.1f}"
            " requests outstanding: the device limits this phase."
        ]

    def _describe_traffic(self) -> list[str]:
        moved = self.device_bytes
        if (
            self.device is None
            or moved is None
            or not self.transferred_bytes
            or self.offset_fraction > _MAX_SAMPLE_DISTANCE_FRACTION_FOR_TRAFFIC
        ):
            return []
        name = self.device.device
        ratio = moved / self.transferred_bytes
        if ratio >= _OTHER_TRAFFIC_FACTOR:
            return [
                f"{name} moved {display_transferred_bytes(moved)}, {ratio:.1f} times the "
                f"{display_transferred_bytes(self.transferred_bytes)}"
                " of this phase: other programs used it, or the file system moved more than it was asked for."
            ]
        if ratio <= _MAX_MEMORY_DEVICE_FRACTION:
            direction = "came from memory" if self.moves_reads and not self.moves_writes else "stayed in memory"
            return [
                f"{name} moved {display_transferred_bytes(moved)} of the "
                f"{display_transferred_bytes(self.transferred_bytes)} of this phase:"
                f" the rest {direction}."
            ]
        return []

    def _describe_node(self) -> list[str]:
        sentences = []
        if self.stolen_fraction is not None and self.stolen_fraction >= _MIN_STOLEN_FRACTION:
            sentences.append(
                f"The hypervisor gave {display_percent(self.stolen_fraction)} of the processor time of {self.host} to"
                " other guests."
            )
        if (
            self.retransmitted_segments
            and self.retransmitted_fraction is not None
            and self.retransmitted_fraction >= _MIN_RETRANSMITTED_FRACTION
        ):
            sentences.append(
                f"TCP on {self.host} sent {display_count_with_noun(self.retransmitted_segments, 'segment')} again"
                f" ({display_percent(self.retransmitted_fraction)}): the network lost packets."
            )
        return sentences


def summarize_phase_telemetry(run: RecordedRun, phase: PhaseRecord, telemetry: TelemetryData) -> PhaseTelemetry | None:
    """The telemetry of a phase on the node that was sampled, between the samples nearest to its ends.

    Samples at the ends of a phase come up to 0.2 s late. Interpolation would divide what a device did in a burst, for
    example a flush at the end, by time; the nearest samples contain all of it. None without samples near the ends.
    """
    epoch = find_run_start_time(run)
    node = next((raw for raw in run.raw_nodes if get_text(raw, "host") in telemetry.hosts), None)
    if epoch is None or node is None or phase.end is None:
        return None
    host = get_text(node, "host")
    begin, end = epoch + phase.begin.t, epoch + phase.end.t
    processors = telemetry.find_series("cpu_idle_s", "all", host)
    if processors is None or end <= begin:
        return None
    start, stop = processors.find_nearest_sample_time(begin), processors.find_nearest_sample_time(end)
    offset_fraction = (abs(start - begin) + abs(stop - end)) / (end - begin)
    if stop <= start or offset_fraction > _MAX_SAMPLE_DISTANCE_FRACTION:
        return None
    target = get_text(get_object(get_object(node, "file_system"), "block_device"), "name")
    devices = [
        device
        for key in telemetry.list_series_keys("disk_busy_s", host)
        if (device := _summarize_device(telemetry, key.part, start, stop, host)) is not None
    ]
    moving = sorted(
        (device for device in devices if device.busy_fraction > 0), key=lambda device: -device.busy_fraction
    )
    busy, idle, stolen = (
        telemetry.compute_increase(metric, "all", start, stop, host) or 0.0
        for metric in ("cpu_busy_s", "cpu_idle_s", "cpu_steal_s")
    )
    waiting = telemetry.compute_increase("cpu_iowait_s", "all", start, stop, host) or 0.0
    total = busy + idle + stolen + waiting
    stalled = telemetry.compute_increase("pressure_some_s", "io", start, stop, host)
    sent = telemetry.compute_increase("tcp_sent_segments", "tcp", start, stop, host)
    resent = telemetry.compute_increase("tcp_retransmitted_segments", "tcp", start, stop, host)
    return PhaseTelemetry(
        host=host,
        seconds=stop - start,
        offset_fraction=offset_fraction,
        device=next((device for device in devices if device.device == target), None),
        other_devices=tuple(device for device in moving if device.device != target),
        transferred_bytes=find_bytes_of_host(run, phase, host),
        moves_reads="read" in phase.begin.op,
        moves_writes="write" in phase.begin.op,
        stolen_fraction=stolen / total if total else None,
        processor_fraction=busy / total if total else None,
        other_processor_fraction=_compute_other_processor_fraction(run, phase, host, busy, total),
        io_stall_fraction=None if stalled is None else stalled / (stop - start),
        network_received_bytes=_sum_bytes_of_interfaces(telemetry, "network_received_bytes", start, stop, host),
        network_sent_bytes=_sum_bytes_of_interfaces(telemetry, "network_sent_bytes", start, stop, host),
        retransmitted_segments=resent,
        retransmitted_fraction=resent / sent if sent and resent is not None else None,
    )


def find_run_start_time(run: RecordedRun) -> float | None:
    """Time zero of the record, seconds since 1970-01-01 UTC; None without a fraction of the second in the record."""
    return parse_utc_time(run.run_line.started) if "." in run.run_line.started else None


def find_run_interval(run: RecordedRun) -> tuple[float, float]:
    """First and last second of a run since 1970-01-01 UTC. Raises UserError when the record does not say."""
    epoch = parse_utc_time(run.run_line.started)
    ends = [phase.end.t for phase in run.phases if phase.end is not None]
    if epoch is None or not ends:
        raise UserError(f"{run.folder.name} has no phase with a beginning and an end; name another run with --run.")
    return epoch, epoch + max(*ends, run.end.t)


def parse_utc_time(time_text: str) -> float | None:
    """Seconds since 1970-01-01 UTC; None for a text that is no time."""
    try:
        return datetime.fromisoformat(time_text).timestamp()
    except ValueError:
        return None


def find_bytes_of_host(run: RecordedRun, phase: PhaseRecord, host_name: str) -> float:
    """Bytes that the tasks on `host_name` transferred: by the table of nodes, or all when the run had one node."""
    transferred = _sum_node_columns(run, phase, host_name, "bytes")
    if transferred is not None:
        return transferred
    if len(run.nodes) > 1 or phase.end is None:
        return 0.0
    return float(phase.end.bytes.transferred or 0)


def _compute_other_processor_fraction(
    run: RecordedRun, phase: PhaseRecord, host_name: str, busy_s: float, total_s: float
) -> float | None:
    """None if the record lacks the processor time of its tasks on `host_name`."""
    used_s = _sum_node_columns(run, phase, host_name, "user_s", "system_s")
    return max(0.0, busy_s - used_s) / total_s if total_s and used_s is not None else None


def _sum_node_columns(run: RecordedRun, phase: PhaseRecord, host_name: str, *column_names: str) -> float | None:
    """The sum of columns over the rows of `host_name` in the table of nodes; None where the record has no such
    columns."""
    hosts = {node.node: node.host for node in run.nodes}
    for table in phase.nodes:
        if {"node", *column_names} <= set(table.columns):
            number, *positions = (table.columns.index(name) for name in ("node", *column_names))
            rows = [row for row in table.rows if hosts.get(int(row[number] or 0)) == host_name]
            return float(sum(row[position] or 0 for row in rows for position in positions))
    return None


def _summarize_device(
    telemetry: TelemetryData, device_name: str, start_time: float, stop_time: float, host_name: str
) -> DeviceTelemetry | None:
    metrics = (
        "disk_read_bytes", "disk_written_bytes", "disk_busy_s", "disk_queue_s", "disk_reads", "disk_read_s",
        "disk_writes", "disk_write_s",
    )  # fmt: skip
    values = [telemetry.compute_increase(metric, device_name, start_time, stop_time, host_name) for metric in metrics]
    if any(value is None for value in values):
        return None
    read_bytes, written_bytes, busy, queue, reads, read_s, writes, write_s = (value or 0.0 for value in values)
    seconds = stop_time - start_time
    return DeviceTelemetry(
        device_name,
        read_bytes,
        written_bytes,
        min(1.0, busy / seconds),
        queue / seconds,
        read_s / reads if reads >= 1 else None,
        write_s / writes if writes >= 1 else None,
    )


def _sum_bytes_of_interfaces(
    telemetry: TelemetryData, metric_name: str, start_time: float, stop_time: float, host_name: str
) -> float | None:
    """Bytes of all interfaces but the loopback; None without one."""
    values = [
        telemetry.compute_increase(metric_name, key.part, start_time, stop_time, host_name)
        for key in telemetry.list_series_keys(metric_name, host_name)
        if key.part != "lo"
    ]
    counted = [value for value in values if value is not None]
    return sum(counted) if counted else None


def describe_telemetry_gaps(run: RecordedRun, telemetry: TelemetryData) -> list[str]:
    """Sentences on what the telemetry of a run does not cover."""
    missing = [node.host for node in run.nodes if node.host not in telemetry.hosts]
    if not telemetry:
        return []
    if missing and len(missing) < len(run.nodes):
        return [f"No counters were sampled on {_format_host_list(missing)}."]
    if missing:
        sampled = ", ".join(telemetry.hosts)
        return [f"Counters were sampled on {sampled}, which is no node of this run."]
    return []


def _format_host_list(host_names: Sequence[str]) -> str:
    first_hosts = ", ".join(host_names[:3])
    return first_hosts if len(host_names) <= 3 else f"{first_hosts} and {len(host_names) - 3} more"


def format_device(device_telemetry: DeviceTelemetry) -> str:
    """One line on a device during a phase."""
    return (
        f"{device_telemetry.device}: read {display_transferred_bytes(device_telemetry.read_bytes)}, wrote "
        f"{display_transferred_bytes(device_telemetry.written_bytes)},"
        f" busy {display_percent(device_telemetry.busy_fraction)}, {device_telemetry.queue:.1f} requests outstanding"
    )
