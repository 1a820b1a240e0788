# SPDX-License-Identifier: Apache-2.0
"""How effects of a fault on a real machine deviate from the simulated ones.

The model has the rates of a system file. On a real machine parts share processors, caches absorb requests, and a slow
part gives others more time, so a simulated effect has an error in proportion. And a fault of a part need not concern
every operation: a disk that transfers few bytes may serve small requests as before, and a cache may hide slow writes.

The simulator has operations on names and small requests wait for servers and messages only. On a real machine a client
spends processor time on each of them, so a slow node is slow at them too. Where clients cache names under rights of the
server (Ceph, Lustre), a node waits until the node that accessed a name last has returned its rights. So a slow node
makes a peer as slow: the one that accesses its files next.

A slow target of the model slows each request. A server that stops and resumes delays those that arrive in between, and
serves others as before, or faster, because fewer are queued. So the mean time of its requests rises, the median does
not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import log

import numpy as np

from sonde.diagnose.description import MeasuredPhase
from sonde.diagnose.experiment_plan import ScaledExperiment
from sonde.diagnose.hypotheses import Hypothesis
from sonde.diagnose.lost_segments import delay_operations
from sonde.diagnose.measurements import NODES, TARGET_MEDIANS
from sonde.diagnose.predictions import (
    Prediction,
    VectorPrediction,
    fill_missing_measurements_as_healthy,
    interpolate_amounts,
)
from sonde.stats.ranks import Floats

# Error of a simulated effect on a real machine, as a share of its logarithm (assumption; development trials with real
# faults deviated by a third).
REAL_EFFECT_SD = 0.35
# Where a phase is slowed, its requests wait for few parts: values of parts that the fault does not touch vary by this
# share of the effect on the phase (assumption; same trials).
_UNTOUCHED_SD = 0.15
# A fault of a part spares an operation of an experiment with this probability (assumption).
_SPARED_SHARE = 0.2
# Fractions of the time of a small operation that a healthy client works for it (assumption: between little and half;
# clients in user space are near the upper end).
_CLIENT_FRACTIONS = (0.1, 0.4)
_SLOW_CLIENTS = ("slow-node",)
# Clients whose peers wait for them are as probable as others (assumption).
_WAITING_PEER_SHARE = 0.5
# A target is slow at some of its requests only with this probability. Then the median of its requests varies by this
# share of the effect on their mean (assumptions).
_SOME_REQUESTS_SHARE, _MEDIAN_OF_SOME_SD = 0.3, 0.5
_SLOW_TARGETS = ("slow-target",)


def list_real_effects(
    hypothesis: Hypothesis,
    prediction: Prediction,
    healthy_prediction: Prediction,
    experiment: ScaledExperiment,
    effect_sd: float,
) -> list[tuple[float, Prediction]]:
    """Returns log probabilities and predictions of what a fault does on a real machine. `effect_sd` as in
    add_real_effect_error; zero leaves the prediction as it is."""
    if not effect_sd:
        return [(0.0, prediction)]
    if hypothesis.group is None or experiment.description.is_contrast:
        return [(0.0, add_real_effect_error(prediction, effect_sd))]
    return [
        (log_share + some_share + spared_share, effect)
        for log_share, slowed in _list_effects_on_small_operations(hypothesis, prediction, experiment)
        for some_share, delayed in _list_effects_on_some_requests(
            hypothesis, add_real_effect_error(delay_operations(hypothesis, slowed, experiment), effect_sd)
        )
        for spared_share, effect in list_partial_effects(delayed, healthy_prediction, experiment)
    ]


def predict_slowest_real_effect(
    hypothesis: Hypothesis, prediction: Prediction, experiment: ScaledExperiment, effect_sd: float
) -> Prediction:
    """Returns the prediction with the largest effect on small operations, of the slow node and of a peer that may wait
    for it, and with the error of real effects."""
    if not effect_sd:
        return prediction
    slowest = _list_effects_on_small_operations(hypothesis, prediction, experiment)[-1][1]
    offsets = _find_waiting_peers(experiment)
    vectors = {
        key: replace(item, peer_offset=offsets.get(key[0], 0) if key[1] == NODES and slowest is not prediction else 0)
        for key, item in slowest.vectors.items()
    }
    slowest = delay_operations(hypothesis, replace(slowest, vectors=vectors), experiment)
    return add_real_effect_error(slowest, effect_sd)


def _list_effects_on_small_operations(
    hypothesis: Hypothesis, prediction: Prediction, experiment: ScaledExperiment
) -> list[tuple[float, Prediction]]:
    """Log probabilities and predictions for each fraction of the time that a client works for a small operation, with
    and without a peer that waits for it; the largest fraction without one is last."""
    phases = [phase.id for phase in experiment.description.rate_phases if _is_small_operation(phase)]
    if hypothesis.fault not in _SLOW_CLIENTS or not phases:
        return [(0.0, prediction)]
    factors = interpolate_amounts(hypothesis)
    slowed = [
        _slow_phases_of_node(prediction, phases, -np.log1p(fraction * (factors - 1))) for fraction in _CLIENT_FRACTIONS
    ]
    offsets = _find_waiting_peers(experiment)
    share = -log(len(_CLIENT_FRACTIONS))
    if not offsets:
        return [(share, item) for item in slowed]
    waiting = [_slow_peers_of_node(item, offsets, experiment.nodes) for item in slowed]
    return [
        *((share + log(_WAITING_PEER_SHARE), item) for item in waiting),
        *((share + log(1 - _WAITING_PEER_SHARE), item) for item in slowed),
    ]


def _list_effects_on_some_requests(hypothesis: Hypothesis, prediction: Prediction) -> list[tuple[float, Prediction]]:
    """Log probabilities and predictions of a target that is slow at all requests, and at some of them."""
    if hypothesis.fault not in _SLOW_TARGETS or not any(kind == TARGET_MEDIANS for _, kind in prediction.vectors):
        return [(0.0, prediction)]
    return [
        (log(1 - _SOME_REQUESTS_SHARE), prediction),
        (log(_SOME_REQUESTS_SHARE), _keep_medians_of_target(prediction)),
    ]


def _keep_medians_of_target(prediction: Prediction) -> Prediction:
    """Returns the prediction with medians of the slow target near those of its peers."""
    vectors = {
        key: replace(
            item,
            inside=np.zeros_like(item.inside),
            outside=np.zeros_like(item.outside),
            inside_sd=np.hypot(item.outside_sd, _MEDIAN_OF_SOME_SD * np.abs(item.inside)),
        )
        if key[1] == TARGET_MEDIANS
        else item
        for key, item in prediction.vectors.items()
    }
    return replace(prediction, vectors=vectors)


def _is_small_operation(phase: MeasuredPhase) -> bool:
    """Whether a client spends much of the time of an operation itself: it transfers few bytes or none."""
    return phase.traits.get("op") == "metadata" or phase.traits.get("size") == "small"


def _find_waiting_peers(experiment: ScaledExperiment) -> dict[str, int]:
    """By phase on names: which peer of a node accesses names that this node accessed last, as the number of positions
    after it. Phases in which each node accesses names that it accessed last itself are left out."""
    offsets: dict[str, int] = {}
    last_shift = 0
    for phase in experiment.plan.get("phases", ()) if "meta" in experiment.plan and experiment.nodes > 1 else ():
        shift = phase.get("shift", {})
        nodes = int(shift.get("n", 0)) if shift.get("by") == "nodes" else 0
        if offset := (last_shift - nodes) % experiment.nodes:
            offsets[phase["id"]] = offset
        last_shift = nodes
    return offsets


def _slow_peers_of_node(prediction: Prediction, peer_offsets: Mapping[str, int], node_count: int) -> Prediction:
    """Returns the prediction with a peer as slow as the slow node. Values are relative to the median of all nodes."""
    vectors = dict(prediction.vectors)
    for key, item in prediction.vectors.items():
        if key[1] == NODES and key[0] in peer_offsets:
            change = item.inside - item.outside
            middle = change * (1.0 if node_count < 4 else 0.5 if node_count == 4 else 0.0)
            vectors[key] = replace(
                item,
                inside=item.outside + change - middle,
                outside=item.outside - middle,
                peer_offset=peer_offsets[key[0]],
            )
    return replace(prediction, vectors=vectors)


def _slow_phases_of_node(prediction: Prediction, phase_ids: Sequence[str], change: Floats) -> Prediction:
    """Returns the prediction with phases, and the slow node in them, changed at least so much. All tasks have the same
    work, so the slow node determines the time of a phase."""
    rates = {
        phase: (np.minimum(mean, change), sd) if phase in phase_ids else (mean, sd)
        for phase, (mean, sd) in prediction.rates.items()
    }
    vectors = {
        key: replace(item, inside=np.minimum(item.inside, change)) if key[0] in phase_ids and key[1] == NODES else item
        for key, item in prediction.vectors.items()
    }
    return replace(prediction, rates=rates, vectors=vectors)


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
                item.peer_offset,
                item.uneven,
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
