# SPDX-License-Identifier: Apache-2.0
"""Members that name other parts: one, several distributed ones or several for all, and which are required."""

from __future__ import annotations

from typing import Any

import pytest

from sonde.model.system import System, make_system
from sonde.model.system.dependencies import find_all_dependencies
from sonde.model.system.description import PART_KINDS
from sonde.model.tables.members import get_members

SHARED_REFERENCES = {("routers", "between"), ("file_systems", "networks"), ("mounts", "on"), ("mounts", "via"),
          ("telemetry", "of"), ("logs", "of")}  # fmt: skip
DISTRIBUTED_REFERENCES = {
    "controllers": {"drives"}, "paths": {"links"}, "raid_groups": {"drives", "spares"}, "volumes": {"members"},
    "targets": {"on"}, "units": {"servers", "targets", "enclosures", "drives"}, "pools": {"targets", "units"},
}  # fmt: skip
SINGLE_REFERENCES = {
    "servers": {"partner", "enclosure"}, "enclosures": {"inside"}, "controllers": {"enclosure", "partner"},
    "links": {"near", "far", "network"}, "paths": {"to", "controller"}, "drives": {"enclosure", "server"},
    "raid_groups": {"controller"}, "luns": {"raid_group", "controller"}, "slices": {"on"}, "volumes": {"log"},
    "targets": {"file_system", "journal", "server", "failover"}, "file_systems": {"device", "log"},
    "units": {"file_system"}, "pools": {"file_system"}, "mounts": {"file_system"},
}  # fmt: skip
REQUIRED = {("links", "near"), ("links", "far"), ("paths", "to"), ("slices", "on"), ("volumes", "members"),
            ("pools", "file_system"), ("mounts", "file_system")}  # fmt: skip


def test_each_reference_member_is_shared_single_or_distributed() -> None:
    members = {(kind, name): member for kind, cls in PART_KINDS.items() for name, member in get_members(cls).items()
            if member.kind == "ids"}  # fmt: skip
    assert {reference for reference, member in members.items() if member.is_shared} == SHARED_REFERENCES
    assert {reference for reference, member in members.items() if member.allows_several and not member.is_shared} == {
        (kind, name) for kind, names in DISTRIBUTED_REFERENCES.items() for name in names
    }
    assert {reference for reference, member in members.items() if not member.allows_several} == {
        (kind, name) for kind, names in SINGLE_REFERENCES.items() for name in names
    }
    assert {reference for reference, member in members.items() if member.required} == REQUIRED


def build_system(**kinds: list[dict[str, Any]]) -> System:
    return make_system({"schema": "sonde-system/2", **kinds}, "made.toml")


NETWORKS = [{"id": "a", "kind": "ethernet"}, {"id": "b", "kind": "ethernet"}]


@pytest.mark.parametrize(
    ("kind", "member", "table", "others"),
    [
        ("routers", "between", {"between": ["a", "b"]}, {}),
        ("file_systems", "networks", {"kind": "lustre", "networks": ["a", "b"]}, {}),
        ("mounts", "on", {"file_system": "f", "path": "/f", "on": ["a", "b"]}, {"nodes": [{"id": "a"}, {"id": "b"}]}),
        ("mounts", "via", {"file_system": "f", "path": "/f", "through": "nfs", "via": ["a", "b"]},
         {"nodes": [{"id": "a"}, {"id": "b"}]}),
        ("telemetry", "of", {"name": "x", "of": ["a", "b"]}, {}),
        ("logs", "of", {"where": "x", "of": ["a", "b"]}, {}),
    ],
)  # fmt: skip
def test_shared_reference_applies_to_each_part_of_a_table(
    kind: str, member: str, table: dict[str, Any], others: dict[str, Any]
) -> None:
    kinds: dict[str, list[dict[str, Any]]] = {"file_systems": [{"id": "f", "kind": "xfs"}]}
    kinds |= others or {"networks": NETWORKS}
    kinds[kind] = [*kinds.get(kind, []), {"id": "x[1-2]", **table}]
    system = build_system(**kinds)
    assert [system.find_references(f"x{number}", member) for number in (1, 2)] == [("a", "b")] * 2


def test_standbys_and_passive_parts_are_no_dependencies() -> None:
    """A controller works without the drives behind it, a router without the networks it joins by name, a link without
    its ends; of a path its links, its controller and what it leads to are needed."""
    system = build_system(
        networks=NETWORKS,
        nodes=[{"id": "n"}],
        servers=[{"id": "s", "partner": "z", "enclosure": "e"}, {"id": "z"}],
        routers=[{"id": "r", "between": ["a", "b"]}],
        enclosures=[{"id": "e"}],
        controllers=[{"id": "c", "partner": "k", "drives": "d", "enclosure": "e"}, {"id": "k"}],
        links=[{"id": "l", "near": "n", "far": "c", "network": "a"}],
        paths=[{"id": "p", "to": "c", "links": "l", "controller": "k"}],
        drives=[{"id": "d", "server": "s"}, {"id": "hs"}],
        raid_groups=[{"id": "g", "level": "0", "drives": "d", "spares": "hs", "controller": "c"}],
        targets=[{"id": "t", "kind": "ost", "file_system": "f", "on": "g", "failover": "z", "journal": "hs"}],
        file_systems=[{"id": "f", "kind": "lustre", "networks": "b"}],
        mounts=[{"id": "m", "file_system": "f", "path": "/f", "on": "n", "via": "z", "through": "nfs"}],
        telemetry=[{"id": "y", "name": "x", "of": "d"}],
        logs=[{"id": "o", "where": "x", "of": "d"}],
    )
    needs = {
        "s": {"e"}, "r": set(), "c": {"e"}, "l": {"a"}, "p": {"c", "e", "l", "a", "k"}, "d": {"s", "e"}, "y": set(),
        "o": set(), "g": {"d", "s", "e", "c"}, "t": {"g", "d", "s", "e", "c", "hs"},
        "f": {"b", "t", "g", "d", "s", "e", "c", "hs"}, "m": {"f", "z", "b", "t", "g", "d", "s", "e", "c", "hs"},
    }  # fmt: skip
    assert {name: set(find_all_dependencies(system, name)) for name in needs} == needs


def test_a_network_needs_the_routers_that_join_it() -> None:
    joined = [{"network": "a"}, {"network": "b"}]
    system = build_system(
        networks=NETWORKS, routers=[{"id": "r", "interfaces": joined}], nodes=[{"id": "n", "interfaces": joined[:1]}]
    )
    assert find_all_dependencies(system, "n") == {"a", "r", "b"}
    assert find_all_dependencies(system, "a") == {"r", "b"}
    assert find_all_dependencies(system, "r") == {"a", "b"}
