# SPDX-License-Identifier: Apache-2.0
"""A fault of one drive that several hosts see is one fault."""

from __future__ import annotations

import pytest

from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedDisk, ObservedPath, ObservedStorage

DRIVES = 8


def observe(has_array: bool, odd: str, prefix: str = "35000c500a0", attribute: str = "write_cache") -> ObservedStorage:
    """A host with maps over eight drives, one of which has another value of an attribute, and maybe their array."""
    disks = {}
    for number in range(DRIVES):
        name = f"dm-{number}"
        settings = {"uuid": f"{prefix}{number:06}", "product": "ACME,DISK", "name": f"slot{number}"}
        paths = tuple(ObservedPath(f"sd{side}{'abcdefgh'[number]}", True, True, adapter=str(host))
                      for host, side in enumerate("xy"))  # fmt: skip
        queue = {attribute: "write back" if name == odd else "write through"}
        disks[name] = ObservedDisk(name, "multipath", settings=settings, queue=queue, paths=paths)
    if has_array:
        disks["md0"] = ObservedDisk("md0", "md", members=tuple(sorted(disks)), level="raid6", geometry="6+2", data=6)
    return join_observations(ObservedStorage(disks=disks))


def find_faults(first: ObservedStorage, second: ObservedStorage, attribute: str = "write_cache") -> list[str]:
    faults = check_hosts({"oss1": first, "oss2": second}).faults
    return [fault.location for fault in faults if attribute in fault.attributes]


def test_cache_of_a_drive_of_two_hosts_is_one_fault() -> None:
    hosts = {"oss1": observe(True, "dm-3"), "oss2": observe(False, "dm-3")}
    (fault,) = [each for each in check_hosts(hosts).faults if "write_cache" in each.attributes]
    assert fault.location == "oss1: md0"
    assert any(text.startswith("oss2: dm-3: write_cache is write back") for text in fault.consequences)
    assert find_faults(hosts["oss2"], hosts["oss1"]) == ["oss2: md0"]


@pytest.mark.parametrize(("odd", "prefix", "attribute"), [
    ("dm-4", "35000c500a0", "write_cache"), ("dm-3", "35000c500b0", "write_cache"),
    ("dm-3", "35000c500a0", "nr_requests")])  # fmt: skip
def test_faults_of_other_drives_stay_separate(odd: str, prefix: str, attribute: str) -> None:
    """Also a setting of a queue: each host has its own."""
    hosts = (observe(True, "dm-3", attribute=attribute), observe(False, odd, prefix, attribute))
    assert len(find_faults(*hosts, attribute)) == 2
