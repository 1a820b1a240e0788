# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of probabilities after results."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from sonde.diagnose.hypotheses import Hypothesis
from sonde.diagnose.posterior import Posterior, compute_entropy_bits


def make_hypothesis(name: str, prior: float, members: tuple[str, ...] = ("",), category: str = "fault") -> Hypothesis:
    return Hypothesis(name, "fault", name, category, members, prior=prior)


def test_bayes_rule_for_two_hypotheses() -> None:
    prior = Posterior.from_priors([make_hypothesis("a", 0.2), make_hypothesis("b", 0.8)], [np.ones(1)] * 2)
    after = prior.multiply_by_densities([np.array([[log(0.9)]]), np.array([[log(0.1)]])])
    assert after.hypothesis_probabilities.tolist() == pytest.approx([0.18 / 0.26, 0.08 / 0.26])


def test_prior_is_divided_among_parts_and_strengths() -> None:
    hypotheses = [make_hypothesis("a", 0.5, ("t0", "t1", "t2", "t3")), make_hypothesis("b", 0.5)]
    prior = Posterior.from_priors(hypotheses, [np.full(2, 0.5), np.ones(1)])
    density = np.log(np.array([[1.0, 1.0, 9.0, 1.0], [1.0, 1.0, 1.0, 1.0]]))
    after = prior.multiply_by_densities([density, np.zeros((1, 1))])
    # a: 0.5 / 8 * (7 + 9) = 1.0 against b: 0.5
    assert after.hypothesis_probabilities.tolist() == pytest.approx([2 / 3, 1 / 3])
    assert after.compute_part_probabilities(0) == pytest.approx({"t0": 1 / 8, "t1": 1 / 8, "t2": 5 / 8, "t3": 1 / 8})
    assert after.compute_strength_probabilities(0).tolist() == pytest.approx([0.75, 0.25])


def test_tiny_densities_do_not_underflow() -> None:
    prior = Posterior.from_priors([make_hypothesis("a", 0.5), make_hypothesis("b", 0.5)], [np.ones(1)] * 2)
    after = prior.multiply_by_densities([np.array([[-5000.0]]), np.array([[-5001.0]])])
    assert after.hypothesis_probabilities[0] == pytest.approx(1 / (1 + np.exp(-1)))


def test_entropy_of_four_equal_parts_is_two_bits() -> None:
    assert compute_entropy_bits(np.log(np.full(4, 0.25))) == pytest.approx(2)
    assert compute_entropy_bits(np.array([0.0, -np.inf])) == 0


def test_categories_sum_their_hypotheses() -> None:
    items = [make_hypothesis("a", 0.5), make_hypothesis("b", 0.3, category="load"), make_hypothesis("c", 0.2)]
    assert Posterior.from_priors(items, [np.ones(1)] * 3).sum_probabilities_by_category() == pytest.approx(
        {"fault": 0.7, "load": 0.3}
    )
