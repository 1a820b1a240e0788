# SPDX-License-Identifier: Apache-2.0
"""The state of a watch in one JSON file, replaced atomically, so that it survives a kill at any moment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, is_dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, get_args, get_origin, get_type_hints

from sonde.logs.log_follow import LogState
from sonde.model.confined_files import ConfinedDirectory, is_owned_by_user_or_root, open_file_to_append
from sonde.model.errors import MachineError, UserError

STATE_FILE = "state.json"
_LOCK_FILE = "lock"
_STATE_FORMAT = "sonde-watch-state/1"
_MAX_STORED_VALUES = 400  # of one history; detectors use 80
_MAX_STORED_DURATIONS = 200
_HISTORY_LABELS = ("probe", "phase", "directory")


@dataclass
class HistoryState:
    """Stored state of one history: values in order of time, and the state of the detectors after them.

    `accepted` values were not low; the limit of the gate follows from them. `filled` and `reference` are those of
    `DetectorState`.
    """

    labels: dict[str, str]
    unit: str
    values: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)  # of the values, seconds since 1970
    accepted: list[float] = field(default_factory=list)
    filled: int = 0
    reference: list[float] | None = None
    incident: str = ""  # id of the open incident that it belongs to
    is_recovered: bool = False  # all values of the last probe were at or above the limit

    def add_value(self, value: float, run_time_s: float, is_accepted: bool) -> None:
        """Adds a value; the oldest are dropped."""
        self.values = [*self.values, value][-_MAX_STORED_VALUES:]
        self.times = [*self.times, run_time_s][-_MAX_STORED_VALUES:]
        if is_accepted:
            self.accepted = [*self.accepted, value][-_MAX_STORED_VALUES:]


@dataclass
class Incident:
    """One joint change: the histories that became slower together."""

    id: str
    opened: float  # seconds since 1970
    histories: dict[str, float]  # id -> value after divided by value before
    summary: str
    changed: float = 0.0  # time of the first run after the change
    status: str = "open"  # open, fixed, accepted
    closed: float | None = None
    acknowledged: str = ""  # by whom
    localization: str = ""  # what a localizing run showed
    events: str = ""  # sentences about the nearest events

    def make_notice_text(self) -> str:
        """Returns the text of the notice: summary, localization and nearest events."""
        return " ".join(filter(None, (self.summary, self.localization, self.events)))


@dataclass
class Notice:
    """One message. `delivered` are the channels that have it."""

    id: str
    kind: str  # slower, fixed, log
    incident: str  # "" where it is none
    time: float
    title: str
    text: str
    channels: list[str]
    delivered: list[str] = field(default_factory=list)
    failures: int = 0
    last_failure: str = ""


@dataclass
class PendingRun:
    """A run that was begun: after a kill it is either in the archive under `group`, or was lost."""

    probe: str
    slot: int
    group: str
    started: float


@dataclass
class WatchState:
    """All that a watch remembers between rounds."""

    slots: dict[str, int] = field(default_factory=dict)  # probe -> last finished slot
    durations: dict[str, list[tuple[float, float]]] = field(default_factory=dict)  # probe -> (start, seconds)
    histories: dict[str, HistoryState] = field(default_factory=dict)
    incidents: list[Incident] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)  # not delivered everywhere yet
    silences: dict[str, float] = field(default_factory=dict)  # directory, or "" for all -> until
    skips: dict[str, str] = field(default_factory=dict)  # probe -> why it was skipped last
    pending: PendingRun | None = None
    logs: dict[str, LogState] = field(default_factory=dict)  # log -> how far it was read
    rounds: int = 0
    incident_count: int = 0
    log_notice_count: int = 0

    def add_run_duration(self, probe_name: str, start_time: float, seconds: float) -> None:
        """Remembers how long a run took."""
        self.durations[probe_name] = [*self.durations.get(probe_name, []), (start_time, seconds)][
            -_MAX_STORED_DURATIONS:
        ]

    def list_open_incidents(self) -> list[Incident]:
        """Incidents that are not fixed."""
        return [incident for incident in self.incidents if incident.status == "open"]

    def find_incident(self, id_start: str) -> Incident:
        """The incident whose id begins with `id_start`, or the latest for "last". Raises UserError."""
        matches = [incident for incident in self.incidents if id_start == "last" or incident.id.startswith(id_start)]
        if not matches:
            raise UserError(f'There is no incident "{id_start}"; `sonde watch status` lists them.')
        return matches[-1]

    def accept_level(self, incident: Incident, now_s: float) -> None:
        """Makes the level since the change the usual one, and closes the incident."""
        for name in incident.histories:
            history = self.histories.get(name)
            if history is not None and history.incident == incident.id:
                newest = [
                    value for value, time in zip(history.values, history.times, strict=True) if time >= incident.changed
                ]
                history.accepted, history.incident, history.is_recovered = newest, "", False
        incident.status, incident.closed = "accepted", now_s

    def to_json(self) -> dict[str, Any]:
        """The state as a document."""
        return {"schema": _STATE_FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, state_document: dict[str, Any]) -> WatchState:
        """The state from its document. Raises ValueError, TypeError or KeyError for another form."""
        if state_document.get("schema") != _STATE_FORMAT:
            raise ValueError("it has another format")
        state: WatchState = _convert_to_type(
            cls, {name: value for name, value in state_document.items() if name != "schema"}
        )
        for history in state.histories.values():
            if not set(_HISTORY_LABELS) <= set(history.labels) or len(history.values) != len(history.times):
                raise ValueError("a history is incomplete")
        for log in state.logs.values():
            log.check_types()
        return state


def _convert_to_type(type_hint: Any, json_value: Any) -> Any:
    """The value as the type that an annotation names. Raises ValueError or TypeError for another type."""
    origin, arguments = get_origin(type_hint), get_args(type_hint)
    if origin is UnionType:
        return None if json_value is None else _convert_to_type(arguments[0], json_value)
    if isinstance(type_hint, type) and is_dataclass(type_hint) and isinstance(json_value, dict):
        hints = get_type_hints(type_hint)
        return type_hint(
            **{name: _convert_to_type(hints[name], item) for name, item in json_value.items() if name in hints}
        )
    if origin is dict and isinstance(json_value, dict):
        return {str(name): _convert_to_type(arguments[1], item) for name, item in json_value.items()}
    if origin is list and isinstance(json_value, list):
        return [_convert_to_type(arguments[0], item) for item in json_value]
    if origin is tuple and isinstance(json_value, list) and arguments[-1] is Ellipsis:
        return tuple(_convert_to_type(arguments[0], item) for item in json_value)
    if origin is tuple and isinstance(json_value, list) and len(json_value) == len(arguments):
        return tuple(_convert_to_type(argument, item) for argument, item in zip(arguments, json_value, strict=True))
    if (
        type_hint is float
        and isinstance(json_value, int | float)
        and not isinstance(json_value, bool)
        and isfinite(json_value)
    ):
        return float(json_value)
    if type_hint in (str, int, bool) and type(json_value) is type_hint:
        return json_value
    raise ValueError("a value has another type")


@dataclass(frozen=True)
class StateStore:
    """The folder of a watch: its state, and the lock that keeps two watches apart. If other users can write to the
    archive, a round requires that the caller or root owns both, because notices are sent in the caller's name."""

    folder: Path

    def load_state(self, trusted_only: bool = True) -> WatchState:
        """The state; a new one without the file. Raises MachineError when the file is damaged or of another user."""
        path = self.folder / STATE_FILE
        try:
            with ConfinedDirectory.open(self.folder) as directory:
                if trusted_only and not is_owned_by_user_or_root(directory.stat_directory()):
                    raise MachineError(f"{self.folder} belongs to another user; use an archive of your own: --archive.")
                if not directory.has_entry(STATE_FILE):
                    return WatchState()
                document = directory.read_json_file(STATE_FILE, trusted_only)
        except FileNotFoundError:
            return WatchState()
        except OSError as error:
            raise MachineError(f"{self.folder} cannot be read: {error.strerror}.") from None
        try:
            if document is None:
                raise ValueError("it is not JSON, or it belongs to another user")
            return WatchState.from_json(document)
        except (ValueError, TypeError, KeyError) as error:
            raise MachineError(
                f"{path} cannot be used: {error}; rename it, and the watch learns its limits again from new runs."
            ) from None

    def save_state(self, state: WatchState) -> None:
        """Replaces the state; it is on storage afterwards. Raises MachineError.

        A round saves it after each run, and histories of a year are long: one line takes a tenth of the time that
        indented lines of a copied document take.
        """
        document = {"schema": _STATE_FORMAT, **vars(state)}
        text = json.dumps(document, default=vars, ensure_ascii=False, allow_nan=False)
        try:
            with ConfinedDirectory.open(self.folder, create_if_absent=True) as directory:
                directory.write_text(STATE_FILE, f"{text}\n")
        except OSError as error:
            raise MachineError(f"{self.folder / STATE_FILE} cannot be written: {error.strerror}.") from None

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Holds the lock; a killed process holds none. Raises MachineError when another watch has it."""
        with self._open_lock_file() as file:
            try:
                flock(file, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                raise MachineError(f"Another `sonde watch` uses {self.folder}; wait until it ends.") from None
            yield

    def _open_lock_file(self) -> BinaryIO:
        path = self.folder / _LOCK_FILE
        try:
            with ConfinedDirectory.open(self.folder, create_if_absent=True) as directory:
                directory.remove_write_permission_of_others()
            file = open_file_to_append(path, trusted_only=True)
        except OSError as error:
            raise MachineError(f"{path} cannot be used: {error.strerror}.") from None
        if os.fstat(file.fileno()).st_uid == os.geteuid():
            os.fchmod(file.fileno(), 0o600)  # who can read a file can hold its lock
        return file
