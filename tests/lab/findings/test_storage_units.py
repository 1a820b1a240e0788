# SPDX-License-Identifier: Apache-2.0
"""Servers and units of storage by the sums of their targets: the slow one is named, and nobody where none is slow."""

from __future__ import annotations

import numpy as np
import pytest
from target_load import drawn_answers, phase_of, run_with

from sonde.findings.judgement import judgement_of
from sonde.findings.units import levels_of, slow_units, unit_rows, unit_series, unit_words
from sonde.model.quantities import plain
from sonde.model.record import PhaseRecord, RecordReader
from sonde.model.run import run_of
from sonde.report.sections.target_heat import SECTION, unit_heat
from sonde.terminal.target_tables import targets_document


def drawn(random: np.random.Generator, each: int, units: int, slow: float = 1.0) -> PhaseRecord:
    """Minutes of a shared file; the second unit is slow."""
    slices = int(random.integers(20, 65))
    return phase_of(*drawn_answers(random, each * units, slices, slice(each, 2 * each), slow))


def test_sums_are_those_of_the_targets_and_latencies_are_joined_as_far_as_they_can_be() -> None:
    ops = np.tile([[10], [10], [20], [20], [30], [30], [40], [40]], (1, 20))
    phase, run = phase_of(ops, ops * 1_000_000), run_with(8, 4)
    assert levels_of(run, phase) == ["OSS", "SSU"]
    first, second = unit_rows(run, phase, "SSU")
    assert (first.unit, first.kind, first.targets, first.ops) == ("ssu0", "write", 4, 60 * 20)
    assert (second.bytes, second.bytes_per_s) == (140 * 20 << 20, (140 * 20 << 20) / 10)
    assert first.mean_ns == pytest.approx(1e6)
    assert (first.worst_p99_ns, second.worst_p99_ns) == (4e7, 8e7)
    assert sum(one.bytes for one in unit_rows(run, phase, "OSS")) == phase.targets.bytes if phase.targets else 0
    series = {one.unit: one for one in unit_series(run, phase, "SSU")}
    assert series["ssu1"].bytes == (float(140 << 20),) * 20
    document = targets_document(run, phase)
    assert [one["target"] for one in document["targets"]] == [f"OST000{at}" for at in range(8)]
    assert [one["unit"] for one in document["units"]["SSU"]] == ["ssu0", "ssu1"]
    assert document["units"]["SSU"][1]["bytes"] == second.bytes


def test_targets_that_the_system_does_not_have_belong_to_no_unit() -> None:
    phase, run = phase_of(np.full((8, 20), 20), np.full((8, 20), 20_000_000)), run_with(4, 2)
    assert [one.targets for one in unit_rows(run, phase, "SSU")] == [2, 2]
    nobody = run_of(RecordReader())
    assert levels_of(nobody, phase) == []
    assert unit_words(nobody, phase) == ""
    assert "units" not in targets_document(nobody, phase)


def test_a_unit_twice_as_slow_is_named_and_its_interval_holds_the_truth() -> None:
    named = held = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        each, units = int(random.integers(2, 9)), int(random.integers(6, 13))
        slow = slow_units(run_with(each * units, each), drawn(random, each, units, 2.0), "SSU")
        assert [one.name for one in slow] in ([], ["ssu1"])
        if slow:
            named += 1
            held += slow[0].low <= 2.0 <= slow[0].high
    assert named >= 95
    assert held >= 0.95 * named


def test_no_unit_is_named_where_none_is_slow() -> None:
    named = 0
    for seed in range(200):
        random = np.random.default_rng(1000 + seed)
        each, units = int(random.integers(2, 9)), int(random.integers(4, 13))
        named += bool(slow_units(run_with(each * units, each), drawn(random, each, units), "SSU"))
    assert named <= 2


def test_one_slow_target_does_not_make_its_unit_slow() -> None:
    ns = np.full((24, 32), 20 * 5_000_000)
    ns[5] *= 8  # more than the other three of its unit together
    phase, run = phase_of(np.full((24, 32), 20), ns), run_with(24, 4)
    assert slow_units(run, phase, "SSU") == []
    ns[4:8] = 20 * 40_000_000
    (slow,) = slow_units(run, phase_of(np.full((24, 32), 20), ns), "SSU")
    assert slow.name == "ssu1"
    assert slow.factor == pytest.approx(8.0)


def test_the_words_name_level_unit_share_and_interval_and_every_surface_has_them() -> None:
    ns = np.full((24, 32), 20 * 5_000_000)
    ns[8:12] *= 2
    phase, run = phase_of(np.full((24, 32), 20), ns), run_with(24, 4)
    words = plain(unit_words(run, phase))
    assert words.endswith(
        "SSU ssu2 answered writes at 0.50 of the rate of the others (99.5 % interval over all of them: 0.50 to 0.50)."
    )
    judgement = judgement_of(run, phase)
    assert judgement.as_json()["unit"] == words
    assert plain(judgement.remarks[-1]) == words
    drawing = str(unit_heat(run, phase, "SSU"))
    assert drawing.count('class="slow"') == 1
    assert all(f"ssu{at}" in drawing for at in range(6))
    assert unit_heat(run_with(4, 4), phase_of(np.full((4, 32), 20), ns[:4]), "SSU") is None
    assert SECTION.rank == 41
