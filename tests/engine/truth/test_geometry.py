# SPDX-License-Identifier: Apache-2.0
"""Which bytes of which files a plan touches, and in which order: `accesses` against a second implementation.

The reference below is written from the description of the plan and shares nothing with the engine. Where the order is
random the reference knows only what may be touched; then the tests ask for exactly those bytes, once each, in an order
that is not the sequential one (without replacement), or for the right number of draws from them (with replacement).
"""

from __future__ import annotations

import json
import math
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

Plan = dict[str, Any]
Accesses = dict[int, dict[str, list[int]]]  # task -> path -> offsets in order

TARGET = "/target"
ORDERS = [("sequential", "task"), ("reverse", "task"), ("stride", "task")] + [
    (order, scope) for order in ("random_permute", "random_replace") for scope in ("block", "task", "file")
]
MIN_SLOTS_FOR_ORDER_CHECK = 9  # slots: the chance that a random order is the sequential one is then below 1 / 360000
MAPPINGS = ["shared", "per_task", "per_node", "per_group", "many"]
IN_TIME = settings(max_examples=12, derandomize=True, deadline=None, database=None)


# The reference -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """One file of a task, and which of the tasks that share it the task is."""

    path: str
    number: int
    sharers: int
    index: int


def count_tasks(plan: Plan) -> int:
    return int(plan["tasks"]["processes"] * plan["tasks"]["threads"])


def list_places(plan: Plan, task: int) -> list[Place]:
    """The files of a task in the order in which it goes through them. All tasks are on one node."""
    files = plan["data"]["files"]
    tasks = count_tasks(plan)
    size, count = files.get("group_size", tasks), files.get("count", 1)
    sharers: dict[str, list[int]] = {
        "shared": list(range(tasks)),
        "per_node": list(range(tasks)),
        "per_group": [other for other in range(tasks) if other // size == task // size],
        "per_task": [task],
        "many": [task],
    }
    together = sharers[files["mapping"]]
    endings = {
        "shared": [("", 0)],
        "per_node": [(".n000000", 0)],
        "per_group": [(f".g{task // size:08}", task // size)],
        "per_task": [(f".t{task:08}", task)],
        "many": [(f".t{task:08}.{k:08}", task * count + k) for k in plan["phases"][0].get("files", range(count))],
    }[files["mapping"]]
    folder = {"one": "", "per_task": f"t{together[0]:08}/", "per_node": "n000000/"}[files["directories"]]
    if files["mapping"] == "shared":
        folder = ""
    return [
        Place(f"{TARGET}/{folder}data{ending}", number, len(together), together.index(task))
        for ending, number in endings
    ]


def count_segments(plan: Plan) -> int:
    access = plan["data"]["access"]
    if "segments" in access:
        return int(access["segments"])
    volume = access["volume"]
    if isinstance(volume, dict):
        shared_by = 1 if volume["per"] == "task" else count_tasks(plan)
        volume = math.ceil(volume["bytes"] / shared_by)
    files = len(list_places(plan, 0))
    segments: int = math.ceil(math.ceil(volume / files) / access["block"])
    return segments


def list_slot_offsets(plan: Plan, file_share: Place) -> list[list[int]]:
    """Offsets of the task's transfers in a file in sequential order, one list a segment."""
    access = plan["data"]["access"]
    block, transfer, gap, first = access["block"], access["transfer"], access.get("gap", 0), access.get("offset", 0)
    in_block = block // transfer
    segments = range(count_segments(plan))
    if access["order"] == "stride":
        step = access["stride"]
        return [
            [first + ((g * in_block + j) * file_share.sharers + file_share.index) * step for j in range(in_block)]
            for g in segments
        ]
    return [
        [first + (g * file_share.sharers + file_share.index) * (block + gap) + j * transfer for j in range(in_block)]
        for g in segments
    ]


def flatten_lists(lists: list[list[int]]) -> list[int]:
    return [item for part in lists for item in part]


def find_owner(plan: Plan, task: int, shift_by: str, shift_distance: int) -> int:
    """The task whose data `task` reads under a shift."""
    step = {"none": 0, "tasks": shift_distance, "nodes": shift_distance * count_tasks(plan)}[shift_by]
    return (task + step) % count_tasks(plan)


# Plans ---------------------------------------------------------------------------------------------------------------


@st.composite
def draw_file_mapping(draw: st.DrawFn, mapping: str) -> Plan:
    files: Plan = {"mapping": mapping}
    if mapping == "per_group":
        files["group_size"] = draw(st.integers(1, 5))
    if mapping == "many":
        files["count"] = draw(st.integers(1, 4))
    folders = ["one", "per_node"] if mapping == "shared" else ["one", "per_task", "per_node"]
    files["directories"] = draw(st.sampled_from(folders))
    return files


@st.composite
def draw_plan(draw: st.DrawFn, order: str, scope: str, mapping: str) -> Plan:
    transfer = draw(st.sampled_from([1, 47, 512, 4096, 10_000, 1 << 20]))
    block = transfer * draw(st.integers(1, 6))
    access: Plan = {"transfer": transfer, "block": block, "order": order, "scope": scope}
    access["seed"] = draw(st.integers(0, 2**63 - 1))
    access["offset"] = draw(st.sampled_from([0, 1, 4096, 77_777]))
    if order == "stride":
        access["stride"] = transfer + draw(st.sampled_from([0, 1, transfer, 3 * transfer, 5000]))
    else:
        access["gap"] = draw(st.sampled_from([0, 0, 1, transfer, 5000]))
    amount = draw(st.integers(0, 12)) * block + draw(st.integers(1, block))
    kind = draw(st.sampled_from(["segments", "bytes", "task", "node", "total"]))
    if kind == "segments":
        access["segments"] = draw(st.integers(1, 6))
    elif kind == "bytes":
        access["volume"] = amount
    else:
        access["volume"] = {"of": "bytes", "bytes": amount * draw(st.integers(1, 4)), "per": kind}
    files = draw(draw_file_mapping(mapping))
    phase: Plan = {"id": "write", "op": "write"}
    if files["mapping"] == "many" and draw(st.booleans()):
        chosen = st.lists(st.integers(0, files["count"] - 1), min_size=1, unique=True)
        phase["files"] = draw(chosen)
    return {
        "schema": "sonde-plan/2",
        "id": "geometry",
        "target": {"path": TARGET},
        "tasks": {"processes": draw(st.integers(1, 3)), "threads": draw(st.integers(1, 3))},
        "data": {"files": files, "access": access},
        "phases": [phase],
    }


# The engine ----------------------------------------------------------------------------------------------------------


def list_accesses(engine: Path, plan: Plan) -> dict[str, Accesses]:
    """The accesses that the engine reports, by phase. It must say each transfer with the number of its file and the
    right length."""
    answer = subprocess.run(
        [str(engine), "accesses", "-"], input=json.dumps(plan), capture_output=True, text=True, timeout=60, check=False
    )
    assert answer.returncode == 0, answer.stderr
    phases: dict[str, Accesses] = {phase["id"]: defaultdict(lambda: defaultdict(list)) for phase in plan["phases"]}
    numbers = {share.path: share.number for task in range(count_tasks(plan)) for share in list_places(plan, task)}
    for text in answer.stdout.splitlines():
        line = json.loads(text)
        assert line["length"] == plan["data"]["access"]["transfer"]
        assert line["file"] == numbers[line["path"]]
        phases[line["phase"]][line["task"]][line["path"]].append(line["offset"])
    return phases


def iterate_offsets_by_file(offsets_of: Accesses) -> Iterator[tuple[str, list[int]]]:
    """Path and the offsets of all tasks."""
    joined: dict[str, list[int]] = defaultdict(list)
    for of_task in offsets_of.values():
        for path, offsets in of_task.items():
            joined[path] += offsets
    yield from joined.items()


def check_files_whole(plan: Plan, offsets_of: Accesses) -> None:
    """Seen from the files alone: nothing twice, nothing left out but the gaps that were asked for."""
    access = plan["data"]["access"]
    transfer, first = access["transfer"], access.get("offset", 0)
    for path, offsets in iterate_offsets_by_file(offsets_of):
        line = sorted(offsets)
        assert line[0] == first, path
        steps = [after - before for before, after in pairwise(line)]
        if access["order"] == "stride":
            assert all(step == access["stride"] for step in steps), path
            continue
        in_block = access["block"] // transfer
        for n, step in enumerate(steps, start=1):
            assert step == transfer + (access["gap"] if n % in_block == 0 else 0), (path, n)


def check_order(plan: Plan, file_share: Place, offsets: list[int], scope: str) -> None:
    """The transfers of one task in one file."""
    access = plan["data"]["access"]
    order, in_block = access["order"], access["block"] // access["transfer"]
    task_slots = list_slot_offsets(plan, file_share)
    everything = flatten_lists(task_slots)
    assert len(offsets) == len(everything)
    segments = [offsets[i : i + in_block] for i in range(0, len(offsets), in_block)]
    if order in ("sequential", "stride"):
        assert offsets == everything
    elif order == "reverse":
        assert offsets == everything[::-1]
    elif scope == "block":
        for segment, allowed in zip(segments, task_slots, strict=True):
            assert set(segment) <= set(allowed)
            if order == "random_permute":
                assert Counter(segment) == Counter(allowed)
                assert [x - allowed[0] for x in segment] == [x - task_slots[0][0] for x in segments[0]]
    elif scope == "task":
        assert set(offsets) <= set(everything)
        if order == "random_permute":
            assert Counter(offsets) == Counter(everything)
            assert len(everything) < MIN_SLOTS_FOR_ORDER_CHECK or offsets != everything
    else:
        sharers = [
            Place(file_share.path, file_share.number, file_share.sharers, index) for index in range(file_share.sharers)
        ]
        assert set(offsets) <= {x for sharer in sharers for x in flatten_lists(list_slot_offsets(plan, sharer))}


# The tests -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize(("order", "scope"), ORDERS)
def test_accessed_offsets_match_the_plan(engine_path: Path, order: str, scope: str, mapping: str) -> None:
    seen_plans: set[str] = set()

    @IN_TIME
    @given(plan=draw_plan(order, scope, mapping))
    def compare(plan: Plan) -> None:
        seen_plans.add(json.dumps(plan, sort_keys=True))
        offsets_of = list_accesses(engine_path, plan)["write"]
        assert sorted(offsets_of) == list(range(count_tasks(plan)))
        for task, of_task in offsets_of.items():
            wanted = list_places(plan, task)
            assert list(of_task) == [share.path for share in wanted]
            for share in wanted:
                check_order(plan, share, of_task[share.path], scope)
        if order != "random_replace":
            check_files_whole(plan, offsets_of)
        if (order, scope) == ("random_permute", "file"):
            for path, offsets in iterate_offsets_by_file(offsets_of):
                assert len(offsets) < MIN_SLOTS_FOR_ORDER_CHECK or offsets != sorted(offsets), path

    compare()
    assert len(seen_plans) >= 10, "with all orders and mappings that makes at least 450 different plans"


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("shift_by", ["none", "tasks", "nodes", "random", "permute"])
def test_shifted_readers_read_one_writers_data(engine_path: Path, shift_by: str, mapping: str) -> None:
    @IN_TIME
    @given(
        plan=st.sampled_from(["sequential", "reverse"]).flatmap(lambda order: draw_plan(order, "task", mapping)),
        n=st.integers(-7, 12),
        seed=st.integers(0, 2**31),
    )
    def compare(plan: Plan, n: int, seed: int) -> None:
        plan["phases"].append({**plan["phases"][0], "id": "read", "op": "read"})
        plan["phases"][1]["shift"] = {"by": shift_by, "n": n, "seed": seed}
        touched_by = list_accesses(engine_path, plan)
        written = touched_by["write"]
        owners = []
        for task, of_task in touched_by["read"].items():
            writers = [writer for writer, offsets in written.items() if offsets == of_task]
            assert len(writers) == 1, f"task {task} reads a mixture of several tasks' data"
            owners += writers
        assert len(owners) == count_tasks(plan)
        if shift_by == "permute":
            assert sorted(owners) == list(range(count_tasks(plan)))
        elif shift_by != "random":
            assert owners == [find_owner(plan, task, shift_by, n) for task in range(count_tasks(plan))]

    compare()


def make_plan_of_four_tasks(order: str, scope: str, **access: Any) -> Plan:
    """Four tasks on one file, 64 slots each."""
    return {
        "schema": "sonde-plan/2",
        "id": "geometry",
        "target": {"path": TARGET},
        "tasks": {"processes": 2, "threads": 2},
        "data": {
            "files": {"mapping": "shared", "directories": "one"},
            "access": {"transfer": 4096, "block": 65536, "segments": 4, "order": order, "scope": scope, **access},
        },
        "phases": [{"id": "write", "op": "write"}],
    }


@pytest.mark.parametrize("scope", ["block", "task", "file"])
def test_draws_with_replacement_are_spread(engine_path: Path, scope: str) -> None:
    """Of 64 equally likely slots 64 draws reach 64 * (1 - 1/e) = 40.5 on average, with a deviation of 2.5."""
    plan = make_plan_of_four_tasks("random_replace", scope)
    offsets_of = list_accesses(engine_path, plan)["write"]
    for task, of_task in offsets_of.items():
        [offsets] = of_task.values()
        task_slots = set(flatten_lists(list_slot_offsets(plan, list_places(plan, task)[0])))
        # From the whole file there are four times as many slots: 64 draws reach 56.6, and a quarter of them is own.
        low, high = (46, 64) if scope == "file" else (28, 53)
        assert low <= len(set(offsets)) <= high
        assert (2 <= sum(x in task_slots for x in offsets) <= 34) if scope == "file" else set(offsets) <= task_slots
    assert len({tuple(*of_task.values()) for of_task in offsets_of.values()}) == 4, "two tasks draw the same"


def test_random_permute_distributes_a_file_over_all_tasks(engine_path: Path) -> None:
    """Each task's hand comes from everywhere: 16 of its 64 slots are its own on average, with a deviation of 3."""
    plan = make_plan_of_four_tasks("random_permute", "file")
    for task, of_task in list_accesses(engine_path, plan)["write"].items():
        [offsets] = of_task.values()
        task_slots = set(flatten_lists(list_slot_offsets(plan, list_places(plan, task)[0])))
        assert 3 <= sum(x in task_slots for x in offsets) <= 29


@pytest.mark.parametrize("scope", ["block", "task", "file"])
@pytest.mark.parametrize("order", ["random_permute", "random_replace"])
def test_random_orders_depend_on_the_seed_only(engine_path: Path, order: str, scope: str) -> None:
    """The same again with the same seed; with another seed every task gets another order."""
    first, again, other = (
        list_accesses(engine_path, make_plan_of_four_tasks(order, scope, seed=seed))["write"] for seed in (5, 5, 6)
    )
    assert first == again
    assert all(first[task] != other[task] for task in first)


@pytest.mark.parametrize("scope", ["block", "task", "file"])
def test_random_orders_differ_between_files(engine_path: Path, scope: str) -> None:
    """Otherwise all tasks would reach the same part of their files at the same moment."""
    plan = make_plan_of_four_tasks("random_permute", scope)
    plan["data"]["files"] = {"mapping": "many", "count": 3, "directories": "one"}
    offsets_of = list_accesses(engine_path, plan)["write"]
    orders = [tuple(offsets) for of_task in offsets_of.values() for offsets in of_task.values()]
    assert len(orders) == 12
    assert len(set(orders)) == 12


@pytest.mark.parametrize("mapping", ["shared", "per_task"])
def test_draws_within_a_part_cover_exactly_the_part(engine_path: Path, mapping: str) -> None:
    """1,000 draws of each of four tasks from 20 slots: the chance to miss one is 2e-21."""
    plan = make_plan_of_four_tasks("random_replace", "task", block=4096, segments=1000, within=20 * 4096, offset=8192)
    plan["data"]["files"]["mapping"] = mapping
    for of_task in list_accesses(engine_path, plan)["write"].values():
        [offsets] = of_task.values()
        assert len(offsets) == 1000
        assert set(offsets) == {8192 + slot * 4096 for slot in range(20)}
