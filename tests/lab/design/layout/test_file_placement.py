# SPDX-License-Identifier: Apache-2.0
"""On which servers and drives the objects of files and pools of Lustre are."""

from __future__ import annotations

from pathlib import Path

import pytest
from lustre_hosts import CLIENT_SUFFIX, find_faults, print_client, print_component, print_file

POOL = "Pool: fs.flash\n" + "".join(f"fs-OST{index:04x}_UUID\n" for index in (0, 1, 3))
FILE = """/fs/f
lmm_stripe_count:  3
lmm_stripe_size:   1048576
lmm_pattern:       raid0
lmm_stripe_offset: 0
lmm_pool:          flash
obdidx objid objid group
0 2131 0x853 0
1 2131 0x853 0
3 2131 0x853 0
"""
MIXED = {0: False, 1: False, 2: True, 3: True}


def print_mirrors(first: tuple[int, ...], second: tuple[int, ...]) -> str:
    return print_file(print_component(1, first, mirror=1), print_component(2, second, mirror=2))


@pytest.mark.parametrize("servers", [True, False])
@pytest.mark.parametrize("mirrors", [((0,), (1,)), ((0, 2), (1,))])
def test_mirrors_on_one_server_are_reported(
    tmp_path: Path, mirrors: tuple[tuple[int, ...], tuple[int, ...]], servers: bool
) -> None:
    """By the servers that have the targets mounted, or by those that the client reports."""
    (fault,) = find_faults(tmp_path, files={"file.txt": print_mirrors(*mirrors)}, client=print_client(servers))
    assert (fault.kind, fault.location) == ("mirrors on one server", "/fs/f")
    assert f"all of which {'10.0.0.11@o2ib' if servers else 'oss1'} serves" in fault.problem


@pytest.mark.parametrize("mirrors", [((0,), (2,)), ((0, 1), (2, 3))])
def test_mirrors_on_two_servers_are_fine(tmp_path: Path, mirrors: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert find_faults(tmp_path, files={"file.txt": print_mirrors(*mirrors)}) == ()


def test_mirrors_on_one_target_are_reported(tmp_path: Path) -> None:
    (fault,) = find_faults(tmp_path, files={"file.txt": print_mirrors((0,), (0,))})
    assert (fault.kind, fault.problem) == ("objects on one target", "several mirrors have an object on target 0")


def test_component_on_all_targets_may_overlap(tmp_path: Path) -> None:
    text = print_file(print_component(1, (1,), end="1048576"), print_component(2, (0, 1, 2, 3), begin="1048576"))
    assert find_faults(tmp_path, files={"file.txt": text}) == ()


def test_file_in_a_pool_on_unlike_drives_is_reported(tmp_path: Path) -> None:
    (fault,) = find_faults(tmp_path, rotating=MIXED, extra={"login": {"lfs getstripe /fs/f": FILE}})
    assert (fault.kind, fault.location) == ("objects on unlike drives", "/fs/f")
    assert "in the pool flash are on flash, but those on fs-OST0003 are on rotating drives" in fault.problem


def test_pool_of_unlike_drives_is_one_fault_with_its_files(tmp_path: Path) -> None:
    outputs = {"lfs pool_list fs.flash": POOL, "lfs getstripe /fs/f": FILE}
    (fault,) = find_faults(tmp_path, rotating=MIXED, extra={"login": outputs})
    assert (fault.kind, fault.location) == ("pool of unlike drives", "fs.flash")
    assert fault.problem == "its targets are on flash, but fs-OST0003 is on rotating drives"
    assert fault.remedy.startswith("lctl pool_remove fs.flash fs-OST0003")
    assert fault.consequences == ("/fs/f: it has objects on fs-OST0003",)


@pytest.mark.parametrize("rotating", [dict.fromkeys(range(4), False), {0: False, 1: False, 2: True, 3: False}])
def test_pool_of_equal_drives_is_fine(tmp_path: Path, rotating: dict[int, bool]) -> None:
    assert find_faults(tmp_path, rotating=rotating, extra={"login": {"lfs pool_list fs.flash": POOL}}) == ()


@pytest.mark.parametrize(("path", "count", "kinds"), [
    ("/fs", -1, ["all files on all targets"]), ("/fs/large", -1, []), ("/fs", 1, []),
])  # fmt: skip
def test_default_layout_on_all_targets_is_reported(tmp_path: Path, path: str, count: int, kinds: list[str]) -> None:
    text = f"{path}\nstripe_count:  {count} stripe_size:   1048576 pattern:       raid0 stripe_offset: -1\n"
    assert [fault.kind for fault in find_faults(tmp_path, files={"layout.txt": text})] == kinds


def test_servers_of_clients_are_no_difference_of_targets(tmp_path: Path) -> None:
    assert CLIENT_SUFFIX in print_client()["lctl get_param"]
    assert find_faults(tmp_path) == ()


def test_root_at_a_deep_mount_point_is_checked(tmp_path: Path) -> None:
    outputs = print_client()
    outputs["findmnt --json --real"] = outputs["findmnt --json --real"].replace('"/fs"', '"/mnt/fs"')
    outputs["lfs getstripe -d /mnt/fs"] = (
        "/mnt/fs\nstripe_count:  -1 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1\n"
    )
    (fault,) = find_faults(tmp_path, client=outputs)
    assert (fault.kind, fault.location) == ("all files on all targets", "login: /mnt/fs")
