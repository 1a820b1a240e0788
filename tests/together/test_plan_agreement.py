# SPDX-License-Identifier: Apache-2.0
"""The engine and the lab agree on the meaning of plans drawn at random.

The engine says of each plan what it understood and, counted access by access by the code that runs it, what each phase
would touch (``sonde-engine resolve --order``). The lab says what the plan means with nothing left to a default, and a
hash. Equal hash, equal accesses in equal order; other accesses, another hash.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from drawn_plans import Plan, changed, draw_plan

from sonde.launch.launchers.list import LAUNCHERS
from sonde.model.errors import PlanError
from sonde.model.operations import OPERATIONS
from sonde.model.plan import Plan as LabPlan
from sonde.model.plan_hash import compute_plan_hash
from sonde.model.plan_resolution import convert_to_base_units
from sonde.model.required_space import compute_required_space
from sonde.model.schemas import load_plan_schema
from sonde.model.volume import compute_phase_volumes

Answer = dict[str, Any]

DRAWN, AT_LEAST = 900, 500
MEMORY = 128 << 20


def ask(engine: Path, requests: Sequence[dict[str, Any]]) -> list[Answer]:
    """The engine's answer to each request, from one process."""
    lines = "\n".join(json.dumps({"node_memory_bytes": MEMORY, **request}) for request in requests)
    command = [str(engine), "resolve", "--lines", "--order", "-"]
    done = subprocess.run(command, input=lines, text=True, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@cache
def good_plans(engine: Path) -> list[tuple[Plan, Answer]]:
    """Drawn plans that the engine would run, with what it says of them."""
    plans = [draw_plan(number) for number in range(DRAWN)]
    answers = ask(engine, [{"plan": plan} for plan in plans])
    good = [(plan, answer) for plan, answer in zip(plans, answers, strict=True) if "error" not in answer]
    assert len(good) >= AT_LEAST
    return good


def hash_of(plan: Plan) -> str:
    tasks = plan.get("tasks", {})
    return compute_plan_hash(plan, tasks.get("processes", 1), tasks.get("threads", 1), 1)


def order_of(answer: Answer) -> list[str]:
    """Hash of all accesses of all tasks in their order, by phase."""
    return [phase["order"] for phase in answer["phases"]]


def convert_to_comparable_plan(document: Plan) -> Any:
    """A resolved plan in base units, without what only people read."""
    members = {name: value for name, value in document.items() if name not in ("meta", "title", "notes", "source")}
    return convert_to_base_units(members, load_plan_schema())


def test_random_plans_cover_every_operation_and_mapping(engine: Path) -> None:
    plans = [plan for plan, _ in good_plans(engine)]
    ops = {phase["op"] for plan in plans for phase in plan["phases"]}
    every = set(load_plan_schema()["properties"]["phases"]["items"]["properties"]["op"]["enum"])
    assert ops == every - {"replay", "train"}  # these need members of their own: test_plan_members has them
    of_files = load_plan_schema()["properties"]["data"]["properties"]["files"]["properties"]
    mappings = {plan["data"]["files"]["mapping"] for plan in plans if "data" in plan}
    assert mappings == set(of_files["mapping"]["enum"])


def test_the_lab_resolves_every_plan_as_the_engine_does(engine: Path) -> None:
    for plan, answer in good_plans(engine):
        ours = LabPlan.from_document(plan, "drawn").resolve()
        assert convert_to_comparable_plan(ours) == convert_to_comparable_plan(answer["plan"]), plan


def test_a_resolved_plan_is_the_same_plan_to_both(engine: Path) -> None:
    good = good_plans(engine)[::5]
    written_out = [LabPlan.from_document(plan, "drawn").resolve() for plan, _ in good]
    again = ask(engine, [{"plan": plan} for plan in written_out])
    from_engine = ask(engine, [{"plan": answer["plan"]} for _, answer in good])
    for (plan, first), ours, original, other in zip(good, written_out, again, from_engine, strict=True):
        assert original["phases"] == first["phases"] == other["phases"], plan
        assert (
            convert_to_comparable_plan(original["plan"])
            == convert_to_comparable_plan(first["plan"])
            == convert_to_comparable_plan(other["plan"])
        )
        assert hash_of(plan) == hash_of(ours) == hash_of(first["plan"])


def test_plans_have_equal_hashes_exactly_if_accesses_are_equal(engine: Path) -> None:
    good = good_plans(engine)
    mutants = [changed(plan, number) for number, (plan, _) in enumerate(good)]
    answers = ask(engine, [{"plan": plan} for plan in mutants])
    told_apart = same = 0
    for index, (mutant, answer) in enumerate(zip(mutants, answers, strict=True)):
        plan, before = good[index]
        if "error" in answer:
            continue
        equal = hash_of(mutant) == hash_of(plan)
        if order_of(answer) == order_of(before):
            same += equal
        elif not seeds_moved(before, answer):
            told_apart += 1
            assert not equal, (plan, mutant)
    assert told_apart > 150
    assert same > 20, "nothing shows that the hash leaves out what does not matter"


def seeds_moved(answer: Answer, other: Answer) -> bool:
    """True when only the numbers of seeds differ: of them the hash knows which are equal, not which they are."""

    def remove_seeds(document: Any) -> Any:
        if isinstance(document, dict):
            return {name: remove_seeds(value) for name, value in document.items() if name != "seed"}
        return [remove_seeds(item) for item in document] if isinstance(document, list) else document

    return bool(remove_seeds(answer["plan"]) == remove_seeds(other["plan"]))


def test_computed_volumes_equal_the_volumes_of_the_engine(engine: Path) -> None:
    compared = cycles = 0
    for plan, answer in good_plans(engine):
        tasks = plan["tasks"].get("processes", 1) * plan["tasks"].get("threads", 1)
        volumes = compute_phase_volumes(LabPlan.from_document(plan, "drawn"), tasks, node_memory=MEMORY)
        for phase, paper, counted in zip(plan["phases"], volumes, answer["phases"], strict=True):
            exact = phase["op"] in ("write", "rewrite") and "operations" not in phase.get("stop", {})
            if phase["op"] == "cycle":
                assert (paper.operations, paper.bytes) == (counted["operations"], counted["bytes"]), (plan, phase)
                cycles += 1
            if exact:
                numbers = (counted["segments"], counted["operations"], counted["bytes"])
                assert (paper.segments, paper.operations, paper.bytes) == numbers, (plan, phase)
                compared += 1
    assert compared > AT_LEAST
    assert cycles > 50


def test_the_lab_computes_the_space_of_a_plan_as_the_engine(engine: Path) -> None:
    stonewalled = 0
    for plan, answer in good_plans(engine):
        tasks = plan["tasks"].get("processes", 1) * plan["tasks"].get("threads", 1)
        space = compute_required_space(LabPlan.from_document(plan, "drawn"), tasks, node_memory=MEMORY)
        assert (space.bytes, space.most_bytes) == (answer["space"]["bytes"], answer["space"]["most_bytes"]), plan
        stonewalled += space.bytes != space.most_bytes
    assert stonewalled > 20, "few draws have a stonewall that can end a write"


def test_random_plans_with_equal_hash_access_the_same_data(engine: Path) -> None:
    orders: dict[str, list[str]] = {}
    for plan, answer in good_plans(engine):
        assert orders.setdefault(hash_of(plan), order_of(answer)) == order_of(answer)


def test_engine_and_lab_use_the_defaults_of_the_schema(engine: Path) -> None:
    """Plans that leave out all that can be left out; a member without a default of its own gets a value."""
    treated = [{"kind": "sync"}, {"kind": "sleep", "time": "1s"}]
    streams = [{"id": "in", "op": "read"}, {"id": "out", "op": "write", "file": 1}]
    many_files: Plan = {"files": {"mapping": "many", "count": 2}}
    bare: list[Plan] = [
        {"phases": [{"id": "w", "op": "write", "before": treated}, {"id": "r", "op": "read"}]},
        {"data": many_files, "phases": [{"id": "w", "op": "write"}, {"id": "d", "op": "duplex", "streams": streams}]},
        {
            "meta": {"tree": {"items_per_dir": 1}},
            "phases": [{"id": "c", "op": "create"}, {"id": "f", "op": "walk", "meta": {"find": {"name": "x"}}}],
        },
    ]
    plans = [{"schema": "sonde-plan/2", "id": "bare", "target": {"path": "/tmp"}, **members} for members in bare]
    for plan, answer in zip(plans, ask(engine, [{"plan": plan} for plan in plans]), strict=True):
        assert convert_to_comparable_plan(LabPlan.from_document(plan, "bare").resolve()) == convert_to_comparable_plan(
            answer["plan"]
        )


def test_operations_are_one_table() -> None:
    """The lab's rows are the engine's: the same names in the same order, on the same things, with the same effect."""
    header = (Path(__file__).resolve().parents[2] / "engine/plan/operations.hpp").read_text(encoding="utf-8")
    rows = re.findall(
        r'OperationInfo\{Op::\w+, "(\w+)", OperationInfo::Subject::(\w+), '
        r"OperationInfo::OperationEffect::(\w+)([^}]*)\}",
        header,
    )
    operations = [(name, on, effect, *[*flags.split(","), "", ""][1:3]) for name, on, effect, flags in rows]
    ours = [
        (operation.name, operation.acts_on, operation.effect, operation.reads, operation.writes)
        for operation in OPERATIONS
    ]
    assert [
        (*operation[:3], operation[3].strip() == "true", operation[4].strip() == "true") for operation in operations
    ] == ours
    assert {operation.name for operation in OPERATIONS} == set(
        load_plan_schema()["properties"]["phases"]["items"]["properties"]["op"]["enum"]
    )


def test_engine_and_lab_detect_launchers_by_the_same_variables() -> None:
    """Who a process is among several: the engine's own tests say what the variables mean."""
    engine = (Path(__file__).resolve().parents[2] / "engine/ranks/launcher.cpp").read_text(encoding="utf-8")
    variables = set(re.findall(r'ranks\(variable, "(\w+)", "(\w+)"', engine))
    marks = [mark for launcher in LAUNCHERS for mark in launcher.rank_variables]
    assert {(mark.rank, mark.size) for mark in marks} == variables
    for mark in marks:
        assert not mark.required or re.search(rf'variable(\(|, )"{mark.required}"\)', engine), mark


def test_seeds_count_by_which_are_equal(engine: Path) -> None:
    def make_plan_of_two_phases(write: int, read: int) -> Plan:
        access = {"transfer": "4KiB", "segments": 64, "order": "random_permute"}
        return {
            "schema": "sonde-plan/2",
            "id": "seeds",
            "target": {"path": "/tmp"},
            "data": {"access": access},
            "phases": [
                {"id": "w", "op": "write", "access": {"seed": write}},
                {"id": "r", "op": "read", "access": {"seed": read}},
            ],
        }

    assert (
        hash_of(make_plan_of_two_phases(1, 1))
        == hash_of(make_plan_of_two_phases(5, 5))
        != hash_of(make_plan_of_two_phases(1, 2))
        == hash_of(make_plan_of_two_phases(7, 3))
    )
    alike, unlike = (
        order_of(answer)
        for answer in ask(engine, [{"plan": make_plan_of_two_phases(1, 1)}, {"plan": make_plan_of_two_phases(1, 2)}])
    )
    assert alike[0] == unlike[0]
    assert alike[1] != unlike[1]


def test_transfer_of_a_phase_does_not_change_block_and_segments(engine: Path) -> None:
    """Engine and lab once read 64 MiB and 16 KiB of this plan, under one hash."""
    plan: Plan = {
        "schema": "sonde-plan/2",
        "id": "p",
        "target": {"path": "/tmp"},
        "data": {"access": {"transfer": "1MiB", "block": "16MiB", "segments": 4}},
        "phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read", "access": {"transfer": "4KiB"}}],
    }
    resolved = LabPlan.from_document(plan, "p").resolve()
    for answer in ask(engine, [{"plan": plan}, {"plan": resolved}]):
        assert [(phase["bytes"], phase["operations"]) for phase in answer["phases"]] == [
            (64 << 20, 64),
            (64 << 20, 16384),
        ]


def test_volume_below_a_block_is_refused_in_one_sentence(engine: Path) -> None:
    plan: Plan = {
        "schema": "sonde-plan/2",
        "id": "p",
        "target": {"path": "/tmp"},
        "data": {"access": {"transfer": "1MiB", "block": "16MiB"}},
        "phases": [{"id": "w", "op": "write", "access": {"volume": "1MiB"}}],
    }
    own_block = copy.deepcopy(plan)
    own_block["phases"][0]["access"]["block"] = "1MiB"
    refused, accepted = ask(engine, [{"plan": plan}, {"plan": own_block}])
    assert "blocks are moved whole" in refused["error"]
    assert accepted["phases"][0]["bytes"] == 1 << 20


def test_unknown_calibrated_member_is_refused_by_engine_and_lab(engine: Path) -> None:
    plan = {"schema": "sonde-plan/2", "id": "x", "target": {"path": "/tmp"}, "phases": [{"id": "w", "op": "write"}]}
    for names, good in ((["data.access.volume", "data.files.count"], True), (["data.access.transfer"], False)):
        document = plan | {"calibrated": names}
        (answer,) = ask(engine, [{"plan": document}])
        assert ("error" not in answer) == good
        if good:
            LabPlan.from_document(document, "test")
        else:
            with pytest.raises(PlanError, match="calibrated"):
                LabPlan.from_document(document, "test")
