# SPDX-License-Identifier: Apache-2.0
"""Checks settings of ZFS datasets: quotas that are used up, space that snapshots hold, and what targets of Lustre
need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import MIB
from sonde.design.layout.live.observations import ObservedFileSystem
from sonde.design.layout.live.text_output import parse_rounded_size

_FULL_SHARE = 0.9
_SNAPSHOT_SHARE = 0.5
_SMALL_DATASET = 1 << 40
_QUOTAS = {"quota": "used", "refquota": "referenced"}


def find_dataset_setting_faults(
    file_systems: Sequence[ObservedFileSystem],
) -> Iterator[LayoutFault | CheckedItem]:
    """All faults of the settings of datasets."""
    targets = {each.device: option for each in file_systems if each.kind == "lustre"
               for option in each.options if option.startswith("svname=")}  # fmt: skip
    for pool in file_systems:
        names = {key.partition("@")[2] for key in pool.facts if "@" in key} if pool.kind == "zfs" else set()
        for name in sorted(names):
            values = {
                key.partition("@")[0]: value for key, value in pool.facts.items() if key.partition("@")[2] == name
            }
            yield from _check_space(name, values)
            if name in targets:
                yield from _check_target(name, targets[name], values)


def _check_space(dataset: str, values: Mapping[str, str]) -> Iterator[LayoutFault | CheckedItem]:
    for quota_name, used_name in _QUOTAS.items():
        quota, used = (parse_rounded_size(values.get(name, "")) for name in (quota_name, used_name))
        if not quota or used is None:
            continue
        yield CheckedItem(quota_name, dataset)
        if used > _FULL_SHARE * quota:
            yield LayoutFault(
                "too full", dataset,
                f"{100 * used // quota} % of its {quota_name} of {values[quota_name]} are used",
                "soon writes fail, although the pool has space",
                f"zfs set {quota_name}= a larger one, or remove files and snapshots", (quota_name,),
            )  # fmt: skip
    used, in_snapshots = (parse_rounded_size(values.get(name, "")) for name in ("used", "usedbysnapshots"))
    if used and in_snapshots and used > _SMALL_DATASET and in_snapshots > _SNAPSHOT_SHARE * used:
        yield LayoutFault(
            "space in snapshots", dataset, f"{values['usedbysnapshots']} of {values['used']} are in snapshots only",
            "what is removed frees no space", "zfs list -t snapshot, then zfs destroy those that are not needed",
            ("usedbysnapshots",),
        )  # fmt: skip


def _check_target(dataset: str, service: str, values: Mapping[str, str]) -> Iterator[LayoutFault | CheckedItem]:
    record, xattr = parse_rounded_size(values.get("recordsize", "")), values.get("xattr", "")
    if record and "-OST" in service:
        yield CheckedItem("records of an object target", dataset)
        if record < MIB:
            yield LayoutFault(
                "small records of a target", dataset,
                f"recordsize is {values['recordsize']}; an object target has 1M",
                "each RPC is cut into many blocks: more checksums, more metadata, shorter requests to the drives",
                f"zfs set recordsize=1M {dataset}; files that are there stay as they were written", ("recordsize",),
            )  # fmt: skip
    if xattr in ("on", "dir"):
        yield LayoutFault(
            "attributes in directories", dataset, f"xattr is {xattr}; a target has sa",
            "each file of Lustre has attributes: each takes a hidden directory, and several more reads and writes",
            f"zfs set xattr=sa {dataset}; files that are there keep theirs", ("xattr",),
        )  # fmt: skip
