# SPDX-License-Identifier: Apache-2.0
"""Results of other tools, as the archive stores them.

A number of another tool never shares a history with a number of Sonde: each phase names tool and definition, and the
definition is part of the key of its history.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from sonde.model.history_key import strip_host_numbers
from sonde.model.plan_hash import hash_json

_HISTORY_EPOCH = "imported/1"


@dataclass(frozen=True)
class ImportedPhase:
    """One number of another tool with its context. Unknown values are None."""

    phase: str
    op: str  # write, read, stat, …; names as in plans
    definition: str  # tool and definition of the number, like "IOR 4.1.0 bw"
    bytes_per_s: float | None = None
    ops_per_s: float | None = None
    bytes: int | None = None
    ops: int | None = None
    seconds: float | None = None
    backend: str = ""
    cache: str = "unknown"
    done: bool = True
    also: Mapping[str, Any] = field(default_factory=dict)  # other numbers of the tool, under the tool's names


@dataclass(frozen=True)
class ImportedRun:
    """One execution of another tool."""

    tool: str  # with its version if known: "IOR 4.1.0"
    name: str  # part of the run id
    started: datetime  # with a time zone
    experiment: Mapping[str, Any]  # parameters that identify the measurement
    phases: Sequence[ImportedPhase]
    title: str = ""
    system: str = ""
    host: str = ""
    target: str = ""
    file_system: str = ""
    node_class: str = ""
    tasks: int | None = None
    nodes: int | None = None
    seconds: float | None = None
    group: str | None = None
    status: str = "done"
    text: str = ""
    command: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)  # other facts that were recorded at that time
    findings: Sequence[Mapping[str, str]] = ()  # id, severity, text

    def make_run_id(self) -> str:
        """Returns an id that is the same for every import of the same result."""
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", self.name).strip("-.")[:40] or "run"
        content = asdict(self) | {"started": self.started.isoformat()}
        return f"{self.started:%Y%m%dT%H%M%SZ}-{name}-{hash_json(content, 8)}"

    def make_history_key_of_all_phases(self) -> dict[str, str]:
        """Returns the part of the history key that all phases share."""
        work = {"tool": self.tool.split(" ")[0], "tasks": self.tasks, "nodes": self.nodes, **self.experiment}
        return {
            "system": self.system or strip_host_numbers(self.host) or "unknown",
            "file_system": self.file_system or self.target or "unknown",
            "plan_hash": hash_json([_HISTORY_EPOCH, work]),
            "node_class": self.node_class,
            "epoch": _HISTORY_EPOCH,
        }
