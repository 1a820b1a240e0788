# SPDX-License-Identifier: Apache-2.0
"""A system with some parts changed is the same system in everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.model.errors import SystemFileError
from sonde.model.system import System, make_system, read_system
from sonde.model.system.changes import apply_changes
from sonde.model.system.resolution import resolve_system

SYSTEMS = Path(__file__).resolve().parents[4] / "systems"
DEMO = read_system(SYSTEMS / "hpcs-demo.toml")
X1 = read_system(SYSTEMS / "cray-x1.toml")
CUMULUS = read_system(SYSTEMS / "cumulus.toml")


PARTS_TO_CHANGE = [
    ("targets", DEMO),
    ("servers", DEMO),
    ("nodes", DEMO),
    ("units", DEMO),
    ("drives", X1),
    ("raid_groups", X1),
    ("nodes", CUMULUS),
    ("routers", CUMULUS),
]


def by_id(system: System) -> dict[str, Any]:
    """Every part of the resolved form by its id."""
    return {part["id"]: part for parts in system.resolve().values() if isinstance(parts, list) for part in parts}


def list_differences(first_system: System, second_system: System) -> set[str]:
    before, after = by_id(first_system), by_id(second_system)
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


def test_change_of_a_target_affects_that_target_only() -> None:
    slow = apply_changes(DEMO, {"targets.ost17.model.slowdown": 5})
    assert list_differences(DEMO, slow) == {"ost17"}
    assert by_id(slow)["ost17"]["model"] == {"slowdown": 5.0}
    assert by_id(slow)["ost17"]["index"] == 17
    assert slow.find_targets("FS3") == DEMO.find_targets("FS3")
    assert slow.list_part_ids("targets") == DEMO.list_part_ids("targets")


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(PARTS_TO_CHANGE))
def test_random_changes_affect_the_selected_parts_only(data: st.DataObject, chosen: tuple[str, System]) -> None:
    kind, system = chosen
    names = data.draw(st.lists(st.sampled_from(system.list_part_ids(kind)), min_size=1, max_size=3, unique=True))
    changed = apply_changes(system, {f"{kind}.{name}.title": "changed" for name in names})
    assert list_differences(system, changed) == set(names)
    assert changed.list_part_ids(kind) == system.list_part_ids(kind)
    for server in system.list_part_ids("servers"):
        assert changed.find_partner(server) == system.find_partner(server)


@pytest.mark.parametrize(
    ("changes", "part", "expected"),
    [
        ({"networks.storage.rate": "10 Gbit/s"}, "storage", {"rate": {"read": 1.25e9, "write": 1.25e9}}),
        ({"networks.storage.rate.read": "1 GB/s"}, "storage", {"rate": {"read": 1e9, "write": 4e9}}),
        ({"networks.storage.duplex": "half"}, "storage", {"duplex": "half"}),
        ({"file_systems.demo.stripe.count": -1}, "demo", {"stripe": {"count": -1.0}}),
        ({"file_systems.demo.settings.x.y": 3}, "demo", {"settings": {"x.y": 3}}),
        (
            {"file_systems.demo.settings.a": 1, "file_systems.demo.settings.b": "two"},
            "demo",
            {"settings": {"a": 1, "b": "two"}},
        ),
        (
            {"targets.ost03.model.slowdown": 2, "targets.ost03.model.noise": "10 %"},
            "ost03",
            {"model": {"slowdown": 2.0, "noise": 0.1}},
        ),
        ({"servers.oss.memory": "8 GiB"}, "oss07", {"memory": 8 << 30}),
        ({"nodes.nid[001-010].cores": 4}, "nid010", {"cores": 4}),
    ],
)
def test_changed_value_is_parsed_like_a_file_value(
    changes: dict[str, Any], part: str, expected: dict[str, Any]
) -> None:
    members = by_id(apply_changes(DEMO, changes))[part]
    assert {name: members[name] for name in expected} == expected


def test_group_changes_apply_to_all_parts_and_none_removes() -> None:
    changed = apply_changes(DEMO, {"servers.oss.title": "t", "networks.storage.rate": None})
    assert list_differences(DEMO, changed) >= {f"oss{number:02d}" for number in range(1, 15)}
    assert "rate" not in by_id(changed)["storage"]


def test_changed_raid_group_keeps_its_shared_spares() -> None:
    edison = read_system(SYSTEMS / "edison.toml")
    changed = apply_changes(edison, {"raid_groups.fs1-md009.state": "degraded"})
    for name in ("fs1-md008", "fs1-md009", "fs1-md010", "fs1-md000", "fs1-md095"):
        assert changed.find_references(name, "spares") == edison.find_references(name, "spares")
        assert changed.find_references(name, "drives") == edison.find_references(name, "drives")


@pytest.mark.parametrize(
    ("member_path", "member_value", "expected_text"),
    [
        ("network.storage.rate", "1 GB/s", 'Did you mean "networks"?'),
        ("networks.stroage.rate", "1 GB/s", 'Did you mean "storage"?'),
        ("networks.storage", "1 GB/s", "KIND.ID.MEMBER"),
        ("networks.storage.rat", "1 GB/s", 'Did you mean "rate"?'),
        ("networks.storage.id", "x", "no member"),
        ("networks.storage.rate", "fast", "200 Gbit/s"),
        ("networks.storage.kind.x", "fast", "as a whole"),
        ("targets.ost17.model.slow", 5, 'Did you mean "slowdown"?'),
        ("targets.ost17.server", "mds", "oss"),
    ],
)
def test_a_change_that_cannot_be_gets_one_sentence(member_path: str, member_value: object, expected_text: str) -> None:
    with pytest.raises(SystemFileError) as caught:
        apply_changes(DEMO, {member_path: member_value})
    assert expected_text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_split_table_divides_its_range_of_devices() -> None:
    document = {"schema": "sonde-system/2", "id": "s", "nodes": [{"id": "n"}],
                "drives": [{"id": "d[1-4]", "server": "n", "device": "/dev/nvme[0-3]n1"}]}  # fmt: skip
    changed = apply_changes(make_system(document, "site.toml"), {"drives.d3.rpm": 7200})
    devices = {part["id"]: part["device"] for part in resolve_system(changed)["drives"]}
    assert devices == {f"d{number + 1}": f"/dev/nvme{number}n1" for number in range(4)}
