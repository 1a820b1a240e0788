# SPDX-License-Identifier: Apache-2.0
"""Measures stored runs: of an experiment of the library, and of any plan by the rates of single targets.

Rates of single targets relative to their peers speak for slow parts, whatever else the runs did. Records name targets
as the file system does; measurements have the ids of the system file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sonde.diagnose.description import DiagnosisExperiment
from sonde.diagnose.likelihood import ExperimentResult
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import TARGETS, RunMeasurement, measure_record, subtract_reference
from sonde.diagnose.real_effects import REAL_EFFECT_SD
from sonde.model.errors import UserError
from sonde.model.record import RECORD_FILE, RecordReader, read_record

# Experiment whose predictions for single targets hold for other plans too, by the operation of a phase.
_TARGET_EXPERIMENT, _OPERATIONS = "every-target", ("write", "read")
# Error of the predicted slowness of a target: other plans have other numbers of requests in its queue.
_PLAN_DIFFERENCE_SD = 0.7
_MIN_ACCESSED_TARGET_SHARE = 0.8  # of the targets that a phase must have accessed


def find_effect_sd(run_folder: Path) -> float:
    """Error of simulated effects in a run, as a share of them: zero for a run on the model."""
    line = _read_run_record(run_folder).run
    return 0.0 if line is not None and line.simulated else REAL_EFFECT_SD


def measure_stored_run(
    run_folder: Path, experiment: DiagnosisExperiment, vector_kinds: Sequence[str], machine: DiagnosedMachine
) -> RunMeasurement:
    """Measures the phases of an experiment. Raises UserError for a record without them or that cannot be read."""
    record = _read_run_record(run_folder)
    phases = [phase.id for phase in experiment.phases]
    operations = [phase.id for phase in experiment.phases if phase.operations]
    measurement = measure_record(record, phases, operations, vector_kinds)
    if not measurement.rates:
        raise UserError(f"Run {run_folder.name} has none of the phases {', '.join(phases)} of {experiment.id}.")
    return measurement.rename_targets(machine.recorded_targets)


def measure_relative_target_rates(
    run_folder: Path, reference_folder: Path, machine: DiagnosedMachine
) -> ExperimentResult | None:
    """Returns rates of single targets relative to their peers, without rates of phases; None when a run has none.

    Raises UserError for a record that cannot be read.
    """
    measured, normal = (
        _measure_last_phase_of_each_operation(folder).rename_targets(machine.recorded_targets)
        for folder in (run_folder, reference_folder)
    )
    ratio = subtract_reference(measured, normal)
    expected = set(machine.targets)
    vectors = {
        key: values
        for key, values in ratio.vectors.items()
        if values.keys() <= expected and len(values) >= _MIN_ACCESSED_TARGET_SHARE * len(expected)
    }
    return (
        ExperimentResult(
            _TARGET_EXPERIMENT,
            (RunMeasurement({}, vectors),),
            part_sd=_PLAN_DIFFERENCE_SD,
            effect_sd=find_effect_sd(run_folder),
        )
        if vectors
        else None
    )


def _measure_last_phase_of_each_operation(run_folder: Path) -> RunMeasurement:
    """Returns the last phase of each operation, by the name of the operation."""
    record = _read_run_record(run_folder)
    measurement = measure_record(record, record.phases, (), (TARGETS,))
    vectors = {}
    for (phase, kind), values in measurement.vectors.items():
        begin = record.phases[phase].begin
        if begin.direct and begin.op in _OPERATIONS:  # the predictions are for requests without client caches
            vectors[begin.op, kind] = values
    return RunMeasurement({}, vectors)


def _read_run_record(run_folder: Path) -> RecordReader:
    try:
        return read_record(run_folder / RECORD_FILE)
    except OSError as error:
        raise UserError(f"The record of run {run_folder.name} cannot be read: {error.strerror}.") from None
