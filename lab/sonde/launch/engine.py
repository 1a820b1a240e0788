# SPDX-License-Identifier: Apache-2.0
"""Where the engine is, and short questions to it (everything but a run)."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.launch.parts import Part, find
from sonde.model.errors import (
    BAD_INPUT,
    DONE,
    FAILED,
    INTERRUPTED,
    MISMATCH,
    DataMismatchError,
    MachineError,
    RunFailedError,
    StoppedError,
    UserError,
    sentence,
)

NAME = "sonde-engine"
_SPEAKERS = (f"{NAME}:", "sonde-simulate:")  # both write a record, and say in its place why there is none
ENGINE = Part(NAME, "SONDE_ENGINE", "engine", f"The engine is not installed: there is no {NAME} in this package;")
# How launchers say that a process died: MPICH's Hydra, Open MPI, Slurm.
_LOST_PROCESS = (r"EXIT STRING: (.+)", r"noticed that (process rank .+)", r"^srun: error: (.+)")


@dataclass(frozen=True)
class Engine:
    """The engine program. `source` says why this one was chosen."""

    path: Path
    source: str

    def version(self) -> str:
        """What the engine says about itself."""
        return self._ask(["--version"]).stdout.strip().removeprefix(f"{NAME} ")

    def backends(self, directory: Path | None = None) -> list[dict[str, Any]]:
        """One entry a backend: name, usable or not, why not."""
        where = ["--on", str(directory)] if directory else []
        found = self._json(["backends", "--json", *where])
        entries = found.get("backends", []) if isinstance(found, Mapping) else found
        return [entry for entry in entries if isinstance(entry, dict)]

    def probe(self, directory: Path) -> dict[str, Any]:
        """Facts about this machine and the file system under `directory` (the members of a `node` line)."""
        found = self._json(["probe", str(directory)])
        return found if isinstance(found, dict) else {}

    def clean(self, directory: Path, dry_run: bool) -> list[dict[str, Any]]:
        """Removes what killed runs left below `directory`; with `dry_run` only says what would be removed.

        One entry a run directory: `run`, `files`, `bytes`, `left` (what could not be removed), or `kept` (why not).
        """
        arguments = ["clean", str(directory), "--json", *(["--dry-run"] if dry_run else [])]
        found = self._json(arguments, timeout=None, also_good=(FAILED,))
        return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []

    def check(self, plan_file: Path) -> None:
        """Lets the engine check a plan without running it. Raises UserError with the engine's sentence."""
        self._ask(["run", str(plan_file), "--dry-run"])

    def resolve(self, plan: Mapping[str, Any], processes: int) -> dict[str, Any]:
        """What the engine understands of a plan on so many processes of one node, and what it would touch: `space`, and
        by phase `files`, `segments`, `operations`, `bytes` of one pass. Raises UserError with the engine's sentence."""
        request = json.dumps({"plan": plan, "processes": processes})
        try:
            answer = json.loads(self._ask(["resolve", "--lines", "-"], given=request).stdout)
        except ValueError:
            raise MachineError(f"The engine {self.path} answered `resolve` with something that is not JSON.") from None
        if "error" in answer:
            raise UserError(str(answer["error"]))
        return dict(answer)

    def _json(self, arguments: Sequence[str], timeout: float | None = 60, also_good: Sequence[int] = ()) -> Any:
        text = self._ask(arguments, timeout, also_good).stdout
        try:
            return json.loads(text)
        except ValueError:
            raise MachineError(
                f"The engine {self.path} answered `{arguments[0]}` with something that is not JSON; is it the right"
                " version? `sonde doctor` shows which engine is used and why."
            ) from None

    def _ask(
        self, arguments: Sequence[str], timeout: float | None = 60, also_good: Sequence[int] = (), given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        try:
            answer = subprocess.run(
                [str(self.path), *arguments],
                input=given,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
            )
        except OSError as reason:
            raise MachineError(f"The engine {self.path} does not start: {reason.strerror}.") from None
        except subprocess.TimeoutExpired:
            raise MachineError(
                f"The engine gave no answer to `{arguments[0]}` within {timeout:.0f} s: the file system may hang."
            ) from None
        if answer.returncode not in (DONE, *also_good):
            raise engine_error(answer.returncode, last_sentence(answer.stderr))
        return answer


def last_sentence(messages: str) -> str:
    """The sentence of the engine, or of the simulator in its place, in what was printed to stderr: the last line that
    begins with the name of one of them, else the last line."""
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(_SPEAKERS)]
    if not ours:
        for pattern in _LOST_PROCESS:
            found = re.search(pattern, messages, re.MULTILINE)
            if found:
                return f"A process of the run was lost: {found[1].strip()}"
    chosen = (ours or lines or [""])[-1]
    return next((chosen.removeprefix(one) for one in _SPEAKERS if chosen.startswith(one)), chosen).strip()


def engine_error(returncode: int, said: str, program: str = "The engine") -> UserError:
    """The error for `program` (the engine, or the launcher that started it) that ended with `returncode`."""
    text = sentence(said)
    if returncode < 0:
        hint = "Perhaps the machine ran out of memory." if -returncode == signal.SIGKILL and not text else ""
        return RunFailedError(" ".join(f"{program} was ended by {_signal_name(-returncode)}. {text}{hint}".split()))
    text = text or f"{program} ended with exit code {returncode} and said nothing."
    kinds: dict[int, type[UserError]] = {
        FAILED: RunFailedError,
        BAD_INPUT: UserError,
        MISMATCH: DataMismatchError,
        INTERRUPTED: StoppedError,
        DONE: UserError,
    }
    # Launchers have codes of their own: a process that died, or (126, 127) a program that could not be started.
    other = RunFailedError if returncode > INTERRUPTED and returncode not in (126, 127) else MachineError
    return kinds.get(returncode, other)(text)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def find_engine() -> Engine:
    found = find(ENGINE)
    return Engine(found.path, found.source)
