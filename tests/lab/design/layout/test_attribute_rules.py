# SPDX-License-Identifier: Apache-2.0
"""The rules about single attributes: the collector prints what they read, and each has values that are no fault."""

from __future__ import annotations

import re

import pytest

from sonde.design.layout.attribute_rule import AttributeRule
from sonde.design.layout.attribute_rules import RULES, find_attribute_faults
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.collector import make_collector
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem
from sonde.design.layout.live.saved_output import read_saved_output

SOUND = {
    "features": "has_journal ext_attr resize_inode dir_index filetype extent 64bit flex_bg sparse_super",
    "debug": "ioctl neterror warning error emerg ha config console lfsck",
    "reshape_position": "none",
    "bitmap/chunksize": "67108864",
    "state": "a",
    "health": "-",
    "failmode": "wait",
    "primarycache": "all",
    "sync": "standard",
    "dedup": "off",
    "checksum": "on",
    "readonly": "off",
    "mounted": "yes",
    "canmount": "on",
    "statahead_max": "128",
    "log-version": "2",
    "copies": "1",
    "redundant_metadata": "all",
    "zfs_txg_timeout": "5",
}
# Attributes of outputs that print all of a part: lsblk --output-all, lvs, xfs_info, dumpe2fs -h.
PRINTED_WITH_ALL_OTHERS = {"xfs", "ext4", "lvm", "disk"}


@pytest.mark.parametrize("rule", RULES, ids=[f"{rule.part} {rule.attribute} {rule.kind}" for rule in RULES])
def test_sound_value_is_no_fault(rule: AttributeRule) -> None:
    default = "1" if re.fullmatch(rule.faulty, "0") else "0"
    value = SOUND.get(rule.attribute, default)
    needed = {"crc": "1", "canmount": "on", "mounted": "yes", "origin": ""}
    attributes = {rule.attribute: value} | {
        name: needed.get(name, "/tank") for name in rule.needs or {} if name != rule.attribute
    }
    if rule.part in ("md", "lvm", "disk", "part", "multipath"):
        results = list(find_attribute_faults([], [ObservedDisk("x", rule.part, settings=attributes)]))
    else:
        results = list(find_attribute_faults([ObservedFileSystem("x", rule.part, facts=attributes)], []))
    assert [result for result in results if getattr(result, "kind", "") == rule.kind] == []
    assert results, "it was compared"


@pytest.mark.parametrize("rule", RULES, ids=[f"{rule.part} {rule.attribute} {rule.kind}" for rule in RULES])
def test_collector_prints_attribute_of_rule(rule: AttributeRule) -> None:
    # lsblk prints read_only as "ro", and zpool get all failmode
    if rule.part not in PRINTED_WITH_ALL_OTHERS and rule.attribute not in ("read_only", "failmode"):
        assert re.search(rf"\b{re.escape(rule.attribute)}\b", make_collector())


def test_setting_fault_of_a_dataset_mentions_the_dataset() -> None:
    text = "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME  STATE  READ WRITE CKSUM\n\ttank  ONLINE  0 0 0\n\n"
    storage = read_saved_output(f"{text}tank  sync  standard  default\ntank/db  sync  disabled  local\n", "zpool")
    faults = [result for result in find_attribute_faults(storage.file_systems, []) if hasattr(result, "kind")]
    assert [(fault.kind, fault.location) for fault in faults] == [("synchronous writes are not", "tank/db")]


def test_harmless_status_of_pool_is_no_fault() -> None:
    status = "status: Some supported and requested features are not enabled on the pool."
    text = (
        f"  pool: tank\n state: ONLINE\n{status}\nconfig:\n\n\tNAME  STATE  READ WRITE CKSUM\n\ttank  ONLINE  0 0 0\n"
    )
    assert read_saved_output(text, "zpool").file_systems[0].facts["status"].startswith("Some supported")


@pytest.mark.parametrize(("origin", "count"), [("", 1), ("home", 0)])
def test_snapshot_may_be_read_only(origin: str, count: int) -> None:
    volume = ObservedDisk("data-snap", "lvm", settings={"permission": "r", **({"origin": origin} if origin else {})})
    faults = [each for each in find_attribute_faults((), (volume,)) if isinstance(each, LayoutFault)]
    assert [fault.kind for fault in faults] == ["write-protected"] * count
