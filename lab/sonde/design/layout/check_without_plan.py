# SPDX-License-Identifier: Apache-2.0
"""Checks of devices and their contents that need no plan, in one list."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_cache_redundancy import find_cache_faults
from sonde.design.layout.check_components import find_component_faults
from sonde.design.layout.check_dataset_peers import find_dataset_differences
from sonde.design.layout.check_dataset_settings import find_dataset_setting_faults
from sonde.design.layout.check_datasets import find_dataset_faults
from sonde.design.layout.check_drive_sectors import find_sector_faults
from sonde.design.layout.check_drive_signatures import find_foreign_signatures
from sonde.design.layout.check_drives import find_drive_faults
from sonde.design.layout.check_inodes import find_inode_faults
from sonde.design.layout.check_map_sizes import (
    find_array_size_faults,
    find_map_size_faults,
    find_partition_end_faults,
)
from sonde.design.layout.check_mounts import find_covered_mounts
from sonde.design.layout.check_path_use import find_bypassed_maps
from sonde.design.layout.check_sector_formats import find_sector_format_faults
from sonde.design.layout.check_spares import find_pool_spare_faults
from sonde.design.layout.check_superblocks import find_superblock_faults
from sonde.design.layout.check_swap import find_shared_swap
from sonde.design.layout.check_unstable_names import find_unstable_names
from sonde.design.layout.check_volume_copies import find_copied_volumes
from sonde.design.layout.check_volume_groups import find_volume_group_faults
from sonde.design.layout.check_volumes import find_volume_faults
from sonde.design.layout.check_write_journals import find_journal_faults
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedStorage


def find_device_faults_without_plan(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Faults of devices that need no plan."""
    yield from find_bypassed_maps(observed_storage)
    yield from find_copied_volumes(observed_storage)
    yield from find_map_size_faults(observed_storage)
    yield from find_array_size_faults(observed_storage)
    yield from find_partition_end_faults(observed_storage)
    yield from find_volume_faults(observed_storage)
    yield from find_volume_group_faults(observed_storage)
    yield from find_cache_faults(observed_storage)
    yield from find_drive_faults(observed_storage)
    yield from find_sector_faults(observed_storage)
    yield from find_sector_format_faults(observed_storage)
    yield from find_superblock_faults(observed_storage)
    yield from find_journal_faults(observed_storage)
    yield from find_shared_swap(observed_storage)
    yield from find_component_faults(observed_storage)
    yield from find_unstable_names(observed_storage)


def find_content_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Faults of pools, inodes, mounts and signatures that need no plan."""
    yield from find_pool_spare_faults(observed_storage)
    yield from find_inode_faults(observed_storage.file_systems)
    yield from find_covered_mounts(observed_storage.file_systems)
    yield from find_dataset_faults(observed_storage.file_systems)
    yield from find_dataset_differences(observed_storage.file_systems)
    yield from find_dataset_setting_faults(observed_storage.file_systems)
    yield from find_foreign_signatures(observed_storage)
