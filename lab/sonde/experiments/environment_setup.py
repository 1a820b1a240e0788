# SPDX-License-Identifier: Apache-2.0
"""Changes the machine around runs and reverts the changes: treatments, and commands of variants.

Every undo command is stored in ``undo.json`` in the experiment's folder before its change is made. The runner executes
it when the experiment ends. If the runner was killed, the next runner that resumes the experiment executes it.
Treatments before every run on every node are part of the plan: the engine applies them.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from sonde.model.confined_files import read_json_file, remove_file, write_json_file
from sonde.model.errors import MachineError, format_as_sentence
from sonde.model.experiment.description import Treatment, Variant
from sonde.model.plan import Plan
from sonde.model.shell import quote_word

UNDO_FILE = "undo.json"
# Kinds that the engine applies on every node before the first phase of each run.
_ENGINE_KINDS = ("sync", "drop_page_cache", "remount", "sleep", "cancel_client_locks")
_CANCEL_LOCKS = "lctl set_param -n ldlm.namespaces.*.lru_size=clear"
_DROP_CACHES_FILE = Path("/proc/sys/vm/drop_caches")


@dataclass
class EnvironmentSetup:
    """A context manager for an experiment. Call `prepare_run` and `undo_changes_for_run` around each run."""

    treatments: tuple[Treatment, ...]
    folder: Path  # of the experiment in the archive
    report: Callable[[str], None] = lambda text: None
    problems: list[str] = field(default_factory=list)  # failed changes, one sentence each
    _pending: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)  # level, command, variables
    _cell: str = ""
    _variant: str | None = None

    def __enter__(self) -> EnvironmentSetup:
        stored = read_json_file(self.folder / UNDO_FILE) or {}
        self._pending = [
            (str(level), str(command), dict(variables)) for level, command, variables in stored.get("undo", [])
        ]
        if self._pending:
            self.report("Undoing changes that an earlier run of this experiment left behind.")
            self._undo_levels("experiment", "cell", "variant", "run")
        try:
            for treatment in self._list_treatments_of_level("experiment"):
                self._apply_treatment(treatment, "experiment", {})
        except BaseException:
            self._undo_levels("experiment")
            raise
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._undo_levels("run", "variant", "cell", "experiment")

    def prepare_run(self, cell_id: str, variant: Variant | None, target_directory: str) -> None:
        """Applies treatments and variant commands before a run. Raises MachineError if a required one fails."""
        variables = {
            "SONDE_CELL": cell_id,
            "SONDE_DIRECTORY": target_directory,
            "SONDE_VARIANT": variant.id if variant else "",
        }
        if self._variant is not None and (variant is None or variant.id != self._variant):
            self._undo_levels("variant")
            self._variant = None
        if cell_id != self._cell:
            self._undo_levels("cell")
            self._cell = ""
            for treatment in self._list_treatments_of_level("cell"):
                self._apply_treatment(treatment, "cell", variables)
            self._cell = cell_id
        if variant is not None and self._variant is None:
            self._run_setup_command(
                variant.before, variant.after, "variant", variables, True, f"before of the variant {variant.id}"
            )
            self._variant = variant.id
        for treatment in self._list_treatments_of_level("run"):
            if not is_applied_by_engine(treatment):
                self._apply_treatment(treatment, "run", variables)

    def undo_changes_for_run(self) -> None:
        """Undoes the changes made for one run."""
        self._undo_levels("run")

    def _list_treatments_of_level(self, setup_level: str) -> list[Treatment]:
        return [treatment for treatment in self.treatments if treatment.when == setup_level]

    def _apply_treatment(self, treatment: Treatment, setup_level: str, variables: Mapping[str, str]) -> None:
        is_required = treatment.need == "required"
        if treatment.kind in ("command", "server_command"):
            self._run_setup_command(
                treatment.command,
                treatment.undo,
                setup_level,
                variables,
                is_required,
                f"the {treatment.kind} of treatments",
            )
            return
        try:
            _TREATMENT_ACTIONS[treatment.kind](treatment, variables)
        except (OSError, MachineError) as reason:
            self._report_failure(f"The treatment {treatment.kind} could not be done: {reason}", is_required)
        if treatment.undo:
            self._record_undo(setup_level, treatment.undo, variables)

    def _run_setup_command(
        self,
        shell_command: str,
        undo_command: str,
        setup_level: str,
        variables: Mapping[str, str],
        is_required: bool,
        command_description: str,
    ) -> None:
        if undo_command:
            self._record_undo(setup_level, undo_command, variables)
        if not shell_command:
            return
        failure = run_shell_command(shell_command, variables)
        if failure:
            self._report_failure(
                f"{format_as_sentence(command_description)[:-1]} (`{shell_command}`) failed: {failure}", is_required
            )

    def _report_failure(self, failure_text: str, is_required: bool) -> None:
        if is_required:
            raise MachineError(format_as_sentence(failure_text))
        if format_as_sentence(failure_text) not in self.problems:
            self.problems.append(format_as_sentence(failure_text))
            self.report(format_as_sentence(failure_text))

    def _record_undo(self, setup_level: str, undo_command: str, variables: Mapping[str, str]) -> None:
        self._pending.append((setup_level, undo_command, dict(variables)))
        self._save_pending()

    def _undo_levels(self, *levels: str) -> None:
        """Executes undo commands, the latest first. A failed command does not stop the others."""
        for entry in reversed([pending for pending in self._pending if pending[0] in levels]):
            failure = run_shell_command(entry[1], entry[2])
            if failure:
                self.problems.append(format_as_sentence(f"`{entry[1]}`, which undoes a change, failed: {failure}"))
                self.report(self.problems[-1])
            self._pending.remove(entry)
            self._save_pending()

    def _save_pending(self) -> None:
        file = self.folder / UNDO_FILE
        if self._pending:
            write_json_file(file, {"undo": [list(pending) for pending in self._pending]})
        else:
            remove_file(file)


def is_applied_by_engine(treatment: Treatment) -> bool:
    """Returns whether the engine applies the treatment."""
    return (
        treatment.when == "run" and treatment.kind in _ENGINE_KINDS and treatment.on != "servers" and not treatment.undo
    )


def add_engine_treatments(plan: Plan, treatments: tuple[Treatment, ...]) -> Plan:
    """Returns the plan with the engine's treatments before its first phase."""
    engine_treatments: list[dict[str, Any]] = []
    for treatment in treatments:
        if not is_applied_by_engine(treatment):
            continue
        entry = (
            {"kind": "command", "command": _CANCEL_LOCKS}
            if treatment.kind == "cancel_client_locks"
            else {"kind": treatment.kind}
        )
        duration = {"time": f"{treatment.time}s"} if treatment.time is not None else {}
        engine_treatments.append({**entry, **duration, "need": treatment.need})
    if not engine_treatments:
        return plan
    phases = [dict(treatment) for treatment in plan.phases]
    phases[0]["before"] = [*engine_treatments, *phases[0].get("before", [])]
    return Plan.from_document({**plan.document, "phases": phases}, plan.origin)


def run_shell_command(shell_command: str, variables: Mapping[str, str]) -> str:
    """Executes a shell command. Returns an empty text on success, else the exit code and its last line."""
    completed = subprocess.run(
        ["/bin/sh", "-c", shell_command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, **variables},
        # Ctrl-C must not interrupt an undo command.
        start_new_session=True,
    )
    if completed.returncode == 0:
        return ""
    lines = [line.strip() for line in completed.stdout.splitlines() if line.strip()]
    return f"exit code {completed.returncode}" + (f", {lines[-1]}" if lines else "")


def _drop_page_cache(treatment: Treatment, variables: Mapping[str, str]) -> None:
    os.sync()
    _DROP_CACHES_FILE.write_text("3\n", encoding="ascii")


def _remount_file_system(treatment: Treatment, variables: Mapping[str, str]) -> None:
    directory = variables.get("SONDE_DIRECTORY", "")
    if not directory:
        raise MachineError('before the experiment no directory is known; set when = "cell".')
    completed = subprocess.run(
        ["findmnt", "-n", "-o", "TARGET", "--target", directory], capture_output=True, text=True, check=False
    )
    mount_point = completed.stdout.strip()
    failure = (
        run_shell_command(f"mount -o remount {quote_word(mount_point)}", {})
        if mount_point
        else "its mount point is not known"
    )
    if failure:
        raise MachineError(failure)


def _cancel_client_locks(treatment: Treatment, variables: Mapping[str, str]) -> None:
    if failure := run_shell_command(_CANCEL_LOCKS, {}):
        raise MachineError(failure)


_TREATMENT_ACTIONS: Mapping[str, Callable[[Treatment, Mapping[str, str]], None]] = {
    "sync": lambda treatment, names: os.sync(),
    "drop_page_cache": _drop_page_cache,
    "remount": _remount_file_system,
    "cancel_client_locks": _cancel_client_locks,
    "sleep": lambda treatment, names: time.sleep(treatment.time or 0.0),
}
