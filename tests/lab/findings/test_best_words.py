# SPDX-License-Identifier: Apache-2.0
"""The best numbers in words and in JSON, and of which kind of work the number of a phase is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from made_phase import MIB, made, planned, run_with

from sonde.findings.best import NONE, Kind, Number, best, best_words, kind_of, number_of
from sonde.findings.judgement import judgement_of
from sonde.findings.standing import Standing
from sonde.model.lines import Finding, Rates, TreeShape
from sonde.model.quantities import plain

READS, WRITES, REWRITES = Kind("reads"), Kind("writes"), Kind("rewrites")
SMALL: dict[str, Any] = {"moved": 100 * 4096, "done": 100}


def test_a_sentence_begins_with_what_was_written_and_ends_with_random_blocks() -> None:
    order = [WRITES, REWRITES, READS, Kind("writes", "4 KiB"), Kind("reads", "4 KiB"), Kind("reads", "64 KiB")]
    found = best([Number(kind, 1.0, Standing.STORAGE) for kind in (order[5], *order[2:5], *order[:2])])
    assert [one.kind for one in found] == order


def test_of_equal_numbers_the_first_is_quoted_and_nothing_is_no_number() -> None:
    numbers = [Number(READS, 5.0, Standing.STORAGE, name=name) for name in ("first", "second")]
    assert [one.name for one in best(numbers)] == ["first"]
    assert best([Number(READS, 0.0, Standing.STORAGE), Number(WRITES, None, Standing.BURST)]) == []


@pytest.mark.parametrize(
    ("number", "document"),
    [
        (Number(READS, 5.0, Standing.STORAGE), {"work": "reads", "bytes_per_s": 5.0}),
        (Number(READS, 5.0, Standing.STORAGE, name="a"), {"work": "reads", "bytes_per_s": 5.0, "figure": "a"}),
        (Number(Kind("reads", "4 KiB"), 7.0, Standing.BURST), {"work": "random 4 KiB reads", "ops_per_s": 7.0}),
        (Number(None, None, Standing.FAILED), {"work": "", "bytes_per_s": None}),
    ],
)
def test_a_number_in_its_machine_form(number: Number, document: dict[str, Any]) -> None:
    assert number.as_json() == document


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([], NONE),
        ([Number(WRITES, 2e9, Standing.STORAGE), Number(READS, 5e8, Standing.STORAGE)],
         "Best from storage, sustained: writes 2.00 GB/s, reads 500 MB/s."),
        ([Number(WRITES, 2e9, Standing.STORAGE), Number(Kind("reads", "4 KiB"), 81_234.0, Standing.BURST)],
         "Best from storage, in bursts of seconds: writes 2.00 GB/s, 81,200 random 4 KiB reads a second."),
    ],
)  # fmt: skip
def test_the_best_in_one_sentence(numbers: list[Number], words: str) -> None:
    assert plain(best_words(numbers)) == words


def test_what_speaks_against_numbers_stands_before_them_once_for_each_kind() -> None:
    noisy, clock = Finding(id="noisy", text="others were busy."), Finding(id="clock", text="clocks differ")
    both = Number(WRITES, 1e9, Standing.STORAGE, (noisy, clock))
    one = Number(READS, 1e9, Standing.STORAGE, (replace(noisy, text="others were busy, too"),))
    rest = "Best from storage, sustained: writes 1.00 GB/s, reads 1.00 GB/s."
    assert plain(best_words([both, one])) == f"Doubtful: others were busy; clocks differ (1 of 2 numbers). {rest}"
    assert plain(best_words([replace(both, doubts=()), replace(one, doubts=())])) == rest


@pytest.mark.parametrize(
    ("op", "size", "access", "kind"),
    [
        ("read", SMALL, {"order": "random_permute", "transfer": 4096}, Kind("reads", "4 KiB")),
        ("read", SMALL, {"order": "random_replace", "transfer": "4KiB"}, Kind("reads", "4 KiB")),
        ("rewrite", SMALL, {"order": "random_permute", "transfer": "16KiB"}, Kind("writes", "16 KiB")),
        ("rewrite", SMALL, {"order": "sequential", "transfer": 4096}, REWRITES),
        ("read", {}, {"order": "random_permute", "transfer": "1MiB"}, READS),
        ("read", SMALL, {"order": "random_permute"}, None),
        ("read", SMALL, {"order": "random_permute", "transfer": "4k"}, None),
        ("mixed", SMALL, {"order": "random_permute", "transfer": 4096}, None),
    ],
)
def test_small_random_blocks_are_a_kind_of_their_own(
    op: str, size: dict[str, int], access: dict[str, Any], kind: Kind | None
) -> None:
    phase = made(op, **size)
    assert kind_of(run_with(phase, **planned(access=access)), phase) == kind


def test_what_is_counted_in_files_has_no_kind() -> None:
    phase = made("read", tree=TreeShape())
    assert kind_of(run_with(phase), phase) is None


def test_the_number_of_a_phase_is_its_rate_over_all_of_its_time() -> None:
    random = planned(access={"order": "random_permute", "transfer": 4096})

    def number(phase: Any, plan: dict[str, Any]) -> tuple[Kind | None, float | None, Standing]:
        run = run_with(phase, **plan)
        found = number_of(run, phase, judgement_of(run, phase))
        assert found.doubts == tuple(phase.findings)
        return found.kind, found.value, found.standing

    large = made(moved=300 * MIB, direct=True)
    large.findings.append(Finding(id="noisy", severity="warning"))
    assert number(large, {}) == (READS, 100.0 * MIB, Standing.BURST)
    assert number(made(**SMALL, seconds=2.0, direct=True), random) == (Kind("reads", "4 KiB"), 50.0, Standing.BURST)
    assert number(made(moved=300 * MIB, measured=False), {})[:2] == (None, 100.0 * MIB)
    none = made()
    assert none.end is not None
    none.end = replace(none.end, rates=Rates())
    assert number(none, {})[:2] == (READS, None)
