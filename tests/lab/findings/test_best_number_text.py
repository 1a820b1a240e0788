# SPDX-License-Identifier: Apache-2.0
"""The best numbers in words and in JSON, and of which kind of work the number of a phase is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from phase_builders import MIB, make_phase, planned, run_with

from sonde.findings.assessment import assess_phase_rate
from sonde.findings.best_numbers import (
    NO_STORAGE_NUMBER,
    BestCandidate,
    WorkKind,
    describe_best,
    determine_work_kind,
    make_candidate,
    select_best_numbers,
)
from sonde.findings.classification import Classification
from sonde.model.line_members import PhaseRates, TreeShape
from sonde.model.lines import Finding
from sonde.model.quantities import replace_no_break_spaces

READS, WRITES, REWRITES = WorkKind("reads"), WorkKind("writes"), WorkKind("rewrites")
SMALL: dict[str, Any] = {"moved": 100 * 4096, "operation_count": 100}


def test_best_sentence_orders_writes_first_and_random_last() -> None:
    order = [
        WRITES,
        REWRITES,
        READS,
        WorkKind("writes", "4 KiB"),
        WorkKind("reads", "4 KiB"),
        WorkKind("reads", "64 KiB"),
    ]
    candidates = select_best_numbers(
        [BestCandidate(kind, 1.0, Classification.STORAGE) for kind in (order[5], *order[2:5], *order[:2])]
    )
    assert [candidate.kind for candidate in candidates] == order


def test_first_of_equal_numbers_is_quoted_and_zero_is_none() -> None:
    numbers = [BestCandidate(READS, 5.0, Classification.STORAGE, name=name) for name in ("first", "second")]
    assert [candidate.name for candidate in select_best_numbers(numbers)] == ["first"]
    assert (
        select_best_numbers(
            [BestCandidate(READS, 0.0, Classification.STORAGE), BestCandidate(WRITES, None, Classification.BURST)]
        )
        == []
    )


@pytest.mark.parametrize(
    ("candidate", "expected_document"),
    [
        (BestCandidate(READS, 5.0, Classification.STORAGE), {"work": "reads", "bytes_per_s": 5.0}),
        (
            BestCandidate(READS, 5.0, Classification.STORAGE, name="a"),
            {"work": "reads", "bytes_per_s": 5.0, "figure": "a"},
        ),
        (
            BestCandidate(WorkKind("reads", "4 KiB"), 7.0, Classification.BURST),
            {"work": "random 4 KiB reads", "ops_per_s": 7.0},
        ),
        (BestCandidate(None, None, Classification.FAILED), {"work": "", "bytes_per_s": None}),
    ],
)
def test_a_number_in_its_machine_form(candidate: BestCandidate, expected_document: dict[str, Any]) -> None:
    assert candidate.to_json() == expected_document


@pytest.mark.parametrize(
    ("candidates", "expected_text"),
    [
        ([], NO_STORAGE_NUMBER),
        ([BestCandidate(WRITES, 2e9, Classification.STORAGE), BestCandidate(READS, 5e8, Classification.STORAGE)],
         "Best from storage, sustained: writes 2.00 GB/s, reads 500 MB/s."),
        ([BestCandidate(WRITES, 2e9, Classification.STORAGE),
          BestCandidate(WorkKind("reads", "4 KiB"), 81_234.0, Classification.BURST)],
         "Best from storage, in bursts of seconds: writes 2.00 GB/s, 81,200 random 4 KiB reads a second."),
    ],
)  # fmt: skip
def test_the_best_in_one_sentence(candidates: list[BestCandidate], expected_text: str) -> None:
    assert replace_no_break_spaces(describe_best(candidates)) == expected_text


def test_caveats_precede_the_numbers_once_per_kind() -> None:
    noisy, clock = Finding(id="noisy", text="others were busy."), Finding(id="clock", text="clocks differ")
    both = BestCandidate(WRITES, 1e9, Classification.STORAGE, (noisy, clock))
    noisy_only = BestCandidate(READS, 1e9, Classification.STORAGE, (replace(noisy, text="others were busy, too"),))
    text = "Best from storage, sustained: writes 1.00 GB/s, reads 1.00 GB/s."
    assert (
        replace_no_break_spaces(describe_best([both, noisy_only]))
        == f"Doubtful: others were busy; clocks differ (1 of 2 numbers). {text}"
    )
    assert replace_no_break_spaces(describe_best([replace(both, caveats=()), replace(noisy_only, caveats=())])) == text


@pytest.mark.parametrize(
    ("op", "size", "access", "expected_kind"),
    [
        ("read", SMALL, {"order": "random_permute", "transfer": 4096}, WorkKind("reads", "4 KiB")),
        ("read", SMALL, {"order": "random_replace", "transfer": "4KiB"}, WorkKind("reads", "4 KiB")),
        ("rewrite", SMALL, {"order": "random_permute", "transfer": "16KiB"}, WorkKind("writes", "16 KiB")),
        ("rewrite", SMALL, {"order": "sequential", "transfer": 4096}, REWRITES),
        ("read", {}, {"order": "random_permute", "transfer": "1MiB"}, READS),
        ("read", SMALL, {"order": "random_permute"}, None),
        ("read", SMALL, {"order": "random_permute", "transfer": "4k"}, None),
        ("mixed", SMALL, {"order": "random_permute", "transfer": 4096}, None),
    ],
)
def test_small_random_blocks_are_a_separate_kind_of_work(
    op: str, size: dict[str, int], access: dict[str, Any], expected_kind: WorkKind | None
) -> None:
    phase = make_phase(op, **size)
    assert determine_work_kind(run_with(phase, **planned(access=access)), phase) == expected_kind


def test_metadata_phase_has_no_kind_of_work() -> None:
    phase = make_phase("read", tree=TreeShape())
    assert determine_work_kind(run_with(phase), phase) is None


def test_the_number_of_a_phase_is_its_rate_over_all_of_its_time() -> None:
    random = planned(access={"order": "random_permute", "transfer": 4096})

    def number(phase: Any, plan: dict[str, Any]) -> tuple[WorkKind | None, float | None, Classification]:
        run = run_with(phase, **plan)
        candidate = make_candidate(run, phase, assess_phase_rate(run, phase))
        assert candidate.caveats == tuple(phase.findings)
        return candidate.kind, candidate.value, candidate.classification

    large = make_phase(moved=300 * MIB, direct=True)
    large.findings.append(Finding(id="noisy", severity="warning"))
    assert number(large, {}) == (READS, 100.0 * MIB, Classification.BURST)
    assert number(make_phase(**SMALL, seconds=2.0, direct=True), random) == (
        WorkKind("reads", "4 KiB"),
        50.0,
        Classification.BURST,
    )
    assert number(make_phase(moved=300 * MIB, measured=False), {})[:2] == (None, 100.0 * MIB)
    none = make_phase()
    assert none.end is not None
    none.end = replace(none.end, rates=PhaseRates())
    assert number(none, {})[:2] == (READS, None)
