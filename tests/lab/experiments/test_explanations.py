# SPDX-License-Identifier: Apache-2.0
"""A claim that does not hold reports the reason from its numbers: the position of the knee, the scatter of runs."""

from __future__ import annotations

from in_memory_runs import Phase, build_experiment, make_claim, make_runs, record

from sonde.experiments.claims.verdicts import convert_verdicts_to_json, evaluate_claims
from sonde.experiments.page.sentences import describe_verdict
from sonde.model.experiment.claim_verdicts import ClaimVerdict

STEADY_FACTORS = (0.99, 1.01, 1.0, 0.995, 1.005, 1.002)
SCATTERED = (0.4, 1.6, 0.7, 1.3, 1.0, 1.9)
GROWTH_CLAIM = "rank_correlation(bandwidth(write), over=transfer) >= 0.6"
TRANSFERS = {"name": "transfer", "paths": "data.access.transfer", "values": ["32KiB", "64KiB", "128KiB", "1MiB"]}


def judge_levels(
    levels: list[float], runs: tuple[float, ...] = STEADY_FACTORS, text: str = GROWTH_CLAIM
) -> tuple[ClaimVerdict, str]:
    """Outcome and sentence of a claim over four sizes with these rates in MB/s."""
    plan = {"data": {"access": {"transfer": "32KiB", "volume": "4MiB"}}, "phases": [{"id": "write", "op": "write"}]}
    experiment = build_experiment(plan=plan, sweep=[TRANSFERS], expect=[make_claim(text)])
    records = {
        cell.id: [record([Phase(rate=1e6 * level * factor)]) for factor in runs]
        for cell, level in zip(experiment.cells, levels, strict=True)
    }
    verdicts = evaluate_claims(experiment, make_runs(experiment, records))
    sentence = describe_verdict(verdicts[0])
    parts = convert_verdicts_to_json(verdicts)[0]["cells"][0]["comparisons"]
    assert parts[0]["explanation"] in sentence
    return verdicts[0].outcome, sentence


def test_flat_rate_has_knee_below_smallest_size() -> None:
    outcome, sentence = judge_levels([300, 298, 296, 294])
    assert outcome is ClaimVerdict.FAILS
    assert (
        "within 10 % of its largest from 32KiB on, the smallest transfer that was tried: the knee is below it"
        in sentence
    )


def test_saturating_rate_reports_knee() -> None:
    outcome, sentence = judge_levels(
        [100, 300, 299, 298], text="rank_correlation(bandwidth(write), over=transfer) >= 0.9"
    )
    assert outcome is ClaimVerdict.FAILS
    assert "within 10 % of its largest from 64KiB on: the knee." in sentence


def test_falling_rate_reports_maximum_and_fraction() -> None:
    outcome, sentence = judge_levels([300, 200, 150, 120])
    assert outcome is ClaimVerdict.FAILS
    assert "The bandwidth is largest at 32KiB and 40 % of that at 1MiB." in sentence
    assert "knee" not in sentence


def test_holding_claim_has_no_explanation() -> None:
    outcome, sentence = judge_levels([100, 200, 300, 400])
    assert outcome is ClaimVerdict.HOLDS
    assert "knee" not in sentence


def test_undecided_claim_reports_scatter() -> None:
    ratio = 'bandwidth(write, transfer="1MiB") / bandwidth(write, transfer="32KiB") >= 1.5'
    outcome, sentence = judge_levels([100, 100, 100, 150], SCATTERED, ratio)
    assert outcome is ClaimVerdict.UNDECIDED
    assert "Runs of transfer=" in sentence
    assert "scatter by 49 % (COV)" in sentence


def test_undecided_claim_of_steady_runs_has_no_scatter() -> None:
    ratio = 'bandwidth(write, transfer="1MiB") / bandwidth(write, transfer="32KiB") >= 1.5'
    outcome, sentence = judge_levels([100, 100, 100, 150.01], STEADY_FACTORS, ratio)
    assert outcome is ClaimVerdict.UNDECIDED
    assert "scatter" not in sentence
