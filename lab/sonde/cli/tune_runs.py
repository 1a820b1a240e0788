# SPDX-License-Identifier: Apache-2.0
"""The runs of a tuning: by the engine on this machine, or by the simulator on a model."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sonde.conduct.run import RunResult, RunSetup, conduct_run, make_engine_failure
from sonde.experiments.simulated_executor import compute_system_changes, run_plan_in_simulator
from sonde.launch.engine import Engine
from sonde.launch.preload import find_preload_library, make_preload_environment, validate_iobuf_settings
from sonde.launch.simulator import SimulatedLauncher
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_OK, MachineError, SystemFileError, UserError, suggest_close_name
from sonde.model.experiment.description import Clients, Storage
from sonde.model.plan import Plan
from sonde.model.ranges import fold_names_into_ranges
from sonde.model.system import System
from sonde.model.system.changes import apply_changes
from sonde.model.units import parse_bytes
from sonde.store.summary import read_summary
from sonde.terminal.run_display import Display
from sonde.tune.description import TuneRequest
from sonde.tune.search import RejectedValueError
from sonde.tune.tuning import TuneVariant

_IOBUF_VARIABLE = "IOBUF_PARAMS"


@dataclass
class EngineTuneRunner:
    """Runs the engine on this machine."""

    setup: RunSetup
    display: Display
    phase: str  # the phase whose rate is tuned; empty: the geometric mean of all
    group: str
    simulated: bool = False
    count: int = 0
    expected: int = 0  # runs at most, for the display

    def measure_variant(self, variant: TuneVariant) -> float:
        """See `TuneRunner`."""
        self.count += 1
        self.display.begin_run(variant.title, self.count, max(self.count, self.expected), variant.plan)
        result = self._run_variant(variant)
        if result.exit_code != EXIT_OK:
            raise make_engine_failure(result.exit_code, result.text)
        return read_tuned_rate(result.folder, self.phase)

    def _run_variant(self, variant: TuneVariant) -> RunResult:
        setup = replace(self.setup, environment={**self.setup.environment, **_make_environment(variant.environment)})
        return conduct_run(
            variant.plan, setup, self.display.show_record_line, "tune", {"role": "tune", "group": self.group}
        )


@dataclass
class SimulatedTuneRunner(EngineTuneRunner):
    """Runs the simulator, with a different seed for each run."""

    launcher: SimulatedLauncher = field(default_factory=SimulatedLauncher)
    system: System | None = None
    simulated: bool = True
    _files: dict[str, Path] = field(default_factory=dict)

    def _run_variant(self, variant: TuneVariant) -> RunResult:
        launcher = replace(
            self.launcher, seed=self.launcher.seed + self.count, system=self._write_system(variant.model)
        )
        facts = {"role": "tune", "group": self.group}
        return run_plan_in_simulator(variant.plan, self.setup, self.display.show_record_line, launcher, "tune", facts)

    def _write_system(self, parameters: Mapping[str, str]) -> Path:
        """The system file with these parameters; each set of parameters is written once."""
        if not parameters or self.system is None:
            return self.launcher.system
        key = repr(sorted(parameters.items()))
        if key not in self._files:
            path = self.launcher.system.with_name(f"tune-{len(self._files)}.json")
            try:
                changes = find_model_changes(self.system, self.launcher.mount, parameters)
                write_file(path, apply_changes(self.system, changes).to_json())
            except SystemFileError as reason:
                raise RejectedValueError(str(reason).rstrip(".")) from None
            self._files[key] = path
        return self._files[key]


def find_model_changes(system: System, mount_name: str, parameters: Mapping[str, str]) -> dict[str, object]:
    """Changes of the system file: node.NAME for the nodes of the mount, file_system.stripe.NAME for its files."""
    names = system.list_part_ids("mounts")
    mount_id = mount_name if mount_name in names else next(
        (name for name in names if not mount_name or system.find_first_reference(name, "file_system") == mount_name), ""
    )  # fmt: skip
    if not mount_id:
        raise UserError(f'The system has no mount "{mount_name}".{suggest_close_name(mount_name, names)}')
    changes: dict[str, object] = {}
    nodes = [name for name in system.find_references(mount_id, "on") if system.get_part(name).kind == "nodes"]
    for parameter, value in parameters.items():
        owner, _, member = parameter.partition(".")
        if owner == "node":
            number = int(value) if value.isdigit() else value  # counts are whole numbers, sizes have a unit
            changes |= {
                f"nodes.{name}.model.{member}": number for name in fold_names_into_ranges(nodes).split(", ") if name
            }
        elif member == "stripe.count":
            count = "all" if value == "-1" else int(value)
            changes |= compute_system_changes(system, mount_id, Clients(), Storage(stripe_count=count))
        else:
            changes |= compute_system_changes(system, mount_id, Clients(), Storage(stripe_size=parse_bytes(value)))
    return changes


def read_tuned_rate(run_folder: Path, phase_id: str) -> float:
    """The rate of a stored run: of one phase, or the geometric mean of all that are measured. Raises UserError."""
    rates: dict[str, float] = {}
    for row in read_summary(run_folder).phases:
        rate = row.get("bytes_per_s") or row.get("ops_per_s")
        if row.get("measured") and row.get("done") and isinstance(rate, int | float) and rate > 0:
            rates[str(row["phase"])] = float(rate)
    if phase_id and phase_id not in rates:
        names = ", ".join(rates) or "none"
        raise UserError(f'--phase: the plan has no measured phase "{phase_id}"; there are {names}.')
    if not rates:
        raise UserError("The plan has no measured phase with a rate, so nothing can be tuned with it.")
    return rates[phase_id] if phase_id else math.exp(sum(map(math.log, rates.values())) / len(rates))


def require_phase(plan: Plan, phase_id: str) -> None:
    """Raises UserError when the plan lacks the phase."""
    names = [str(item.get("id") or item.get("op", "")) for item in plan.resolve()["phases"]]
    if phase_id and phase_id not in names:
        raise UserError(f'--phase: the plan has no phase "{phase_id}"; there are {", ".join(names)}.')


def require_possible_value(engine: Engine, plan: Plan, request: TuneRequest) -> None:
    """Raises UserError when the engine refuses the plan with each of the values, before anything is measured."""
    if request.tunable.kind != "plan":
        return
    refusal = ""
    for value in request.values:
        try:
            changed = plan.with_settings([f"{request.tunable.name}={value}"])
            with tempfile.TemporaryDirectory(prefix="sonde-tune-") as folder:
                file = Path(folder) / "plan.json"
                write_file(file, changed.to_json())
                engine.check_plan(file)
            return
        except MachineError:  # the plan may be right; the first run says what this machine lacks
            return
        except UserError as reason:
            refusal = str(reason)
    raise UserError(f"--try {request.tunable.id}: no value is possible; {refusal}")


def _make_environment(extra_variables: Mapping[str, str]) -> dict[str, str]:
    """The variables, with the preload library where its parameters are among them."""
    if _IOBUF_VARIABLE not in extra_variables:
        return dict(extra_variables)
    library = find_preload_library()
    validate_iobuf_settings(library, {_IOBUF_VARIABLE: extra_variables[_IOBUF_VARIABLE]})
    environment = make_preload_environment(library, **{_IOBUF_VARIABLE: extra_variables[_IOBUF_VARIABLE]})
    return {**extra_variables, "LD_PRELOAD": environment["LD_PRELOAD"]}
