# SPDX-License-Identifier: Apache-2.0
"""References of a table are distributed over its parts in order; includes, groups, resolved numbers, requirements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonde.model.errors import SystemFileError
from sonde.model.system import System, make_system, read_system
from sonde.model.system.capacity import is_mirrored
from sonde.model.system.dependencies import find_all_dependencies
from sonde.model.system.storage import RaidGroup


def build_system(**kinds: list[dict[str, Any]]) -> System:
    return make_system({"schema": "sonde-system/2", **kinds}, "made.toml")


@given(st.integers(1, 12), st.integers(1, 12))
def test_each_server_gets_an_equal_block_of_targets(servers: int, targets_per_server: int) -> None:
    total = servers * targets_per_server
    system = build_system(
        servers=[{"id": f"s[1-{servers}]"}],
        targets=[{"id": f"t[1-{total}]", "kind": "ost", "server": f"s[1-{servers}]"}],
    )
    for number in range(1, total + 1):
        assert system.find_first_reference(f"t{number}", "server") == f"s{(number - 1) // targets_per_server + 1}"
    assert [len(system.find_targets(server)) for server in system.list_part_ids("servers")] == [
        targets_per_server
    ] * servers


@given(st.integers(1, 10), st.integers(1, 10))
def test_drives_are_distributed_evenly_over_raid_groups(groups: int, drives_per_group: int) -> None:
    system = build_system(
        drives=[{"id": f"d[1-{groups * drives_per_group}]", "group": "all"}],
        raid_groups=[{"id": f"g[1-{groups}]", "level": "0", "data": drives_per_group, "drives": "all"}],
    )
    runs = [system.find_references(group, "drives") for group in system.list_part_ids("raid_groups")]
    assert [drive for run in runs for drive in run] == list(system.list_part_ids("drives"))
    assert {len(run) for run in runs} == {drives_per_group}


def test_spares_serve_all_groups_or_the_groups_of_a_block() -> None:
    drives = [{"id": "d[1-8]"}, {"id": "hs[1-4]"}]
    group = {"id": "g[1-4]", "level": "1", "data": 1, "parity": 1, "drives": "d[1-8]", "spares": "hs[1-4]"}
    assert build_system(drives=drives, raid_groups=[group]).find_references("g3", "spares") == (
        "hs1",
        "hs2",
        "hs3",
        "hs4",
    )
    blocked = build_system(drives=drives, raid_groups=[{**group, "blocks": 2}])
    assert [blocked.find_references(group_id, "spares") for group_id in ("g2", "g3")] == [
        ("hs1", "hs2"),
        ("hs3", "hs4"),
    ]


def test_a_group_of_several_tables_has_the_parts_of_all() -> None:
    system = build_system(nodes=[{"id": "a[1-2]", "group": "all"}, {"id": "b", "group": "all"}])
    assert system.resolve_names("all") == ("a1", "a2", "b")
    assert system.resolve_names("b") == ("b",)
    assert system.resolve_names("a[1-2]") == ("a1", "a2")


def test_an_unknown_part_gets_the_nearest_name() -> None:
    with pytest.raises(SystemFileError, match='Did you mean "oss1"'):
        build_system(servers=[{"id": "oss1"}]).get_part("os1")


def test_includes_are_resolved_relative_to_their_file(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    head = 'schema = "sonde-system/2"\n'
    (tmp_path / "site.toml").write_text(f'{head}notes = "a"\ninclude = "parts/servers.toml"\n', encoding="utf-8")
    (tmp_path / "parts" / "servers.toml").write_text(
        f'{head}notes = "b"\nsource = "list 7"\nstatus = "measured"\ninclude = "nodes.toml"\n'
        '[[servers]]\nid = "s1"\nmemory = "64 GB"\n', encoding="utf-8"
    )  # fmt: skip
    (tmp_path / "parts" / "nodes.toml").write_text(f'{head}[[nodes]]\nid = "n[1-3]"\ncores = 8\n', encoding="utf-8")
    system = read_system(tmp_path / "site.toml")
    assert system.id == "site"
    assert system.notes == ("a", "b")
    assert system.list_part_ids("nodes") == ("n1", "n2", "n3")
    memory, cores = system.servers[0].memory, system.nodes[0].cores
    assert memory is not None
    assert (memory.source, memory.status) == ("list 7", "measured")
    assert cores is not None
    assert cores.source == ""  # what a file says of its numbers holds for that file only
    assert [Path(path).name for path in system.files] == ["site.toml", "servers.toml", "nodes.toml"]


def test_number_source_falls_back_to_table_and_file() -> None:
    system = make_system(
        {
            "schema": "sonde-system/2",
            "source": "file",
            "nodes": [
                {"id": "a", "memory": "1 GB"},
                {"id": "b", "memory": "1 GB", "source": "table"},
                {"id": "c", "memory": {"value": "1 GB", "source": "number", "note": "n"}, "source": "table"},
            ],
        },
        "made.toml",
    )
    memories = [node.memory for node in system.nodes]
    assert [(memory.source, memory.value) for memory in memories if memory] == [
        ("file", 1e9),
        ("table", 1e9),
        ("number", 1e9),
    ]


def test_resolved_numbers_are_in_base_units() -> None:
    system = build_system(
        networks=[{"id": "ib", "kind": "infiniband", "addresses": "10.0.0.0/24", "lnet": "o2ib3", "rate": "8 Gbit/s"}],
        servers=[{"id": "s[1-2]", "memory": "4 KiB", "failover": "pairs", "interfaces": [
            {"network": "ib", "addresses": "10.0.0.[7-8]", "device": "ib0"}]}],
        drives=[{"id": "d[1-3]", "capacity": "4 kB", "latency": "2 ms", "operations": "3 kop/s",
                 "rate": {"read": "2 MB/s"}, "model": {"seek": "5 ms", "x-mine": 3}}],
        raid_groups=[{"id": "g", "level": "5", "data": 2, "segment": "1 KiB", "drives": "d[1-3]"}],
        luns=[{"id": "l[1-2]", "number": 4}],
    )  # fmt: skip
    full = system.resolve()
    assert full["servers"][1] == {
        "id": "s2", "memory": 4096, "partner": "s1",
        "interfaces": [{"network": "ib", "device": "ib0", "address": "10.0.0.8", "prefix": 24, "nid": "10.0.0.8@o2ib3",
                        "rate": {"read": 1e9, "write": 1e9}, "count": 1}],
    }  # fmt: skip
    assert full["drives"][0] == {
        "id": "d1", "capacity": 4000, "latency": 0.002, "operations": 3000.0, "rate": {"read": 2e6},
        "model": {"seek": 0.005, "x-mine": 3.0},
    }  # fmt: skip
    assert full["raid_groups"][0]["drives"] == ["d1", "d2", "d3"]
    assert (full["raid_groups"][0]["capacity"], full["raid_groups"][0]["stripe"]) == (8000, 2048)
    assert [lun["number"] for lun in full["luns"]] == [4, 5]
    assert full["nodes"] == []


@pytest.mark.parametrize(
    ("volume_kind", "expected_bytes"), [("stripe", 2 * 3000), ("concat", 3000 + 5000), ("mirror", 3000), ("zfs", 8000)]
)
def test_the_size_of_a_volume(volume_kind: str, expected_bytes: int) -> None:
    luns = [{"id": "a", "size": "3000 B"}, {"id": "b", "size": "5000 B"}]
    system = build_system(luns=luns, volumes=[{"id": "v", "kind": volume_kind, "members": ["a", "b"]}])
    assert system.compute_capacity("v") == expected_bytes


@pytest.mark.parametrize(
    ("group", "capacity"),
    [
        ({"level": "5", "data": 4, "parity": 1}, 4000),
        ({"level": "6", "data": 3, "parity": 2}, 3000),
        ({"level": "0"}, 5000),
        ({"level": "none"}, 5000),
        ({"level": "5"}, None),
        ({"level": "declustered", "data": 3, "parity": 1, "spare_share": "20 %"}, 3000),
        ({"level": "5", "data": 4, "usable": "1 kB"}, 1000),
    ],
)
def test_the_size_of_a_raid_group(group: dict[str, Any], capacity: int | None) -> None:
    drives = [{"id": "d[1-4]", "capacity": "1 kB"}, {"id": "d5", "capacity": "2 kB"}]
    system = build_system(drives=drives, raid_groups=[{"id": "g", "drives": "d[1-5]", **group}])
    assert system.compute_capacity("g") == capacity


def test_last_lun_and_last_slice_get_the_remaining_capacity() -> None:
    system = build_system(
        drives=[{"id": "d[1-3]", "capacity": "500 B"}],
        raid_groups=[{"id": "g", "level": "5", "data": 2, "drives": "d[1-3]"}],
        luns=[{"id": "a", "raid_group": "g", "size": "300 B"}, {"id": "b", "raid_group": "g"}],
        slices=[{"id": "s1", "on": "b", "share": "25 %"}, {"id": "s2", "on": "b"}],
    )
    assert [system.compute_capacity(part) for part in ("g", "b", "s1", "s2")] == [1000, 700, 175, 525]


def test_file_system_depends_on_its_chain_without_standbys() -> None:
    system = build_system(
        networks=[{"id": "ib", "kind": "infiniband"}, {"id": "gni", "kind": "aries"}],
        routers=[{"id": "r", "interfaces": [{"network": "ib"}, {"network": "gni"}]}],
        servers=[{"id": "s[1-2]", "failover": "pairs", "interfaces": [{"network": "ib"}]}],
        enclosures=[{"id": "rack"}, {"id": "box", "inside": "rack"}],
        drives=[{"id": "d[1-3]", "enclosure": "box"}, {"id": "hs"}],
        raid_groups=[{"id": "g", "level": "5", "data": 2, "drives": "d[1-3]", "spares": "hs"}],
        targets=[{"id": "t", "kind": "ost", "file_system": "fs", "server": "s1", "on": "g"}],
        file_systems=[{"id": "fs", "kind": "lustre"}, {"id": "fs2", "kind": "lustre"}],
        mounts=[{"id": "m", "file_system": "fs", "path": "/fs", "on": "n"}],
        nodes=[{"id": "n"}],
    )
    below = {"t", "s1", "g", "d1", "d2", "d3", "box", "rack", "ib", "gni", "r"}
    assert find_all_dependencies(system, "fs") == below
    assert find_all_dependencies(system, "m") == below | {"fs"}
    assert find_all_dependencies(system, "fs2") == frozenset()
    assert find_all_dependencies(system, "d2") == {"box", "rack"}


@pytest.mark.parametrize(
    ("level", "has_copies"), [("1", True), ("10", True), ("0", False), ("6", False), ("none", False)]
)
def test_parity_counts_copies_in_mirrors_only(level: str, has_copies: bool) -> None:
    group: dict[str, Any] = {"id": "g", "level": level, "drives": "d[1-4]", "data": 2, "parity": 2}
    if level in ("0", "none"):
        group |= {"data": 4, "parity": 0}
    site = make_system(
        {"schema": "sonde-system/2", "drives": [{"id": "d[1-4]", "capacity": "1 kB"}], "raid_groups": [group]}, "site"
    )
    table = site.get_part("g").table
    assert isinstance(table, RaidGroup)
    assert is_mirrored(table) is has_copies
