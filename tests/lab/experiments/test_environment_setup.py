# SPDX-License-Identifier: Apache-2.0
"""Changes to the environment of runs are undone, however the experiment ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.experiments.environment_setup import UNDO_FILE, EnvironmentSetup, add_engine_treatments
from sonde.model.errors import MachineError
from sonde.model.experiment.description import Treatment, Variant
from sonde.model.plan import Plan


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def make_logging_command(log: Path, logged_text: str) -> str:
    return f'echo "{logged_text} $SONDE_CELL $SONDE_VARIANT" | xargs >> {log}'


def make_command_treatment(log: Path, when: str, **more: Any) -> Treatment:
    return Treatment(
        kind="command",
        when=when,
        command=make_logging_command(log, f"do-{when}"),
        undo=make_logging_command(log, f"undo-{when}"),
        **more,
    )


def read_lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def test_treatments_apply_at_their_level_and_are_undone(tmp_path: Path, log: Path) -> None:
    with EnvironmentSetup(
        (
            make_command_treatment(log, "experiment"),
            make_command_treatment(log, "cell"),
            make_command_treatment(log, "run"),
        ),
        tmp_path,
    ) as setup:
        for cell in ("a", "a", "b"):
            setup.prepare_run(cell, None, "/d")
            setup.undo_changes_for_run()
    assert read_lines(log) == [
        "do-experiment", "do-cell a", "do-run a", "undo-run a", "do-run a", "undo-run a",
        "undo-cell a", "do-cell b", "do-run b", "undo-run b", "undo-cell b", "undo-experiment",
    ]  # fmt: skip
    assert not (tmp_path / UNDO_FILE).exists()


def test_variant_is_undone_before_next_variant(tmp_path: Path, log: Path) -> None:
    on = Variant(id="on", before=make_logging_command(log, "set"), after=make_logging_command(log, "unset"))
    off = Variant(id="off")
    with EnvironmentSetup((), tmp_path) as setup:
        for variant in (on, on, off, on):
            setup.prepare_run("c", variant, "/d")
            setup.undo_changes_for_run()
    assert read_lines(log) == ["set c on", "unset c on", "set c on", "unset c on"]


def test_interrupt_undoes_all_changes(tmp_path: Path, log: Path) -> None:
    variant = Variant(id="v", before=make_logging_command(log, "set"), after=make_logging_command(log, "unset"))

    def interrupted() -> None:
        with EnvironmentSetup((make_command_treatment(log, "experiment"),), tmp_path) as setup:
            setup.prepare_run("c", variant, "/d")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert read_lines(log)[-2:] == ["unset c v", "undo-experiment"]


def test_next_runner_undoes_changes_of_killed_runner(tmp_path: Path, log: Path) -> None:
    killed = EnvironmentSetup((make_command_treatment(log, "experiment"),), tmp_path)
    killed.__enter__()
    killed.prepare_run("c", Variant(id="v", after=make_logging_command(log, "unset")), "/d")
    with EnvironmentSetup((), tmp_path):
        pass
    assert read_lines(log) == ["do-experiment", "unset c v", "undo-experiment"]


def test_failed_setup_is_undone(tmp_path: Path, log: Path) -> None:
    broken = Variant(id="v", before="echo half; exit 3", after=make_logging_command(log, "unset"))
    with (
        pytest.raises(MachineError, match=r"Before of the variant v \(`echo half; exit 3`\) failed: exit code 3, half"),
        EnvironmentSetup((), tmp_path) as setup,
    ):
        setup.prepare_run("c", broken, "/d")
    assert read_lines(log) == ["unset c v"]


def test_optional_treatment_failure_is_reported_once(tmp_path: Path) -> None:
    treatment = Treatment(kind="command", command="exit 1", need="best_effort")
    with EnvironmentSetup((treatment,), tmp_path) as setup:
        for _ in range(2):
            setup.prepare_run("c", None, "/d")
            setup.undo_changes_for_run()
    assert len(setup.problems) == 1
    assert "(`exit 1`) failed: exit code 1." in setup.problems[0]


def test_failed_undo_does_not_stop_remaining_undos(tmp_path: Path, log: Path) -> None:
    bad = Treatment(kind="command", command="true", undo="exit 7", when="experiment")
    with EnvironmentSetup((make_command_treatment(log, "experiment"), bad), tmp_path) as setup:
        pass
    assert read_lines(log) == ["do-experiment", "undo-experiment"]
    assert "`exit 7`, which undoes a change, failed: exit code 7." in setup.problems


def test_treatments_of_every_node_go_to_engine() -> None:
    plan = Plan.from_document(
        {"id": "p", "target": {"path": "/x"},
         "phases": [{"id": "w", "op": "write", "before": [{"kind": "sync"}]}, {"id": "r", "op": "read"}]}, "x"
    )  # fmt: skip
    changed = add_engine_treatments(
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
