# SPDX-License-Identifier: Apache-2.0
"""The metrics of telemetry: name, kind, unit and meaning. Names end in their unit, as Prometheus recommends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge"]


@dataclass(frozen=True)
class Metric:
    """A quantity that a source reports for a part (a device, an interface, a storage target, or the whole node).

    A counter only grows, until its source restarts and it begins at zero again; a gauge is a value at a time.
    """

    name: str
    kind: Kind
    unit: str
    meaning: str


def _counters(unit: str, **meanings: str) -> list[Metric]:
    return [Metric(name, "counter", unit, meaning) for name, meaning in meanings.items()]


def _gauges(unit: str, **meanings: str) -> list[Metric]:
    return [Metric(name, "gauge", unit, meaning) for name, meaning in meanings.items()]


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        *_counters(
            "bytes",
            disk_read_bytes="bytes that the device read",
            disk_written_bytes="bytes that the device wrote",
            paged_in_bytes="bytes that the node read from block devices, all devices together",
            paged_out_bytes="bytes that the node wrote to block devices, all devices together",
            dirtied_bytes="bytes of pages that became dirty",
            written_back_bytes="bytes of dirty pages that were written back",
            swapped_in_bytes="bytes that were swapped in",
            swapped_out_bytes="bytes that were swapped out",
            network_received_bytes="bytes that the interface received",
            network_sent_bytes="bytes that the interface sent",
        ),
        *_counters(
            "s",
            disk_read_s="sum of the times of completed reads, waiting included",
            disk_write_s="sum of the times of completed writes, waiting included",
            disk_busy_s="time in which at least one request was outstanding",
            disk_queue_s="sum over time of the number of outstanding requests",
            pressure_some_s="time in which at least one task waited for the resource",
            pressure_full_s="time in which all runnable tasks waited for the resource",
            cpu_user_s="processor time in user space, all processors together",
            cpu_system_s="processor time in the kernel, interrupts included",
            cpu_idle_s="processor time without work",
            cpu_iowait_s="processor time without work while a request was outstanding",
            cpu_steal_s="processor time that the hypervisor gave to other guests",
            cpu_busy_s="time in which this processor worked",
        ),
        *_counters(
            "operations",
            disk_reads="completed reads",
            disk_writes="completed writes",
            major_faults="page faults that had to read",
            pages_scanned="pages that the kernel examined to reclaim memory",
            context_switches="context switches",
            interrupts="interrupts",
            network_received_packets="packets that the interface received",
            network_sent_packets="packets that the interface sent",
            network_receive_errors="packets with errors, or dropped, on receipt",
            network_send_errors="packets with errors, or dropped, on sending",
            tcp_sent_segments="TCP segments sent, without retransmissions",
            tcp_retransmitted_segments="TCP segments sent again",
        ),
        *_gauges(
            "bytes",
            memory_available_bytes="memory that programs can get without swapping",
            memory_cached_bytes="page cache",
            memory_dirty_bytes="dirty pages",
            memory_writeback_bytes="pages that are being written back",
        ),
    )
}
