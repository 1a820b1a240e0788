# SPDX-License-Identifier: Apache-2.0
"""Compares pools and datasets of ZFS that only numbers distinguish, like pool0/ost0 and pool1/ost1."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem

# Properties that have no other rule, and what a dataset with another value costs.
_PROPERTIES = {
    "recordsize": "its files are written and read in blocks of another size: drives get other requests, and small"
    " writes to large blocks read first",
    "compression": "it has another capacity and another load of processors",
    "atime": "every read writes on one of them only",
    "xattr": "each extended attribute takes a separate object on one of them only",
    "primarycache": "what is read again comes from the drives on one of them only",
    "logbias": "its synchronous writes take another way: to the log, or to the drives in large pieces",
    "dnodesize": "extended attributes of its files take a block of their own, or not",
    "special_small_blocks": "its small blocks lie on other drives",
    "checksum": "it has another load of processors, and other checks of what is read",
    "acltype": "it has access lists of another kind, or none",
}
# Properties of pools.
_POOL_PROPERTIES = {
    "ashift": "its blocks have another smallest size: capacity and rate of small blocks differ",
    "autoreplace": "a new drive in the slot of a failed one is taken into one of them only",
    "autoexpand": "it does not grow by itself where the others do, or the reverse",
    "autotrim": "its flash learns of freed blocks at other times",
    "multihost": "a second server may import it while the first one uses it, which destroys it: the others refuse that",
    "failmode": "programs wait or fail in another way when its drives are lost",
    "cachefile": "it is not imported at a start, or the others are not",
    "delegation": "users may do other things with it",
    "listsnapshots": "its lists have snapshots, or not",
}
_FEATURE_COST = "what needs the feature works on one of them only; a feature cannot be taken away again"
_FEATURE_STATES = {"active": "enabled"}
_MAX_ODD_FRACTION = 1 / 3


def find_dataset_differences(file_systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
    """Properties in which a dataset differs from its peers, on all pools of a host. Pools themselves only pass theirs
    on."""
    roles: dict[str, dict[str, Mapping[str, str]]] = {}
    for pool in file_systems:
        names = {key.partition("@")[2] for key in pool.facts if "@" in key} if pool.kind == "zfs" else set()
        for name in sorted(names):
            if (role := re.sub(r"\d+", "*", name)).endswith("*"):
                roles.setdefault(role, {})[name] = pool.facts
    yield from _find_pool_differences(file_systems)
    for role, datasets in roles.items():
        for attribute in _PROPERTIES if len(datasets) > 1 else ():
            values = {name: value for name, facts in datasets.items() if (value := facts.get(f"{attribute}@{name}"))}
            if len(values) > 1:
                yield CheckedItem(f"{attribute} of datasets {role}", ", ".join(values))
                yield from _compare_values(f"datasets {role}", attribute, values, _PROPERTIES[attribute], "zfs set")


def _find_pool_differences(file_systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
    """Properties and features in which a pool differs from those that only a number distinguishes from it."""
    roles: dict[str, list[ObservedFileSystem]] = {}
    for pool in file_systems:
        if pool.kind == "zfs" and (role := re.sub(r"\d+", "*", pool.location)) != pool.location:
            roles.setdefault(role, []).append(pool)
    for role, pools in roles.items():
        names = dict.fromkeys(
            name for pool in pools for name in pool.facts if name in _POOL_PROPERTIES or name.startswith("feature ")
        )
        for attribute in names:
            values = {pool.location: _FEATURE_STATES.get(value, value) for pool in pools
                      if (value := pool.facts.get(attribute))}  # fmt: skip
            if len(values) > 1:
                yield CheckedItem(f"{attribute} of pools {role}", ", ".join(values))
                cost = _POOL_PROPERTIES.get(attribute, _FEATURE_COST)
                yield from _compare_values(f"pools {role}", attribute, values, cost, "zpool set")


def _compare_values(
    role: str, attribute: str, values: Mapping[str, str], cost: str, command: str
) -> Iterator[LayoutFault]:
    (common, count), *others = Counter(values.values()).most_common()
    odd = [name for name, value in values.items() if value != common]
    if not others or (len(values) > 2 and len(odd) > _MAX_ODD_FRACTION * len(values)):
        return
    if len(values) == 2:
        text = f"{attribute} is " + ", ".join(f"{value} on {name}" for name, value in values.items())
        location = ", ".join(values)
    else:
        text = f"{attribute} is {', '.join(f'{values[name]} on {name}' for name in odd)}; on {count} of {len(values)}"
        text += f" {role} it is {common}"
        location = ", ".join(odd)
    yield LayoutFault(
        "differs from its peers", location, text, cost,
        f"{command} {attribute.replace(' ', '@')}= the same for all, unless it is meant so; files that are there stay"
        " as they were written",
        (attribute,), tuple(odd if len(values) > 2 else values),
    )  # fmt: skip
