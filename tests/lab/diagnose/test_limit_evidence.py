# SPDX-License-Identifier: Apache-2.0
"""Limits of control groups and load averages as evidence."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from diagnosis_machine import read_small_machine

from sonde.diagnose.counter_evidence import CounterEvidence, compare_counters_of_runs
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.diagnose.diagnosis_state import DiagnosisState
from sonde.diagnose.hypotheses import list_hypotheses
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.limit_evidence import read_device_limits
from sonde.diagnose.stated_machine import UnsimulatedMachine
from sonde.diagnose.stated_results import parse_stated_result

USUAL_LIMITS = {"memory_bytes": 8 << 30, "cpus": 2, "load_1m": 0.5}


def write_run(folder: Path, facts: Mapping[str, Any]) -> Path:
    folder.mkdir()
    lines = [{"type": "run", "schema": "sonde-record/2"}, {"type": "node", "node": 0, "host": "n1", **facts}]
    (folder / "record.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"cpu_quota": 0.3}, "processor-limit"),
        ({"memory_limit_bytes": 64 << 20}, "memory-limit"),
        ({"load_1m": 4.5}, "longer-run-queue"),
        ({"load_1m": 1.5}, ""),
    ],
)
def test_limit_that_was_not_there_is_observed(tmp_path: Path, changed: Mapping[str, Any], name: str) -> None:
    slow, usual = write_run(tmp_path / "slow", {**USUAL_LIMITS, **changed}), write_run(tmp_path / "usual", USUAL_LIMITS)
    observed = [key for key, is_shown in compare_counters_of_runs(slow, usual).observed.items() if is_shown]
    assert observed == ([name] if name else [])


@pytest.mark.parametrize(
    ("load", "expected"),
    # Five programs more on two processors: the average has 22, 39 and 63 % of them after 15, 30 and 60 s.
    [(0.5, False), (0.8, False), (1.6, None), (2.4, True), (3.65, True)],
)
def test_load_average_that_still_rises_is_no_evidence(tmp_path: Path, load: float, expected: bool | None) -> None:
    slow, usual = (
        write_run(tmp_path / "slow", {**USUAL_LIMITS, "load_1m": load}),
        write_run(tmp_path / "usual", USUAL_LIMITS),
    )
    assert compare_counters_of_runs(slow, usual).observed.get("longer-run-queue") is expected


def test_limit_of_both_runs_is_no_observation(tmp_path: Path) -> None:
    limited = {**USUAL_LIMITS, "cpu_quota": 1.0, "memory_limit_bytes": 1 << 30}
    runs = [write_run(tmp_path / name, limited) for name in ("slow", "usual")]
    assert not any(compare_counters_of_runs(*runs).observed.values())


def test_records_without_node_facts_are_no_evidence(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, {}) for name in ("slow", "usual")]
    assert compare_counters_of_runs(*runs).observed == {}


def make_group_tree(root: Path, membership: str, files: Mapping[str, str]) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(membership)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"blkio/blkio.throttle.read_bps_device": "{device} 1000\n"}, {"byte-limit"}),
        ({"blkio/job/blkio.throttle.write_iops_device": "{device} 1500\n"}, {"request-limit"}),
        ({"blkio/blkio.throttle.read_bps_device": "240:77 1000\n"}, set()),
        ({"blkio/other/blkio.throttle.read_bps_device": "{device} 1000\n", "blkio/blkio.throttle.read_bps_device": ""},
         set()),
        ({"unified/job/io.max": "{device} rbps=max wbps=1048576 riops=max wiops=max\n"}, {"byte-limit"}),
        ({"unified/io.max": "{device} rbps=max wbps=max riops=100 wiops=max\n"}, {"request-limit"}),
        ({"unified/io.max": "240:77 rbps=1 wbps=max riops=100 wiops=max\n"}, set()),
    ],
)  # fmt: skip
def test_limits_of_the_device_are_read(tmp_path: Path, files: Mapping[str, str], expected: set[str]) -> None:
    number = os.stat(tmp_path).st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    texts = {name: text.format(device=device) for name, text in files.items()}
    make_group_tree(tmp_path, "7:blkio:/job\n2:cpu:/\n0::/job\n", texts)
    limits = read_device_limits(str(tmp_path), tmp_path)
    assert {name for name, is_shown in limits.items() if is_shown} == expected
    assert set(limits) == {"byte-limit", "request-limit"}


def test_partition_has_the_limits_of_its_device(tmp_path: Path) -> None:
    number = os.stat(tmp_path).st_dev
    disk = tmp_path / "sys/devices/disk"
    (disk / "part").mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (disk / "part/partition").write_text("1\n")
    (tmp_path / "sys/dev/block").mkdir(parents=True)
    (tmp_path / f"sys/dev/block/{os.major(number)}:{os.minor(number)}").symlink_to(disk / "part")
    make_group_tree(tmp_path, "0::/\n", {"io.max": "8:0 rbps=5 wbps=max riops=max wiops=max\n"})
    assert read_device_limits(str(tmp_path), tmp_path) == {"byte-limit": True, "request-limit": False}


def test_node_without_control_groups_has_no_device_limits(tmp_path: Path) -> None:
    assert read_device_limits(str(tmp_path), tmp_path) == {}
    make_group_tree(tmp_path, "0::/\n", {})
    assert read_device_limits(str(tmp_path), tmp_path) == {}
    assert read_device_limits(str(tmp_path / "missing"), tmp_path) == {}


@pytest.mark.parametrize(
    ("observation", "cause", "changes"),
    [
        ("request-limit", "device-latency", {"random-requests": ["read=-80%", "write=-80%"]}),
        ("byte-limit", "slow-device", {"device-transfers": ["read=-60%", "write=-60%"]}),
        ("processor-limit", "slow-processors", {"processor-work": ["write=-85%"], "cached-requests": ["read=-85%"]}),
        ("memory-limit", "little-page-cache", {"cached-file": ["write=-60%", "read_warm=-85%"]}),
    ],
)
def test_limit_decides_between_causes_of_equal_rates(
    observation: str, cause: str, changes: Mapping[str, list[str]]
) -> None:
    opened = DiagnosisSession.open_session(DiagnosisState(directory="/scratch"), None)
    probabilities = []
    for evidence in (CounterEvidence(), CounterEvidence({observation: True})):
        state = DiagnosisState(directory="/scratch", counters=evidence)
        session = DiagnosisSession(state, opened.model, UnsimulatedMachine(opened.model.machine))
        for name, values in changes.items():
            session.add_result(parse_stated_result(find_diagnosis_experiment(name), values), "hand")
        probabilities.append(session.find_candidate(cause).probability)
    before, after = (item / (1 - item) for item in probabilities)
    assert after == pytest.approx(25 * before, rel=1e-6)
    assert probabilities[1] > 0.5


def test_processor_limit_speaks_for_a_slow_node(tmp_path: Path) -> None:
    hypotheses = {item.fault: item for item in list_hypotheses(read_small_machine(tmp_path), ())}
    evidence = CounterEvidence({"processor-limit": True})
    slow_node, saturated = (evidence.compute_log_factor(hypotheses[name]) for name in ("slow-node", "mds-saturated"))
    assert slow_node - saturated == pytest.approx(math.log(25))
