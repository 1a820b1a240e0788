# SPDX-License-Identifier: Apache-2.0
"""The metrics of telemetry: name, kind, unit and meaning. Names end in their unit, as Prometheus recommends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MetricKind = Literal["counter", "gauge"]


@dataclass(frozen=True)
class CounterMetric:
    """A quantity that a source reports for a part (a device, an interface, a storage target, or the whole node).

    A counter only grows, until its source restarts and it begins at zero again; a gauge is a value at a time.
    """

    name: str
    kind: MetricKind
    unit: str
    meaning: str


def _make_counter_metrics(unit_symbol: str, **names_and_meanings: str) -> list[CounterMetric]:
    return [CounterMetric(name, "counter", unit_symbol, meaning) for name, meaning in names_and_meanings.items()]


def _make_gauge_metrics(unit_symbol: str, **names_and_meanings: str) -> list[CounterMetric]:
    return [CounterMetric(name, "gauge", unit_symbol, meaning) for name, meaning in names_and_meanings.items()]


COUNTER_METRICS: dict[str, CounterMetric] = {
    metric.name: metric
    for metric in (
        *_make_counter_metrics(
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
            fabric_received_bytes="bytes that the port of the fabric received",
            fabric_sent_bytes="bytes that the port of the fabric sent",
            client_read_bytes="bytes that programs on the client read from the mounted file system, from its cache too",
            client_written_bytes="bytes that programs on the client wrote to the mounted file system",
            target_read_bytes="bytes that the storage target sent to clients",
            target_written_bytes="bytes that the storage target received from clients",
            job_read_bytes="bytes that the job read from the storage target",
            job_written_bytes="bytes that the job wrote to the storage target",
            nfs_read_bytes="bytes that the NFS client read from the server",
            nfs_written_bytes="bytes that the NFS client wrote to the server",
            cgroup_read_bytes="bytes that the control group of this process read from the device",
            cgroup_written_bytes="bytes that the control group of this process wrote to the device",
            process_read_bytes="bytes that read calls of the processes of this run returned",
            process_written_bytes="bytes that write calls of the processes of this run took",
            process_storage_read_bytes="bytes that these processes made the kernel read from storage",
            process_storage_written_bytes="bytes that these processes made the kernel write to storage",
            zfs_read_bytes="bytes that programs read from the ZFS data set",
            zfs_written_bytes="bytes that programs wrote to the ZFS data set",
        ),
        *_make_counter_metrics(
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
            target_read_s="sum of the times of reads on the storage target",
            target_write_s="sum of the times of writes on the storage target",
            metadata_s="sum of the times of metadata operations on the target",
            nfs_wait_s="sum of the times from sending an NFS request to its reply",
        ),
        *_make_counter_metrics(
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
            fabric_errors="symbol errors, receive errors and discarded packets of the port",
            fabric_link_failures="times that the link of the port went down",
            client_reads="read calls on the mounted file system",
            client_writes="write calls on the mounted file system",
            client_metadata_operations="calls on names and attributes on the mounted file system",
            target_reads="reads on the storage target",
            target_writes="writes on the storage target",
            metadata_operations="metadata operations on the target",
            nfs_operations="NFS requests",
            nfs_retransmissions="NFS requests that were sent again",
            cgroup_reads="reads of the control group of this process on the device",
            cgroup_writes="writes of the control group of this process on the device",
            tcp_sent_segments="TCP segments sent, without retransmissions",
            tcp_retransmitted_segments="TCP segments sent again",
            job_reads="reads of the job on the storage target",
            job_writes="writes of the job on the storage target",
            job_metadata_operations="metadata operations of the job on the target",
            histogram_reads="read requests in this bin of a histogram; the part names target, histogram and bin",
            histogram_writes="write requests in this bin of a histogram; the part names target, histogram and bin",
            process_reads="read calls of the processes of this run",
            process_writes="write calls of the processes of this run",
            zfs_reads="read calls on the ZFS data set",
            zfs_writes="write calls on the ZFS data set",
            zfs_cache_hits="reads that the cache of ZFS (ARC) served",
            zfs_cache_misses="reads that the cache of ZFS (ARC) did not serve",
            zfs_second_cache_hits="reads that the cache devices of ZFS (L2ARC) served",
            zfs_second_cache_misses="reads that the cache devices of ZFS (L2ARC) did not serve",
        ),
        *_make_gauge_metrics(
            "bytes",
            memory_available_bytes="memory that programs can get without swapping",
            memory_cached_bytes="page cache",
            memory_dirty_bytes="dirty pages",
            memory_writeback_bytes="pages that are being written back",
            file_cached_bytes="bytes of the file in the page cache",
            file_dirty_bytes="bytes of the file in the page cache that are not yet written, those under way included",
            file_size_bytes="size of the file",
            zfs_cache_bytes="size of the cache of ZFS (ARC)",
            zfs_cache_limit_bytes="size that the cache of ZFS (ARC) may reach now",
            raid_mismatch_bytes="bytes that differed between members at the last check of the array",
        ),
        *_make_gauge_metrics(
            "s",
            waiter_longest_s="longest time that a thread of GPFS has been waiting",
            recovery_remaining_s="time that the recovery of the target may still take",
            target_commit_latency_s="time until a write is in the journal of the target, mean over the last seconds",
            target_apply_latency_s="time until a write is in the store of the target, mean over the last seconds",
        ),
        *_make_gauge_metrics(
            "threads", waiters="threads of GPFS that wait", server_busy_threads="threads of the server that work"
        ),
        *_make_gauge_metrics(
            "flag",
            healthy="1 when the server reports that it is healthy, 0 otherwise",
            recovery_active="1 while the target waits for its clients to reconnect, 0 otherwise",
        ),
        *_make_gauge_metrics(
            "clients",
            recovery_expected_clients="clients that the target waits for, or waited for",
            recovery_connected_clients="clients that have reconnected",
        ),
        *_make_gauge_metrics(
            "disks",
            raid_disks="members of the array",
            raid_failed_disks="members of the array that are missing or faulty",
        ),
        *_make_gauge_metrics(
            "paths", device_paths="paths to the multipath device", device_failed_paths="paths of it that do not work"
        ),
        *_make_gauge_metrics(
            "fraction",
            server_cpu_fraction="share of the processor time of the server that is used",
            disk_busy_fraction="share of the time in which the device had requests outstanding",
            raid_sync_fraction="part of the check, resync or recovery of the array that is done; 1 when none runs",
            cpu_busy_fraction="share of the processor time of the node that is used, on average over the interval",
            cpu_iowait_fraction="share of the processor time without work while a request was outstanding",
        ),
        *_make_gauge_metrics(
            "requests",
            disk_queue="requests outstanding at the device, on average over the interval",
            server_queue="requests that wait for a thread of the server",
            client_outstanding_reads="read requests of the client outstanding at the target",
            client_outstanding_writes="write requests of the client outstanding at the target",
        ),
        *_make_gauge_metrics(
            "B/s",
            disk_read_rate="bytes a second that the device read, on average over the interval",
            disk_write_rate="bytes a second that the device wrote, on average over the interval",
            network_receive_rate="bytes a second that the interfaces received, on average over the interval",
            network_send_rate="bytes a second that the interfaces sent, on average over the interval",
            raid_sync_rate="bytes a second that a check, resync or recovery of the array covers",
            server_read_rate="bytes a second that the server read from its storage",
            server_write_rate="bytes a second that the server wrote to its storage",
            client_read_rate="bytes a second that the client read from the servers",
            client_write_rate="bytes a second that the client wrote to the servers",
        ),
        *_make_gauge_metrics(
            "1/s",
            server_request_rate="requests a second that the server processed",
            client_request_rate="requests a second of the client",
        ),
    )
}
