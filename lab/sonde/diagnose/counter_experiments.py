# SPDX-License-Identifier: Apache-2.0
"""What somebody sees who reads counters for an experiment, under each cause: segments that TCP sends again in a stream,
and work of servers for others."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.diagnose.noise import NoiseModel

# Assumptions: a cause shows its observation this often; there are other reasons for one this often. Others load servers
# as often as they slow runs.
_SHOWN_BY_CAUSE, _SHOWN_BY_CHANCE = 0.95, 0.05
_LOAD_OBSERVATIONS = ("loaded-metadata", "loaded-targets")


def compute_chance_of_observation(observation_name: str, observations_of_cause: Sequence[str]) -> float:
    """Probability that counters show an observation under a cause that shows these."""
    if observation_name in observations_of_cause:
        return _SHOWN_BY_CAUSE
    return NoiseModel.busy_share if observation_name in _LOAD_OBSERVATIONS else _SHOWN_BY_CHANCE
