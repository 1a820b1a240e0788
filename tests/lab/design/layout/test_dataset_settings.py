# SPDX-License-Identifier: Apache-2.0
"""Settings of ZFS: properties of pools alike, quotas, snapshots, datasets of targets, and parameters of the module."""

from __future__ import annotations

import pytest

from sonde.design.layout.check import check_layout
from sonde.design.layout.live.observations import ObservedFileSystem, merge_observations
from sonde.design.layout.live.saved_output import read_saved_output

HEAD = "NAME  PROPERTY  VALUE  SOURCE\n"


def find_faults(text: str, *file_systems: ObservedFileSystem) -> list[tuple[str, str, str]]:
    storage = read_saved_output(text, "output")
    for each in file_systems:
        storage = merge_observations(storage, type(storage)((each,)))
    return [(fault.kind, fault.location, fault.problem) for fault in check_layout(storage).faults]


@pytest.mark.parametrize(("name", "first", "second"), [
    ("multihost", "on", "off"), ("ashift", "12", "13"), ("feature@large_blocks", "active", "disabled"),
    ("autoexpand", "on", "off")])  # fmt: skip
def test_property_of_one_pool_is_reported(name: str, first: str, second: str) -> None:
    ((kind, location, problem),) = find_faults(f"{HEAD}pool0  {name}  {first}  local\npool1  {name}  {second}  local\n")
    assert (kind, location) == ("differs from its peers", "pool0, pool1")
    assert "on pool0" in problem
    assert f"{second} on pool1" in problem


@pytest.mark.parametrize("names", [("pool0", "pool1"), ("home", "scratch")])
def test_pools_that_may_differ_have_no_fault(names: tuple[str, str]) -> None:
    values = ("active", "enabled") if names[0] == "pool0" else ("active", "disabled")
    rows = [f"{name}  feature@large_blocks  {value}  local" for name, value in zip(names, values, strict=True)]
    assert find_faults(HEAD + "\n".join(rows) + "\n") == []


@pytest.mark.parametrize(("used", "kinds"), [("98.2T", ["too full"]), ("61.0T", [])])
def test_quota_that_is_used_up_is_reported(used: str, kinds: list[str]) -> None:
    faults = find_faults(f"{HEAD}pool/home  quota  100T  local\npool/home  used  {used}  -\n")
    assert [kind for kind, *_ in faults] == kinds


@pytest.mark.parametrize(("snapshots", "kinds"), [("60.0T", ["space in snapshots"]), ("6.0T", [])])
def test_space_in_snapshots_is_reported(snapshots: str, kinds: list[str]) -> None:
    faults = find_faults(f"{HEAD}pool/home  used  90.0T  -\npool/home  usedbysnapshots  {snapshots}  -\n")
    assert [kind for kind, *_ in faults] == kinds


@pytest.mark.parametrize(("name", "value", "service", "kinds"), [
    ("recordsize", "128K", "fs-OST0001", ["small records of a target"]), ("recordsize", "1M", "fs-OST0001", []),
    ("recordsize", "128K", "fs-MDT0000", []), ("xattr", "on", "fs-MDT0000", ["attributes in directories"]),
    ("xattr", "sa", "fs-MDT0000", [])])  # fmt: skip
def test_setting_of_a_target_is_reported(name: str, value: str, service: str, kinds: list[str]) -> None:
    mount = ObservedFileSystem("/mnt/t", "lustre", "pool/t", options=("ro", f"svname={service}", "osd=osd-zfs"))
    assert [kind for kind, *_ in find_faults(f"{HEAD}pool/t  {name}  {value}  local\n", mount)] == kinds
    assert find_faults(f"{HEAD}pool/t  {name}  {value}  local\n") == []


@pytest.mark.parametrize(("parameter", "faulty", "sound"), [
    ("zfs_arc_max", "1073741824", "0"), ("zfs_arc_max", "3999999999", "68719476736"), ("zfs_nocacheflush", "1", "0"),
    ("zfs_prefetch_disable", "1", "0"), ("zfs_txg_timeout", "1", "5"), ("zfs_txg_timeout", "120", "30"),
    ("zfs_dirty_data_max", "67108864", "4294967296"), ("zil_replay_disable", "1", "0")])  # fmt: skip
def test_parameter_of_the_module_is_reported(parameter: str, faulty: str, sound: str) -> None:
    line = f"/sys/module/zfs/parameters/{parameter}:"
    ((_, location, problem),) = find_faults(f"{line}{faulty}\n")
    assert location == "module zfs"
    assert problem.startswith(f"{parameter} is {faulty}: ")
    assert find_faults(f"{line}{sound}\n") == []
