# SPDX-License-Identifier: Apache-2.0
"""What is set up around runs is taken back, however the experiment ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.experiments.surroundings import UNDO, Surroundings, with_treatments
from sonde.model.errors import MachineError
from sonde.model.experiment.description import Treatment, Variant
from sonde.model.plan import Plan


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def say(log: Path, word: str) -> str:
    return f'echo "{word} $SONDE_CELL $SONDE_VARIANT" | xargs >> {log}'


def command(log: Path, when: str, **more: Any) -> Treatment:
    return Treatment(kind="command", when=when, command=say(log, f"do-{when}"), undo=say(log, f"undo-{when}"), **more)


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def test_treatments_come_once_for_every_cell_and_for_every_run_and_are_taken_back_in_turn(
    tmp_path: Path, log: Path
) -> None:
    with Surroundings((command(log, "experiment"), command(log, "cell"), command(log, "run")), tmp_path) as around:
        for cell in ("a", "a", "b"):
            around.before(cell, None, "/d")
            around.after()
    assert lines(log) == [
        "do-experiment", "do-cell a", "do-run a", "undo-run a", "do-run a", "undo-run a",
        "undo-cell a", "do-cell b", "do-run b", "undo-run b", "undo-cell b", "undo-experiment",
    ]  # fmt: skip
    assert not (tmp_path / UNDO).exists()


def test_a_variant_is_set_up_when_it_comes_and_taken_back_before_the_next(tmp_path: Path, log: Path) -> None:
    on = Variant(id="on", before=say(log, "set"), after=say(log, "unset"))
    off = Variant(id="off")
    with Surroundings((), tmp_path) as around:
        for variant in (on, on, off, on):
            around.before("c", variant, "/d")
            around.after()
    assert lines(log) == ["set c on", "unset c on", "set c on", "unset c on"]


def test_everything_is_taken_back_when_the_experiment_is_interrupted(tmp_path: Path, log: Path) -> None:
    variant = Variant(id="v", before=say(log, "set"), after=say(log, "unset"))

    def interrupted() -> None:
        with Surroundings((command(log, "experiment"),), tmp_path) as around:
            around.before("c", variant, "/d")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert lines(log)[-2:] == ["unset c v", "undo-experiment"]


def test_what_a_killed_runner_left_is_taken_back_by_the_next(tmp_path: Path, log: Path) -> None:
    killed = Surroundings((command(log, "experiment"),), tmp_path)
    killed.__enter__()
    killed.before("c", Variant(id="v", after=say(log, "unset")), "/d")
    with Surroundings((), tmp_path):
        pass
    assert lines(log) == ["do-experiment", "unset c v", "undo-experiment"]


def test_a_set_up_that_fails_is_still_taken_back(tmp_path: Path, log: Path) -> None:
    broken = Variant(id="v", before="echo half; exit 3", after=say(log, "unset"))
    with (
        pytest.raises(MachineError, match=r"Before of the variant v \(`echo half; exit 3`\) failed: exit code 3, half"),
        Surroundings((), tmp_path) as around,
    ):
        around.before("c", broken, "/d")
    assert lines(log) == ["unset c v"]


def test_what_is_not_required_may_fail_and_is_told_once(tmp_path: Path) -> None:
    one = Treatment(kind="command", command="exit 1", need="best_effort")
    with Surroundings((one,), tmp_path) as around:
        for _ in range(2):
            around.before("c", None, "/d")
            around.after()
    assert len(around.notes) == 1
    assert "(`exit 1`) failed: exit code 1." in around.notes[0]


def test_one_that_cannot_be_taken_back_does_not_keep_the_others_from_it(tmp_path: Path, log: Path) -> None:
    bad = Treatment(kind="command", command="true", undo="exit 7", when="experiment")
    with Surroundings((command(log, "experiment"), bad), tmp_path) as around:
        pass
    assert lines(log) == ["do-experiment", "undo-experiment"]
    assert "`exit 7`, which takes back what was set up, failed: exit code 7." in around.notes


def test_what_every_node_must_do_before_every_run_is_given_to_the_engine() -> None:
    plan = Plan.from_document(
        {"id": "p", "target": {"path": "/x"},
         "phases": [{"id": "w", "op": "write", "before": [{"kind": "sync"}]}, {"id": "r", "op": "read"}]}, "x"
    )  # fmt: skip
    changed = with_treatments(
        plan,
        (
            Treatment(kind="drop_page_cache", need="required"),
            Treatment(kind="sleep", time=0.5),
            Treatment(kind="cancel_client_locks"),
            Treatment(kind="sync", when="cell"),
            Treatment(kind="command", command="true"),
        ),
    )
    assert changed.phases[0]["before"] == [
        {"kind": "drop_page_cache", "need": "required"},
        {"kind": "sleep", "time": "0.5s", "need": "best_effort"},
        {"kind": "command", "command": "lctl set_param -n ldlm.namespaces.*.lru_size=clear", "need": "best_effort"},
        {"kind": "sync"},
    ]
    assert "before" not in changed.phases[1]
