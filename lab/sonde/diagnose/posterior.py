# SPDX-License-Identifier: Apache-2.0
"""Probabilities of hypotheses and of the parts that they are about, after any number of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sonde.diagnose.hypotheses import Hypothesis
from sonde.stats.ranks import Floats


@dataclass(frozen=True)
class Posterior:
    """For each hypothesis the log weights of its strengths (first axis) and members (second axis), normalized over all.

    The prior of a hypothesis is divided equally among its members, and among its strengths by their shares.
    """

    hypotheses: tuple[Hypothesis, ...]
    log_weights: tuple[Floats, ...]

    @classmethod
    def from_priors(cls, hypotheses: Sequence[Hypothesis], prior_weights: Sequence[Floats]) -> Posterior:
        """The posterior before any result."""
        weights = []
        for hypothesis, share in zip(hypotheses, prior_weights, strict=True):
            members = len(hypothesis.members)
            weights.append(np.log(hypothesis.prior / members * share)[:, None] + np.zeros(members))
        return cls(tuple(hypotheses), tuple(weights)).normalize()

    def normalize(self) -> Posterior:
        """Returns the posterior with a sum of 1."""
        total = np.logaddexp.reduce([np.logaddexp.reduce(item, axis=None) for item in self.log_weights])
        return Posterior(self.hypotheses, tuple(item - total for item in self.log_weights))

    def multiply_by_densities(self, log_densities: Sequence[Floats]) -> Posterior:
        """Returns the posterior after results with these log densities, one array for each hypothesis."""
        pairs = zip(self.log_weights, log_densities, strict=True)
        return Posterior(self.hypotheses, tuple(weight + density for weight, density in pairs)).normalize()

    def compute_entropies_after_results(self, log_densities: Sequence[Floats]) -> Floats:
        """Entropy after each of several alternative results, whose densities are the first axis of the arrays."""
        pairs = zip(self.log_weights, log_densities, strict=True)
        logs = np.concatenate([np.logaddexp.reduce(weight + density, axis=1) for weight, density in pairs], axis=1)
        logs = logs - np.logaddexp.reduce(logs, axis=1)[:, None]
        return np.array([compute_entropy_bits(row) for row in logs])

    @property
    def hypothesis_probabilities(self) -> Floats:
        """Probability of each hypothesis, over all strengths and members."""
        return np.array([float(np.exp(np.logaddexp.reduce(item, axis=None))) for item in self.log_weights])

    def compute_part_probabilities(self, hypothesis_index: int) -> dict[str, float]:
        """Probability of each part of a hypothesis, given that hypothesis."""
        logs = np.logaddexp.reduce(self.log_weights[hypothesis_index], axis=0)
        shares = np.exp(logs - np.logaddexp.reduce(logs))
        return dict(zip(self.hypotheses[hypothesis_index].members, (float(share) for share in shares), strict=True))

    def compute_strength_probabilities(self, hypothesis_index: int) -> Floats:
        """Probability of each strength of a hypothesis, given that hypothesis."""
        logs = np.logaddexp.reduce(self.log_weights[hypothesis_index], axis=1)
        return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))

    @property
    def entropy_bits(self) -> float:
        """Entropy over hypotheses and their members."""
        return compute_entropy_bits(np.concatenate([np.logaddexp.reduce(item, axis=0) for item in self.log_weights]))

    def sum_probabilities_by_category(self) -> Mapping[str, float]:
        """Probability of each category of causes: load or fault, software or settings."""
        sums: dict[str, float] = {}
        for hypothesis, probability in zip(self.hypotheses, self.hypothesis_probabilities, strict=True):
            sums[hypothesis.category] = sums.get(hypothesis.category, 0.0) + float(probability)
        return sums


def compute_entropy_bits(log_probabilities: Floats) -> float:
    """Entropy of a distribution that is given by logarithms, in bits."""
    probabilities = np.exp(log_probabilities)
    finite = np.where(probabilities > 0, log_probabilities, 0.0)
    return float(-np.sum(probabilities * finite) / np.log(2))
