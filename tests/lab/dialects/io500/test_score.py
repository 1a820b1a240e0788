# SPDX-License-Identifier: Apache-2.0
"""Scores against arithmetic that others have published, and the rules against what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.dialects.io500.figures import PhaseFigures
from sonde.dialects.io500.ini import DEFAULT_CONFIG, read_ini_file
from sonde.dialects.io500.phases import ALL_PHASES, Io500Phase
from sonde.dialects.io500.rules import Io500Rules
from sonde.dialects.io500.score import compute_score, hash_score
from sonde.dialects.io500.verify import verify_result_hashes
from sonde.model.errors import UserError

DATA = Path(__file__).resolve().parents[3] / "data"
PHASES = {phase.name: phase for phase in ALL_PHASES}

# Printed by IO500 isc26_v2 for a run with md-workbench: results, then scores of both modes.
EXTENDED = """
ior-easy-write 2.860281
mdtest-easy-write 69.332725
mdworkbench-create 177.097382
find-easy 2765.958683
ior-hard-write 0.705171
mdtest-hard-write 150.669648
find 1886.363120
find-hard 1272.753248
mdworkbench-bench 178.493704
ior-easy-read 1.537478
mdtest-easy-stat 27.945762
ior-hard-read 1.033183
mdtest-hard-stat 1258.228289
mdworkbench-delete 145.082467
mdtest-easy-delete 370.701666
mdtest-hard-read 213.483178
mdtest-hard-delete 527.353241
ior-rnd4K-easy-read 2.951170
"""
# The example in the documentation of IO500.
DOCUMENTED = """
ior-easy-write 0.186620
mdtest-easy-write 103.300821
ior-hard-write 0.001313
mdtest-hard-write 58.939081
find 1486.435084
ior-easy-read 1.575557
mdtest-easy-stat 839.392805
ior-hard-read 2.272671
mdtest-hard-stat 1212.558124
mdtest-easy-delete 160.765642
mdtest-hard-read 275.011939
mdtest-hard-delete 132.015851
"""


def parse_phase_results(text: str) -> list[tuple[Io500Phase, float]]:
    return [(PHASES[name], float(value)) for name, value in (line.split() for line in text.split("\n") if line)]


def test_the_score_is_that_of_the_documentation() -> None:
    score = compute_score(parse_phase_results(DOCUMENTED))
    assert score.bandwidth == pytest.approx(0.172092, rel=1e-4)
    assert score.metadata == pytest.approx(292.625029, rel=1e-6)
    assert score.total_score == pytest.approx(7.096374, rel=1e-4)


def test_scores_of_both_modes_equal_a_real_run() -> None:
    standard, extended = (
        compute_score(parse_phase_results(EXTENDED)),
        compute_score(parse_phase_results(EXTENDED), is_extended=True),
    )
    for score, wanted in zip(
        (standard.bandwidth, standard.metadata, standard.total_score, extended.metadata, extended.total_score),
        (1.337896, 270.797294, 19.034140, 370.709228, 22.270389),
        strict=True,
    ):
        assert score == pytest.approx(wanted, rel=1e-6)


def test_empty_results_have_score_zero() -> None:
    assert compute_score([]).total_score == 0
    score = compute_score([(PHASES["find"], 4.0), (PHASES["mdtest-easy-stat"], 9.0), (PHASES["mdtest-hard-stat"], 0.0)])
    assert score.metadata == pytest.approx(6.0)
    assert score.total_score == 0.0


def test_verify_accepts_real_result_and_detects_change(tmp_path: Path) -> None:
    config = read_ini_file(DATA / "io500" / "short.ini")
    text = (DATA / "results" / "io500-isc26-result.txt").read_text()
    file = tmp_path / "result.txt"
    file.write_text(text)
    assert verify_result_hashes(config, file).text.endswith("[OK] But this is an invalid run!")
    file.write_text(text.replace("702.523687", "802.523687"))
    assert "Score hash expected" in verify_result_hashes(config, file).text
    assert "Configuration hash expected: 9736CCCB read: 84659473" in verify_result_hashes(DEFAULT_CONFIG, file).text
    file.write_text("[run]\n")
    with pytest.raises(UserError, match=r"no result\.txt of a finished run"):
        verify_result_hashes(config, file)


def test_written_score_hash_verifies(tmp_path: Path) -> None:
    rows = parse_phase_results(EXTENDED)
    score = compute_score(rows)
    for valid, says in ((True, "[OK]"), (False, "[OK] But this is an invalid run!")):
        lines = ["[run]", "version = v1", f"config-hash = {DEFAULT_CONFIG.settings_hash}"]
        lines += [f"[{phase.name}]\nscore = {value:f}" for phase, value in rows]
        lines += [
            "[SCORE]",
            f"MD = {score.metadata:f}",
            f"BW = {score.bandwidth:f}",
            f"SCORE = {score.total_score:f} [INVALID]",
        ]
        lines += [f"hash = {hash_score(score, rows, valid, 'v1')}", "[SCOREX]", "SCORE = 1.0", "hash = 0"]
        (tmp_path / "result.txt").write_text("\n".join(lines))
        verdict = verify_result_hashes(DEFAULT_CONFIG, tmp_path / "result.txt")
        assert verdict.text.splitlines()[-1] == says
        assert verdict.is_intact is valid


def find_objections(phase: str, seconds: float = 400.0, ran: bool = True, **figures: float | int) -> list[str]:
    rules = Io500Rules(DEFAULT_CONFIG)
    phase_figures = PhaseFigures(**{"value": 1.0, "seconds": seconds, **figures})  # type: ignore[arg-type]
    return list(rules.check_phase(PHASES[phase], phase_figures, seconds, ran, dry_run=False))


@pytest.mark.parametrize(
    ("sentences", "expected_text"),
    [
        (find_objections("ior-easy-write"), []),
        (find_objections("ior-easy-write", seconds=300.0), []),
        (
            find_objections("ior-easy-write", seconds=299.9),
            ["Write phase needed", "Runtime of phase", "Runtime is smaller"],
        ),
        (find_objections("mdtest-hard-write", seconds=299.9), ["Runtime of phase", "Runtime is smaller"]),
        (find_objections("ior-easy-read", seconds=1.0), []),
        (find_objections("ior-hard-read", mismatches=3), ["Errors (3) occured during phase in IOR"]),
        (find_objections("mdtest-hard-read", mismatches=3), ["Errors (3) in the data"]),
        (find_objections("find", matches=0, visited=9), ["Find didn't find anything"]),
        (find_objections("find", matches=1, visited=9), []),
        (find_objections("mdtest-easy-stat", value=0.0), ["Resulting score shouldn't be 0.0"]),
        (find_objections("ior-rnd4K-easy-read", value=0.0), ["Resulting score shouldn't be 0.0"]),
    ],
)
def test_violations_of_a_phase_are_reported(sentences: list[str], expected_text: list[str]) -> None:
    assert len(sentences) == len(expected_text)
    for sentence, begin in zip(sentences, expected_text, strict=True):
        assert sentence.startswith(begin)


@pytest.mark.parametrize(
    ("changed_settings", "dry_run", "expected_text"),
    [
        ({}, False, []),
        ({}, True, ["DRY RUN MODE ACTIVATED"]),
        ({("debug", "stonewall-time"): "1"}, False, ["stonewall-time 1s != 300s"]),
        ({("debug", "stonewall-time"): "600"}, False, ["stonewall-time 600s != 300s"]),
        ({("global", "scc"): "TRUE"}, False, ["stonewall-time 300s != 30s"]),
        ({("global", "scc"): "TRUE", ("debug", "stonewall-time"): "30"}, False, []),
        ({("mdtest-hard", "files-per-dir"): "9"}, False, ["files-per-dir is set"]),
        ({("mdtest-hard", "files-per-dir"): "0"}, False, []),
        ({("debug", "pause-dir"): "p"}, False, ["PAUSING BETWEEN RUNS ACTIVATED"]),
    ],
)
def test_settings_that_break_the_rules_make_the_run_invalid(
    changed_settings: dict[tuple[str, str], str], dry_run: bool, expected_text: list[str]
) -> None:
    rules = Io500Rules(DEFAULT_CONFIG.replace_values(changed_settings))
    assert list(rules.check_settings(dry_run)) == expected_text
    assert rules.run_is_valid is not bool(expected_text)
