# SPDX-License-Identifier: Apache-2.0
"""Collected outputs of several hosts: each is checked with its own devices, and the Lustre targets of all together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from array_host import PATHS, PrintedArray, describe_arrays, name_drive, print_detail

from sonde.design.checked_items import CheckedItem
from sonde.design.layout import check as check_module
from sonde.design.layout import check_hosts as check_hosts_module
from sonde.design.layout import check_targets
from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.faults import LayoutCheck, LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem
from sonde.design.layout.live.saved_output import read_hosts
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import list_written_attributes
from sonde.model.errors import UserError
from sonde.model.system import make_system

TARGET = """   Read previous values:
Target:     fs-OST000{0}
Index:      {0}
Lustre FS:  fs
Mount type: ldiskfs
Flags:      0x1002
              (OST no_primnode )
Persistent mount opts: errors=remount-ro
Parameters:  mgsnode={1}
"""


def write_host(folder: Path, name: str, **outputs: str) -> Path:
    """A file as the collector writes it."""
    path = folder / f"{name}.txt"
    path.write_text("".join(f"=== sonde layout collect: {command} ===\n{text}\n" for command, text in outputs.items()))
    return path


def write_array_host(folder: Path, host: str, number: int, drives: list[int]) -> Path:
    """A host with one of the two planned arrays; its drives have the names sda, sdb, ... on each host."""
    links = "".join(f"{PATHS}{drive}-lun-0 ../../{name_drive(position)}\n" for position, drive in enumerate(drives))
    array = PrintedArray(f"md{number}", range(6), [6])
    return write_host(folder, host, find=links, mdadm=print_detail(array))


def check(paths: list[Path]) -> LayoutCheck:
    plan = plan_layout(make_system(describe_arrays(), "system.toml"))
    layout = plan.get_layout("scratch")
    return check_hosts(read_hosts(paths), layout, (), list_written_attributes(plan.system, layout))


def test_equal_device_names_of_two_hosts_are_sound(tmp_path: Path) -> None:
    first = write_array_host(tmp_path, "alpha", 0, [0, 1, 2, 3, 4, 5, 12])
    second = write_array_host(tmp_path, "beta", 1, [6, 7, 8, 9, 10, 11, 13])
    verdict = check([first, second])
    assert verdict.faults == ()
    locations = {item.location for item in verdict.checked_items if item.subject == "the planned drives of an array"}
    assert locations == {"alpha: md0", "beta: md1"}


def test_fault_of_one_host_is_reported_with_its_name(tmp_path: Path) -> None:
    first = write_array_host(tmp_path, "alpha", 0, [0, 1, 2, 3, 4, 5, 12])
    second = write_array_host(tmp_path, "beta", 1, [6, 7, 8, 9, 10, 4, 13])
    (fault,) = check([first, second]).faults
    assert fault.location == "beta: md1"
    assert "sdf" in fault.problem


def test_targets_of_all_hosts_are_compared(tmp_path: Path) -> None:
    paths = [
        write_host(tmp_path, f"oss{number}", **{f"tunefs.lustre --dryrun /dev/md{number}": TARGET.format(number, mgs)})
        for number, mgs in enumerate(("10.0.0.1@o2ib", "10.0.0.1@o2ib", "10.0.0.9@o2ib"))
    ]
    (fault,) = check_hosts(read_hosts(paths)).faults
    assert (fault.kind, fault.location) == ("another management server", "fs-OST0002")
    twice = write_host(tmp_path, "oss9", **{"tunefs.lustre --dryrun /dev/md9": TARGET.format(0, "10.0.0.1@o2ib")})
    (fault,) = check_hosts(read_hosts([*paths[:2], twice])).faults
    assert (fault.kind, fault.location) == ("index used twice", "fs-OST0000")


def test_device_list_without_targets_is_complete(tmp_path: Path) -> None:
    path = write_host(tmp_path, "mds1", **{"lctl dl": "  0 UP mgc MGC10.0.0.1@o2ib 1f4e 4\n  1 UP mds MDS MDS_uuid 2"})
    assert read_hosts([path])[""].unknown == ()
    assert read_hosts([write_host(tmp_path, "mds2", **{"lctl dl": ""})])[""].unknown != ()


def test_output_of_no_certain_host_is_rejected(tmp_path: Path) -> None:
    paths = [write_array_host(tmp_path, name, 0, [0, 1, 2, 3, 4, 5, 12]) for name in ("alpha", "beta")]
    other = tmp_path / "mdadm.txt"
    other.write_text(print_detail(PrintedArray("md0", range(6))))
    with pytest.raises(UserError, match=r"mdadm.txt may be of any of the 2 hosts"):
        read_hosts([*paths, other])
    assert list(read_hosts([paths[0], other])) == [""]


FINDMNT = """TARGET        SOURCE           FSTYPE OPTIONS
/mnt/fs/ost{0} /dev/mapper/ost{0} lustre ro,svname=fs-OST000{0},mgsnode=10.0.0.1@o2ib
"""


@pytest.mark.parametrize(("number", "kinds"), [(1, []), (0, ["target mounted twice"])])
def test_target_mounted_on_two_servers_is_reported(tmp_path: Path, number: int, kinds: list[str]) -> None:
    """Its label on both is no second use of an index: to make it again would destroy it."""
    hosts = [
        write_host(tmp_path, host, **{"tunefs.lustre": TARGET.format(each, "10.0.0.1@o2ib"),
                                      "findmnt": FINDMNT.format(each)})
        for host, each in (("oss1", 0), ("oss2", number))
    ]  # fmt: skip
    faults = [fault for fault in check_hosts(read_hosts(hosts)).faults if "OST" in fault.location]
    assert [fault.kind for fault in faults] == kinds
    assert all("Never make it again" in fault.remedy for fault in faults)


@pytest.mark.parametrize(
    ("failover", "features", "is_fault"),
    [
        ("10.0.1.1@o2ib:10.0.1.2@o2ib", "extent flex_bg mmp", False),
        ("10.0.1.1@o2ib:10.0.1.2@o2ib", "extent flex_bg", True),
        ("10.0.1.1@o2ib failover.node=10.0.1.2@o2ib", "extent flex_bg", True),  # as tunefs.lustre prints service nodes
        ("10.0.1.1@o2ib,10.0.1.1@tcp", "extent flex_bg", False),  # two addresses of one server
    ],
)
def test_target_of_two_servers_needs_mount_protection(
    tmp_path: Path, failover: str, features: str, is_fault: bool
) -> None:
    dump = f"""Filesystem volume name:   fs-OST0000
Filesystem magic number:  0xEF53
Filesystem features:      has_journal {features}
Block count:              3000000000
Block size:               4096
"""
    label = TARGET.format(0, "10.0.0.1@o2ib").rstrip() + f" failover.node={failover}\n"
    faults = check_hosts(read_hosts([
        write_host(tmp_path, "oss1", **{"tunefs.lustre": label, "dumpe2fs -h": dump}),
        write_host(tmp_path, "oss2", **{"tunefs.lustre": TARGET.format(1, "10.0.0.1@o2ib")}),
    ])).faults  # fmt: skip
    assert ("no protection against two mounts" in [fault.kind for fault in faults]) == is_fault


PRINTED_MAP = """ost0 ({}) dm-0 ACME,LUN
size=10T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw
`-+- policy='service-time 0' prio=50 status=active
  |- 2:0:0:1 sda 65:1 active ready running
  `- 3:0:0:1 sdb 65:2 active ready running
"""


@pytest.mark.parametrize(
    ("identities", "kinds"),
    [
        (("3600a0b8000000001", "3600a0b8000000001"), []),
        (("3600a0b8000000001", "3600a0b8000000002"), ["index used twice"]),
    ],
)
def test_label_of_one_lun_on_two_servers_is_sound(
    tmp_path: Path, identities: tuple[str, str], kinds: list[str]
) -> None:
    paths = [
        write_host(tmp_path, host, **{"multipath -ll": PRINTED_MAP.format(identity),
                                      "tunefs.lustre --dryrun /dev/mapper/ost0": TARGET.format(0, "10.0.0.1@o2ib")})
        for host, identity in zip(("oss1", "oss2"), identities, strict=True)
    ]  # fmt: skip
    faults = check_hosts(read_hosts(paths)).faults
    assert [fault.kind for fault in faults] == kinds
    assert all("600a0b8000000001 and 600a0b8000000002" in fault.problem for fault in faults)
    assert all("make it again" not in fault.remedy for fault in faults)


def test_targets_of_two_hosts_are_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the targets of one host is that of all of them."""
    calls: list[int] = []
    find_faults = check_targets.find_target_faults

    def count_targets(file_systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
        calls.append(len(file_systems))
        return find_faults(file_systems)

    for module in (check_module, check_hosts_module):
        monkeypatch.setattr(module, "find_target_faults", count_targets)
    paths = [
        write_host(tmp_path, f"oss{number}", **{f"tunefs.lustre --dryrun /dev/md{number}": TARGET.format(number, mgs)})
        for number, mgs in enumerate(("10.0.0.1@o2ib", "10.0.0.1@o2ib", "10.0.0.9@o2ib"))
    ]
    (fault,) = check_hosts(read_hosts(paths)).faults
    assert fault.location == "fs-OST0002"
    assert [count for count in calls if count] == [3], "hosts compare only what their clients show"


def test_remedy_has_an_option_for_each_management_server(tmp_path: Path) -> None:
    usual = "10.0.0.1@o2ib mgsnode=10.0.0.2@o2ib"
    paths = [
        write_host(tmp_path, f"oss{number}", **{f"tunefs.lustre --dryrun /dev/md{number}": TARGET.format(number, mgs)})
        for number, mgs in enumerate((usual, usual, "10.0.0.1@o2ib mgsnode=10.0.0.9@o2ib"))
    ]
    (fault,) = check_hosts(read_hosts(paths)).faults
    assert "--erase-params --mgsnode=10.0.0.1@o2ib --mgsnode=10.0.0.2@o2ib with" in fault.remedy
