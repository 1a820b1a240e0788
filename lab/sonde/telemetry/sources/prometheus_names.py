# SPDX-License-Identifier: Apache-2.0
"""Names that exporters of Prometheus give to counters: node_exporter and three Lustre exporters.

lustrefs-exporter of Whamcloud counts bytes (``lustre_read_bytes_total``) and labels a target ``target``;
lustre_exporter of HPE and its continuation by GSI also have names in kibibytes, and a label ``component``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_KIB = 1024


@dataclass(frozen=True)
class MetricAlias:
    """The metric that a name of an exporter stands for, the label that names the part, and the factor to our unit."""

    metric: str
    source: str
    label: str
    factor: float = 1.0
    part: str = ""  # the part, where no label names it
    job_label: str = ""  # the label of the job, where a target is counted for each job

    def make_part_name(self, series_labels: Mapping[str, str]) -> str:
        """The part of a series by its labels."""
        parts = [str(series_labels.get(name, "")) for name in (self.label, self.job_label) if name]
        return " ".join(parts) if parts else self.part

    def scale_value(self, sample_value: float) -> float:
        """The value in the unit of the metric."""
        return sample_value * self.factor


METRIC_ALIASES: Mapping[str, MetricAlias] = {
    "node_disk_read_bytes_total": MetricAlias("disk_read_bytes", "disks", "device"),
    "node_disk_written_bytes_total": MetricAlias("disk_written_bytes", "disks", "device"),
    "node_disk_reads_completed_total": MetricAlias("disk_reads", "disks", "device"),
    "node_disk_writes_completed_total": MetricAlias("disk_writes", "disks", "device"),
    "node_disk_read_time_seconds_total": MetricAlias("disk_read_s", "disks", "device"),
    "node_disk_write_time_seconds_total": MetricAlias("disk_write_s", "disks", "device"),
    "node_disk_io_time_seconds_total": MetricAlias("disk_busy_s", "disks", "device"),
    "node_disk_io_time_weighted_seconds_total": MetricAlias("disk_queue_s", "disks", "device"),
    "node_network_receive_bytes_total": MetricAlias("network_received_bytes", "interfaces", "device"),
    "node_network_transmit_bytes_total": MetricAlias("network_sent_bytes", "interfaces", "device"),
    "node_infiniband_port_data_received_bytes_total": MetricAlias("fabric_received_bytes", "infiniband", "device"),
    "node_infiniband_port_data_transmitted_bytes_total": MetricAlias("fabric_sent_bytes", "infiniband", "device"),
    "node_netstat_Tcp_RetransSegs": MetricAlias("tcp_retransmitted_segments", "tcp", "", part="tcp"),
    "node_netstat_Tcp_OutSegs": MetricAlias("tcp_sent_segments", "tcp", "", part="tcp"),
    "node_memory_Dirty_bytes": MetricAlias("memory_dirty_bytes", "memory", ""),
    "node_memory_Writeback_bytes": MetricAlias("memory_writeback_bytes", "memory", ""),
    "node_memory_MemAvailable_bytes": MetricAlias("memory_available_bytes", "memory", ""),
    "lustre_read_bytes_total": MetricAlias("target_read_bytes", "lustre-targets", "target"),
    "lustre_write_bytes_total": MetricAlias("target_written_bytes", "lustre-targets", "target"),
    "lustre_read_kibibytes_total": MetricAlias("target_read_bytes", "lustre-targets", "target", _KIB),
    "lustre_write_kibibytes_total": MetricAlias("target_written_bytes", "lustre-targets", "target", _KIB),
    "lustre_read_samples_total": MetricAlias("target_reads", "lustre-targets", "target"),
    "lustre_write_samples_total": MetricAlias("target_writes", "lustre-targets", "target"),
    "node_network_receive_packets_total": MetricAlias("network_received_packets", "interfaces", "device"),
    "node_network_transmit_packets_total": MetricAlias("network_sent_packets", "interfaces", "device"),
    "node_pressure_io_waiting_seconds_total": MetricAlias("pressure_some_s", "pressure", "", part="io"),
    "node_pressure_io_stalled_seconds_total": MetricAlias("pressure_full_s", "pressure", "", part="io"),
    "node_pressure_memory_waiting_seconds_total": MetricAlias("pressure_some_s", "pressure", "", part="memory"),
    "node_pressure_memory_stalled_seconds_total": MetricAlias("pressure_full_s", "pressure", "", part="memory"),
    "node_pressure_cpu_waiting_seconds_total": MetricAlias("pressure_some_s", "pressure", "", part="cpu"),
    "node_vmstat_pgpgin": MetricAlias("paged_in_bytes", "paging", "", _KIB),
    "node_vmstat_pgpgout": MetricAlias("paged_out_bytes", "paging", "", _KIB),
    "node_vmstat_pgmajfault": MetricAlias("major_faults", "paging", ""),
    "node_context_switches_total": MetricAlias("context_switches", "processors", "", part="all"),
    "node_md_disks_required": MetricAlias("raid_disks", "raid", "device"),
    "node_zfs_arc_hits": MetricAlias("zfs_cache_hits", "zfs-cache", ""),
    "node_zfs_arc_misses": MetricAlias("zfs_cache_misses", "zfs-cache", ""),
    "node_zfs_arc_size": MetricAlias("zfs_cache_bytes", "zfs-cache", ""),
    "node_memory_Cached_bytes": MetricAlias("memory_cached_bytes", "memory", ""),
    "lustre_health_healthy": MetricAlias("healthy", "lustre-health", "target"),
    "lustre_health_check": MetricAlias("healthy", "lustre-health", "target"),
    "lustre_job_read_bytes_total": MetricAlias("job_read_bytes", "lustre-jobs", "target", job_label="jobid"),
    "lustre_job_write_bytes_total": MetricAlias("job_written_bytes", "lustre-jobs", "target", job_label="jobid"),
    "lustre_job_read_samples_total": MetricAlias("job_reads", "lustre-jobs", "target", job_label="jobid"),
    "lustre_job_write_samples_total": MetricAlias("job_writes", "lustre-jobs", "target", job_label="jobid"),
}
