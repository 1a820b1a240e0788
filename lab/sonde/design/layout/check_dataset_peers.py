# SPDX-License-Identifier: Apache-2.0
"""Compares datasets of ZFS that only numbers distinguish, like pool0/ost0 and pool1/ost1."""

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
}
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
    for role, datasets in roles.items():
        for attribute in _PROPERTIES if len(datasets) > 1 else ():
            values = {name: value for name, facts in datasets.items() if (value := facts.get(f"{attribute}@{name}"))}
            if len(values) > 1:
                yield CheckedItem(f"{attribute} of datasets {role}", ", ".join(values))
                yield from _compare_values(role, attribute, values)


def _compare_values(role: str, attribute: str, values: Mapping[str, str]) -> Iterator[LayoutFault]:
    (common, count), *others = Counter(values.values()).most_common()
    odd = [name for name, value in values.items() if value != common]
    if not others or (len(values) > 2 and len(odd) > _MAX_ODD_FRACTION * len(values)):
        return
    if len(values) == 2:
        text = f"{attribute} is " + ", ".join(f"{value} on {name}" for name, value in values.items())
        location = ", ".join(values)
    else:
        text = f"{attribute} is {', '.join(f'{values[name]} on {name}' for name in odd)}; on {count} of {len(values)}"
        text += f" datasets {role} it is {common}"
        location = ", ".join(odd)
    yield LayoutFault(
        "differs from its peers", location, text, _PROPERTIES[attribute],
        f"zfs set {attribute}= the same for all, unless it is meant so; files that are there stay as they were written",
        (attribute,), tuple(odd if len(values) > 2 else values),
    )  # fmt: skip
