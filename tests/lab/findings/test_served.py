# SPDX-License-Identifier: Apache-2.0
"""Targets judged by single operations: the slow one is named with its interval, and nobody where none is slow."""

from __future__ import annotations

import numpy as np
import pytest
from target_load import drawn_answers, phase_of

from sonde.findings.served import _apart, answer_rates, answer_words, busiest_kind, served, slow_answers, unknown_words
from sonde.model.lines import LayoutLine, PhaseBegin, TargetsLine
from sonde.model.quantities import plain
from sonde.model.record import PhaseRecord
from sonde.report.sections.target_heat import _shown, target_heat


def drawn(random: np.random.Generator, slow: float = 1.0) -> PhaseRecord:
    """Minutes of a shared file; the third target is slow, or the last of fewer."""
    targets, slices = int(random.integers(4, 48)), int(random.integers(20, 65))
    third = min(2, targets - 1)
    return phase_of(*drawn_answers(random, targets, slices, slice(third, third + 1), slow))


def test_a_target_twice_as_slow_is_named_and_its_interval_holds_the_truth() -> None:
    named = held = 0
    for seed in range(200):
        slow = slow_answers(drawn(np.random.default_rng(seed), 2.0))
        assert [one.name for one in slow] in ([], ["OST0002"])
        if slow:
            named += 1
            held += slow[0].low <= 2.0 <= slow[0].high
    assert named >= 170  # those that are not are among few others: of 4 to 9 targets
    assert held >= 0.95 * named


def test_several_slow_targets_do_not_hide_each_other() -> None:
    """Of 200 such draws 189 name both and one a third."""
    both = others = 0
    for seed in range(60):
        random = np.random.default_rng(2000 + seed)
        targets, slices = int(random.integers(16, 48)), int(random.integers(20, 65))
        slow = slow_answers(phase_of(*drawn_answers(random, targets, slices, slice(2, 4), 2.0)))
        named = {one.name for one in slow}
        both += named >= {"OST0002", "OST0003"}
        others += len(named - {"OST0002", "OST0003"})
    assert both >= 52
    assert others <= 1


def test_nothing_is_named_where_no_target_is_slow() -> None:
    named = sum(bool(slow_answers(drawn(np.random.default_rng(1000 + seed)))) for seed in range(500))
    assert named <= 2


def test_what_hits_all_targets_at_once_blames_none() -> None:
    ops = np.full((8, 32), 20)
    ns = np.full((8, 32), 20 * 5_000_000)
    ns[:, 16:] *= 10
    assert slow_answers(phase_of(ops, ns)) == []
    ns[3] *= 2
    (slow,) = slow_answers(phase_of(ops, ns))
    assert slow.name == "OST0003"
    assert slow.factor == pytest.approx(2.0)


def test_few_operations_and_a_single_target_say_nothing() -> None:
    few = phase_of(np.full((8, 32), 1), np.full((8, 32), 5_000_000))
    assert answer_rates(few) == []
    assert answer_rates(phase_of(np.full((1, 32), 50), np.full((1, 32), 5_000_000))) == []


def test_split_operations_alone_say_nothing() -> None:
    phase = phase_of(np.zeros((4, 32), dtype=int), np.zeros((4, 32), dtype=int))
    assert answer_rates(phase) == []
    assert answer_words(phase) == ""


def test_the_words_name_the_target_its_factor_and_the_interval() -> None:
    ns = np.full((6, 32), 20 * 5_000_000)
    ns[4] *= 3
    words = plain(answer_words(phase_of(np.full((6, 32), 20), ns, "read")))
    assert words == (
        "Reads from target OST0004 took 3.0 times as long as those on the others (99.5 % interval over all targets:"
        " 3.0 to 3.0)."
    )


def partly_known(bytes_known: int, files_known: int, kind: str = "lustre") -> PhaseRecord:
    """1,000 bytes of 1,000 files."""
    phase = PhaseRecord(PhaseBegin(phase="p", op="write"))
    phase.targets = TargetsLine(files=1000, known_files=files_known, bytes=1000, known_bytes=bytes_known)
    phase.layout = LayoutLine(kind=kind)
    return phase


def test_what_belongs_to_no_target_is_said_with_its_share() -> None:
    assert unknown_words(PhaseRecord(PhaseBegin(phase="p", op="write"))) == ""
    assert unknown_words(partly_known(1000, 1000)) == ""
    assert unknown_words(partly_known(875, 900)) == (
        "12.5 % of the bytes belong to no known target: the layout of 100 of 1,000 opened files is not known"
    )
    assert unknown_words(partly_known(500, 1000)) == "50 % of the bytes belong to no known target"
    assert unknown_words(partly_known(0, 900, "local")) == (
        "100 % of the bytes belong to no known target: a local file system chooses places for new bytes only after they"
        " were written"
    )


def test_a_table_of_another_form_is_read_as_far_as_it_goes() -> None:
    line = TargetsLine(columns=("target", "bytes"), rows=(("OST0000", 5), ("OST0001",)))
    assert served(line) == []
    assert busiest_kind(PhaseRecord(PhaseBegin(phase="p", op="write"))) == ""


def test_the_heat_map_has_a_row_for_each_target_and_marks_the_slow_one() -> None:
    ns = np.full((6, 32), 20 * 5_000_000)
    ns[4] *= 3
    drawing = str(target_heat(phase_of(np.full((6, 32), 20), ns)))
    assert all(f"OST000{at}" in drawing for at in range(6))
    assert drawing.count('class="slow"') == 1
    assert target_heat(phase_of(np.full((1, 32), 20), ns[:1])) is None


def test_a_target_that_nobody_asks_any_more_takes_no_part_while_one_that_stands_still_is_slow() -> None:
    ops = np.full((4, 20), 10)
    ops[1, 10:] = 0  # over before the others
    ops[2, 8:12] = 0  # stands still between
    (early, still) = (_shown(one, 20, 20) for one in phase_of(ops, ops * 1_000_000).series[1:3])
    assert np.isnan(early[10:]).all()
    assert not np.isnan(early[:10]).any()
    assert still[8:12] == [0.0] * 4


def test_how_far_one_is_apart_is_from_the_middle_of_the_others_and_no_further_than_chance_reaches() -> None:
    """Of one that is judged Student's t with four degrees of freedom at 0.995 on two sides, 5.598, times the spread of
    five others, 1.5811, times the root of one and a fifth."""
    found = _apart(9.0, np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 1)
    assert found.by == 6.0
    assert found.room == pytest.approx(5.598 * 1.5811 * 1.0954, rel=1e-3)
