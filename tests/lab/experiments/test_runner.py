# SPDX-License-Identifier: Apache-2.0
"""The runner: what is missing is run, what is there is not run again, and nothing that goes wrong costs the others."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from fake_executor import build_request, run_fake_experiment

from sonde.experiments.executor import RunAttempt
from sonde.experiments.locations import RunLocations
from sonde.experiments.medians import compute_effects, compute_medians
from sonde.experiments.request import read_stored_request, resume_request
from sonde.experiments.results import PLACEMENT_MEMBER, read_group_results
from sonde.model.errors import (
    EXIT_BAD_INPUT,
    EXIT_ENVIRONMENT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    MachineError,
    UserError,
)
from sonde.store.archive import Archive

WRITE: dict[str, Any] = {"phases": [{"id": "write", "op": "write"}]}
SIZES: dict[str, Any] = {
    "id": "sizes",
    "plan": {"data": {"access": {"transfer": "4KiB", "volume": "1MiB"}}, **WRITE},
    "sweep": [{"paths": "data.access.transfer", "values": ["4KiB", "8KiB", "16KiB"]}],
    "repeat": {"min": 3, "warmup": 1, "seed": 5},
}


def get_coordinates(attempt: RunAttempt) -> Any:
    return attempt.facts[PLACEMENT_MEMBER]["axis_values"]


def get_fixed_rates(attempt: RunAttempt) -> dict[str, float]:
    return {"write": {"4KiB": 1e9, "8KiB": 2e9, "16KiB": 3e9}[get_coordinates(attempt)["transfer"]]}


def test_cells_run_as_requested_with_correct_medians(archive: Path, target: Path) -> None:
    store = Archive(archive)
    ended, played = run_fake_experiment(build_request(SIZES, target), store, get_fixed_rates)
    assert (ended.exit_code, ended.runs, len(played.attempts)) == (EXIT_OK, 12, 12)
    results = read_group_results(store, "g")
    assert {median.cell: median.interval.value for median in compute_medians(results)} == {
        "transfer=4KiB": 1e9, "transfer=8KiB": 2e9, "transfer=16KiB": 3e9}  # fmt: skip
    assert sum(run.warm_up for run in results.runs) == 3
    assert results.directories["transfer=8KiB"] == str(target)
    assert [attempt.plan.document["data"]["access"]["transfer"] for attempt in played.attempts] == [
        get_coordinates(attempt)["transfer"] for attempt in played.attempts]  # fmt: skip


def test_interrupted_experiment_resumes_missing_runs(archive: Path, target: Path) -> None:
    store = Archive(archive)
    complete = run_fake_experiment(build_request(SIZES, target, "whole"), store, get_fixed_rates)[1]
    ended, first = run_fake_experiment(build_request(SIZES, target), store, get_fixed_rates, stop_after=5)
    assert ended.exit_code == EXIT_INTERRUPTED
    ended, resumed = run_fake_experiment(
        resume_request(store, build_request(SIZES, target), is_required=True), store, get_fixed_rates
    )
    assert ended.exit_code == EXIT_OK

    def turns(attempts: list[RunAttempt]) -> list[Any]:
        return [
            (attempt.facts[PLACEMENT_MEMBER]["cell"], attempt.facts[PLACEMENT_MEMBER]["repeat"], attempt.facts["role"])
            for attempt in attempts
        ]

    assert turns(first.attempts) + turns(resumed.attempts) == turns(complete.attempts)
    assert [attempt.facts[PLACEMENT_MEMBER]["number"] for attempt in resumed.attempts] == list(range(5, 12))
    assert (
        run_fake_experiment(read_stored_request(store, "g", RunLocations()), store, get_fixed_rates)[1].attempts == []
    )


def test_no_run_begins_that_exceeds_time_limit(archive: Path, target: Path) -> None:
    """The stored runs took one second each."""
    store = Archive(archive)
    run_fake_experiment(build_request(SIZES, target), store, get_fixed_rates, stop_after=4)
    request = resume_request(store, build_request(SIZES, target), is_required=True)
    ended, played = run_fake_experiment(request, store, get_fixed_rates, end_time=time.time() + 0.5)
    assert (ended.exit_code, played.attempts) == (EXIT_INTERRUPTED, [])
    assert "takes about 1.00 s, and the job ends in" in ended.messages[0]
    ended, played = run_fake_experiment(request, store, get_fixed_rates, end_time=time.time() + 1000)
    assert (ended.exit_code, len(played.attempts)) == (EXIT_OK, 8)


def test_first_run_is_tried_despite_time_limit(archive: Path, target: Path) -> None:
    ended, played = run_fake_experiment(
        build_request(SIZES, target), Archive(archive), get_fixed_rates, end_time=time.time() + 1000
    )
    assert (ended.exit_code, len(played.attempts)) == (EXIT_OK, 12)
    ended, played = run_fake_experiment(
        build_request(SIZES, target, "late"), Archive(archive), get_fixed_rates, end_time=time.time() - 1
    )
    assert (ended.exit_code, len(played.attempts)) == (EXIT_INTERRUPTED, 1)


def test_failed_cell_is_retried_on_resume(archive: Path, target: Path) -> None:
    store = Archive(archive)

    def fail_for_8_kib(attempt: RunAttempt) -> dict[str, float] | str:
        return "No space left." if get_coordinates(attempt)["transfer"] == "8KiB" else get_fixed_rates(attempt)

    ended, played = run_fake_experiment(build_request(SIZES, target), store, fail_for_8_kib)
    assert (ended.exit_code, ended.failures) == (EXIT_FAILED, {"transfer=8KiB": "No space left."})
    assert len(played.attempts) == 4 + 4 + 1
    assert read_group_results(store, "g").failures == {"transfer=8KiB": "No space left."}
    ended, played = run_fake_experiment(
        resume_request(store, build_request(SIZES, target), is_required=False), store, get_fixed_rates
    )
    assert (ended.exit_code, {get_coordinates(attempt)["transfer"] for attempt in played.attempts}) == (
        EXIT_OK,
        {"8KiB"},
    )


def test_rejected_cell_does_not_stop_the_experiment(archive: Path, target: Path) -> None:
    store = Archive(archive)

    def refusing(attempt: RunAttempt) -> dict[str, float]:
        if get_coordinates(attempt)["transfer"] == "16KiB":
            raise UserError("There is no direct I/O here.")
        return get_fixed_rates(attempt)

    ended, _ = run_fake_experiment(build_request(SIZES, target), store, refusing)
    assert (ended.exit_code, ended.runs) == (EXIT_OK, 8)
    assert read_group_results(store, "g").refusals == {"transfer=16KiB": "There is no direct I/O here."}


def test_experiment_with_every_cell_rejected_is_an_error(archive: Path, target: Path) -> None:
    def refusing(attempt: RunAttempt) -> dict[str, float]:
        raise UserError("No.")

    assert run_fake_experiment(build_request(SIZES, target), Archive(archive), refusing)[0].exit_code == EXIT_BAD_INPUT


@pytest.mark.parametrize(("can_be_asked", "expected_exit_code"), [((), EXIT_ENVIRONMENT), (("8KiB",), EXIT_BAD_INPUT)])
def test_exit_code_3_only_if_machine_blocks_all_cells(
    archive: Path, target: Path, can_be_asked: tuple[str, ...], expected_exit_code: int
) -> None:
    def refusing(attempt: RunAttempt) -> dict[str, float]:
        raise (UserError if get_coordinates(attempt)["transfer"] in can_be_asked else MachineError)("No.")

    ended, _ = run_fake_experiment(build_request(SIZES, target), Archive(archive), refusing)
    assert (ended.exit_code, len(ended.refusals)) == (expected_exit_code, 3)


def test_a_group_cannot_hold_two_experiments(archive: Path, target: Path) -> None:
    store = Archive(archive)
    run_fake_experiment(build_request(SIZES, target), store, get_fixed_rates)
    with pytest.raises(UserError, match="The group g is there already"):
        resume_request(store, build_request({**SIZES, "repeat": {"min": 9}}, target), is_required=False)
    with pytest.raises(UserError, match="has no run of sizes with this profile"):
        resume_request(store, build_request({**SIZES, "repeat": {"min": 9}}, target, "other"), is_required=True)


@pytest.mark.parametrize("is_simulated", [False, True])
def test_simulated_runs_execute_no_commands(archive: Path, target: Path, tmp_path: Path, is_simulated: bool) -> None:
    log = tmp_path / "log"
    document = {
        "id": "changed",
        "plan": {"data": {"access": {"transfer": "4KiB", "volume": "1MiB"}}, **WRITE},
        "variants": [{"id": "v", "before": f"echo variant >> {log}"}],
        "treatments": [{"kind": "command", "when": "cell", "command": f"echo cell >> {log}", "undo": ":"}],
        "repeat": {"min": 1, "seed": 1},
    }
    request = build_request(document, target)
    ended, _ = run_fake_experiment(request, Archive(archive), lambda _: {"write": 1e9}, simulated=is_simulated)
    assert ended.exit_code == EXIT_OK
    assert sorted(log.read_text().split() if log.exists() else []) == ([] if is_simulated else ["cell", "variant"])


def test_variant_20_percent_faster_is_detected(archive: Path, target: Path) -> None:
    store = Archive(archive)
    document = {
        "id": "ab", "plan": WRITE, "repeat": {"min": 8, "seed": 1},
        "variants": [{"id": "old"}, {"id": "new"}, {"id": "same"}],
    }  # fmt: skip

    def truth(attempt: RunAttempt) -> dict[str, float]:
        placement = attempt.facts[PLACEMENT_MEMBER]
        jitter = 1 + 0.01 * ((placement["repeat"] * 7 + len(placement["variant"])) % 5 - 2)
        return {"write": {"old": 1e9, "new": 1.2e9, "same": 1e9}[placement["variant"]] * jitter}

    run_fake_experiment(build_request(document, target), store, truth)
    new, same = compute_effects(compute_medians(read_group_results(store, "g")))
    assert new.ratio.value == pytest.approx(1.2, abs=0.02)
    assert new.ratio.differs
    assert not same.ratio.differs
    assert same.smallest_visible_drop is not None
    assert same.smallest_visible_drop < 0.06


def test_tags_and_note_are_stored_with_every_run(archive: Path, target: Path) -> None:
    import json

    store = Archive(archive)
    run_fake_experiment(
        build_request(SIZES, target, tags=("firmware-7",), note="after the upgrade"), store, get_fixed_rates
    )
    folders = [run.folder for run in read_group_results(store, "g").runs]
    assert all(json.loads((folder / "tags.json").read_text())["tags"] == ["firmware-7"] for folder in folders)
    assert all(json.loads((folder / "run.json").read_text())["note"] == "after the upgrade" for folder in folders)


def test_shared_files_are_removed_after_the_last_run(archive: Path, target: Path) -> None:
    def leaving(attempt: RunAttempt) -> dict[str, float]:
        target_document = attempt.plan.document["target"]
        assert target_document["keep"]
        assert target_document["use_existing"]
        (Path(target_document["path"]) / target_document["directory"]).mkdir(exist_ok=True)
        return get_fixed_rates(attempt)

    document = {**SIZES, "repeat": {"min": 2, "fresh": "none"}}
    _, played = run_fake_experiment(build_request(document, target), Archive(archive), leaving)
    assert len({attempt.plan.document["target"]["directory"] for attempt in played.attempts}) == 3
    assert list(target.iterdir()) == []
