# SPDX-License-Identifier: Apache-2.0
"""The kinds of the faults that a check of a layout finds."""

from __future__ import annotations

from sonde.design.layout.check import check_layout
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedStorage


def find_kinds(storage: ObservedStorage, plan: FileSystemLayout | None = None) -> set[str]:
    return {fault.kind for fault in check_layout(storage, plan).faults}
