# SPDX-License-Identifier: Apache-2.0
"""The runner: what is missing is run, what is there is not run again, and nothing that goes wrong costs the others."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from played import play, request

from sonde.experiments.executor import Attempt
from sonde.experiments.medians import effects, medians
from sonde.experiments.request import kept_request, taken_up
from sonde.experiments.results import FACTS, read_results
from sonde.experiments.where import Where
from sonde.model.errors import BAD_INPUT, DONE, ENVIRONMENT, FAILED, INTERRUPTED, MachineError, UserError
from sonde.store.archive import Archive

WRITE: dict[str, Any] = {"phases": [{"id": "write", "op": "write"}]}
SIZES: dict[str, Any] = {
    "id": "sizes",
    "plan": {"data": {"access": {"transfer": "4KiB", "volume": "1MiB"}}, **WRITE},
    "sweep": [{"paths": "data.access.transfer", "values": ["4KiB", "8KiB", "16KiB"]}],
    "repeat": {"min": 3, "warmup": 1, "seed": 5},
}


def at(attempt: Attempt) -> Any:
    return attempt.facts[FACTS]["at"]


def known(attempt: Attempt) -> dict[str, float]:
    return {"write": {"4KiB": 1e9, "8KiB": 2e9, "16KiB": 3e9}[at(attempt)["transfer"]]}


def test_every_cell_is_run_as_often_as_asked_and_its_median_is_what_was_measured(archive: Path, target: Path) -> None:
    store = Archive(archive)
    ended, played = play(request(SIZES, target), store, known)
    assert (ended.exit_code, ended.runs, len(played.asked)) == (DONE, 12, 12)
    results = read_results(store, "g")
    assert {one.cell: one.interval.value for one in medians(results)} == {
        "transfer=4KiB": 1e9, "transfer=8KiB": 2e9, "transfer=16KiB": 3e9}  # fmt: skip
    assert sum(one.warm_up for one in results.runs) == 3
    assert results.directories["transfer=8KiB"] == str(target)
    assert [one.plan.document["data"]["access"]["transfer"] for one in played.asked] == [
        at(one)["transfer"] for one in played.asked]  # fmt: skip


def test_what_was_broken_off_is_taken_up_where_it_was(archive: Path, target: Path) -> None:
    store = Archive(archive)
    whole = play(request(SIZES, target, "whole"), store, known)[1]
    ended, first = play(request(SIZES, target), store, known, stop_after=5)
    assert ended.exit_code == INTERRUPTED
    ended, rest = play(taken_up(store, request(SIZES, target), must=True), store, known)
    assert ended.exit_code == DONE

    def turns(attempts: list[Attempt]) -> list[Any]:
        return [(one.facts[FACTS]["cell"], one.facts[FACTS]["repeat"], one.facts["role"]) for one in attempts]

    assert turns(first.asked) + turns(rest.asked) == turns(whole.asked)
    assert [one.facts[FACTS]["number"] for one in rest.asked] == list(range(5, 12))
    assert play(kept_request(store, "g", Where()), store, known)[1].asked == []


def test_a_job_begins_no_run_that_it_would_not_end(archive: Path, target: Path) -> None:
    """What was kept says a second of each run."""
    store = Archive(archive)
    play(request(SIZES, target), store, known, stop_after=4)
    asked = taken_up(store, request(SIZES, target), must=True)
    ended, played = play(asked, store, known, end=time.time() + 0.5)
    assert (ended.exit_code, played.asked) == (INTERRUPTED, [])
    assert "takes about 1.00 s, and the job ends in" in ended.notes[0]
    ended, played = play(asked, store, known, end=time.time() + 1000)
    assert (ended.exit_code, len(played.asked)) == (DONE, 8)


def test_what_was_never_run_is_tried_however_little_time_is_left(archive: Path, target: Path) -> None:
    ended, played = play(request(SIZES, target), Archive(archive), known, end=time.time() + 1000)
    assert (ended.exit_code, len(played.asked)) == (DONE, 12)
    ended, played = play(request(SIZES, target, "late"), Archive(archive), known, end=time.time() - 1)
    assert (ended.exit_code, len(played.asked)) == (INTERRUPTED, 1)


def test_a_cell_that_fails_is_left_and_tried_again_when_the_experiment_is_taken_up(archive: Path, target: Path) -> None:
    store = Archive(archive)

    def broken(attempt: Attempt) -> dict[str, float] | str:
        return "No space left." if at(attempt)["transfer"] == "8KiB" else known(attempt)

    ended, played = play(request(SIZES, target), store, broken)
    assert (ended.exit_code, ended.failed) == (FAILED, {"transfer=8KiB": "No space left."})
    assert len(played.asked) == 4 + 4 + 1
    assert read_results(store, "g").failed == {"transfer=8KiB": "No space left."}
    ended, played = play(taken_up(store, request(SIZES, target), must=False), store, known)
    assert (ended.exit_code, {at(one)["transfer"] for one in played.asked}) == (DONE, {"8KiB"})


def test_a_cell_that_cannot_be_run_costs_only_itself(archive: Path, target: Path) -> None:
    store = Archive(archive)

    def refusing(attempt: Attempt) -> dict[str, float]:
        if at(attempt)["transfer"] == "16KiB":
            raise UserError("There is no direct I/O here.")
        return known(attempt)

    ended, _ = play(request(SIZES, target), store, refusing)
    assert (ended.exit_code, ended.runs) == (DONE, 8)
    assert read_results(store, "g").refused == {"transfer=16KiB": "There is no direct I/O here."}


def test_an_experiment_of_which_nothing_can_be_run_is_an_error(archive: Path, target: Path) -> None:
    def refusing(attempt: Attempt) -> dict[str, float]:
        raise UserError("No.")

    assert play(request(SIZES, target), Archive(archive), refusing)[0].exit_code == BAD_INPUT


@pytest.mark.parametrize(("can_be_asked", "code"), [((), ENVIRONMENT), (("8KiB",), BAD_INPUT)])
def test_the_code_is_that_of_the_machine_only_where_it_is_in_the_way_of_every_cell(
    archive: Path, target: Path, can_be_asked: tuple[str, ...], code: int
) -> None:
    def refusing(attempt: Attempt) -> dict[str, float]:
        raise (UserError if at(attempt)["transfer"] in can_be_asked else MachineError)("No.")

    ended, _ = play(request(SIZES, target), Archive(archive), refusing)
    assert (ended.exit_code, len(ended.refused)) == (code, 3)


def test_a_group_cannot_hold_two_experiments(archive: Path, target: Path) -> None:
    store = Archive(archive)
    play(request(SIZES, target), store, known)
    with pytest.raises(UserError, match="The group g is there already"):
        taken_up(store, request({**SIZES, "repeat": {"min": 9}}, target), must=False)
    with pytest.raises(UserError, match="has no run of sizes with this profile"):
        taken_up(store, request({**SIZES, "repeat": {"min": 9}}, target, "other"), must=True)


def test_a_variant_that_is_faster_by_a_fifth_is_seen_and_one_that_is_not_is_not(archive: Path, target: Path) -> None:
    store = Archive(archive)
    document = {
        "id": "ab", "plan": WRITE, "repeat": {"min": 8, "seed": 1},
        "variants": [{"id": "old"}, {"id": "new"}, {"id": "same"}],
    }  # fmt: skip

    def truth(attempt: Attempt) -> dict[str, float]:
        place = attempt.facts[FACTS]
        jitter = 1 + 0.01 * ((place["repeat"] * 7 + len(place["variant"])) % 5 - 2)
        return {"write": {"old": 1e9, "new": 1.2e9, "same": 1e9}[place["variant"]] * jitter}

    play(request(document, target), store, truth)
    new, same = effects(medians(read_results(store, "g")))
    assert new.ratio.value == pytest.approx(1.2, abs=0.02)
    assert new.ratio.differs
    assert not same.ratio.differs
    assert same.visible is not None
    assert same.visible < 0.06


def test_tags_and_a_note_are_kept_with_every_run(archive: Path, target: Path) -> None:
    import json

    store = Archive(archive)
    play(request(SIZES, target, tags=("firmware-7",), note="after the upgrade"), store, known)
    folders = [one.folder for one in read_results(store, "g").runs]
    assert all(json.loads((one / "tags.json").read_text())["tags"] == ["firmware-7"] for one in folders)
    assert all(json.loads((one / "run.json").read_text())["note"] == "after the upgrade" for one in folders)


def test_runs_that_share_their_files_leave_nothing_behind(archive: Path, target: Path) -> None:
    def leaving(attempt: Attempt) -> dict[str, float]:
        place = attempt.plan.document["target"]
        assert place["keep"]
        assert place["use_existing"]
        (Path(place["path"]) / place["directory"]).mkdir(exist_ok=True)
        return known(attempt)

    document = {**SIZES, "repeat": {"min": 2, "fresh": "none"}}
    _, played = play(request(document, target), Archive(archive), leaving)
    assert len({one.plan.document["target"]["directory"] for one in played.asked}) == 3
    assert list(target.iterdir()) == []
