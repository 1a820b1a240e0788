# SPDX-License-Identifier: Apache-2.0
"""Wrong plans and wrong command lines: one sentence that says what, where and what to do, the right exit code, nothing
on the target, and nothing in the record that would look like a result.
"""

from __future__ import annotations

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, Engine, Plan, Result, write_plan
from wrong_plans import DROP, TEXTS, WRONG_PLANS, WrongPlan


def change_plan_members(plan: Plan, changes: dict[str, Any]) -> Plan:
    """The plan with members replaced or removed; paths have dots between members."""
    plan = copy.deepcopy(plan)
    for path, value in changes.items():
        *parents, last = path.split(".")
        table = plan
        for step in parents:
            table = table.setdefault(step, {})
        if value is DROP:
            table.pop(last, None)
        else:
            table[last] = value
    return plan


def list_names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def check_sentence(sentence: str) -> None:
    """For people: one line, not too long, no traceback and nothing that drives a terminal."""
    assert sentence.isprintable()
    assert 20 < len(sentence) < 700
    for ugly in ("terminate called", "what():", "Assertion", "std::", "nlohmann", "exception", "0x"):
        assert ugly not in sentence


def check_nothing_ran(result: Result) -> None:
    assert not [line for line in result.lines if line["type"] in ("phase_begin", "phase_end", "series")]
    if result.lines:
        assert result.end["status"] != "done"


@pytest.mark.parametrize("wrong_plan", WRONG_PLANS, ids=lambda wrong: wrong.name)
def test_a_wrong_plan_is_refused_in_one_sentence(engine: Engine, target: Path, wrong_plan: WrongPlan) -> None:
    (target / "taken").mkdir()
    (target / "taken" / "precious").write_text("mine", encoding="utf-8")
    plan = change_plan_members(write_plan(target), wrong_plan.changes)
    result = engine.run(plan)
    assert result.code == wrong_plan.code, result.err
    sentence = result.only_sentence
    check_sentence(sentence)
    for part in wrong_plan.says:
        assert part in sentence
    check_nothing_ran(result)
    assert list_names(target) == {"taken"}
    assert (target / "taken" / "precious").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(("case_name", "plan_text", "expected_text"), TEXTS, ids=[text[0] for text in TEXTS])
def test_invalid_plan_is_rejected_in_one_sentence(
    engine: Engine, tmp_path: Path, case_name: str, plan_text: bytes, expected_text: str
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_bytes(plan_text)
    for arguments, standard_input in (
        (["run", str(plan)], b""),
        (["run", "-"], plan_text),
        (["accesses", str(plan)], b""),
    ):
        done = subprocess.run(
            [str(engine.path), *arguments], input=standard_input, capture_output=True, timeout=60, check=False
        )
        message = done.stderr.decode("utf-8", errors="strict")
        assert done.returncode == BAD_PLAN, message
        assert message.count("\n") == 1
        assert expected_text in message
        check_sentence(message.strip())


COMMAND_LINES: list[tuple[list[str], str]] = [
    ([], "a command is missing: use run"),
    (["walk"], "walk"),
    (["run"], "plan"),
    (["run", "absent.json"], "absent.json"),
    (["run", "."], "cannot read the plan"),
    (["run", "a.json", "b.json"], "b.json"),
    (["run", "plan.json", "--recrod", "x"], "--recrod"),
    (["run", "plan.json", "--record"], "--record"),
    (["run", "plan.json", "--record", "no/such/folder/r"], "no/such/folder/r"),
    (["run", "plan.json", "--stage", "one"], "stage"),
    (["run", "plan.json", "--stage", "7"], "stage"),
    (["run", "plan.json", "--launch", "slurm"], "slurm"),
    (["run", "plan.json", "--launch", "mpi", "--mpi-module", "absent.so"], "absent.so"),
    (["accesses", "absent.json"], "absent.json"),
    (["clean"], "directory"),
    (["clean", "absent"], "absent"),
    (["probe", "absent"], "absent"),
]


@pytest.mark.parametrize(
    ("arguments", "expected_text"), COMMAND_LINES, ids=[" ".join(line[0]) or "nothing" for line in COMMAND_LINES]
)
def test_a_wrong_command_line_is_refused_in_one_sentence(
    engine: Engine, tmp_path: Path, arguments: list[str], expected_text: str
) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "plan.json").write_text(json.dumps(write_plan(tmp_path / "target")), encoding="utf-8")
    done = subprocess.run(
        [str(engine.path), *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode in (2, 3), done.stderr
    assert expected_text.lower() in done.stderr.lower()
    assert done.stderr.count("\n") == 1, done.stderr
    check_sentence(done.stderr.strip())
    assert list_names(tmp_path / "target") == set()


def test_a_plan_that_never_ends_is_refused(engine: Engine) -> None:
    done = subprocess.run(
        [str(engine.path), "run", "/dev/zero"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == BAD_PLAN
    assert "longer than 64 MiB" in done.stderr
