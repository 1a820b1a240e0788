# SPDX-License-Identifier: Apache-2.0
"""Runs of replays: by the engine on this machine, or by the simulator on a model."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sonde.conduct.run import RunResult, RunSetup, conduct_run, make_engine_failure
from sonde.experiments.locations import require_existing_directory
from sonde.experiments.simulated_executor import run_plan_in_simulator
from sonde.experiments.single_run import prepare_simulation
from sonde.launch.engine import find_engine
from sonde.launch.simulator import SimulatedLauncher
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_OK, UserError
from sonde.model.plan import Plan
from sonde.model.system import read_system
from sonde.store.archive import Archive
from sonde.terminal.run_display import Display, make_display
from sonde.terminal.screen import get_messages_console

SIMULATED_TARGET = "/simulated"


@dataclass
class ReplayRunner:
    """Executes plans of replays one after the other. `folder` holds their lists of operations until the runner is
    closed."""

    setup: RunSetup
    display: Display
    folder: Path
    target: str
    launcher: SimulatedLauncher | None = None
    count: int = 0
    expected: int = 1

    def run_replay(self, plan: Plan, run_name: str, extra_run_facts: Mapping[str, Any]) -> RunResult:
        """Raises UserError when the replay does not end well."""
        self.count += 1
        self.display.begin_run(run_name, self.count, max(self.count, self.expected), plan)
        if self.launcher is None:
            result = conduct_run(plan, self.setup, self.display.show_record_line, run_name, extra_run_facts)
        else:
            launcher = replace(self.launcher, seed=self.launcher.seed + self.count)
            result = run_plan_in_simulator(
                plan, self.setup, self.display.show_record_line, launcher, run_name, extra_run_facts
            )
        if result.exit_code != EXIT_OK:
            raise make_engine_failure(result.exit_code, result.text)
        return result


def open_replay_runner(
    exit_stack: ExitStack,
    target_directory: str | None,
    system_name: str | None,
    mount_name: str,
    archive: Archive,
    is_quiet: bool,
) -> ReplayRunner:
    """The runner for a directory, or for a model. Its files are removed when the stack is closed."""
    if (target_directory is None) == (system_name is None):
        raise UserError("Say where to replay: --on DIR, or --on-model SYSTEM; one of them.")
    if mount_name and system_name is None:
        raise UserError("--mount belongs to --on-model; name the simulated machine.")
    display = make_display(get_messages_console(), is_quiet)
    exit_stack.callback(display.end_display)
    folder = Path(exit_stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-replay-")))
    archive.recover_unfinished_runs()
    setup = RunSetup(find_engine(), archive, on_stop=display.report_stop_signal)
    if system_name is None:
        return ReplayRunner(setup, display, folder, str(require_existing_directory(str(target_directory))))
    machine = read_system(find_system_file(system_name))
    launcher = exit_stack.enter_context(prepare_simulation(machine, mount_name, (), 1, None, None))
    return ReplayRunner(setup, display, folder, SIMULATED_TARGET, launcher)
