# SPDX-License-Identifier: Apache-2.0
"""Maps of one LUN that have different names on the servers of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from storage_builders import describe_pair

from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.faults import LayoutCheck, LayoutFault
from sonde.design.layout.live.saved_output import read_hosts
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import list_written_attributes
from sonde.model.system import make_system

NAMES = ("ost0", "ost1", "ost2", "ost3")


def describe_two_controllers() -> dict[str, Any]:
    """The pair of servers, whose LUNs belong to two controllers in turn."""
    system = describe_pair()
    system["controllers"] = [{"id": f"c{side}", "enclosure": "e", "rate": "4 GB/s"} for side in "ab"]
    system["raid_groups"][0]["controller"] = ["ca", "cb", "ca", "cb"]
    system["raid_groups"][1]["controller"] = "ca"
    return system


def print_host(names: Sequence[str], mounted: Sequence[int]) -> str:
    """The outputs of a server that has the LUNs under these names."""
    maps, devices, mounts = "", [], []
    for number, name in enumerate(names):
        maps += (
            f"{name} (3600a0b80000000000000000000000{number:03}) dm-{number} ACME,LUN\n"
            "size=14T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n"
        )
        for priority, target in ((50, number % 2), (10, 1 - number % 2)):
            maps += f"|-+- policy='service-time 0' prio={priority} status=active\n"
            maps += "".join(f"  |- {host}:0:{target}:{number} sd{'abcd'[number]}{host}{target} 65:1 active ready"
                            " running\n" for host in (2, 3))  # fmt: skip
        devices.append(f'{{"kname": "dm-{number}", "name": "{name}", "type": "mpath", "size": {1 << 40},'
                       f' "label": "fs-OST000{number}"}}')  # fmt: skip
        if number in mounted:
            mounts.append(f'{{"target": "/mnt/{number}", "source": "/dev/mapper/{name}", "fstype": "lustre",'
                          f' "options": "rw,svname=fs-OST000{number}"}}')  # fmt: skip
    return (
        f"=== sonde layout collect: multipath -ll ===\n{maps}\n"
        f'=== sonde layout collect: lsblk ===\n{{"blockdevices": [{", ".join(devices)}]}}\n'
        f'=== sonde layout collect: findmnt ===\n{{"filesystems": [{", ".join(mounts)}]}}\n'
    )


def check_pair(names_of_second: Sequence[str], folder: Path, absent: Sequence[str] = ()) -> LayoutCheck:
    """The check of both servers, of which the second lacks paths with an address that begins in one of these ways."""
    (folder / "oss1.txt").write_text(print_host(NAMES, (0, 1)))
    lines = print_host(names_of_second, (2, 3)).splitlines()
    text = "\n".join(line for line in lines if not any(f"|- {start}" in line for start in absent))
    (folder / "oss2.txt").write_text(text)
    plan = plan_layout(make_system(describe_two_controllers(), "pair.toml"))
    layout = plan.get_layout("fs")
    storage_by_host = read_hosts([folder / "oss1.txt", folder / "oss2.txt"])
    return check_hosts(storage_by_host, layout, ["/fs"], list_written_attributes(plan.system, layout))


def find_faults(names_of_second: Sequence[str], folder: Path) -> list[LayoutFault]:
    verdict = check_pair(names_of_second, folder)
    kinds = ("device not visible", "target not mounted", "not as planned")
    return [fault for fault in verdict.faults
            if fault.kind in kinds and {"device", "controller"} & {*fault.attributes, "device" * (fault.kind[0] != "n")}
            ]  # fmt: skip


def test_equal_names_on_both_servers_are_sound(tmp_path: Path) -> None:
    assert find_faults(NAMES, tmp_path) == []


def test_lun_without_its_alias_is_visible_by_another_name(tmp_path: Path) -> None:
    (fault,) = find_faults(("mpatha", *NAMES[1:]), tmp_path)
    assert (fault.kind, fault.location) == ("not as planned", "oss2: dm-0")
    assert "with fs-OST0000, which is ost0 in the plan and on oss1" in fault.problem
    assert "after a failure of oss1 fs-OST0000 cannot be mounted there" in fault.cost
    assert "alias in multipath.conf of oss2" in fault.remedy
    assert fault.consequences == ()


@pytest.mark.parametrize("names", [("ost1", "ost0", "ost2", "ost3")])
def test_exchanged_aliases_explain_controllers(names: Sequence[str], tmp_path: Path) -> None:
    (fault,) = find_faults(names, tmp_path)
    assert fault.location == "oss2: dm-0, dm-1"
    assert "ost1 is the LUN 600a0b80000000000000000000000000 with fs-OST0000" in fault.problem
    assert len([text for text in fault.consequences if "lead to different controllers" in text]) == 2


@pytest.mark.parametrize(
    ("absent", "problems"),
    [((), []), (("2:0:1:", "3:0:0:"), ["have 2 paths, and 4 on oss1: oss2 (host2 sees 1 port, host3 sees 1 port)"])],
)
def test_host_with_half_of_the_paths_of_its_partner(
    absent: Sequence[str], problems: Sequence[str], tmp_path: Path
) -> None:
    """Both adapters lack another port, so that they see equally many."""
    verdict = check_pair(NAMES, tmp_path, absent)
    faults = [fault for fault in verdict.faults if fault.kind == "hosts differ"]
    assert [text in fault.problem for fault, text in zip(faults, problems, strict=True)] == [True] * len(problems)
    assert "numbers of paths on hosts with the same LUNs" in {item.subject for item in verdict.checked_items}
