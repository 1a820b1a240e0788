# SPDX-License-Identifier: Apache-2.0
"""Lookups in a system: server of a target, members of a unit or pool, capacities, unknown values."""

from __future__ import annotations

from typing import Any

import pytest

from sonde.model.errors import SystemFileError
from sonde.model.system import System, make_system
from sonde.model.system.index import PartItem

SITE: dict[str, Any] = {
    "schema": "sonde-system/2",
    "id": "site",
    "title": "A site",
    "servers": [
        {"id": "oss[1-4]", "roles": "oss", "failover": "pairs", "group": "oss"},
        {"id": "mds1", "roles": ["mds", "mgs"], "partner": "mds2"},
        {"id": "mds2", "roles": "mds"},
        {"id": "idle"},
    ],
    "nodes": [{"id": "n[1-2]", "group": "compute"}],
    "targets": [
        {"id": "ost[0-7]", "kind": "ost", "index": 0, "file_system": "fs", "server": "oss[1-4]"},
        {"id": "mdt", "kind": "mdt", "file_system": "fs", "server": "mds1", "failover": "idle"},
        {"id": "lone", "kind": "ost", "file_system": "other"},
    ],
    "file_systems": [{"id": "fs", "kind": "lustre"}, {"id": "other", "kind": "lustre"}, {"id": "none", "kind": "xfs"}],
    "units": [
        {"id": "ssu[1-2]", "kind": "SSU", "targets": "ost[0-7]", "servers": "oss[1-4]"},
        {"id": "rack", "kind": "rack", "targets": ["mdt"]},
    ],
    "pools": [
        {"id": "both", "file_system": "fs", "units": "ssu[1-2]", "clients_per_target": 3},
        {"id": "some", "file_system": "fs", "targets": ["ost1", "ost4"], "clients": 5, "clients_per_target": 9},
        {"id": "mixed", "file_system": "fs", "targets": "ost7", "units": "ssu1"},
    ],
    "mounts": [{"id": "m", "file_system": "fs", "path": "/fs", "on": "compute"}],
}


@pytest.fixture(scope="module")
def site() -> System:
    return make_system(SITE, "site.toml")


OSTS = tuple(f"ost{index}" for index in range(8))


@pytest.mark.parametrize(
    ("part", "kind", "targets"),
    [
        ("fs", "", (*OSTS, "mdt")),
        ("fs", "ost", OSTS),
        ("fs", "mdt", ("mdt",)),
        ("other", "", ("lone",)),
        ("none", "", ()),
        ("both", "", OSTS),
        ("some", "", ("ost1", "ost4")),
        ("mixed", "", ("ost7", "ost0", "ost1", "ost2", "ost3")),
        ("mixed", "mdt", ()),
        ("ssu2", "", OSTS[4:]),
        ("rack", "", ("mdt",)),
        ("oss3", "", ("ost4", "ost5")),
        ("idle", "", ()),
    ],
)
def test_targets_of_a_file_system_a_pool_a_unit_and_a_server(
    site: System, part: str, kind: str, targets: tuple[str, ...]
) -> None:
    assert site.find_targets(part, kind) == targets


@pytest.mark.parametrize(
    ("part", "role", "expected_servers"),
    [
        ("ost2", "", ("oss2",)),
        ("ost2", "mds", ()),
        ("lone", "", ()),
        ("ssu1", "", ("oss1", "oss2")),
        ("rack", "", ("mds1",)),
        ("fs", "", ("oss1", "oss2", "oss3", "oss4", "mds1")),
        ("fs", "mgs", ("mds1",)),
        ("both", "oss", ("oss1", "oss2", "oss3", "oss4")),
        ("some", "", ("oss1", "oss3")),
    ],
)
def test_servers_of_a_target_a_unit_a_file_system_and_a_pool(
    site: System, part: str, role: str, expected_servers: tuple[str, ...]
) -> None:
    assert site.find_servers(part, role) == expected_servers


@pytest.mark.parametrize(
    ("part", "expected_units"),
    [
        ("ost5", ("ssu2",)),
        ("mdt", ("rack",)),
        ("lone", ()),
        ("oss2", ("ssu1",)),
        ("mds1", ()),
        ("fs", ("ssu1", "ssu2", "rack")),
        ("both", ("ssu1", "ssu2")),
        ("some", ("ssu1", "ssu2")),
        ("mixed", ("ssu1",)),
    ],
)
def test_units_of_a_target_a_server_a_file_system_and_a_pool(
    site: System, part: str, expected_units: tuple[str, ...]
) -> None:
    assert site.find_units(part) == expected_units


def test_failover_partner_is_explicit_or_from_the_pair(site: System) -> None:
    assert [site.find_partner(server) for server in ("oss1", "oss2", "oss3", "oss4")] == [
        "oss2",
        "oss1",
        "oss4",
        "oss3",
    ]
    assert [site.find_partner(server) for server in ("mds1", "mds2", "idle", "n1")] == ["mds2", None, None, None]
    assert [site.find_failover_server(target) for target in ("ost0", "ost7", "mdt", "lone")] == [
        "oss2",
        "oss3",
        "idle",
        None,
    ]


def test_clients_of_a_pool_are_explicit_or_per_target(site: System) -> None:
    assert [site.count_pool_clients(pool) for pool in ("both", "some", "mixed")] == [24, 5, None]


def test_parts_are_looked_up_by_id_kind_and_position(site: System) -> None:
    item = site.get_part("oss3")
    assert isinstance(item, PartItem)
    assert (item.kind, item.id, item.position, item.total, item.table.id) == ("servers", "oss3", 2, 4, "oss[1-4]")
    assert [item.id for item in site.list_parts("file_systems")] == ["fs", "other", "none"]
    assert (site.list_part_ids("mounts"), site.list_part_ids("luns")) == (("m",), ())
    assert (site.find_first_reference("ost4", "server"), site.find_first_reference("lone", "server")) == ("oss3", None)
    assert site.find_references("ssu2", "servers") == ("oss3", "oss4")
    assert site.find_references("m", "on") == ("n1", "n2")
    assert site.resolve_names("oss") == ("oss1", "oss2", "oss3", "oss4")
    assert ("oss2" in site.index, "oss" in site.index, len(site.index)) == (True, False, 29)
    assert (site.id, site.title, site.files) == ("site", "A site", ("site.toml",))
    assert site.to_json().startswith('{"schema":"sonde-system-resolved/2","id":"site","title":"A site","networks":[]')
    assert site.to_json().endswith("}\n")


def test_unknown_part_gets_a_suggestion(site: System) -> None:
    with pytest.raises(SystemFileError, match=r'^The system has no part "idel"\. Did you mean "idle"\?$'):
        site.get_part("idel")
    with pytest.raises(SystemFileError, match=r'^The system has no part "zzz"\.$'):
        site.get_part("zzz")
    missing = r"^names oss\[5-6\] of oss\[3-6\], which nothing in the system has as its id or group\."
    with pytest.raises(SystemFileError, match=missing):
        site.resolve_names("oss[3-6]")
    with pytest.raises(SystemFileError, match=r'^names "oss5", which nothing in the system has'):
        site.resolve_names("oss5")


def build_system(**kinds: list[dict[str, Any]]) -> System:
    return make_system({"schema": "sonde-system/2", **kinds}, "made.toml")


DRIVES = [{"id": "d[1-4]", "capacity": "1 kB"}, {"id": "e"}]


@pytest.mark.parametrize(
    ("group", "capacity", "stripe"),
    [
        ({"level": "5", "data": 3, "drives": "d[1-4]", "segment": "1 KiB"}, 3000, 3072),
        ({"level": "5", "data": 3, "segment": "1 KiB"}, None, 3072),
        ({"level": "5", "data": 3, "drives": "d[1-4]"}, 3000, None),
        ({"level": "0", "segment": "1 KiB", "drives": "d[1-4]"}, 4000, None),
        ({"level": "0", "drives": ["d1", "e"]}, None, None),
        ({"level": "declustered", "drives": "d[1-4]"}, None, None),
        ({"level": "declustered", "data": 2, "drives": "d[1-4]"}, None, None),
        ({"level": "declustered", "data": 2, "parity": 1, "drives": "d[1-4]"}, 2666, None),
        ({"level": "declustered", "data": 2, "parity": 2, "spare_share": "50 %", "drives": "d[1-4]"}, 1000, None),
    ],
)
def test_raid_capacity_and_stripe_follow_from_drives_and_level(
    group: dict[str, Any], capacity: int | None, stripe: int | None
) -> None:
    system = build_system(drives=DRIVES, raid_groups=[{"id": "g", **group}])
    assert (system.compute_capacity("g"), system.compute_full_stripe("g")) == (capacity, stripe)
    assert system.compute_full_stripe("d1") is None


def test_unknown_capacity_of_a_part_makes_the_sum_unknown() -> None:
    system = build_system(
        drives=DRIVES,
        luns=[{"id": "l"}, {"id": "k", "size": "7 B"}],
        slices=[{"id": "s", "on": "e", "share": "50 %"}, {"id": "r", "on": "e"}],
        volumes=[{"id": "v", "kind": "stripe", "members": ["d1", "l"]},
                 {"id": "u", "kind": "concat", "members": ["d2", "k"], "usable": "5 B"}],
        targets=[{"id": "t", "kind": "ost", "file_system": "fs", "on": "v"},
                 {"id": "w", "kind": "ost", "file_system": "fs", "capacity": "9 B"},
                 {"id": "x", "kind": "ost", "file_system": "gs"}],
        file_systems=[{"id": "fs", "kind": "lustre"}, {"id": "gs", "kind": "lustre", "capacity": "3 B"},
                      {"id": "hs", "kind": "xfs", "device": "u"}, {"id": "is", "kind": "xfs"}],
        nodes=[{"id": "n"}],
    )  # fmt: skip
    names = ("l", "k", "s", "r", "v", "u", "t", "w", "x", "fs", "gs", "hs", "is", "e", "d1", "n")
    capacities = {part: system.compute_capacity(part) for part in names}
    assert capacities == {
        "l": None, "k": 7, "s": None, "r": None, "v": None, "u": 5, "t": None, "w": 9, "x": None, "fs": None, "gs": 3,
        "hs": 5, "is": None, "e": None, "d1": 1000, "n": None,
    }  # fmt: skip


def test_file_system_capacity_is_the_sum_of_its_data_targets() -> None:
    targets = [
        {"id": "a[0-1]", "kind": "ost", "file_system": "fs", "capacity": "10 B"},
        {"id": "m", "kind": "mdt", "file_system": "fs", "capacity": "500 B"},
        {"id": "g", "kind": "mgt", "file_system": "fs", "capacity": "600 B"},
    ]
    system = build_system(targets=targets, file_systems=[{"id": "fs", "kind": "lustre"}])
    assert system.compute_capacity("fs") == 20
    assert system.compute_capacity("a1") == 10


def test_slice_without_size_gets_the_remainder_of_its_disk() -> None:
    system = build_system(
        drives=[{"id": "d", "capacity": "100 B"}, {"id": "e", "capacity": "100 B"}],
        slices=[{"id": "a", "on": "d", "size": "30 B"}, {"id": "b", "on": "d"}, {"id": "c", "on": "d", "share": "20 %"},
                {"id": "f", "on": "e"}],
    )  # fmt: skip
    assert [system.compute_capacity(part) for part in "abcf"] == [30, 50, 20, 100]
