# SPDX-License-Identifier: Apache-2.0
"""Verbs that read many runs (list, query, baseline, gate, compare, trend) and Python carry each classification."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_builders import KEY, add_run, build_phase

import sonde as sonde_package
from sonde.findings.classification import Classification

JUDGED_CLASSIFICATIONS = ("storage", "burst", "unknown")
LABELS = {
    "storage": "storage",
    "burst": "burst",
    "short": "too short",
    "cache": "cached",
    "memory": "in memory",
    "synthetic": "synthetic",
    "simulated": "simulated",
    "unknown": "unknown",
    "invalid": "invalid",
    "failed": "failed",
}
MODEL = {"system": "edison", "mount": "fs1"}
MODEL_KEY = {**KEY, "system": "simulated edison"}


def add_runs(archive: Path, classification: str, run_count: int = 6, day: int = 2, **members: Any) -> list[str]:
    """Adds runs with a write phase of the classification, one a day, and returns their ids."""
    names = [f"202601{day + index:02}T000000Z-probe-{day + index:04}" for index in range(run_count)]
    for index, name in enumerate(names):
        row = build_phase("write", 1e9 + index, classification=classification, classification_text="Why.")
        add_run(archive, name, [{**row, "validity": "good"}], **members)
    return names


def test_every_classification_has_a_label() -> None:
    assert {member.value: member.table_label for member in Classification} == LABELS


@pytest.mark.parametrize("classification", LABELS)
def test_verbs_over_many_runs_name_the_classification(sonde: Any, archive: Path, classification: str) -> None:
    simulated: dict[str, Any] = {"simulated": MODEL, "history": MODEL_KEY} if classification == "simulated" else {}
    names = add_runs(archive, classification, **simulated)
    is_storage, label = classification in ("storage", "burst"), LABELS[classification]
    assert ("1 GB/s" if is_storage else label) in sonde("list").out.replace("1.00", "1")
    assert sonde("list", "--json").json[0]["phases"][0]["classification"] == classification
    assert sonde("query", "SELECT DISTINCT classification AS c FROM phases", "--json").json == [{"c": classification}]
    phase = sonde_package.open(archive).run(names[0]).phases[0]
    assert (phase.classification, phase.is_storage) == (classification, is_storage)

    sonde("baseline", "set", "good", *names[:5])
    result = sonde("baseline", "show", "good")
    (number,) = sonde("baseline", "show", "good", "--json").json["numbers"]
    gate = sonde("gate", names[5], "--baseline", "good")
    (judged,) = sonde("gate", names[5], "--baseline", "good", "--json").json["numbers"]
    limit = sonde("gate", names[5], "--at-least", "write=0.5GB/s")
    compared = sonde("compare", names[0], names[1])
    (change,) = sonde("compare", names[0], names[1], "--json").json["numbers"]
    trend = sonde("trend")
    if classification in JUDGED_CLASSIFICATIONS:
        assert (gate.code, limit.code, judged["good"], judged["not_judged"]) == (0, 0, True, "")
        assert number["limit"] is not None
        assert "not a storage number" not in trend.out
    elif classification == "simulated":
        assert (gate.code, limit.code, judged["good"]) == (0, 0, True)
        assert "simulated" in result.out
        assert "Good, simulated" in gate.out
        assert "Good, simulated" in limit.out
        assert (trend.code, trend.sentences[0][:30]) == (2, "sonde: All histories (1) are s")
    else:
        assert (gate.code, limit.code, judged["good"]) == (6, 6, None)
        assert number["limit"] is None
        assert f"none: {label}" in result.out
        for surface in (gate.out, limit.out, judged["not_judged"], trend.out):
            assert f"not a storage number ({label})" in " ".join(surface.split())
        assert "Not judged" in gate.out
        assert "Not judged" in limit.out
    assert change["about"] == judged["about"] == number["about"] == ("" if is_storage else label)
    if not is_storage:
        assert label in " ".join(compared.out.split())


def test_simulated_and_measured_runs_are_separated(sonde: Any, archive: Path) -> None:
    measured = add_runs(archive, "storage")
    modeled = add_runs(archive, "simulated", day=12, simulated=MODEL, history=MODEL_KEY)
    mounted = add_runs(archive, "burst", 1, day=20, file_system="fuse.sonde")
    for other in (modeled[0], mounted[0]):
        refused = sonde("compare", measured[0], other)
        assert (refused.code, "is simulated and" in refused.err) == (2, True)
        assert sonde("compare", measured[0], other, "--with-simulated").code == 0
        assert sonde("baseline", "set", "mixed", measured[0], other).code == 2
    assert sonde("baseline", "set", "good", *measured).code == 0
    assert sonde("baseline", "set", "good", modeled[0], "--add").code == 2
    assert "is simulated and" in sonde("gate", modeled[0], "--baseline", "good").err
    document = sonde("compare", "2026-01-01..2026-01-14", "2026-01-02..2026-01-05", "--json").json
    assert (document["before"]["simulated_left_out"], len(document["before"]["runs"])) == (3, 6)
    trend = sonde("trend", "--json").json
    assert (trend["simulated_histories"], len(trend["histories"])) == (1, 1)


def test_runs_of_earlier_versions_on_a_model_are_simulated(sonde: Any, archive: Path) -> None:
    (old,) = add_runs(archive, "burst", 1, simulated=MODEL)
    (mounted,) = add_runs(archive, "cache", 1, day=9, file_system="fuse.sonde")
    for name, modeled in ((old, "burst"), (mounted, "cache")):
        phase = sonde_package.open(archive).run(name).phases[0]
        assert (phase.classification, phase.document["modeled_classification"]) == ("simulated", modeled)
        assert not phase.is_storage
    assert sonde("list").out.count("simulated") == 4


def test_slow_run_without_a_plan_is_judged_as_it_is(sonde: Any, archive: Path) -> None:
    (slow,) = add_runs(archive, "storage", 1, source={"tool": "ior"})
    gate = sonde("gate", slow, "--at-least", "write=5GB/s")
    assert (gate.code, "Too slow: 1 run" in gate.out) == (1, True)
