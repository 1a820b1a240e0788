# SPDX-License-Identifier: Apache-2.0
"""Which server and unit a storage target belongs to, by the name that a record has for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.model.lines import RunLine
from sonde.model.parents import TargetParents, parse_parents
from sonde.model.record import RecordReader
from sonde.model.run import RecordedRun, make_recorded_run
from sonde.model.system import System, read_system
from sonde.model.system.parents import add_target_parents, find_target_parents, list_recorded_target_names

TWO = """
schema = "sonde-system/2"
id = "site"

[[servers]]
id = "a-oss[0-1]"
roles = ["oss"]

[[servers]]
id = "b-store[0-1]"
roles = ["other"]

[[targets]]
id = "a-ost[0-3]"
kind = "ost"
index = 30
file_system = "a"
server = "a-oss[0-1]"

[[targets]]
id = "b-target[0-3]"
kind = "target"
index = 4201
file_system = "b"
server = "b-store[0-1]"

[[units]]
id = "a-ssu"
kind = "SSU"
file_system = "a"
targets = "a-ost[0-3]"

[[file_systems]]
id = "a"
kind = "lustre"

[[file_systems]]
id = "b"
kind = "beegfs"

[[mounts]]
id = "a-mount"
file_system = "a"
path = "/a"

[[mounts]]
id = "b-mount"
file_system = "b"
path = "/a/below/b"
"""


@pytest.fixture
def site(tmp_path: Path) -> System:
    path = tmp_path / "site.toml"
    path.write_text(TWO, encoding="utf-8")
    return read_system(str(path))


def test_lustre_names_targets_by_index_and_simulated_runs_by_id(site: System) -> None:
    parents = find_target_parents(site, "/a/project")
    assert parents.levels == {
        "OSS": {"a-oss0": ("OST001e", "OST001f"), "a-oss1": ("OST0020", "OST0021")},
        "SSU": {"a-ssu": ("OST001e", "OST001f", "OST0020", "OST0021")},
    }
    assert (parents.find_server_of_target("OST0020"), parents.find_unit_of_target("OST0020")) == ("a-oss1", "a-ssu")
    assert parents.find_server_of_target("OST0099") is None
    assert find_target_parents(site, "a-mount", is_simulated=True).levels["OSS"]["a-oss0"] == ("a-ost0", "a-ost1")


def test_beegfs_targets_are_grouped_by_number(site: System) -> None:
    parents = find_target_parents(site, "/a/below/b/x")
    assert parents.levels == {"server": {"b-store0": ("4201", "4202"), "b-store1": ("4203", "4204")}}
    assert parents.find_server_of_target("4203@oss-4-4-stor2") == "b-store1"
    assert parents.find_unit_of_target("4203@oss-4-4-stor2") is None


def test_targets_without_a_mount_are_grouped_by_unique_names(site: System) -> None:
    assert set(find_target_parents(site, "/elsewhere").levels) == {"OSS", "server", "SSU"}
    assert not find_target_parents(read_system("systems/edison.toml"), "/elsewhere")  # OST0000 of three file systems


def test_parents_of_recorded_targets_survive_json(site: System) -> None:
    parents = find_target_parents(site, "/a").restrict_to_targets(["OST0020", "OST0777"])
    assert parents.levels == {"OSS": {"a-oss1": ("OST0020",)}, "SSU": {"a-ssu": ("OST0020",)}}
    assert parse_parents(parents.to_json()) == parents
    wrong: list[Any] = [None, [], {}, {"levels": 3}, {"levels": {"OSS": 4}}, {"levels": {"OSS": {"x": 5}}}]
    for nonsense in wrong:
        assert not [part for parts in parse_parents(nonsense).levels.values() for part in parts]


def test_a_run_is_described_afterwards_by_its_path_or_its_mount(site: System) -> None:
    def run(plan: dict[str, Any], simulated: dict[str, Any]) -> RecordedRun:
        reader = RecordReader()
        reader.run = RunLine(plan=plan, simulated=simulated)
        return make_recorded_run(reader)

    measured = add_target_parents(run({"target": {"path": "/a/x"}}, {}), site)
    assert measured.parents.find_server_of_target("OST001e") == "a-oss0"
    simulated = add_target_parents(run({"target": {"path": "/tmp"}}, {"mount": "b-mount"}), site)
    assert simulated.parents.find_server_of_target("b-target3") == "b-store1"
    assert TargetParents() == run({}, {}).parents


FURTHER_TABLES = """
schema = "sonde-system/2"
id = "more"
[[servers]]
id = "s1"
[[servers]]
id = "s2"
[[targets]]
id = "o[0-1]"
kind = "ost"
file_system = "f"
server = ["s1", "s2"]
[[targets]]
id = "m"
kind = "mdt"
index = 7
file_system = "f"
server = "s2"
[[targets]]
id = "n[1-2]"
kind = "nsd"
file_system = "g"
server = "s1"
[[targets]]
id = "t"
kind = "target"
file_system = "h"
[[units]]
id = "u"
targets = ["o1", "n1", "t"]
[[pools]]
id = "p"
file_system = "g"
targets = "n2"
[[file_systems]]
id = "f"
kind = "lustre"
[[file_systems]]
id = "g"
kind = "gpfs"
[[file_systems]]
id = "h"
kind = "beegfs"
[[mounts]]
id = "f-mount"
file_system = "f"
path = "/a"
[[mounts]]
id = "g-mount"
file_system = "g"
path = "/a/b"
"""


@pytest.fixture
def larger_site(tmp_path: Path) -> System:
    path = tmp_path / "more.toml"
    path.write_text(FURTHER_TABLES, encoding="utf-8")
    return read_system(str(path))


@pytest.mark.parametrize(
    ("target", "levels"),
    [
        ("f", {"OSS": {"s1": ("OST0000",), "s2": ("OST0001",)}, "MDS": {"s2": ("m",)}, "unit": {"u": ("OST0001",)}}),
        ("/a", {"OSS": {"s1": ("OST0000",), "s2": ("OST0001",)}, "MDS": {"s2": ("m",)}, "unit": {"u": ("OST0001",)}}),
        ("/a/x", {"OSS": {"s1": ("OST0000",), "s2": ("OST0001",)}, "MDS": {"s2": ("m",)}, "unit": {"u": ("OST0001",)}}),
        ("/a/b/c", {"NSD server": {"s1": ("n1", "n2")}, "unit": {"u": ("n1",)}}),
        ("g-mount", {"NSD server": {"s1": ("n1", "n2")}, "unit": {"u": ("n1",)}}),
        ("p", {"NSD server": {"s1": ("n1", "n2")}, "unit": {"u": ("n1",)}}),
        ("h", {"unit": {"u": ("t",)}}),
    ],
)
def test_parents_are_looked_up_by_file_system_mount_pool_or_path(
    larger_site: System, target: str, levels: dict[str, Any]
) -> None:
    """Lustre's targets without an index are counted, those of GPFS and of BeeGFS without a number have their ids."""
    parents = find_target_parents(larger_site, target)
    assert (parents.system, dict(parents.levels)) == ("more", levels)


def test_target_parents_combine_several_file_systems(larger_site: System) -> None:
    assert set(find_target_parents(larger_site, "/elsewhere").levels["NSD server"]["s1"]) == {"n1", "n2"}
    assert set(find_target_parents(larger_site, "").levels["unit"]["u"]) == {"OST0001", "n1", "t"}
    assert find_target_parents(larger_site, "f", is_simulated=True).levels["OSS"] == {"s1": ("o0",), "s2": ("o1",)}


BRICKS = """
schema = "sonde-system/2"
id = "bricks"
[[servers]]
id = "store[1-2]"
[[targets]]
id = "brick[1-4]"
kind = "brick"
index = 1
label = "{server}:/bricks/b{index}"
file_system = "g"
server = "store[1-2]"
[[targets]]
id = "spare[1-2]"
kind = "brick"
label = "store1:/spare/{id}-{index}"
file_system = "g"
[[file_systems]]
id = "g"
kind = "gluster"
"""


def test_label_of_a_target_is_its_name_in_records(tmp_path: Path) -> None:
    path = tmp_path / "bricks.toml"
    path.write_text(BRICKS, encoding="utf-8")
    system = read_system(str(path))
    assert list_recorded_target_names(system, system.find_targets("g")) == [
        "store1:/bricks/b1",
        "store1:/bricks/b2",
        "store2:/bricks/b3",
        "store2:/bricks/b4",
        "store1:/spare/spare1-0",
        "store1:/spare/spare2-1",
    ]
    parents = find_target_parents(system, "g")
    assert parents.find_server_of_target("store2:/bricks/b3") == "store2"
    assert find_target_parents(system, "g", is_simulated=True).find_server_of_target("brick3") == "store2"


def test_run_without_path_uses_its_notes_or_plan_target(larger_site: System) -> None:
    run = make_recorded_run(RecordReader(), summary_document={"target": "/a/b", "x": 1})
    recorded_run = add_target_parents(run, larger_site)
    assert recorded_run.parents.find_server_of_target("n2") == "s1"
    assert recorded_run.notes["x"] == 1
    reader = RecordReader()
    reader.run = RunLine(simulated={"system": "more"}, plan={"target": {"path": "f"}})
    assert add_target_parents(make_recorded_run(reader), larger_site).parents.find_server_of_target("o1") == "s2"
