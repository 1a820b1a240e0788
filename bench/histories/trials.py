# SPDX-License-Identifier: Apache-2.0
"""Trials of a detector on the noise of real histories: how often it is wrong, how soon it is right.

Each history of 100 probes is drawn from residuals (of a running median over 31 runs) in blocks of five neighbors; a
probe is one run or the median of three drawn independently. At probe 60 the rate falls by a known share. The detector
sees one probe after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats
from sonde.trends.budget import RUNS_BEFORE_FIRST_ANSWER, resample_noise
from sonde.trends.detectors import Alarm, DetectorSettings
from sonde.trends.watch import find_alarms_in_rows

PROBES, STEP_AT, SOON = 100, 60, 10
BLOCK, AROUND = 5, 31
DROPS = (0.10, 0.20, 0.30, 0.70)


@dataclass(frozen=True)
class TrialCell:
    """Share of the steps found within ten probes, and the median number of probes that took (NaN when none)."""

    detected_share: float
    delay: float


@dataclass(frozen=True)
class TrialOutcome:
    """False alarms per 100 watched probes, and one cell for each drop."""

    false_alarms: float
    gate_share: float
    cells: dict[float, TrialCell]


def study_noise(rates: ArrayLike) -> Floats:
    """The logarithms less their running median: the noise that the study drew from."""
    values = np.log(np.asarray(rates, dtype=float))
    half = AROUND // 2
    near = [np.median(values[max(0, index - half) : index + half + 1]) for index in range(values.size)]
    residuals: Floats = values - np.array(near, dtype=float)
    return residuals


def resample_probes(noises: Sequence[Floats], rows: int, repeats: int, random: np.random.Generator) -> Floats:
    """`rows` histories from each noise."""
    medians = [
        np.median([resample_noise(noise, rows, PROBES, random, BLOCK) for _ in range(repeats)], axis=0)
        for noise in noises
    ]
    return np.concatenate(medians)


def run_trials(
    noises: Sequence[Floats], settings: Sequence[DetectorSettings], rows: int, repeats: int, seed: int
) -> TrialOutcome:
    """Null histories and stepped ones, `rows` from each noise, watched with the settings of that noise."""
    random = np.random.default_rng(seed)
    null = resample_probes(noises, rows, repeats, random)
    alarms = _find_alarms(null, settings, rows)
    watched = null.shape[0] * (PROBES - RUNS_BEFORE_FIRST_ANSWER)
    cells = {}
    for drop in DROPS:
        stepped = resample_probes(noises, rows, repeats, random)
        stepped[:, STEP_AT:] += np.log(1 - drop)
        cells[drop] = _make_trial_cell(_find_alarms(stepped, settings, rows), stepped.shape[0])
    gate = sum(alarm.detector == "collapse" for alarm in alarms) / max(1, len(alarms))
    return TrialOutcome(100 * len(alarms) / watched, gate, cells)


def _find_alarms(histories: Floats, settings: Sequence[DetectorSettings], rows: int) -> list[Alarm]:
    alarms: list[Alarm] = []
    owners = np.repeat(np.arange(len(settings)), rows)
    for setting in dict.fromkeys(settings):
        setting_rows = np.flatnonzero(
            np.isin(owners, [index for index, other in enumerate(settings) if other == setting])
        )
        alarms += [
            replace(alarm, history=int(setting_rows[alarm.history]))
            for alarm in find_alarms_in_rows(histories[setting_rows], setting)
        ]
    return alarms


def _make_trial_cell(alarms: Sequence[Alarm], histories: int) -> TrialCell:
    """The first alarm about a drop, raised in the ten probes from the step on, of each history."""
    delays: dict[int, int] = {}
    for alarm in alarms:
        if STEP_AT <= alarm.noticed < STEP_AT + SOON and alarm.after < alarm.before:
            delays.setdefault(alarm.history, alarm.noticed - STEP_AT + 1)
    delay = float(np.median(list(delays.values()))) if delays else float("nan")
    return TrialCell(len(delays) / histories, delay)
