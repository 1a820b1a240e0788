# SPDX-License-Identifier: Apache-2.0
"""Every member of an experiment is used, verified, refused, or reported as not used."""

from __future__ import annotations

import ast
import dataclasses
import json
import typing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_executor import build_request

from sonde.experiments.cells import prepare_cells
from sonde.experiments.claims.number_use import describe_unusable_number
from sonde.experiments.executor import resolve_launcher
from sonde.experiments.member_use import (
    CHECKS_BY_MEMBER,
    UNSIMULATED_MEMBERS,
    apply_striping,
    find_file_system_type,
    find_unused_members,
    make_process_placement_arguments,
)
from sonde.model.errors import MachineError
from sonde.model.experiment.description import Clients, ExperimentFile, RunSchedule, Storage, Treatment, Variant
from sonde.model.line_members import FileSystemFacts
from sonde.model.lines import NodeLine, PhaseBeginLine, RunLine, TableLine
from sonde.model.plan import Plan
from sonde.model.record import PhaseRecord, RecordReader

ROOT = Path(__file__).parents[3]
READ_BY_NAME = {"schema"}
PLAN = Plan.from_document({"schema": "sonde-plan/2", "id": "p", "target": {"path": "/x"}, "phases": [
    {"id": "write", "op": "write"}]}, "p.toml")  # fmt: skip
# What each member of `clients` and `storage` becomes in a measured and in a simulated run. A mounted model is measured;
# a dry run prints the plan that a measured run executes. "used" by the plan, the directories, the launcher or claims.
USES = {
    "clients.nodes": ("verified", "used"),
    "clients.per_target": ("used", "used"),
    "clients.tasks_per_node": ("used", "used"),
    "clients.threads": ("used", "used"),
    "clients.mapping": ("verified", "used"),
    "clients.group": ("verified", "used"),
    "clients.origin": ("verified", "used"),
    "clients.launcher": ("used", "used"),
    "clients.pin": ("verified", "not used"),
    "storage.system": ("used", "used"),
    "storage.file_systems": ("used", "used"),
    "storage.mounts": ("used", "used"),
    "storage.pool": ("used", "used"),
    "storage.units": ("used", "used"),
    "storage.targets": ("used", "used"),
    "storage.kind": ("verified", "used"),
    "storage.purpose": ("verified", "used"),
    "storage.stripe_count": ("verified", "used"),
    "storage.stripe_size": ("verified", "used"),
    "storage.data_width": ("used", "used"),
    "storage.segment": ("used", "used"),
    "storage.peak": ("used", "used"),
}
# A value of each verified member that an ext4 directory on one undescribed node, or two in turns, does not fulfill.
UNFULFILLED: dict[str, Any] = {
    "clients.nodes": 3,
    "clients.mapping": "block",
    "clients.group": "x86",
    "clients.origin": "forwarded",
    "clients.pin": "core",
    "storage.kind": "lustre",
    "storage.purpose": "capacity",
    "storage.stripe_count": "all",
    "storage.stripe_size": 1 << 20,
}


def make_record(hosts: tuple[str, ...] = ("n1", "n2"), nodes_of_tasks: tuple[int, ...] = (0, 1, 0, 1)) -> RecordReader:
    record = RecordReader()
    record.run = RunLine(nodes=len(hosts))
    facts = FileSystemFacts(type="ext4")
    record.nodes = [NodeLine(node=index, host=host, file_system=facts) for index, host in enumerate(hosts)]
    rows = tuple((task, node) for task, node in enumerate(nodes_of_tasks))
    table = TableLine(phase="write", columns=("task", "node"), rows=rows)
    record.phases["write"] = PhaseRecord(PhaseBeginLine(phase="write", op="write"), tasks=[table])
    return record


def find_unused(member_path: str, member_value: Any, **options: Any) -> list[dict[str, Any]]:
    table, _, member = member_path.partition(".")
    clients, storage = Clients(), Storage()
    if table == "clients":
        clients = replace(clients, **{member: member_value})
    else:
        storage = replace(storage, **{member: member_value})
    return find_unused_members(clients, storage, make_record(), PLAN, **options)


def test_every_member_of_clients_and_storage_has_a_use() -> None:
    hints = typing.get_type_hints(ExperimentFile)
    tables = {name: next(part for part in typing.get_args(hints[name]) if part is not type(None))
              for name in ("clients", "storage")}  # fmt: skip
    members = {f"{name}.{field.name}" for name, table in tables.items() for field in dataclasses.fields(table)}
    assert members == set(USES)
    assert (
        {path for path, (measured, _) in USES.items() if measured == "verified"}
        == set(CHECKS_BY_MEMBER)
        == set(UNFULFILLED)
    )
    assert {path for path, (_, simulated) in USES.items() if simulated == "not used"} == set(UNSIMULATED_MEMBERS)


@pytest.mark.parametrize("path", UNFULFILLED)
def test_member_that_a_measured_run_ignored_is_a_finding(path: str) -> None:
    (finding,) = find_unused(path, UNFULFILLED[path], swept_members=[path])
    assert finding["text"].startswith(f"The run did not follow {path}: ")
    assert (finding["severity"], finding["evidence"]) == ("warning", {"members": [path], "swept": [path]})


@pytest.mark.parametrize("path", UNSIMULATED_MEMBERS)
def test_member_that_a_simulated_run_ignored_is_a_finding(path: str) -> None:
    assert find_unused(path, UNFULFILLED[path], is_simulated=True)[0]["evidence"]["members"] == [path]


@pytest.mark.parametrize(
    ("member_path", "member_value"),
    [
        ("clients.nodes", 2), ("clients.mapping", "cyclic"), ("clients.origin", "compute"), ("clients.pin", "none"),
        ("storage.kind", "local"), ("storage.kind", "any"),
    ],
)  # fmt: skip
def test_member_that_the_run_followed_is_no_finding(member_path: str, member_value: Any) -> None:
    assert find_unused(member_path, member_value) == []


def test_stripes_are_set_on_a_striped_file_system_only(tmp_path: Path) -> None:
    storage = Storage(stripe_count="all", stripe_size=1 << 20)
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
        "2 1 0:1 / /x rw shared:1 - lustre a@tcp:/fs rw\n"
        "3 1 0:2 / /xy rw - nfs a rw\n"
    )
    assert find_file_system_type(Path("/x/dir"), mountinfo) == "lustre"
    plan = apply_striping(PLAN, storage, mountinfo)
    assert plan.document["target"] == {"path": "/x", "striping": {"count": -1, "size": 1 << 20}}
    assert find_unused_members(Clients(), storage, make_record(), plan) == []
    elsewhere = Plan.from_document({**PLAN.document, "target": {"path": "/y"}}, "p.toml")
    assert apply_striping(elsewhere, storage, mountinfo) == elsewhere


@pytest.mark.parametrize(
    ("launcher", "flavor", "clients", "expected"),
    [
        ("srun", "", Clients(mapping="cyclic", pin="numa"), ["--distribution=cyclic", "--cpu-bind=ldoms"]),
        ("mpiexec", "hydra", Clients(mapping="cyclic"), ["-ppn", "1"]),
        ("mpiexec", "openmpi", Clients(mapping="block", pin="numa"), ["--map-by", "slot", "--bind-to", "numa"]),
        ("local", "", Clients(mapping="block", pin="core"), []),
    ],
)
def test_launcher_gets_mapping_and_binding(launcher: str, flavor: str, clients: Clients, expected: list[str]) -> None:
    assert make_process_placement_arguments(launcher, clients, None, flavor) == expected


def test_binding_to_numa_nodes_without_a_launcher_is_refused() -> None:
    with pytest.raises(MachineError, match="needs srun, or the mpiexec"):
        resolve_launcher(PLAN, Clients(pin="numa"))


@pytest.mark.parametrize(("pin", "expected"), [("core", True), ("none", False)])
def test_pin_of_an_experiment_is_in_the_plan_of_its_cells(tmp_path: Path, pin: str, expected: bool) -> None:
    document = {"id": "e", "plan": {"phases": [{"id": "w", "op": "write"}]}, "clients": {"pin": pin}}
    request = build_request(document, tmp_path)
    (cell,) = prepare_cells(request.experiment, request.locations.load_directories_with_system(), "g")
    assert cell.plan.document["tasks"] == {"pin": expected}


def test_claim_across_cells_that_are_the_same_is_not_judged(tmp_path: Path) -> None:
    record = make_record()
    record.folder = tmp_path
    phase = record.phases["write"]
    assert "the same in cells" not in describe_unusable_number(record, phase, ("storage",))
    findings = find_unused("clients.origin", "forwarded", swept_members=["clients.origin"])
    record.folder = tmp_path / "swept"
    record.folder.mkdir()
    (record.folder / "run.json").write_text(json.dumps({"lab_findings": findings}))
    assert describe_unusable_number(record, phase, ("storage",)).startswith(
        "the same in cells that should differ (the run did not follow clients.origin: whether"
    )


def test_every_member_of_an_experiment_is_read_by_the_lab() -> None:
    """A member that no code reads would be ignored in every way of running."""
    hints = typing.get_type_hints(ExperimentFile)
    tables = {ExperimentFile} | {
        part for hint in hints.values() for part in typing.get_args(hint) if dataclasses.is_dataclass(part)
    }
    assert {Clients, Storage, Treatment, Variant, RunSchedule} <= tables
    read = {
        node.attr
        for path in (ROOT / "lab" / "sonde").rglob("*.py")
        if path.name != "description.py" and {"experiment", "experiments", "report", "cli"} & set(path.parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    unread = {field.name for table in tables for field in dataclasses.fields(table)} - read
    assert unread <= READ_BY_NAME
