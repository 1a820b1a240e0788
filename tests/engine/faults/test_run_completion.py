# SPDX-License-Identifier: Apache-2.0
"""Barriers, deadlines, wear-out, tasks that are slow, idle or fail: every plan comes to an end.

Tasks meet at barriers between the parts of a phase, at the deadline, and when the phase is over; one that meets the
others in another order waits for ever. Which tasks finish early, hit the deadline or fail is drawn at random, from
fixed seeds.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from engine_under_test import BAD_PLAN, DONE, FAILED, Engine, Plan

PLANS, A_BATCH = 96, 12


def make_phase(chance: random.Random, phase_number: int) -> Plan:
    op = chance.choice(["read", "rewrite", "reread", "mixed"]) if phase_number else "write"
    phase: Plan = {"id": f"p{phase_number}", "op": op, "barrier": chance.choice(["none", "phase", "intra", "intra"])}
    stop: Plan = {}
    if chance.random() < 0.6:
        stop["stonewall"] = chance.choice(["100ms", "500ms", "1s"])
        stop["wearout"] = chance.random() < 0.75
        if chance.random() < 0.2:
            stop["min_time"] = "100ms"
    elif chance.random() < 0.2:
        stop["time"] = "300ms"
    if chance.random() < 0.15:
        stop["operations"] = chance.choice([1, 7, 40])
    if stop:
        phase["stop"] = stop
    if op == "mixed":
        phase["access"] = {"read_ratio": 0.5}
    if op in ("read", "reread") and chance.random() < 0.3:
        phase["shift"] = {"by": chance.choice(["tasks", "random", "permute"]), "n": 1}
    if chance.random() < 0.2:
        phase["io"] = {"queue_depth": chance.choice([2, 8])}
    return phase


def plan_of(seed: int, target: Path) -> Plan:
    chance = random.Random(seed)
    tasks = {"processes": chance.choice([1, 2, 3, 5]), "threads": chance.choice([1, 1, 2, 3])}
    count = tasks["processes"] * tasks["threads"]
    paced: Plan = {"schedule": [{"at": "0s", "rate": "100MB/s"}]}
    if chance.random() < 0.6:
        paced["slow_tasks"] = {str(chance.randrange(count)): chance.choice([2, 10]) for _ in range(2)}
    if chance.random() < 0.3:
        paced |= {"fail_after": chance.randrange(1, 60), "fail_errno": 5}
    if chance.random() < 0.2:
        tasks["active"] = chance.randrange(1, count + 1)
    return {
        "schema": "sonde-plan/2",
        "id": "end",
        "target": {"path": str(target), "min_free": 0},
        "tasks": tasks,
        "data": {
            "backend": "paced",
            "paced": paced,
            "files": {"mapping": chance.choice(["per_task", "shared"])},
            "access": {"transfer": "1MiB", "block": chance.choice(["1MiB", "8MiB", "32MiB"]), "segments": 2},
        },
        "phases": [make_phase(chance, number) for number in range(chance.choice([1, 2, 3]))],
    }


@pytest.mark.parametrize("batch", range(PLANS // A_BATCH))
def test_every_random_plan_ends_within_its_limit(batch: int, engine: Engine, target: Path) -> None:
    ended = []
    for seed in range(batch * A_BATCH, (batch + 1) * A_BATCH):
        result = engine.run(plan_of(seed, target))  # within its time limit, or the test fails
        assert result.code in (DONE, FAILED, BAD_PLAN), f"seed {seed}: {result.err}"
        ended.append(result.code)
    assert ended.count(BAD_PLAN) <= A_BATCH // 3
    assert DONE in ended
