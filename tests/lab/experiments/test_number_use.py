# SPDX-License-Identifier: Apache-2.0
"""Claims are judged only on numbers whose classification allows it; results say what their numbers describe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from in_memory_runs import build_experiment, make_claim
from make_record import write_run
from record_scene import Scene, Work

from sonde.experiments.claims.measured_runs import MeasuredRun, MeasuredRuns
from sonde.experiments.claims.verdicts import ClaimResult, evaluate_claims
from sonde.experiments.executed_runs import (
    describe_executed_runs,
    describe_profile_changes,
    describe_shared_directories,
    describe_smoke_test,
)
from sonde.experiments.medians import compute_medians, describe_non_storage_numbers
from sonde.experiments.page.sentences import describe_verdict
from sonde.experiments.results import CellRun, Results
from sonde.experiments.shipped_experiments import list_shipped_experiments
from sonde.model.experiment import read_experiment
from sonde.model.experiment.claim_verdicts import ClaimVerdict
from sonde.model.record import read_record
from sonde.store.summary import build_summary_document

LONG_WORK = Work("write", seconds=5.0)
BRIEF_WORK = Work("write", seconds=0.2)
WARM = Work("write", "read", seconds=5.0, cache="warm", residency=1.0, fsync=0)


def evaluate(tmp_path: Path, works: Sequence[Work], text: str = "bandwidth(write) >= 1", **members: Any) -> ClaimResult:
    tested = build_experiment(expect=[make_claim(text, **members)])
    folders = [write_run(tmp_path / f"r{index}", Scene(works=[work])) for index, work in enumerate(works)]
    runs = [MeasuredRun(tested.cells[0].id, folder.name, folder) for folder in folders]
    return evaluate_claims(tested, MeasuredRuns(tested, runs))[0]


def test_claim_on_a_storage_number_is_judged(tmp_path: Path) -> None:
    assert evaluate(tmp_path, [LONG_WORK] * 6).outcome is ClaimVerdict.HOLDS


@pytest.mark.parametrize(("work", "label"), [(BRIEF_WORK, "too short"), (WARM, "cached")])
def test_claim_on_another_number_is_not_judged(tmp_path: Path, work: Work, label: str) -> None:
    verdict = evaluate(tmp_path, [work] * 6)
    assert verdict.outcome is ClaimVerdict.NOT_JUDGED
    assert describe_verdict(verdict).startswith("Not judged, because write of cell base is not a storage number")
    assert f"({label})" in verdict.reason


def test_claim_uses_only_the_runs_with_storage_numbers(tmp_path: Path) -> None:
    (comparison,) = evaluate(tmp_path, [BRIEF_WORK, BRIEF_WORK, *[LONG_WORK] * 6]).contexts[0].comparisons
    assert comparison.outcome is ClaimVerdict.HOLDS
    assert comparison.value is not None
    assert comparison.value.value == pytest.approx(4 * 500e6, rel=0.1)


def test_claim_about_caches_is_judged_on_cached_numbers(tmp_path: Path) -> None:
    assert evaluate(tmp_path / "a", [WARM] * 6, about=["storage", "cache"]).outcome is ClaimVerdict.HOLDS
    brief = replace(WARM, seconds=0.2)
    assert evaluate(tmp_path / "b", [brief] * 6, about=["storage", "cache"]).outcome is ClaimVerdict.HOLDS


def test_claim_on_errors_is_judged_on_any_number(tmp_path: Path) -> None:
    assert evaluate(tmp_path, [BRIEF_WORK] * 6, "errors(write) <= 0").outcome is ClaimVerdict.HOLDS


def build_results(folder: Path, works: Sequence[Work], **members: Any) -> Results:
    tested = build_experiment()
    runs = []
    for index, work in enumerate(works):
        run = write_run(folder / f"r{index}", Scene(works=[work]))
        facts = {"id": run.name, "target": "/scratch"}
        document = build_summary_document(read_record(run / "record.ndjson"), facts, 0, "")
        (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
        runs.append(CellRun(tested.cells[0].id, {}, "", "", index, False, run))
    return Results(tested, "group", tuple(runs), {}, **members)


def test_median_carries_the_classifications_of_its_runs(tmp_path: Path) -> None:
    (median,) = compute_medians(build_results(tmp_path, [BRIEF_WORK, LONG_WORK, WARM]))
    assert median.classifications == ("short", "burst", "cache")
    assert median.about == "too short, cached"
    assert describe_non_storage_numbers([median]) == ["Not of storage (too short, cached): write in 1 cell."]
    assert describe_non_storage_numbers([replace(median, classifications=("storage",))]) == []


def test_executed_runs_are_described_from_their_records(tmp_path: Path) -> None:
    results = build_results(tmp_path, [LONG_WORK], profile="ci")
    assert describe_executed_runs(results) == "Ran: 4 tasks on 1 node, posix, xfs in /scratch."
    assert describe_executed_runs(replace(results, simulated=True)).startswith("Simulated: 4 tasks")
    assert describe_executed_runs(replace(results, runs=())) == ""
    assert describe_smoke_test(results).startswith("Smoke test (profile ci)")
    assert describe_smoke_test(replace(results, profile="published")) == ""


def test_profile_that_contradicts_titles_lists_its_members() -> None:
    experiment = read_experiment(list_shipped_experiments()["edison-acceptance"], "ci")
    text = describe_profile_changes(Results(experiment, "group", (), {}, profile="ci"))
    assert text.startswith("Titles describe the whole experiment; profile ci sets clients.nodes = 1, ")
    assert "data.backend = posix (3 plans)" in text
    assert "data.access.volume = 4MB" in text
    assert describe_profile_changes(Results(experiment, "group", (), {}, profile="published")) == ""


def test_setting_replaces_the_profile_value_that_it_overrides() -> None:
    experiment = read_experiment(list_shipped_experiments()["edison-slow-target"], "ci")
    text = describe_profile_changes(
        Results(experiment, "group", (), {}, profile="ci", settings=("data.access.volume=64MiB",))
    )
    assert text.endswith("; --set sets data.access.volume = 64MiB.")
    assert "16MiB" not in text
    assert "profile ci sets clients.nodes = 1, " in text


def test_axis_values_in_a_single_directory_are_reported() -> None:
    tested = build_experiment(sweep=[{"name": "oss", "paths": "data.access.transfer", "values": ["1MiB", "2MiB"]}])
    directories = {cell.id: "/a" for cell in tested.cells}
    results = Results(tested, "group", (), {}, directories=directories)
    (sentence,) = describe_shared_directories(results)
    assert sentence.startswith("oss 1MiB and 2MiB are the same directory, /a")
    separate = {cell.id: f"/{index}" for index, cell in enumerate(tested.cells)}
    assert describe_shared_directories(replace(results, directories=separate)) == []
    assert describe_shared_directories(replace(results, simulated=True)) == []
