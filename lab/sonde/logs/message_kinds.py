# SPDX-License-Identifier: Apache-2.0
"""Kinds of log messages that no rule matches: lines that differ only in numbers and names are one kind (Drain).

A kind is new when no earlier scan saw it. The known kinds are stored as their templates, in one JSON file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sonde.logs.line_formats import LineContext, LineParser, LogLine
from sonde.logs.log_file import READ_ERRORS, open_logs
from sonde.logs.prefilter import MAX_LINE_BYTES
from sonde.logs.rule_files import CompiledRule
from sonde.logs.scan import FUTURE, LogDefaults, clean_text, group_rotated_files, require_opened
from sonde.model.confined_files import write_file
from sonde.model.documents import parse_json
from sonde.model.errors import EventError, MachineError
from sonde.model.event.description import EVENT_FORMAT
from sonde.model.file_text import read_text_file
from sonde.model.units import format_count_with_noun

KINDS_FILE = "log-kinds.json"
_KINDS_FORMAT = "sonde-log-kinds/1"
_MOST_KINDS = 10_000
_MOST_EVENTS = 50
_MAX_FILE_BYTES = 64 << 20
_MOST_REMEMBERED_LINES = 200_000
_VARIABLE = "<*>"
# A word with a digit is a number, an address, a device or an id.
_WORD_WITH_DIGIT = re.compile(r"[\w.@:/%+-]*\d[\w.@:/%+-]*")
_PLACEHOLDER = re.compile(r"\{\w+\}")
# Share of the words that lines of one kind have in common.
_SIMILARITY = 0.5


@dataclass(frozen=True)
class MessageKind:
    """A kind of message that was not known: its template, its first line, and how many lines it has."""

    template: str
    first: datetime
    host: str
    line: str
    source: str
    count: int = 1


class KindMiner:
    """Assigns messages to kinds. `new_kinds` are those that were not in the known templates."""

    def __init__(self, rules: Iterable[CompiledRule], known_templates: Iterable[str]) -> None:
        try:
            from drain3.drain import Drain
        except ImportError as reason:
            raise MachineError(
                f"New kinds of messages need the package drain3-improved ({reason}): pip install 'sonde[logs]'."
            ) from None
        self._drain = Drain(sim_th=_SIMILARITY, max_clusters=_MOST_KINDS, param_str=_VARIABLE)
        self._rules = [(rule.literals, rule.program, _compile_patterns(rule)) for rule in rules]
        self._known = set(known_templates)
        for template in sorted(self._known):
            self._drain.add_log_message(template)
        self.new_kinds: dict[int, MessageKind] = {}

    def add(self, line: LogLine, time: datetime, source: str) -> None:
        """Counts one message, unless a rule matches it."""
        masked = _WORD_WITH_DIGIT.sub(_VARIABLE, f"{line.program}: {line.text}" if line.program else line.text)
        if masked in self._known or not masked.strip() or self._has_rule(line):
            return
        cluster, change = self._drain.add_log_message(masked)
        number = int(cluster.cluster_id)
        if change == "cluster_created":
            self.new_kinds[number] = MessageKind(masked, time, line.host, line.text[:500], source)
        elif number in self.new_kinds:
            kind = self.new_kinds[number]
            self.new_kinds[number] = replace(kind, template=cluster.get_template(), count=kind.count + 1)
        elif len(self._known) < _MOST_REMEMBERED_LINES:
            self._known.add(masked)

    def list_templates(self) -> list[str]:
        """Templates of all kinds, known and new."""
        return sorted({cluster.get_template() for cluster in self._drain.clusters})

    def _has_rule(self, line: LogLine) -> bool:
        return any(
            pattern.search(line.text) and (program is None or program.fullmatch(line.program))
            for literals, program, pattern in self._rules
            if not literals or any(literal in line.text for literal in literals)
        )


def _compile_patterns(compiled: CompiledRule) -> re.Pattern[str]:
    """One pattern of all lines that a rule uses."""
    end = _PLACEHOLDER.sub(".*", compiled.rule.end_pattern) if compiled.rule.type == "pair" else ""
    return re.compile(f"{compiled.pattern.pattern}|(?:{end})") if end else compiled.pattern


def find_new_kinds(
    logs: Sequence[Path], rules: Sequence[CompiledRule], defaults: LogDefaults, store: Path
) -> tuple[list[dict[str, Any]], str, list[str]]:
    """Events for kinds of messages that the file `store` does not have, a sentence on them, and all templates.

    Without that file everything is learned and there are no events.
    """
    known_templates = _read_templates(store)
    miner = KindMiner(rules, known_templates or ())
    for family in group_rotated_files(logs):
        for path, opened in zip(family, open_logs(family), strict=True):
            try:
                with require_opened(opened) as file:
                    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                    parser = LineParser(LineContext(defaults.zone, written, defaults.boot, defaults.host))
                    limit = (defaults.now or datetime.now(UTC)) + FUTURE
                    while raw := file.readline(MAX_LINE_BYTES):
                        line = parser.parse(raw.decode("utf-8", "replace").rstrip("\r\n"))
                        if line.time is not None and line.time <= limit:
                            miner.add(line, line.time, str(path))
            except READ_ERRORS:
                continue  # the scan by rules reports it
    kinds = sorted(miner.new_kinds.values(), key=lambda kind: kind.first)
    templates = miner.list_templates()
    if known_templates is None:
        return (
            [],
            f"{format_count_with_noun(len(templates), 'kind')} of messages learned; later scans report new ones.",
            templates,
        )
    left_out = f" The first {_MOST_EVENTS} are events." if len(kinds) > _MOST_EVENTS else ""
    sentence = f"{format_count_with_noun(len(kinds), 'new kind')} of messages that no rule matches.{left_out}"
    return [_make_event(kind) for kind in kinds[:_MOST_EVENTS]], sentence, templates


def store_kinds(store: Path, templates: Sequence[str]) -> None:
    """Stores the templates of all known kinds. Raises MachineError."""
    try:
        write_file(store, json.dumps({"schema": _KINDS_FORMAT, "templates": list(templates)}, indent=1) + "\n")
    except OSError as reason:
        raise MachineError(f"{store} cannot be written: {reason.strerror}.") from None


def _read_templates(store: Path) -> list[str] | None:
    """The stored templates; None without the file. Raises EventError when it is damaged."""
    if not store.exists():
        return None
    try:
        document = parse_json(read_text_file(store, "file of log kinds", _MAX_FILE_BYTES, EventError))
        templates = document["templates"]
        if document["schema"] != _KINDS_FORMAT or not all(isinstance(template, str) for template in templates):
            raise ValueError("it has another format")
    except (ValueError, KeyError, TypeError) as reason:
        raise EventError(f"{store} is damaged ({reason}); remove it, and the next scan learns again.") from None
    return [str(template) for template in templates]


def _make_event(kind: MessageKind) -> dict[str, Any]:
    first = kind.first.astimezone(UTC)
    digest = hashlib.sha256(kind.template.encode()).hexdigest()[:8]
    host = f" on {kind.host}" if kind.host else ""
    count = f"{format_count_with_noun(kind.count, 'line')}: " if kind.count > 1 else ""
    return {
        "schema": EVENT_FORMAT,
        "id": f"{first:%Y-%m-%d}-new-kind-{digest}",
        "when": f"{first:%Y-%m-%dT%H:%M:%S}Z",
        "kind": "other",
        "title": clean_text(f"new kind of message{host}: {kind.template[:200]}").strip(),
        "details": clean_text(f"{count}{kind.line}"),
        "source": clean_text(f"{kind.source}, no rule"),
        "tags": ["log", "new-kind", "info"],
    }
