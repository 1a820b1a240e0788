# SPDX-License-Identifier: Apache-2.0
"""Diagnosis of a local file system, which has no storage targets and is not simulated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import log
from pathlib import Path

import numpy as np
import pytest

from sonde.cli.main import main
from sonde.diagnose.cause_predictions import predict_cause
from sonde.diagnose.description import LOCAL, CauseEffect, CauseFile
from sonde.diagnose.diagnosis import rank_hypotheses
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.diagnose.diagnosis_state import DiagnosisState, read_diagnosis_state, write_diagnosis_state
from sonde.diagnose.library import (
    find_diagnosis_experiment,
    list_causes_for_machine_kind,
    list_experiments_for_machine_kind,
)
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.machine_map import make_directory_machine, read_machine
from sonde.diagnose.measurements import RunMeasurement, measure_scatter
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.predictions import MODEL_SD
from sonde.diagnose.second_cause import SECOND_CAUSE_STOP_RULE
from sonde.diagnose.stated_machine import UnsimulatedMachine
from sonde.diagnose.stated_results import parse_stated_result
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import UserError
from sonde.model.system import read_system

# Shared causes are about a file or an application of another time, so experiments alone cannot show them.
PLANTED_CAUSES = [item for item in list_causes_for_machine_kind(LOCAL) if item.machines == (LOCAL,)]


@pytest.fixture(scope="module")
def local_session() -> DiagnosisSession:
    return DiagnosisSession.open_session(DiagnosisState(directory="/scratch"), None)


def start_session(opened: DiagnosisSession, truth: ModeledTruth | None = None) -> DiagnosisSession:
    state = DiagnosisState(directory="/scratch", truth=truth)
    return DiagnosisSession(state, opened.model, UnsimulatedMachine(opened.model.machine))


def test_mount_without_targets_is_a_local_machine() -> None:
    machine = read_machine(read_system(find_system_file("laptop-md")))
    assert (machine.machine_kind, machine.targets, machine.nodes, machine.mount) == (
        LOCAL,
        (),
        ("localhost",),
        "bulk-mount",
    )


def test_part_of_a_local_machine_is_refused() -> None:
    with pytest.raises(UserError, match="local file system without storage targets; leave out --targets"):
        read_machine(read_system(find_system_file("laptop-md")), "bulk-mount", most_targets=2)


def test_every_experiment_of_a_local_machine_has_a_plan_for_one_node(local_session: DiagnosisSession) -> None:
    planned = [item for item in local_session.model.experiments if not item.description.is_contrast]
    assert len(planned) >= 8
    for item in planned:
        document = item.make_plan("/scratch").document
        assert document["target"] == {"path": "/scratch"}
        assert item.nodes == 1
    assert {item.id for item in local_session.model.experiments} == {
        item.id for item in list_experiments_for_machine_kind(LOCAL)
    }


@pytest.mark.parametrize("cause", PLANTED_CAUSES, ids=lambda cause: cause.id)
def test_planted_cause_of_a_local_machine_is_among_the_first(local_session: DiagnosisSession, cause: CauseFile) -> None:
    session = start_session(local_session, ModeledTruth(cause=cause, strength=0.8, seed=12))
    for experiment in local_session.model.experiments:
        session.run_on_model(experiment.id)
    names = [item.hypothesis.id for item in session.answer.ranking]
    assert cause.id in names[:2]


def test_healthy_local_machine_has_nothing_wrong(local_session: DiagnosisSession) -> None:
    session = start_session(local_session)
    for name in ("device-transfers", "streamed-file", "cached-file", "local-names", "random-requests"):
        experiment = find_diagnosis_experiment(name)
        changes = [f"{phase.id}=-2%" for phase in experiment.phases]
        session.add_result(parse_stated_result(experiment, changes), "hand")
    assert session.answer.most_probable.hypothesis.id == "nothing"


def test_read_ahead_is_blamed_if_only_streamed_reads_are_slow(local_session: DiagnosisSession) -> None:
    session = start_session(local_session)
    for name, changes in (("streamed-file", ["write=0%", "read=-80%"]), ("device-transfers", ["write=0%", "read=0%"])):
        session.add_result(parse_stated_result(find_diagnosis_experiment(name), changes), "hand")
    assert session.answer.most_probable.hypothesis.id == "no-read-ahead"


def test_programs_that_use_the_device_use_processors(local_session: DiagnosisSession) -> None:
    """They transfer at its rate, so records in memory are slower too, but less than requests of the device."""
    session = start_session(local_session)
    for experiment, rates in (
        ("processor-work", {"write": -0.6}),
        ("device-transfers", {"write": -1.4, "read": -1.2}),
        ("random-requests", {"read": -2.2, "write": -2.2}),
        ("local-names", {"create": -0.02, "remove": 0.0}),
    ):
        session.add_result(ExperimentResult(experiment, (RunMeasurement(rates),)), "test")
    assert rank_hypotheses(session.posterior)[0].hypothesis.id == "shared-device"


def test_spread_of_an_effect_is_the_error_of_its_prediction(local_session: DiagnosisSession) -> None:
    index = next(number for number, item in enumerate(local_session.model.hypotheses) if item.id == "slow-device")
    mean, error = local_session.model.predictions["device-transfers"][index].rates["write"]
    assert (mean[0], mean[-1]) == pytest.approx((log(0.7), log(0.005)))
    assert error[0] == pytest.approx(0.5)
    _, unaffected = local_session.model.predictions["processor-work"][index].rates["write"]
    assert unaffected[0] < 0.05


def test_effect_without_a_change_on_average_has_a_spread() -> None:
    effect = CauseEffect(traits={"op": "read"}, least=1.0, most=1.0, spread=0.4)
    cause = CauseFile(schema="", id="c", title="", category="load", source="", advice="", effects=(effect,))
    prediction = predict_cause(cause, find_diagnosis_experiment("streamed-file"), ())
    mean, error = prediction.rates["read"]
    assert not np.any(mean)
    assert error == pytest.approx(0.4)
    assert prediction.rates["write"][1] == pytest.approx(MODEL_SD)


def test_effect_on_both_sides_of_a_contrast_cancels() -> None:
    cause = next(item for item in PLANTED_CAUSES if item.id == "slow-device")
    ratio = predict_cause(cause, find_diagnosis_experiment("previous-options"), ()).rates["ratio"]
    assert not np.any(ratio[0])
    assert ratio[1] == pytest.approx(MODEL_SD)


def test_streamed_reads_may_gain_by_a_page_cache_limit(local_session: DiagnosisSession) -> None:
    """Rates of a machine at rest whose page cache was limited to 76 MiB."""
    session = start_session(local_session)
    for experiment, rates in (
        ("cached-file", {"write": -1.05, "read_warm": -1.63}),
        ("cached-requests", {"read": -0.07}),
        ("device-transfers", {"write": 0.01, "read": 0.06}),
        ("local-names", {"create": -0.03, "remove": 0.0}),
        ("streamed-file", {"write": -0.12, "read": 0.79}),
    ):
        session.add_result(ExperimentResult(experiment, (RunMeasurement(rates),)), "test")
    assert rank_hypotheses(session.posterior)[0].hypothesis.id == "little-page-cache"


def test_scattered_free_space_slows_large_writes_only(local_session: DiagnosisSession) -> None:
    """Files that have their blocks, records in memory and single records are as fast as before."""
    session = start_session(local_session)
    for experiment, rates in (
        ("cached-file", {"write": -0.02, "read_warm": 0.0}),
        ("device-transfers", {"write": -0.9, "read": -0.3}),
        ("durable-records", {"write": 0.05}),
        ("local-names", {"create": -0.03, "remove": 0.0}),
        ("random-requests", {"read": -0.05, "write": 0.0}),
        ("streamed-file", {"write": -1.8, "read": -0.5}),
    ):
        session.add_result(ExperimentResult(experiment, (RunMeasurement(rates),)), "test")
    assert rank_hypotheses(session.posterior)[0].hypothesis.id == "nearly-full"


def test_experiment_of_another_machine_is_refused(local_session: DiagnosisSession) -> None:
    session = start_session(local_session)
    with pytest.raises(UserError, match="every-target cannot be done on /scratch; there are"):
        session.add_result(parse_stated_result(find_diagnosis_experiment("every-target"), ["write=-60%"]), "hand")
    with pytest.raises(UserError, match="server-messages cannot be done on /scratch"):
        session.add_logs([])


def test_directory_is_stored_with_the_diagnosis(tmp_path: Path) -> None:
    write_diagnosis_state(tmp_path / "case.json", DiagnosisState(directory="/scratch"))
    assert read_diagnosis_state(tmp_path / "case.json").directory == "/scratch"
    assert make_directory_machine("/scratch").document["mounts"][0]["path"] == "/scratch"


@pytest.mark.parametrize(
    ("arguments", "expected_problem"),
    [
        ([], "Give either --system"),
        (["--directory", ".", "--system", "edison"], "Give either --system"),
        (["--directory", ".", "--targets", "4"], "leave them out with --directory"),
        (["--directory", ".", "--on-model", "--fault", "slow-target 1 5x"], "no fault is simulated"),
        (["--directory", ".", "--on-model", "--cause", "server-firmware"], "cannot have the cause server-firmware"),
        (["--system", "laptop-md", "--suspect", "slow-target"], "leave out --suspect"),
    ],
)
def test_wrong_start_of_a_local_diagnosis_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected_problem: str
) -> None:
    assert main(["diagnose", "start", str(tmp_path / "case.json"), *arguments]) == 2
    assert expected_problem in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "case.json").exists()


def test_local_diagnosis_by_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, archive = str(tmp_path / "case.json"), ["--archive", str(tmp_path / "archive")]
    assert main(["diagnose", "start", case, "--directory", str(tmp_path)]) == 0
    answer = ["diagnose", "answer", case, "cached-file", "write=-60%", "read_warm=-90%", "--json", *archive]
    assert main(answer) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ranking"][0]["id"] == "little-page-cache"
    assert main(["diagnose", "report", case, "--out", str(tmp_path / "case.html"), *archive]) == 0
    assert "less page cache than their files need" in (tmp_path / "case.html").read_text(encoding="utf-8")


def test_scatter_of_references_makes_a_result_uncertain(local_session: DiagnosisSession) -> None:
    steady = [RunMeasurement({"write": value}) for value in (0.0, 0.02, -0.02)]
    scattered = [RunMeasurement({"write": value}) for value in (0.0, 0.8, -0.8)]
    assert measure_scatter(steady, 0.095) == {}
    assert measure_scatter(scattered[:2], 0.095) == {}
    scatter = measure_scatter(scattered, 0.1)
    assert scatter == {"write": pytest.approx(2 * (0.64 - 0.01) ** 0.5)}
    run = (RunMeasurement({"write": -0.9}),)
    certain, uncertain = (
        local_session.model.compute_posterior([ExperimentResult("processor-work", run, 0.05, scatter=item)])
        for item in ({}, scatter)
    )
    healthy = [item.id for item in local_session.model.hypotheses].index("nothing")
    assert certain.hypothesis_probabilities[healthy] < 0.05
    assert uncertain.hypothesis_probabilities[healthy] > 0.1
    state = DiagnosisState(directory="/scratch").with_result(
        ExperimentResult("processor-work", run, 0.05, 0, scatter), "x"
    )
    assert DiagnosisState.from_json(state.to_json()) == state


def write_record(folder: Path, rates: Mapping[str, float]) -> Path:
    folder.mkdir()
    lines: list[dict[str, object]] = [{"type": "run", "schema": "sonde-record/2"}]
    for index, (phase, rate) in enumerate(rates.items()):
        lines.append({"type": "phase_begin", "phase": phase, "index": index, "op": "write"})
        total = {"bytes_per_s": rate, "ops_per_s": rate}
        lines.append({"type": "phase_end", "phase": phase, "rates": {"total": total}})
    (folder / "record.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_failed_run_is_refused_and_changes_nothing(tmp_path: Path, local_session: DiagnosisSession) -> None:
    session = start_session(local_session)
    failed, usual = write_record(tmp_path / "failed", {}), write_record(tmp_path / "usual", {"write": 1e8, "read": 1e8})
    before = session.state
    with pytest.raises(UserError, match="Run failed has none of the phases write, read of device-transfers"):
        session.add_stored_run(find_diagnosis_experiment("device-transfers"), failed, [usual])
    assert session.state == before


def test_run_that_ended_early_counts_with_its_phases(tmp_path: Path, local_session: DiagnosisSession) -> None:
    complete, partial = start_session(local_session), start_session(local_session)
    usual = write_record(tmp_path / "usual", {"write": 1e8, "read": 1e8})
    for session, rates in ((complete, {"write": 1e7, "read": 1e7}), (partial, {"write": 1e7})):
        run = write_record(tmp_path / f"run-{len(rates)}", rates)
        session.add_stored_run(find_diagnosis_experiment("device-transfers"), run, [usual])
    assert list(partial.state.results[0].result.runs[0].rates) == ["write"]
    assert partial.posterior.entropy_bits > complete.posterior.entropy_bits
    causes, _ = partial.find_second_cause()
    assert not causes.is_decided(SECOND_CAUSE_STOP_RULE)


def test_several_references_give_their_median(tmp_path: Path, local_session: DiagnosisSession) -> None:
    session = start_session(local_session)
    folders = []
    for number, rate in enumerate((1e8, 4e8, 2e8, 1e8)):
        folders.append(write_record(tmp_path / f"run-{number}", {"write": rate}))
    session.add_stored_run(find_diagnosis_experiment("processor-work"), folders[0], folders[1:])
    result = session.state.results[0].result
    assert result.runs[0].rates["write"] == pytest.approx(log(0.5))
    assert result.scatter["write"] > 0.5


def test_contradicting_repeats_are_in_the_limits(local_session: DiagnosisSession) -> None:
    session = start_session(local_session)
    experiment = find_diagnosis_experiment("streamed-file")
    session.add_result(parse_stated_result(experiment, ["write=-2%", "read=-80%"]), "hand")
    assert session.describe_limits() == []
    session.add_result(parse_stated_result(experiment, ["write=+1%", "read=-1%"]), "hand")
    (sentence,) = session.describe_limits()
    assert sentence.startswith("Repeats of streamed-file contradict each other: read -80 % and -1 %;")


def test_repeats_are_limited_but_not_after_a_fix(local_session: DiagnosisSession) -> None:
    session = start_session(local_session)
    result = parse_stated_result(find_diagnosis_experiment("streamed-file"), ["write=-2%", "read=-80%"])
    for _ in range(6):
        session.add_result(result, "hand")
    with pytest.raises(UserError, match="streamed-file has 6 results"):
        session.add_result(result, "hand")
    session.add_result(result, "hand", is_after_fix=True)
    assert len(session.state.experiment_results) == 6


@pytest.mark.filterwarnings("error")
def test_repeat_without_one_phase_gives_no_warning(local_session: DiagnosisSession) -> None:
    session = start_session(local_session)
    experiment = find_diagnosis_experiment("streamed-file")
    session.add_result(parse_stated_result(experiment, ["write=-2%", "read=-80%"]), "hand")
    session.add_result(parse_stated_result(experiment, ["write=-4%"]), "hand")
    assert session.answer.most_probable.hypothesis.id == "no-read-ahead"


def test_result_after_a_fix_is_in_the_limits(local_session: DiagnosisSession) -> None:
    session = start_session(local_session)
    session.add_result(parse_stated_result(find_diagnosis_experiment("streamed-file"), ["read=-80%"]), "hand")
    session.confirm_fix(["read=-1%"])
    assert session.describe_limits() == [
        "The probabilities are about the time before the fix; after it streamed-file gave read -1 %."
    ]
