# SPDX-License-Identifier: Apache-2.0
"""What is done to the machine around runs, and taken back: treatments, and the set-up of the sides of a comparison.

Whatever is to be taken back is written down before it is done (``undo.json`` beside the experiment in the archive): it
is taken back when the experiment ends, however it ends, and by the next who takes the experiment up when the runner
itself was killed. What only has to be done before every run, on every node, is handed to the engine with the plan.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from sonde.model.errors import MachineError, sentence
from sonde.model.experiment.description import Treatment, Variant
from sonde.model.plan import Plan
from sonde.store import durable

UNDO = "undo.json"
# Kinds that the engine carries out on every node, before the first phase of each run.
_BY_ENGINE = ("sync", "drop_page_cache", "remount", "sleep", "cancel_client_locks")
_CANCEL_LOCKS = "lctl set_param -n ldlm.namespaces.*.lru_size=clear"
_DROP = Path("/proc/sys/vm/drop_caches")


@dataclass
class Surroundings:
    """Enter it around an experiment; call `before` and `after` around each run."""

    treatments: tuple[Treatment, ...]
    folder: Path  # of the experiment in the archive
    say: Callable[[str], None] = lambda text: None
    notes: list[str] = field(default_factory=list)  # what could not be done or taken back, one sentence each
    _pending: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)  # level, command, variables
    _cell: str = ""
    _variant: str | None = None

    def __enter__(self) -> Surroundings:
        left = durable.read_json(self.folder / UNDO) or {}
        self._pending = [(str(level), str(command), dict(names)) for level, command, names in left.get("undo", [])]
        if self._pending:
            self.say("Taking back what an earlier run of this experiment left set up.")
            self._take_back("experiment", "cell", "variant", "run")
        try:
            for one in self._of("experiment"):
                self._do(one, "experiment", {})
        except BaseException:
            self._take_back("experiment")
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._take_back("run", "variant", "cell", "experiment")

    def before(self, cell: str, variant: Variant | None, directory: str) -> None:
        """Sets up for a run. Raises MachineError when something that is required cannot be done."""
        names = {"SONDE_CELL": cell, "SONDE_DIRECTORY": directory, "SONDE_VARIANT": variant.id if variant else ""}
        if self._variant is not None and (variant is None or variant.id != self._variant):
            self._take_back("variant")
            self._variant = None
        if cell != self._cell:
            self._take_back("cell")
            self._cell = ""
            for one in self._of("cell"):
                self._do(one, "cell", names)
            self._cell = cell
        if variant is not None and self._variant is None:
            self._command(variant.before, variant.after, "variant", names, True, f"before of the variant {variant.id}")
            self._variant = variant.id
        for one in self._of("run"):
            if not by_engine(one):
                self._do(one, "run", names)

    def after(self) -> None:
        """Takes back what was done for one run only."""
        self._take_back("run")

    def _of(self, when: str) -> list[Treatment]:
        return [one for one in self.treatments if one.when == when]

    def _do(self, one: Treatment, level: str, names: Mapping[str, str]) -> None:
        required = one.need == "required"
        if one.kind in ("command", "server_command"):
            self._command(one.command, one.undo, level, names, required, f"the {one.kind} of treatments")
            return
        try:
            _KINDS[one.kind](one, names)
        except (OSError, MachineError) as reason:
            self._failed(f"The treatment {one.kind} could not be done: {reason}", required)
        if one.undo:
            self._plan_undo(level, one.undo, names)

    def _command(
        self, command: str, undo: str, level: str, names: Mapping[str, str], required: bool, what: str
    ) -> None:
        if undo:
            self._plan_undo(level, undo, names)
        if not command:
            return
        told = run_command(command, names)
        if told:
            self._failed(f"{sentence(what)[:-1]} (`{command}`) failed: {told}", required)

    def _failed(self, text: str, required: bool) -> None:
        if required:
            raise MachineError(sentence(text))
        if sentence(text) not in self.notes:
            self.notes.append(sentence(text))
            self.say(sentence(text))

    def _plan_undo(self, level: str, command: str, names: Mapping[str, str]) -> None:
        self._pending.append((level, command, dict(names)))
        self._keep()

    def _take_back(self, *levels: str) -> None:
        """The last first. One that fails must not keep the others from being taken back."""
        for entry in reversed([one for one in self._pending if one[0] in levels]):
            told = run_command(entry[1], entry[2])
            if told:
                self.notes.append(sentence(f"`{entry[1]}`, which takes back what was set up, failed: {told}"))
                self.say(self.notes[-1])
            self._pending.remove(entry)
            self._keep()

    def _keep(self) -> None:
        file = self.folder / UNDO
        if self._pending:
            durable.write_json(file, {"undo": [list(one) for one in self._pending]})
        else:
            file.unlink(missing_ok=True)


def by_engine(one: Treatment) -> bool:
    """Whether the engine does it, with the plan."""
    return one.when == "run" and one.kind in _BY_ENGINE and one.on != "servers" and not one.undo


def with_treatments(plan: Plan, treatments: tuple[Treatment, ...]) -> Plan:
    """The plan whose first phase begins with the treatments that the engine carries out."""
    first: list[dict[str, Any]] = []
    for one in treatments:
        if not by_engine(one):
            continue
        kind = (
            {"kind": "command", "command": _CANCEL_LOCKS} if one.kind == "cancel_client_locks" else {"kind": one.kind}
        )
        time_ = {"time": f"{one.time}s"} if one.time is not None else {}
        first.append({**kind, **time_, "need": one.need})
    if not first:
        return plan
    phases = [dict(one) for one in plan.phases]
    phases[0]["before"] = [*first, *phases[0].get("before", [])]
    return Plan.from_document({**plan.document, "phases": phases}, plan.origin)


def run_command(command: str, names: Mapping[str, str]) -> str:
    """Executes a command by the shell; empty when it succeeded, else what it said last."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, **names},
        # a Ctrl-C of the terminal is for us: what takes something back has to come to its end
        start_new_session=True,
    )
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return f"exit code {done.returncode}" + (f", {lines[-1]}" if lines else "")


def _drop(one: Treatment, names: Mapping[str, str]) -> None:
    os.sync()
    _DROP.write_text("3\n", encoding="ascii")


def _remount(one: Treatment, names: Mapping[str, str]) -> None:
    directory = names.get("SONDE_DIRECTORY", "")
    if not directory:
        raise MachineError('before the whole experiment no directory is known yet; say when = "cell".')
    found = subprocess.run(
        ["findmnt", "-n", "-o", "TARGET", "--target", directory], capture_output=True, text=True, check=False
    )
    point = found.stdout.strip()
    told = run_command(f"mount -o remount {shlex.quote(point)}", {}) if point else "its mount point is not known"
    if told:
        raise MachineError(told)


def _cancel(one: Treatment, names: Mapping[str, str]) -> None:
    if told := run_command(_CANCEL_LOCKS, {}):
        raise MachineError(told)


_KINDS: Mapping[str, Callable[[Treatment, Mapping[str, str]], None]] = {
    "sync": lambda one, names: os.sync(),
    "drop_page_cache": _drop,
    "remount": _remount,
    "cancel_client_locks": _cancel,
    "sleep": lambda one, names: time.sleep(one.time or 0.0),
}
