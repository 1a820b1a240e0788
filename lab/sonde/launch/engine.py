# SPDX-License-Identifier: Apache-2.0
"""Locates the engine and runs its short commands: everything except a run."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.launch.components import Component, locate_component
from sonde.model.errors import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_MISMATCH,
    EXIT_OK,
    DataMismatchError,
    MachineError,
    RunFailedError,
    StoppedError,
    UserError,
    format_as_sentence,
)

ENGINE_NAME = "sonde-engine"
_MESSAGE_PREFIXES = (f"{ENGINE_NAME}:", "sonde-simulate:")  # both print to stderr why they wrote no record
ENGINE_COMPONENT = Component(
    ENGINE_NAME, "SONDE_ENGINE", "engine", f"The engine is not installed: there is no {ENGINE_NAME} in this package;"
)
# How launchers report that a process died: MPICH's Hydra, Open MPI, Slurm.
_LOST_PROCESS = (r"EXIT STRING: (.+)", r"noticed that (process rank .+)", r"^srun: error: (.+)")
ERRORS_BY_EXIT_CODE: Mapping[int, type[UserError]] = {
    EXIT_FAILED: RunFailedError,
    EXIT_BAD_INPUT: UserError,
    EXIT_MISMATCH: DataMismatchError,
    EXIT_INTERRUPTED: StoppedError,
}


@dataclass(frozen=True)
class Engine:
    """The engine program. `source` states why this file was chosen."""

    path: Path
    source: str

    def read_version(self) -> str:
        """The version that the engine prints."""
        return self._run_engine(["--version"]).stdout.strip().removeprefix(f"{ENGINE_NAME} ")

    def list_backends(self, target_directory: Path | None = None) -> list[dict[str, Any]]:
        """One entry per backend: name, whether it is usable, and the reason if not."""
        options = ["--on", str(target_directory)] if target_directory else []
        answer = self._request_json(["backends", "--json", *options])
        entries = answer.get("backends", []) if isinstance(answer, Mapping) else answer
        return [entry for entry in entries if isinstance(entry, dict)]

    def probe_directory(self, directory: Path) -> dict[str, Any]:
        """Facts about this machine and the file system under `directory` (the members of a `node` line)."""
        answer = self._request_json(["probe", str(directory)])
        return answer if isinstance(answer, dict) else {}

    def remove_leftovers(
        self, searched_directory: Path | str, dry_run: bool, include_other_folders: bool = False
    ) -> list[dict[str, Any]]:
        """Removes what killed runs left below `searched_directory`; with `dry_run` only reports what would be removed.
        `include_other_folders`: also in directories outside `searched_directory` that a run's manifest names.

        One entry per run directory: `run`, `files`, `bytes`, `directories` (each in which files are removed), `outside`
        (those of them outside `searched_directory`), `left` (files that stay), or `kept` (why all of it stays).
        """
        flags = [*(["--dry-run"] if dry_run else []), *(["--yes"] if include_other_folders else [])]
        arguments = ["clean", str(searched_directory), "--json", *flags]
        answer = self._request_json(arguments, timeout_s=None, accepted_exit_codes=(EXIT_FAILED, EXIT_BAD_INPUT))
        return [entry for entry in answer if isinstance(entry, dict)] if isinstance(answer, list) else []

    def check_plan(self, plan_file: Path) -> None:
        """Checks a plan with the engine without running it. Raises UserError with the engine's message."""
        self._run_engine(["run", str(plan_file), "--dry-run"])

    def resolve_plan(self, plan_document: Mapping[str, Any], process_count: int) -> dict[str, Any]:
        """The plan as the engine resolves it for `process_count` processes on one node, and what it would touch:
        `space`, and for each phase `files`, `segments`, `operations`, `bytes` of one pass. Raises UserError with the
        engine's message."""
        request = json.dumps({"plan": plan_document, "processes": process_count})
        try:
            answer = json.loads(self._run_engine(["resolve", "--lines", "-"], standard_input=request).stdout)
        except ValueError:
            raise MachineError(f"The engine {self.path} answered `resolve` with something that is not JSON.") from None
        if "error" in answer:
            raise UserError(str(answer["error"]))
        return dict(answer)

    def _request_json(
        self, arguments: Sequence[str], timeout_s: float | None = 60, accepted_exit_codes: Sequence[int] = ()
    ) -> Any:
        answer = self._run_engine(arguments, timeout_s, accepted_exit_codes)
        if answer.returncode != EXIT_OK and not answer.stdout:
            raise make_engine_error(answer.returncode, find_engine_message(answer.stderr))
        try:
            return json.loads(answer.stdout)
        except ValueError:
            raise MachineError(
                f"The engine {self.path} answered `{arguments[0]}` with something that is not JSON; is it the right"
                " version? `sonde doctor` shows which engine is used and why."
            ) from None

    def _run_engine(
        self,
        arguments: Sequence[str],
        timeout_s: float | None = 60,
        accepted_exit_codes: Sequence[int] = (),
        standard_input: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command of the engine. Raises the error of its exit code unless that is 0 or in
        `accepted_exit_codes`."""
        try:
            answer = subprocess.run(
                [str(self.path), *arguments],
                input=standard_input,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except OSError as reason:
            raise MachineError(f"The engine {self.path} does not start: {reason.strerror}.") from None
        except subprocess.TimeoutExpired:
            raise MachineError(
                f"The engine gave no answer to `{arguments[0]}` within {timeout_s:.0f} s: the file system may hang."
            ) from None
        if answer.returncode not in (EXIT_OK, *accepted_exit_codes):
            raise make_engine_error(answer.returncode, find_engine_message(answer.stderr))
        return answer


def find_engine_message(stderr_text: str) -> str:
    """The message of the engine or simulator in what was printed to stderr: the last line that begins with the name of
    one of them, else what a launcher printed about a lost process, else the last line."""
    lines = [line.strip() for line in stderr_text.splitlines() if line.strip()]
    engine_lines = [line for line in lines if line.startswith(_MESSAGE_PREFIXES)]
    if not engine_lines:
        for pattern in _LOST_PROCESS:
            match = re.search(pattern, stderr_text, re.MULTILINE)
            if match:
                return f"A process of the run was lost: {match[1].strip()}"
    message = (engine_lines or lines or [""])[-1]
    prefixes = (prefix for prefix in _MESSAGE_PREFIXES if message.startswith(prefix))
    return message.removeprefix(next(prefixes, "")).strip()


def make_engine_error(returncode: int, stderr_message: str, program_name: str = "The engine") -> UserError:
    """The error for `program_name` (the engine, or the launcher that started it), which printed `stderr_message` and
    ended with `returncode` (negative: a signal)."""
    text = format_as_sentence(stderr_message)
    if returncode < 0:
        hint = "Perhaps the machine ran out of memory." if -returncode == signal.SIGKILL and not text else ""
        return RunFailedError(
            " ".join(f"{program_name} was ended by {_get_signal_name(-returncode)}. {text}{hint}".split())
        )
    text = text or f"{program_name} ended with exit code {returncode} and printed nothing."
    if returncode == EXIT_OK:
        return UserError(text)
    # Launchers have other codes: a process that died, or (126, 127) a program that could not be started.
    other = RunFailedError if returncode > EXIT_INTERRUPTED and returncode not in (126, 127) else MachineError
    return ERRORS_BY_EXIT_CODE.get(returncode, other)(text)


def _get_signal_name(signal_number: int) -> str:
    try:
        return signal.Signals(signal_number).name
    except ValueError:
        return f"signal {signal_number}"


def find_engine() -> Engine:
    """The engine that $SONDE_ENGINE names, else the installed one, else the newest in the build tree. Raises
    MachineError."""
    component = locate_component(ENGINE_COMPONENT)
    return Engine(component.path, component.source)
