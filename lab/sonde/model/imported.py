# SPDX-License-Identifier: Apache-2.0
"""Results of other tools, as they come into the archive: their numbers under their names.

A number that somebody else counted is never in one series with ours: each phase says whose it is and by which
definition, and the definition is part of the key of its series.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from sonde.model.sameness import short_hash
from sonde.model.series import host_stem

_EPOCH = "imported/1"


@dataclass(frozen=True)
class ImportedPhase:
    """One number of another tool and what is known about it. What is not known is None."""

    phase: str
    op: str  # write, read, stat, …, as in plans where the same is meant
    definition: str  # whose number and which, like "IOR 4.1.0 bw"
    bytes_per_s: float | None = None
    ops_per_s: float | None = None
    bytes: int | None = None
    ops: int | None = None
    seconds: float | None = None
    backend: str = ""
    cache: str = "unknown"
    done: bool = True
    also: Mapping[str, Any] = field(default_factory=dict)  # other figures of the tool, under its own names


@dataclass(frozen=True)
class ImportedRun:
    """One execution of another tool."""

    tool: str  # with its version when that is known: "IOR 4.1.0"
    name: str  # what people call it; becomes part of the id
    started: datetime  # with a time zone
    experiment: Mapping[str, Any]  # everything that makes it another measurement when it differs
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
    context: Mapping[str, Any] = field(default_factory=dict)  # what else was known at that time
    findings: Sequence[Mapping[str, str]] = ()  # id, severity, text

    def id(self) -> str:
        """The same result has the same id however often it is imported."""
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", self.name).strip("-.")[:40] or "run"
        content = asdict(self) | {"started": self.started.isoformat()}
        return f"{self.started:%Y%m%dT%H%M%SZ}-{name}-{short_hash(content, 8)}"

    def key(self) -> dict[str, str]:
        """The part of the key of its series that all its phases share."""
        what = {"tool": self.tool.split(" ")[0], "tasks": self.tasks, "nodes": self.nodes, **self.experiment}
        return {
            "system": self.system or host_stem(self.host) or "unknown",
            "file_system": self.file_system or self.target or "unknown",
            "plan_hash": short_hash([_EPOCH, what]),
            "node_class": self.node_class,
            "epoch": _EPOCH,
        }
