# SPDX-License-Identifier: Apache-2.0
"""What lost segments of TCP do on a real machine.

TCP sends a lost segment again at once where others follow it, and after at least 0.2 s where none does (RFC 6298, with
the minimum of Linux). So an operation that waits for the segment takes 0.2 s longer, or hardly longer. The simulator
has the delay for small requests only. On a real machine operations on names and large transfers have it too, and each
kind of operation may have it or not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sonde.diagnose.chance_effects import ChanceEffect
from sonde.diagnose.experiment_plan import ScaledExperiment
from sonde.diagnose.hypotheses import Hypothesis
from sonde.diagnose.measurements import NODES
from sonde.diagnose.predictions import MODEL_SD, Prediction, interpolate_amounts
from sonde.stats.ranks import Floats

_LOSSY_LINKS = ("lossy-link",)
# A delay of 0.2 s is so many operations long that take 1 to 10 ms each (assumption; geometric mean).
_OPERATIONS_PER_DELAY = 60.0
# Probability that operations of a phase are not delayed, and error of the effect on others as a share of its logarithm
# (assumptions).
_UNDELAYED_SHARE, _DELAY_SD = 0.3, 0.5
# Log rate of a stream that loses segments and is not as fast as before. By the equation of RFC 5348, section 3.1,
# losses of 0.5 % to 3 % leave between all and a thousandth of the rate of a fast network: it depends on the size of
# segments, the round-trip time, and timeouts of 0.2 s. On a link without delay, single losses cost nothing.
_STREAM_MEAN, _STREAM_SD, _UNDELAYED_STREAM_SHARE = -3.0, 2.5, 0.5


def loses_segments(hypothesis: Hypothesis) -> bool:
    """Whether the network loses segments under a hypothesis."""
    return hypothesis.fault in _LOSSY_LINKS


def make_stream_effect(strength_count: int, error_sd: float) -> ChanceEffect:
    """The effect on the rate of a stream, at all strengths; `error_sd` is the error of a stream as fast as before."""
    return ChanceEffect(
        np.full(strength_count, _UNDELAYED_STREAM_SHARE),
        np.full(strength_count, error_sd),
        np.full(strength_count, _STREAM_MEAN),
        np.full(strength_count, float(np.hypot(_STREAM_SD, error_sd))),
    )


def delay_operations(hypothesis: Hypothesis, prediction: Prediction, experiment: ScaledExperiment) -> Prediction:
    """Returns the prediction with delays of all operations over a lossy link; operations on names go to another server
    than those on data, so a link of a storage server does not delay them."""
    if not loses_segments(hypothesis):
        return prediction
    is_client = hypothesis.group is not None and hypothesis.group.kind == "node"
    delayed = {
        phase.id for phase in experiment.description.rate_phases if is_client or phase.traits.get("op") != "metadata"
    }
    change = -np.log1p(_OPERATIONS_PER_DELAY * interpolate_amounts(hypothesis))
    return replace(
        prediction,
        chance_rates={
            **prediction.chance_rates,
            **{
                phase: _add_delay(change, mean, sd, prediction.chance_rates.get(phase))
                for phase, (mean, sd) in prediction.rates.items()
                if phase in delayed
            },
        },
        vectors={
            key: replace(item, chance=_add_delay(change, item.inside, item.inside_sd, item.chance))
            if key[1] == NODES and key[0] in delayed
            else item
            for key, item in prediction.vectors.items()
        },
    )


def _add_delay(change: Floats, mean: Floats, sd: Floats, effect: ChanceEffect | None) -> ChanceEffect:
    """Returns the larger one of the delay and the simulated effect, with the errors of both."""
    simulated = effect.mean if effect is not None else mean
    unaffected_sd = effect.unaffected_sd if effect is not None else np.maximum(sd, MODEL_SD)
    affected = np.minimum(change, simulated)
    share = np.full(len(affected), _UNDELAYED_SHARE)
    return ChanceEffect(share, unaffected_sd, affected, np.hypot(unaffected_sd, _DELAY_SD * affected))
