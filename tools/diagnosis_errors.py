# SPDX-License-Identifier: Apache-2.0
"""Checks the errors of predictions between simulated strengths: each simulated strength is left out, predicted from the
others, and compared with its simulation in units of the stated error. Trials play no part.

Usage: .venv/bin/python tools/diagnosis_errors.py [--drawn N]. Simulations are shared with diagnosis_calibration.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tools")]

from diagnosis_trials import list_machines  # noqa: E402
from sonde.diagnose.diagnosis_model import simulate_faults  # noqa: E402
from sonde.diagnose.experiment_plan import scale_experiment_to_machine  # noqa: E402
from sonde.diagnose.hypotheses import FAULT, list_hypotheses  # noqa: E402
from sonde.diagnose.library import list_diagnosis_experiments  # noqa: E402
from sonde.diagnose.machine_map import DiagnosedMachine  # noqa: E402
from sonde.diagnose.predictions import STRENGTH_STEP, SimulatedEffect, interpolate_effects  # noqa: E402
from sonde.diagnose.simulation import Simulator  # noqa: E402

# Smaller effects are within the fixed errors.
_MIN_RATE, _MIN_PART = 0.05, 0.1
_MIN_STRENGTHS = 4  # three remain, of which the one in the middle states the error


def list_deviations(machine: DiagnosedMachine) -> Iterator[tuple[str, float]]:
    """Yields deviations of rates and parts at strengths that were left out, in units of the stated error."""
    simulator = Simulator(machine, ROOT / "build" / "diagnosis" / "simulations")
    scaled = [scale_experiment_to_machine(item, machine) for item in list_diagnosis_experiments()]
    experiments = [item for item in scaled if not item.description.is_contrast]
    faults = [item for item in list_hypotheses(machine, ())
              if item.kind == FAULT and len(item.strength_grid.amounts) >= _MIN_STRENGTHS]  # fmt: skip
    effects, _, refused = simulate_faults(faults, experiments, simulator, lambda done, total: None)
    for hypothesis in faults:
        for experiment in experiments if hypothesis.id not in refused else ():
            by_strength = effects[hypothesis.id, experiment.id]
            for left_out in range(1, len(by_strength) - 1):
                yield from _compare_strength(by_strength, hypothesis.strength_grid.amounts, left_out)


def _compare_strength(
    effects: Sequence[SimulatedEffect], strength_amounts: Sequence[str], left_out: int
) -> Iterator[tuple[str, float]]:
    indices = [index for index in range(len(strength_amounts)) if index != left_out]
    prediction = interpolate_effects(
        [effects[index] for index in indices], [strength_amounts[index] for index in indices]
    )
    logs = np.log([float(strength_amounts[index]) for index in indices])
    position = (
        float(np.interp(np.log(float(strength_amounts[left_out])), logs, np.arange(len(indices)))) * STRENGTH_STEP
    )

    def interpolate_at_position(values: np.ndarray) -> float:
        return float(np.interp(position, np.arange(len(values)), values))

    for phase, (mean, sd) in prediction.rates.items():
        value = effects[left_out].rates[phase][0]
        if abs(value) > _MIN_RATE:
            yield "rates", (value - interpolate_at_position(mean)) / interpolate_at_position(sd)
    for key, vector in prediction.vectors.items():
        value = effects[left_out].vectors[key][0]
        if abs(value) > _MIN_PART:
            yield "parts", (value - interpolate_at_position(vector.inside)) / interpolate_at_position(vector.inside_sd)


def main() -> int:
    """Prints the root mean square of the deviations, which is 1 for errors of the right size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drawn", type=int, default=2, help="machines drawn at random")
    options = parser.parse_args()
    deviations: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="sonde-diagnosis-") as folder:
        for _, machine in list_machines(options.drawn, Path(folder)):
            for kind, value in list_deviations(machine):
                deviations.setdefault(kind, []).append(value)
    for kind, values in deviations.items():
        units = np.abs(values)
        print(
            f"{kind}: {len(units)} strengths left out, root mean square {np.sqrt(np.mean(units**2)):.2f},"
            f" {100 * np.mean(units < 1):.0f} % below 1, {100 * np.mean(units < 2):.0f} % below 2"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
