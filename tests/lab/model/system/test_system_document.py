# SPDX-License-Identifier: Apache-2.0
"""A system written back as a document: as short as a file would have it, and read again it is the same system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.model.system import make_system, read_system
from sonde.model.system.system_document import convert_system_to_document

SYSTEMS = Path(__file__).resolve().parents[4] / "systems"

WRITTEN: dict[str, Any] = {
    "schema": "sonde-system/2",
    "id": "site",
    "title": "A site",
    "notes": ["one", "two"],
    "networks": [{"id": "ib", "kind": "infiniband", "rate": "8 Gbit/s", "settings": {"connected": True, "queue": 7}}],
    "nodes": [
        {
            "id": "n[1-2]",
            "cores": 8,
            "memory": {"value": "4 GiB", "source": "list 7", "status": "measured", "note": "of both"},
            "software": "Lustre 2.4",
            "interfaces": [{"network": "ib", "addresses": ["10.0.0.1", "10.0.0.2"], "rate": {"read": "1 GB/s"}}],
            "model": {"call_cost": "2 us", "noise": 0.1, "x-own": 2.5},
        }
    ],
    "servers": [{"id": "s", "roles": ["mds", "oss"], "forward": False}],
    "drives": [{"id": "d[1-3]", "capacity": "1 TB", "rate": {"read": "2 MB/s", "write": "1 MB/s"}}],
    "raid_groups": [{"id": "g", "level": "5", "data": 2, "parity": 1, "drives": "d[1-3]"}],
    "luns": [{"id": "l", "raid_group": "g", "number": {"value": 4, "note": "of the first"}}],
    "slices": [{"id": "p", "on": "l", "share": 0.5}],
    "targets": [{"id": "t", "kind": "ost", "index": 0, "file_system": "fs", "server": "s", "on": "p"}],
    "file_systems": [{"id": "fs", "kind": "lustre", "stripe": {"count": -1.0, "size": "1 MiB"}}],
}


def test_a_document_that_is_read_and_written_is_the_same_document() -> None:
    assert convert_system_to_document(make_system(WRITTEN, "site.toml")) == WRITTEN


def test_default_members_are_omitted_and_single_names_unlisted() -> None:
    document = {
        "schema": "sonde-system/2",
        "nodes": [{"id": "n", "role": "compute", "title": "", "software": ["one"], "interfaces": []}],
    }
    assert convert_system_to_document(make_system(document, "x.toml")) == {
        "schema": "sonde-system/2", "id": "system", "nodes": [{"id": "n", "software": "one"}],
    }  # fmt: skip


def test_sources_are_written_once_per_table_or_per_number() -> None:
    document = {
        "schema": "sonde-system/2",
        "id": "x",
        "source": "file",
        "status": "assumed",
        "nodes": [
            {"id": "a", "memory": "1 GB", "cores": 4},
            {"id": "b", "memory": "1 GB", "source": "table", "status": "measured", "interfaces": []},
            {"id": "c", "memory": {"value": "1 GB", "status": "measured"}, "source": "table"},
        ],
    }
    nodes = convert_system_to_document(make_system(document, "x.toml"))["nodes"]
    assert nodes == [
        {"id": "a", "memory": {"value": "1 GB", "source": "file", "status": "assumed"},
         "cores": {"value": 4, "source": "file", "status": "assumed"}},
        {"id": "b", "memory": "1 GB", "source": "table", "status": "measured"},
        {"id": "c", "memory": {"value": "1 GB", "status": "measured"}, "source": "table"},
    ]  # fmt: skip


def test_rate_of_a_direction_round_trips_and_equal_rates_merge() -> None:
    def rate(value: Any) -> Any:
        drives = [{"id": "d", "rate": value}]
        document = convert_system_to_document(make_system({"schema": "sonde-system/2", "drives": drives}, "x"))
        return document["drives"][0]["rate"]

    assert rate({"write": "1 GB/s"}) == {"write": "1 GB/s"}
    assert rate({"read": "1 GB/s", "write": "1 GB/s"}) == "1 GB/s"
    assert rate({"read": "1 GB/s", "write": "2 GB/s"}) == {"read": "1 GB/s", "write": "2 GB/s"}
    members = {"value": "1 GB/s", "note": "n"}
    assert rate(members) == members


@pytest.mark.parametrize("system_name", ["hpcs-demo", "cray-x1", "cumulus", "laptop-md"])
def test_a_system_that_is_shipped_can_be_written_and_read_again(system_name: str) -> None:
    system = read_system(SYSTEMS / f"{system_name}.toml")
    again = make_system(convert_system_to_document(system), "again.toml")
    assert again.resolve() == system.resolve()
    assert convert_system_to_document(again) == convert_system_to_document(system)
