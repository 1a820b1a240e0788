# SPDX-License-Identifier: Apache-2.0
"""Comparisons whose result does not depend on what is measured."""

from __future__ import annotations

import pytest
from in_memory_runs import build_experiment, make_claim

from sonde.model.errors import ExperimentError
from sonde.model.experiment.claim_parser import parse_claim
from sonde.model.experiment.claim_ranges import find_constant_comparison

NEVER_FAILS = [
    "rise(bandwidth(w), over=tasks) >= 1",
    "fall(bandwidth(w), over=tasks) <= 1",
    "1 <= imbalance(time(w), per=task)",
    "tail(bandwidth(w)) <= 1.5",
    "latency_p99(w) / latency_p50(w) >= 1",
    "latency_p50(w) <= latency_max(w)",
    "bandwidth(w) >= 0",
    "bandwidth(w) - 1 >= 0 - 2",
    "largest(bandwidth(w), over=transfer) >= bandwidth(w, transfer=1)",
    "smallest(bandwidth(w), over=transfer) <= bandwidth(w, transfer=1)",
    "bandwidth(w) >= bandwidth(w)",
    "rank_correlation(bandwidth(w), over=tasks) >= -1",
    "residency(w) <= 1",
    "2 * imbalance(time(w), per=task) / fall(bandwidth(w), over=tasks) >= 2",
]
NEVER_HOLDS = [
    "rise(bandwidth(w), over=tasks) < 1",
    "fall(bandwidth(w), over=tasks) > 1",
    "imbalance(time(w), per=task) <= 0.5",
    "bandwidth(w) > bandwidth(w)",
    "errors(w) < 0",
]
MAY_DIFFER = [
    "rise(bandwidth(w), over=tasks) >= 1.1",
    "fall(bandwidth(w), over=tasks) >= 0.8",
    "latency_p50(w) / latency_p99(w) >= 1",
    "latency_p99(w) / latency_p50(r) >= 1",
    "largest(bandwidth(w), over=transfer) >= bandwidth(w, tasks=1)",
    "errors(w) <= 0",
    "bandwidth(w) > 0",
    "tail(bandwidth(w)) >= tail(bandwidth(r))",
    "bandwidth(w) / (bandwidth(r) - 1) >= 0",
    'shape(bandwidth(w)) == "flat"',
    "slope(bandwidth(w), over=tasks) >= 0",
]


@pytest.mark.parametrize("text", NEVER_FAILS)
def test_always_true_comparison_is_reported_as_constant(text: str) -> None:
    assert find_constant_comparison(parse_claim(text)) == "can never fail"
    assert find_constant_comparison(parse_claim(f"bandwidth(w) >= 5 and {text}")) == "can never fail"


@pytest.mark.parametrize("text", NEVER_HOLDS)
def test_never_true_comparison_is_reported_as_constant(text: str) -> None:
    assert find_constant_comparison(parse_claim(text)) == "can never hold"


@pytest.mark.parametrize("text", MAY_DIFFER)
def test_comparison_that_may_differ_is_accepted(text: str) -> None:
    assert find_constant_comparison(parse_claim(text)) == ""


def test_experiment_with_a_claim_that_cannot_fail_is_rejected() -> None:
    with pytest.raises(ExperimentError, match=r"expect\.C1\.claim can never fail, whatever is measured"):
        build_experiment(expect=[make_claim("latency_p99(write) / latency_p50(write) >= 1")])
