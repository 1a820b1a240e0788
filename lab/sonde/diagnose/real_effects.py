# SPDX-License-Identifier: Apache-2.0
"""How effects of a fault on a real machine deviate from the simulated ones.

The model has the rates of a system file. On a real machine parts share processors, caches absorb requests, and a slow
part gives others more time, so a simulated effect has an error in proportion. And a fault of a part need not concern
every operation: a disk that transfers few bytes may serve small requests as before, and a cache may hide slow writes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import log

import numpy as np

from sonde.diagnose.experiment_plan import ScaledExperiment
from sonde.diagnose.predictions import Prediction, VectorPrediction, fill_missing_measurements_as_healthy
from sonde.stats.ranks import Floats

# Error of a simulated effect on a real machine, as a share of its logarithm (assumption; development trials with real
# faults deviated by a third).
REAL_EFFECT_SD = 0.35
# Where a phase is slowed, its requests wait for few parts: values of parts that the fault does not touch vary by this
# share of the effect on the phase (assumption; same trials).
_UNTOUCHED_SD = 0.15
# A fault of a part spares an operation of an experiment with this probability (assumption).
_SPARED_SHARE = 0.2


def add_real_effect_error(prediction: Prediction, effect_sd: float) -> Prediction:
    """Returns the prediction with an error of `effect_sd` times each effect added; zero adds none."""
    if not effect_sd:
        return prediction
    return replace(
        prediction,
        rates={phase: (mean, np.hypot(sd, effect_sd * mean)) for phase, (mean, sd) in prediction.rates.items()},
        vectors={
            key: VectorPrediction(
                item.inside,
                item.outside,
                np.hypot(item.inside_sd, effect_sd * item.inside),
                np.hypot(np.hypot(item.outside_sd, effect_sd * item.outside), _find_untouched_sd(prediction, key[0])),
                item.chance and item.chance.add_relative_error(effect_sd),
            )
            for key, item in prediction.vectors.items()
        },
        chance_rates={phase: effect.add_relative_error(effect_sd) for phase, effect in prediction.chance_rates.items()},
    )


def _find_untouched_sd(prediction: Prediction, phase_id: str) -> Floats:
    return _UNTOUCHED_SD * np.abs(prediction.rates[phase_id][0]) if phase_id in prediction.rates else np.zeros(1)


def list_partial_effects(
    prediction: Prediction, healthy_prediction: Prediction, experiment: ScaledExperiment
) -> list[tuple[float, Prediction]]:
    """Returns log probabilities and predictions for each set of operations that the fault spares."""
    operations = {phase.id: phase.traits.get("op", "") for phase in experiment.description.rate_phases}
    kinds = list(dict.fromkeys(operations[phase] for phase in prediction.rates))
    strength_count = next(len(mean) for mean, _ in prediction.rates.values())
    effects = []
    for spared in product((False, True), repeat=len(kinds)):
        is_spared = dict(zip(kinds, spared, strict=True))
        affected = replace(
            prediction,
            rates={phase: item for phase, item in prediction.rates.items() if not is_spared[operations[phase]]},
            vectors={key: item for key, item in prediction.vectors.items() if not is_spared[operations[key[0]]]},
            chance_rates={
                phase: item for phase, item in prediction.chance_rates.items() if not is_spared[operations[phase]]
            },
        )
        share = sum(log(_SPARED_SHARE if item else 1 - _SPARED_SHARE) for item in spared)
        effects.append((share, fill_missing_measurements_as_healthy(affected, healthy_prediction, strength_count)))
    return effects
