# SPDX-License-Identifier: Apache-2.0
"""The resolved form of a system part by part: numbers in base units, distributed ids, and values derived from both."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sonde.model.bundled_files import find_system_file
from sonde.model.system import System, make_system, read_system
from sonde.model.system.dependencies import find_all_dependencies
from sonde.model.system.description import PART_KINDS
from sonde.model.system.resolved_schema import build_resolved_schema

SITE: dict[str, Any] = {
    "schema": "sonde-system/2",
    "id": "site",
    "title": "T",
    "networks": [
        {"id": "ib", "kind": "infiniband", "rate": {"read": "1 GB/s"}, "mtu": "4 KiB", "latency": "2 us",
         "addresses": "10.0.0.0/24", "lnet": "o2ib", "settings": {"a": 1, "b": True}},
        {"id": "eth", "kind": "ethernet"},
    ],
    "nodes": [
        {"id": "n[1-2]", "group": "all", "cores": 8, "memory": "1 GiB", "software": ["a", "b"], "notes": "x",
         "source": "s", "status": "assumed", "model": {"call_cost": "1 us", "rpcs_in_flight": 8, "x-mine": 2},
         "interfaces": [
             {"network": "ib", "addresses": "10.0.0.[1-2]", "device": "ib0"},
             {"network": "ib", "addresses": "10.0.0.[3-4]", "rate": "3 GB/s", "mtu": "1 KiB", "count": 2, "prefix": 16},
             {"network": "eth", "nids": "[5-6]@tcp"},
         ]},
        {"id": "bare"},
    ],
    "servers": [{"id": "s[1-2]", "roles": ["oss", "mds"], "failover": "pairs", "forward": False}],
    "enclosures": [{"id": "e", "slots": 4}],
    "drives": [{"id": "d[1-4]", "capacity": "1 kB", "enclosure": "e", "operations": "2 kop/s",
                "model": {"noise": "5 %"}}],
    "raid_groups": [{"id": "g[1-2]", "level": "0", "data": 2, "segment": "1 KiB", "drives": "d[1-4]", "blocks": 1}],
    "luns": [{"id": "l[1-2]", "raid_group": "g[1-2]", "number": 3}],
    "slices": [{"id": "p", "on": "l1", "share": "50 %"}],
    "volumes": [{"id": "v", "kind": "concat", "members": ["p", "l2"]}],
    "targets": [{"id": "t", "kind": "ost", "index": 0, "file_system": "fs", "server": "s1", "on": "v"},
                {"id": "u[0-1]", "kind": "ost", "index": 7, "file_system": "fs", "server": "s[1-2]",
                 "failover": "s2"}],
    "file_systems": [{"id": "fs", "kind": "lustre", "stripe": {"count": -1, "size": "1 MiB"}}],
    "pools": [{"id": "q", "file_system": "fs", "targets": ["u0", "t"], "clients_per_target": 2}],
    "mounts": [{"id": "m", "file_system": "fs", "path": "/fs", "on": "all"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def site() -> System:
    return make_system(SITE, "site.toml")


@pytest.fixture(scope="module")
def resolved_site(site: System) -> dict[str, Any]:
    return site.resolve()


def test_resolved_system_has_every_list_in_a_fixed_order(resolved_site: dict[str, Any]) -> None:
    assert list(resolved_site) == ["schema", "id", "title", *PART_KINDS]
    assert (resolved_site["schema"], resolved_site["id"], resolved_site["title"]) == (
        "sonde-system-resolved/2",
        "site",
        "T",
    )
    assert resolved_site["logs"] == resolved_site["telemetry"] == resolved_site["units"] == []


IB = {"read": 1e9}
EXPECTED: dict[str, list[dict[str, Any]]] = {
    "networks": [
        {"id": "ib", "kind": "infiniband", "rate": IB, "mtu": 4096, "latency": 2e-6, "addresses": ["10.0.0.0/24"],
         "lnet": "o2ib", "settings": {"a": 1, "b": True}},
        {"id": "eth", "kind": "ethernet"},
    ],
    "nodes": [
        {"id": f"n{n}", "group": "all", "cores": 8, "memory": 1 << 30, "software": ["a", "b"], "role": "compute",
         "model": {"call_cost": 1e-6, "rpcs_in_flight": 8, "x-mine": 2.0},
         "interfaces": [
             {"network": "ib", "device": "ib0", "address": f"10.0.0.{n}", "prefix": 24, "nid": f"10.0.0.{n}@o2ib",
              "rate": IB, "mtu": 4096, "count": 1},
             {"network": "ib", "address": f"10.0.0.{n + 2}", "prefix": 16, "nid": f"10.0.0.{n + 2}@o2ib",
              "rate": {"read": 3e9, "write": 3e9}, "mtu": 1024, "count": 2},
             {"network": "eth", "nid": f"{n + 4}@tcp", "count": 1},
         ]}
        for n in (1, 2)
    ] + [{"id": "bare", "role": "compute", "interfaces": []}],
    "servers": [
        {"id": f"s{n}", "roles": ["oss", "mds"], "forward": False, "interfaces": [], "partner": f"s{3 - n}"}
        for n in (1, 2)
    ],
    "enclosures": [{"id": "e", "slots": 4}],
    "drives": [
        {"id": f"d{n}", "capacity": 1000, "enclosure": "e", "operations": 2000.0, "model": {"noise": 0.05}}
        for n in range(1, 5)
    ],
    "raid_groups": [
        {"id": f"g{n}", "level": "0", "data": 2, "segment": 1024, "drives": [f"d{2 * n - 1}", f"d{2 * n}"],
         "capacity": 2000, "stripe": 2048}
        for n in (1, 2)
    ],
    "luns": [{"id": f"l{n}", "raid_group": f"g{n}", "number": 2 + n, "capacity": 2000} for n in (1, 2)],
    "slices": [{"id": "p", "on": "l1", "share": 0.5, "capacity": 1000}],
    "volumes": [{"id": "v", "kind": "concat", "members": ["p", "l2"], "capacity": 3000}],
    "targets": [
        {"id": "t", "kind": "ost", "index": 0, "file_system": "fs", "server": "s1", "on": ["v"], "capacity": 3000,
         "failover": "s2"},
        *({"id": f"u{n}", "kind": "ost", "index": 7 + n, "file_system": "fs", "server": f"s{n + 1}",
           "failover": "s2"} for n in (0, 1)),
    ],
    "file_systems": [{"id": "fs", "kind": "lustre", "stripe": {"count": -1.0, "size": 1 << 20}}],
    "pools": [{"id": "q", "file_system": "fs", "targets": ["u0", "t"], "clients_per_target": 2, "clients": 4}],
    "mounts": [{"id": "m", "file_system": "fs", "path": "/fs", "on": ["n1", "n2"], "through": "native"}],
}  # fmt: skip


@pytest.mark.parametrize("kind", EXPECTED)
def test_resolved_parts_have_exactly_the_expected_members(resolved_site: dict[str, Any], kind: str) -> None:
    assert resolved_site[kind] == EXPECTED[kind]


def test_sizes_and_counts_resolve_to_integers(resolved_site: dict[str, Any]) -> None:
    node, drive = resolved_site["nodes"][0], resolved_site["drives"][0]
    integers = (node["memory"], node["cores"], node["model"]["rpcs_in_flight"], drive["capacity"])
    assert all(isinstance(value, int) for value in integers)
    assert all(isinstance(value, float) for value in (node["model"]["x-mine"], drive["operations"]))


def test_resolved_system_follows_its_schema_which_is_closed(resolved_site: dict[str, Any]) -> None:
    validator = Draft202012Validator(build_resolved_schema())
    assert [error.message for error in validator.iter_errors(resolved_site)] == []
    unknown: tuple[dict[str, Any], ...] = (
        {"more": []}, {"drives": [{"capacity": 1}]}, {"drives": [{"id": ""}]}, {"drives": [{"id": "d", "source": "x"}]},
        {"drives": [{"id": "d", "capacity": "1 kB"}]}, {"nodes": [{"id": "n"}]},
        {"luns": [{"id": "l", "capacity": -1}]},
        {"nodes": [{"id": "n", "interfaces": [{"network": "ib"}]}]}, {"title": 3}, {"schema": "x"},
        {"networks": [{"id": "x", "kind": "y", "rate": {"up": 1}}]}, {"drives": [{"id": "d", "model": {"own": 1}}]},
    )  # fmt: skip
    for wrong in unknown:
        assert not validator.is_valid(resolved_site | wrong), wrong
    assert not validator.is_valid({name: value for name, value in resolved_site.items() if name != "logs"})


def test_dependencies_are_transitive(site: System) -> None:
    below = {"v", "p", "l1", "l2", "g1", "g2", "d1", "d2", "d3", "d4", "e"}
    assert find_all_dependencies(site, "t") == below | {"s1"}
    assert find_all_dependencies(site, "fs") == below | {"t", "u0", "u1", "s1", "s2"}
    assert find_all_dependencies(site, "m") == find_all_dependencies(site, "fs") | {"fs"}
    assert find_all_dependencies(site, "n1") == {"ib", "eth"}
    assert find_all_dependencies(site, "bare") == find_all_dependencies(site, "e") == frozenset()
    assert find_all_dependencies(site, "u1") == {"s2"}
    assert find_all_dependencies(site, "q") >= {"t", "u0"}
    assert find_all_dependencies(site, "t") is find_all_dependencies(site, "t"), "once known it is not looked for again"


def test_device_of_a_file_system_resolves_to_its_part() -> None:
    """The device of a local file system is a part, that of a drive is the name of a special file."""
    resolved = read_system(find_system_file("laptop-md")).resolve()
    assert [item["device"] for item in resolved["file_systems"]] == ["md5", "md10"]
