# SPDX-License-Identifier: Apache-2.0
"""Rates of nodes that a fault of a server, target or router makes uneven, although no node is faulty.

Which tasks wait for the slow part differs from run to run. In simulations of a lost server, all nodes of 4 of 9 runs
were equally slow, and in 5 runs half of them were 30 times as fast as the others; behind a slow link, one of four nodes
of some runs was slow alone. So a run has even or uneven nodes, and one or few simulated seeds tell the spread of uneven
nodes badly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from sonde.diagnose.chance_effects import MAX_UNAFFECTED_LOG_RATIO
from sonde.stats.ranks import Floats

# The prior of the share of runs with uneven nodes (Jeffreys).
_PRIOR_COUNT = 0.5
# Spread of uneven nodes as a share of the effect on the rate of the phase, where no simulated seed had a larger one:
# half of the nodes are faster than the median by half of the effect, and half are slower.
_SPREAD_OF_EFFECT = 0.5
# The spread is known to a factor of two: probabilities of multiples of it.
_SPREAD_MULTIPLES = ((0.25, 0.5), (0.5, 1.0), (0.25, 2.0))


@dataclass(frozen=True)
class UnevenNodes:
    """Share of the runs in which nodes are uneven, and for each strength their standard deviation around the median."""

    share: float
    sd: Floats

    def list_alternatives(self, even_sd: Floats) -> tuple[tuple[float, Floats], ...]:
        """Probabilities of the errors that all nodes of a run have; `even_sd` is that of even nodes."""
        uneven = ((self.share * part, np.hypot(even_sd, multiple * self.sd)) for part, multiple in _SPREAD_MULTIPLES)
        return (1 - self.share, even_sd), *uneven

    @property
    def root_mean_square(self) -> Floats:
        """The standard deviation of uneven nodes over all multiples of their spread."""
        return np.asarray(self.sd * sqrt(sum(part * multiple**2 for part, multiple in _SPREAD_MULTIPLES)))


def is_uneven(values: Sequence[float], log_effect: float) -> bool:
    """Whether nodes of a simulated run, which has no noise, differ as much as uneven nodes do, or rather as even ones:
    `log_effect` is the change of the rate of the phase."""
    threshold = max(MAX_UNAFFECTED_LOG_RATIO, _SPREAD_OF_EFFECT / 2 * abs(log_effect))
    return bool(np.max(np.abs(values), initial=0.0) > threshold)


def predict_uneven_nodes(uneven_runs: int, all_runs: int, simulated_sd: Floats, log_effect: Floats) -> UnevenNodes:
    """Returns how nodes differ after `uneven_runs` of `all_runs` simulated ones did, with this standard deviation.
    `log_effect` is the change of the rate of the phase."""
    share = (uneven_runs + _PRIOR_COUNT) / (all_runs + 2 * _PRIOR_COUNT)
    return UnevenNodes(share, np.maximum(simulated_sd, _SPREAD_OF_EFFECT * np.abs(log_effect)))
