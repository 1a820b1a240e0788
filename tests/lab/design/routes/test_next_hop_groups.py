# SPDX-License-Identifier: Apache-2.0
"""Routes whose next hops are those of a next-hop group (ip nexthop)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.table_reader import parse_host_tables

ROUTE = "10.150.0.0/16 proto 77 mtu 9000 "
OBJECTS = "".join(f"id {number} via 10.160.15.{number} dev bond0 scope link\n" for number in (1, 2, 3))
RESILIENT = "id 100 group 1/2/3 type resilient buckets 32 idle_timer 120 unbalanced_timer 0 unbalanced_time 0\n"


def print_outputs() -> dict[str, str]:
    """The outputs of a server whose multipath route is of group 100."""
    outputs = print_server_outputs()
    assert ROUTE in outputs["route"]
    outputs["route"] = outputs["route"].replace(ROUTE, f"{ROUTE}nhid 100 ")
    return outputs


@pytest.mark.parametrize(("group", "kinds"), [
    ("id 100 group 1/2/3\n", []), ("id 100 group 1,1/2,1/3,1 proto static\n", []), (RESILIENT, ["resilient next hops"]),
])  # fmt: skip
@pytest.mark.parametrize("is_in_one_file", [True, False])
def test_resilient_group_is_reported(tmp_path: Path, group: str, kinds: list[str], is_in_one_file: bool) -> None:
    outputs = print_outputs()
    outputs["rule" if is_in_one_file else "nexthop"] = (outputs["rule"] if is_in_one_file else "") + OBJECTS + group
    verdict = check_outputs(tmp_path, outputs)
    assert [fault.kind for fault in verdict.faults] == kinds
    assert ("the type of a next-hop group", "100") in {(item.subject, item.location) for item in verdict.comparisons}


def test_detailed_route_shows_its_group(tmp_path: Path) -> None:
    outputs = print_outputs()
    outputs["route"] = outputs["route"].replace("\n10.150.0.0/16 proto 77 metric 101", f"\n\tnh_info {RESILIENT}"
                                                "10.150.0.0/16 proto 77 metric 101")  # fmt: skip
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "resilient next hops"
    assert "group 100 of type resilient" in fault.problem


def test_group_without_its_type_is_not_examined(tmp_path: Path) -> None:
    verdict = check_outputs(tmp_path, print_outputs())
    assert verdict.faults == ()
    assert any("next-hop object 100 of the route to 10.150.0.0/16" in text for text in verdict.not_examined)
    assert not any("next-hop object" in text for text in check_outputs(tmp_path, print_server_outputs()).not_examined)


def test_json_shows_the_type_of_a_group(tmp_path: Path) -> None:
    outputs = print_outputs()
    objects: list[dict[str, Any]] = [
        {"id": 1, "gateway": "10.160.15.1", "dev": "bond0", "scope": "link", "flags": []},
        {"id": 100, "group": [{"id": 1}, {"id": 2}, {"id": 3}], "type": "resilient", "flags": []},
    ]
    outputs["nexthop.json"] = json.dumps(objects)
    assert [fault.kind for fault in check_outputs(tmp_path, outputs).faults] == ["resilient next hops"]
    del objects[1]["type"]
    outputs["nexthop.json"] = json.dumps(objects)
    assert check_outputs(tmp_path, outputs).faults == ()


def test_detailed_json_route_shows_its_group() -> None:
    group = '{"id": 7, "group": [{"id": 1}, {"id": 2}], "type": "resilient", "scope": "global"}'
    tables = parse_host_tables(f'[{{"dst": "10.9.0.0/16", "nhid": 7, "nh_info": {group}, "nexthops": []}}]', "routes")
    assert tables.next_hop_types == {"7": "resilient"}
    assert [route.next_hop_id for route in tables.routes or ()] == ["7"]
