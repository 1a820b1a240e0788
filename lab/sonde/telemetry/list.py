# SPDX-License-Identifier: Apache-2.0
"""The list of sources that are sampled on a node."""

from __future__ import annotations

from sonde.telemetry.source import LocalSource
from sonde.telemetry.sources import disks, memory, network, pressure, processors

LOCAL_SOURCES: tuple[LocalSource, ...] = (
    disks.SOURCE,
    pressure.SOURCE,
    memory.MEMORY,
    memory.PAGING,
    processors.SOURCE,
    network.INTERFACES,
    network.TCP,
)
