# SPDX-License-Identifier: Apache-2.0
"""The lists: sources that are sampled on a node, and formats of other programs that are imported."""

from __future__ import annotations

from sonde.telemetry.imports import TelemetryFormat
from sonde.telemetry.source import LocalSource
from sonde.telemetry.sources import (
    cgroup,
    disks,
    gpfs,
    infiniband,
    lmt,
    lustre,
    memory,
    network,
    nfs,
    pressure,
    processors,
    prometheus,
    sysstat,
)

LOCAL_SOURCES: tuple[LocalSource, ...] = (
    disks.SOURCE,
    pressure.SOURCE,
    memory.MEMORY,
    memory.PAGING,
    processors.SOURCE,
    network.INTERFACES,
    network.TCP,
    cgroup.SOURCE,
    nfs.SOURCE,
    infiniband.SOURCE,
    lustre.CLIENT,
    lustre.TARGETS,
)
TELEMETRY_FORMATS: tuple[TelemetryFormat, ...] = (
    lustre.LCTL_FORMAT,
    lmt.ROWS_FORMAT,
    lmt.CEREBRO_FORMAT,
    gpfs.MMPMON_FORMAT,
    sysstat.SADF_FORMAT,
    prometheus.QUERY_FORMAT,
)
