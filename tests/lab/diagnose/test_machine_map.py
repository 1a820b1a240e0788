# SPDX-License-Identifier: Apache-2.0
"""Which parts of a machine are symmetric, and what depends on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnosis_machine import SYSTEM, read_small_machine, write_small_system

from sonde.diagnose.hypotheses import list_hypotheses
from sonde.diagnose.machine_map import read_machine
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import UserError
from sonde.model.system import read_system


def test_equal_parts_are_one_group(tmp_path: Path) -> None:
    groups = {group.kind: group for group in read_small_machine(tmp_path).part_groups}
    assert groups["target"].members == tuple(f"t{index}" for index in range(8))
    assert groups["server"].members == ("oss1", "oss2", "oss3", "oss4")
    assert groups["router"].members == ("r1", "r2")
    assert groups["node"].members == ("n1", "n2", "n3", "n4")


def test_server_slows_its_targets(tmp_path: Path) -> None:
    servers = next(group for group in read_small_machine(tmp_path).part_groups if group.kind == "server")
    assert servers.targets[1] == {"t2", "t3"}


def test_part_with_another_rate_is_a_separate_group(tmp_path: Path) -> None:
    split = SYSTEM.replace(
        'id = "t[0-7]"\nkind = "ost"\nindex = 0\nfile_system = "fs"\nserver = "oss[1-4]"\nrate = "100 MB/s"',
        'id = "t[0-5]"\nkind = "ost"\nindex = 0\nfile_system = "fs"\nserver = "oss[1-3]"\nrate = "100 MB/s"\n\n'
        '[[targets]]\nid = "t[6-7]"\nkind = "ost"\nindex = 6\nfile_system = "fs"\nserver = "oss4"\nrate = "50 MB/s"',
    )
    groups = read_small_machine(tmp_path, split).part_groups
    assert [len(group.members) for group in groups if group.kind == "target"] == [6, 2]
    # Servers are distinguished only by their descriptions; the targets behind them are of another group.
    assert [len(group.members) for group in groups if group.kind == "server"] == [4]


def test_edison_has_one_group_for_144_targets() -> None:
    machine = read_machine(read_system(find_system_file("edison")), "fs3")
    sizes = {group.kind: len(group.members) for group in machine.part_groups}
    assert sizes == {"target": 144, "node": 12, "server": 36, "router": 42}
    assert machine.node_count == 5588


GROUP = """
[[drives]]
id = "d[0-79]"
kind = "hdd"

[[raid_groups]]
id = "g[0-7]"
level = "{level}"
data = {data}
parity = {parity}
segment = "128 KiB"
drives = "d[0-79]"
"""
RATE_OF_TARGET = 'rate = "100 MB/s"'


@pytest.mark.parametrize(
    ("kind", "level", "is_expected"),
    [
        ("lustre", "", True),  # customary where nothing is described
        ("lustre", "6", True),
        ("lustre", "0", False),
        ("ceph", "", False),
        ("gluster", "", False),
        ("ceph", "6", True),
    ],
)
def test_rebuild_needs_targets_with_raid_groups(tmp_path: Path, kind: str, level: str, is_expected: bool) -> None:
    text = SYSTEM.replace('kind = "lustre"', f'kind = "{kind}"')
    if level:
        data, parity = (8, 2) if level == "6" else (10, 0)
        text = text.replace(RATE_OF_TARGET, 'on = "g[0-7]"') + GROUP.format(level=level, data=data, parity=parity)
    hypotheses = list_hypotheses(read_small_machine(tmp_path, text), ())
    assert any(item.fault == "raid-rebuild" for item in hypotheses) == is_expected
    assert any(item.fault == "slow-target" for item in hypotheses)


def test_targets_on_slices_of_raid_groups_can_rebuild() -> None:
    machine = read_machine(read_system(find_system_file("edison")), "fs3", most_targets=8)
    assert machine.rebuildable_targets == set(machine.targets)


def test_unknown_mount_error_lists_the_valid_mounts(tmp_path: Path) -> None:
    system = read_system(str(write_small_system(tmp_path)))
    with pytest.raises(UserError, match='no mount "scratch" with storage targets; it has m'):
        read_machine(system, "scratch")


def test_smaller_machine_has_the_first_targets_and_their_servers() -> None:
    system = read_system(find_system_file("edison"))
    machine = read_machine(system, "fs3", most_targets=32)
    sizes = {group.kind: len(group.members) for group in machine.part_groups}
    assert sizes == {"target": 32, "node": 4, "server": 8, "router": 42}
    assert machine.target_count == 144
    assert len(machine.document["targets"]) == 33  # and the metadata target
    assert len(machine.document["units"]) == 4
    assert machine.document["file_systems"][0]["peak"]["read"] == pytest.approx(16e9)
    with pytest.raises(UserError, match="has 144 storage targets; a machine of 200 cannot be made of it"):
        read_machine(system, "fs3", most_targets=200)


def test_smaller_machine_has_complete_units() -> None:
    """A target's rate is that of its unit divided by the unit's targets."""
    machine = read_machine(read_system(find_system_file("edison")), "fs3", most_targets=9)
    assert len(machine.targets) == 16
