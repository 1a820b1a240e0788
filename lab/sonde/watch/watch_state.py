# SPDX-License-Identifier: Apache-2.0
"""The state of a watch in one JSON file, replaced atomically, so that it survives a kill at any moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any

from sonde.model.confined_files import ConfinedDirectory, append_file
from sonde.model.errors import MachineError, UserError

STATE_FILE = "state.json"
_LOCK_FILE = "lock"
_FORMAT = "sonde-watch-state/1"
_MOST_VALUES = 400  # of one history; detectors use 80
_MOST_DURATIONS = 200


@dataclass
class HistoryState:
    """What the watch knows of one history: values in order of time, and the state of the detectors after them.

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

    def add(self, value: float, time: float, is_accepted: bool) -> None:
        """Adds a value; the oldest are dropped."""
        self.values = [*self.values, value][-_MOST_VALUES:]
        self.times = [*self.times, time][-_MOST_VALUES:]
        if is_accepted:
            self.accepted = [*self.accepted, value][-_MOST_VALUES:]


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


@dataclass
class Notice:
    """One message. `delivered` are the channels that have it."""

    id: str
    kind: str  # slower, fixed
    incident: str
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
    rounds: int = 0
    incident_count: int = 0

    def add_duration(self, probe: str, start: float, seconds: float) -> None:
        """Remembers how long a run took."""
        self.durations[probe] = [*self.durations.get(probe, []), (start, seconds)][-_MOST_DURATIONS:]

    def open_incidents(self) -> list[Incident]:
        """Incidents that are not fixed."""
        return [incident for incident in self.incidents if incident.status == "open"]

    def find_incident(self, name: str) -> Incident:
        """The incident whose id begins with `name`, or the latest for "last". Raises UserError."""
        matches = [incident for incident in self.incidents if name == "last" or incident.id.startswith(name)]
        if not matches:
            raise UserError(f'There is no incident "{name}"; `sonde watch status` lists them.')
        return matches[-1]

    def accept_level(self, incident: Incident, now: float) -> None:
        """Makes the level since the change the usual one, and closes the incident."""
        for name in incident.histories:
            history = self.histories.get(name)
            if history is not None and history.incident == incident.id:
                newest = [
                    value for value, time in zip(history.values, history.times, strict=True) if time >= incident.changed
                ]
                history.accepted, history.incident, history.is_recovered = newest, "", False
        incident.status, incident.closed = "accepted", now

    def to_json(self) -> dict[str, Any]:
        """The state as a document."""
        return {"schema": _FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> WatchState:
        """The state from its document. Raises ValueError, TypeError or KeyError for another form."""
        members = dict(document)
        if members.pop("schema", None) != _FORMAT:
            raise ValueError("it has another format")
        members["histories"] = {name: HistoryState(**entry) for name, entry in members["histories"].items()}
        members["incidents"] = [Incident(**entry) for entry in members["incidents"]]
        members["notices"] = [Notice(**entry) for entry in members["notices"]]
        members["durations"] = {
            name: [(float(start), float(seconds)) for start, seconds in entries]
            for name, entries in members["durations"].items()
        }
        pending = members["pending"]
        members["pending"] = PendingRun(**pending) if pending else None
        return cls(**members)


@dataclass(frozen=True)
class StateStore:
    """The folder of a watch: its state and the lock that keeps two of them apart."""

    folder: Path

    def load(self) -> WatchState:
        """The state; a new one without the file. Raises MachineError when the file is damaged."""
        path = self.folder / STATE_FILE
        if not path.exists():
            return WatchState()
        with ConfinedDirectory.open(self.folder) as directory:
            document = directory.read_json(STATE_FILE)
        try:
            if document is None:
                raise ValueError("it is not JSON")
            return WatchState.from_json(document)
        except (ValueError, TypeError, KeyError) as error:
            raise MachineError(
                f"{path} cannot be used: {error}; rename it, and the watch learns its limits again from new runs."
            ) from None

    def save(self, state: WatchState) -> None:
        """Replaces the state; it is on storage afterwards. Raises MachineError."""
        try:
            with ConfinedDirectory.open(self.folder, create=True) as directory:
                directory.write_json(STATE_FILE, state.to_json())
        except OSError as error:
            raise MachineError(f"{self.folder / STATE_FILE} cannot be written: {error.strerror}.") from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the lock; a killed process holds none. Raises MachineError when another watch has it."""
        try:
            ConfinedDirectory.open(self.folder, create=True).close()
            with append_file(self.folder / _LOCK_FILE) as file:
                flock(file, LOCK_EX | LOCK_NB)
                yield
        except BlockingIOError:
            raise MachineError(f"Another `sonde watch` uses {self.folder}; wait until it ends.") from None
