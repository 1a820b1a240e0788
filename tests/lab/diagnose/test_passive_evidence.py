# SPDX-License-Identifier: Apache-2.0
"""Counters of runs and joint changes of histories change the ranking in the direction of what they show."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonde.diagnose.counter_evidence import CounterEvidence, compare_counters_of_runs
from sonde.diagnose.description import COUNTER_OBSERVATIONS, LOCAL
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.diagnose.diagnosis_state import DiagnosisState, read_diagnosis_state, write_diagnosis_state
from sonde.diagnose.diagnosis_text import list_passive_evidence
from sonde.diagnose.joint_change_evidence import JointChangeEvidence, find_latest_joint_drop, find_origins
from sonde.diagnose.library import find_diagnosis_experiment, list_causes
from sonde.diagnose.stated_machine import UnsimulatedMachine
from sonde.diagnose.stated_results import parse_stated_result
from sonde.telemetry.file_format import TelemetryFile, TelemetrySample, encode_telemetry_lines
from sonde.trends.budget import AlarmBudget, DetectorCalibration
from sonde.trends.changes import group_changes, measure_changes
from sonde.trends.detectors import DetectorSettings
from sonde.trends.history import History
from sonde.trends.survey import Survey
from sonde.trends.watch import find_alarms_in_histories

EPOCH = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
GIB, DAY = float(1 << 30), 86400.0


@pytest.fixture(scope="module")
def local_session() -> DiagnosisSession:
    return DiagnosisSession.open_session(DiagnosisState(directory="/scratch"), None)


def write_run(
    folder: Path,
    read: float,
    written: float = 0.0,
    busy: float = 0.2,
    direct: bool = True,
    available: float = 0.5,
    used_s: float = 2.0,
) -> Path:
    """A run of 10 s that reads 1 GiB, with counters: bytes of the device, and the busy fraction of two processors, of
    which the task used `used_s`."""
    folder.mkdir()
    facts = {"block_device": {"name": "sda"}, "available_bytes": int(available * 1e9), "total_bytes": 10**9}
    begin = {"phase": "p", "op": "read", "measured": True, "direct": direct}
    lines: list[dict[str, Any]] = [
        {"type": "run", "t": 0, "schema": "sonde-record/2", "started": "2026-11-20T12:00:00.000000Z", "tasks": 1,
         "nodes": 1, "plan": {}},
        {"type": "node", "t": 0, "node": 0, "host": "n1", "file_system": facts},
        {"type": "phase_begin", "t": 10, **begin},
        {"type": "phase_end", "t": 20, "phase": "p"},
        {"type": "nodes", "t": 20, "phase": "p", "columns": ["node", "bytes", "user_s", "system_s"],
         "rows": [[0, int(GIB), used_s / 2, used_s / 2]]},
    ]  # fmt: skip
    (folder / "record.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    columns = {
        "disks": ("disk_reads", "disk_read_bytes", "disk_read_s", "disk_writes", "disk_written_bytes", "disk_write_s",
                  "disk_busy_s", "disk_queue_s"),
        "processors": ("cpu_busy_s", "cpu_idle_s", "cpu_iowait_s", "cpu_steal_s"),
    }  # fmt: skip
    samples = []
    for second in (10, 20):
        share = (second - 10) / 10
        disk = (share * 1000, share * read, share, share * 1000, share * written, share, share * 5, share)
        samples.append(TelemetrySample(EPOCH + second, "disks", {"sda": disk}))
        cpu = (share * 20 * busy, share * 20 * (1 - busy), 0.0, 0.0)
        samples.append(TelemetrySample(EPOCH + second, "processors", {"all": cpu}))
    file = TelemetryFile("t", "n1", "sampler", 1.0, columns, samples=samples)
    (folder / "telemetry-n1.ndjson").write_bytes(b"".join(encode_telemetry_lines(file)))
    return folder


def compute_probabilities(diagnosis_model: DiagnosisModel) -> dict[str, float]:
    return {
        item.id: float(p)
        for item, p in zip(
            diagnosis_model.hypotheses, diagnosis_model.prior_probabilities.hypothesis_probabilities, strict=True
        )
    }


def test_counters_of_an_undisturbed_run_show_nothing(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, GIB) for name in ("slow", "usual")]
    observed = {"other-traffic": False, "busy-processors": False, "little-space": False}
    assert compare_counters_of_runs(*runs).observed == observed


def test_busy_processors_are_unclear_without_idle_time(tmp_path: Path) -> None:
    """Others used 80 % of the processors before, so they cannot use a quarter more."""
    crowded: dict[str, Any] = {"read": GIB, "busy": 1.0, "used_s": 4.0}
    runs = [write_run(tmp_path / name, **crowded) for name in ("slow", "usual")]
    assert "busy-processors" not in compare_counters_of_runs(*runs).observed
    idle = write_run(tmp_path / "idle", GIB)
    assert compare_counters_of_runs(runs[0], idle).observed["busy-processors"]


@pytest.mark.parametrize(
    ("name", "slow", "usual"),
    [
        ("other-traffic", {"read": GIB, "written": GIB}, {"read": GIB}),
        ("busy-processors", {"read": GIB, "busy": 0.9}, {"read": GIB}),
        # Tests that use all processors anyway: only their own share tells.
        ("busy-processors", {"read": GIB, "busy": 1.0, "used_s": 7.0}, {"read": GIB, "busy": 1.0, "used_s": 20.0}),
        ("little-space", {"read": GIB, "available": 0.04}, {"read": GIB}),
        ("reads-from-device", {"read": GIB, "direct": False}, {"read": 0.0, "direct": False}),
    ],
)
def test_counters_reveal_a_change(tmp_path: Path, name: str, slow: Any, usual: Any) -> None:
    evidence = compare_counters_of_runs(write_run(tmp_path / "slow", **slow), write_run(tmp_path / "usual", **usual))
    assert [key for key, is_observed in evidence.observed.items() if is_observed] == [name]


def test_runs_without_counters_are_almost_no_evidence(tmp_path: Path, local_session: DiagnosisSession) -> None:
    runs = [write_run(tmp_path / name, GIB) for name in ("slow", "usual")]
    for run in runs:
        (run / "telemetry-n1.ndjson").unlink()
    evidence = compare_counters_of_runs(*runs)
    assert set(evidence.observed) == {"little-space"}  # a fact of the record
    hypotheses = local_session.model.hypotheses
    silent = evidence.describe(hypotheses)[-1]
    assert "no counters that would show" in silent
    assert "busy-processors" in silent
    assert CounterEvidence().describe(hypotheses) == []
    assert {CounterEvidence().compute_log_factor(item) for item in hypotheses} == {0.0}


@pytest.mark.parametrize("name", COUNTER_OBSERVATIONS)
def test_observation_raises_the_causes_that_name_it(local_session: DiagnosisSession, name: str) -> None:
    causes = [item.id for item in list_causes() if name in item.counters and LOCAL in item.machines]
    before = compute_probabilities(local_session.model)
    raised = compute_probabilities(replace(local_session.model, counters=CounterEvidence({name: True})))
    absent = compute_probabilities(replace(local_session.model, counters=CounterEvidence({name: False})))
    for hypothesis in before:
        if hypothesis in causes:
            assert raised[hypothesis] > 2 * before[hypothesis]
            assert absent[hypothesis] < before[hypothesis] * 0.6
        else:
            assert raised[hypothesis] <= before[hypothesis] * (1 + 1e-9) <= absent[hypothesis] * (1 + 2e-9)


def test_other_traffic_separates_a_shared_device_from_a_slow_device(local_session: DiagnosisSession) -> None:
    results = [
        parse_stated_result(find_diagnosis_experiment("device-transfers"), ["write=-60%", "read=-60%"]),
        parse_stated_result(find_diagnosis_experiment("random-requests"), ["write=-60%", "read=-60%"]),
        parse_stated_result(find_diagnosis_experiment("local-names"), ["create=0%", "remove=0%"]),
    ]

    def compute_ratio(evidence: CounterEvidence) -> float:
        diagnosis_model = replace(local_session.model, counters=evidence)
        probabilities = diagnosis_model.compute_posterior(results).hypothesis_probabilities
        by_id = {item.id: float(p) for item, p in zip(diagnosis_model.hypotheses, probabilities, strict=True)}
        return by_id["shared-device"] / by_id["slow-device"]

    without = compute_ratio(CounterEvidence())
    assert compute_ratio(CounterEvidence({"other-traffic": True})) == pytest.approx(without * 8)
    assert compute_ratio(CounterEvidence({"other-traffic": False})) == pytest.approx(without * 0.2 / 0.9)


def test_observation_of_one_run_among_many_is_chance(tmp_path: Path) -> None:
    evidence = CounterEvidence()
    for is_shown in (True, False, False):
        evidence = evidence.merge_observations(CounterEvidence({"other-traffic": is_shown, "little-space": True}))
    assert evidence.observed == {"other-traffic": False, "little-space": True}
    assert evidence.merge_observations(CounterEvidence({"other-traffic": True})).observed["other-traffic"]
    state = DiagnosisState(directory="/scratch", counters=evidence)
    write_diagnosis_state(tmp_path / "case.json", state)
    assert read_diagnosis_state(tmp_path / "case.json").counters == evidence


def test_contradicting_counters_widen_the_answer(local_session: DiagnosisSession) -> None:
    result = parse_stated_result(find_diagnosis_experiment("processor-work"), ["write=-50%"])
    agreeing = replace(local_session.model, counters=CounterEvidence({"busy-processors": True}))
    contradicting = replace(
        local_session.model, counters=CounterEvidence({"busy-processors": False, "reads-from-device": True})
    )
    first, second = (diagnosis_model.compute_posterior([result]) for diagnosis_model in (agreeing, contradicting))
    assert float(np.max(first.hypothesis_probabilities)) > float(np.max(second.hypothesis_probabilities))
    assert first.entropy_bits < second.entropy_bits


def test_clear_joint_change_of_clients_raises_their_causes(diagnosis_model: DiagnosisModel) -> None:
    before = compute_probabilities(diagnosis_model)
    after = compute_probabilities(replace(diagnosis_model, joint_change=JointChangeEvidence("clients", "clear", 6)))
    odds = after["client-kernel"] / after["slow-target:t0-t7"] / (before["client-kernel"] / before["slow-target:t0-t7"])
    assert odds == pytest.approx(9)
    storage = compute_probabilities(replace(diagnosis_model, joint_change=JointChangeEvidence("storage", "clear", 6)))
    assert storage["slow-target:t0-t7"] > before["slow-target:t0-t7"]
    assert storage["client-kernel"] < before["client-kernel"] / 2


def test_uncertain_joint_change_is_no_evidence(diagnosis_model: DiagnosisModel) -> None:
    for evidence in (
        JointChangeEvidence(),
        JointChangeEvidence("unknown", "clear", 3),
        JointChangeEvidence("clients", "one of several explanations", 3),
    ):
        assert {evidence.compute_log_factor(item) for item in diagnosis_model.hypotheses} == {0.0}
    assert "says nothing about the causes" in JointChangeEvidence("unknown", "clear", 3).describe([])[0]
    assert log(0.75 / 0.25) == pytest.approx(
        JointChangeEvidence("clients", "likely", 3).compute_log_factor(_get(diagnosis_model, "client-kernel"))
        - JointChangeEvidence("clients", "likely", 3).compute_log_factor(_get(diagnosis_model, "noisy-neighbor"))
    )


def _get(diagnosis_model: DiagnosisModel, name: str) -> Any:
    return next(item for item in diagnosis_model.hypotheses if item.id == name)


def test_origins_of_hypotheses_follow_from_their_conditions(diagnosis_model: DiagnosisModel) -> None:
    assert find_origins(_get(diagnosis_model, "client-kernel")) == {"clients"}
    assert find_origins(_get(diagnosis_model, "slow-node:n1-n4")) == {"clients"}
    assert find_origins(_get(diagnosis_model, "server-firmware")) == {"storage"}
    assert find_origins(_get(diagnosis_model, "nothing")) == frozenset()


def make_survey(slow: set[tuple[str, str]], factor: float = 0.4) -> Survey:
    """Three file systems with two operations; the rates of `slow` histories change on day 60."""
    generator = np.random.default_rng(3)
    histories = []
    for cell in itertools.product(("fs1", "fs2", "fs3"), ("read", "write")):
        values = np.exp(generator.normal(0, 0.05, 100))
        if cell in slow:
            values[60:] *= factor
        labels = dict(zip(("file_system", "operation"), cell, strict=True))
        histories.append(History(labels, DAY * np.arange(100.0), 1e9 * values))
    joint = group_changes(histories, measure_changes(histories, find_alarms_in_histories(histories)))
    return Survey((), tuple(joint), AlarmBudget(1.0, 365.0), DetectorCalibration(DetectorSettings(), 0.2, 120, True), 0)


def test_joint_drop_of_one_file_system_points_to_storage() -> None:
    change = find_latest_joint_drop(make_survey({("fs2", "read"), ("fs2", "write")}), 50 * DAY, 90 * DAY)
    assert (change.origin, change.histories) == ("storage", 2)


def test_joint_drop_of_reads_on_all_systems_points_to_clients() -> None:
    survey = make_survey({(name, "read") for name in ("fs1", "fs2", "fs3")})
    assert find_latest_joint_drop(survey, 50 * DAY, 90 * DAY) == JointChangeEvidence("clients", "clear", 3)
    assert find_latest_joint_drop(survey, 70 * DAY, 90 * DAY) == JointChangeEvidence()
    assert find_latest_joint_drop(survey, 10 * DAY, 50 * DAY) == JointChangeEvidence()


def test_joint_rise_is_no_evidence() -> None:
    survey = make_survey({("fs2", "read"), ("fs2", "write")}, factor=2.5)
    assert survey.joint
    assert find_latest_joint_drop(survey, 50 * DAY, 90 * DAY) == JointChangeEvidence()


def test_joint_evidence_is_stored_and_explained(tmp_path: Path, local_session: DiagnosisSession) -> None:
    evidence = CounterEvidence({"busy-processors": True}), JointChangeEvidence("clients", "clear", 4)
    state = DiagnosisState(directory="/scratch", counters=evidence[0], joint_change=evidence[1])
    write_diagnosis_state(tmp_path / "case.json", state)
    assert read_diagnosis_state(tmp_path / "case.json") == state
    session = DiagnosisSession(state, local_session.model, UnsimulatedMachine(local_session.model.machine))
    index = [item.id for item in session.model.hypotheses].index("busy-processors")
    rows = list_passive_evidence(session.model, index)
    assert [row.experiment for row in rows] == ["counters of both runs", "joint changes of histories"]
    assert rows[0].comment == "for"
    assert "other programs used processor time" in rows[0].measured
    against = [item.id for item in session.model.hypotheses].index("slow-device")
    assert list_passive_evidence(session.model, against)[0].factor < 1
    assert any("Counters of the slow run show" in text for text in session.describe_limits())
