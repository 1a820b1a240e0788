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
from sonde.logs.log_file import READ_ERRORS, open_log_files
from sonde.logs.prefilter import MAX_LINE_BYTES
from sonde.logs.rule_files import CompiledRule
from sonde.logs.scan import (
    MAX_CLOCK_ADVANCE,
    LogDefaults,
    group_rotated_files,
    replace_unprintable_characters,
    require_opened,
)
from sonde.model.confined_files import write_file
from sonde.model.documents import parse_json
from sonde.model.errors import EventError, MachineError
from sonde.model.event.description import EVENT_FORMAT
from sonde.model.file_text import read_text_file
from sonde.model.units import format_count_with_noun

KINDS_FILE = "log-kinds.json"
_KINDS_FORMAT = "sonde-log-kinds/1"
_MAX_KINDS = 10_000
_MAX_NEW_KIND_EVENTS = 50
_MAX_FILE_BYTES = 64 << 20
_MAX_CACHED_LINES = 200_000
_VARIABLE_WORD = "<*>"
# A word with a digit is a number, an address, a device or an id.
_WORD_WITH_DIGIT_PATTERN = re.compile(r"[\w.@:/%+-]*\d[\w.@:/%+-]*")
_PLACEHOLDER_PATTERN = re.compile(r"\{\w+\}")
# Share of the words that lines of one kind have in common.
_MIN_COMMON_WORD_SHARE = 0.5


@dataclass(frozen=True)
class MessageKind:
    """A kind of message that was not known: its template, its first line, and how many lines it has."""

    template: str
    first: datetime
    host: str
    line: str
    source: str
    count: int = 1


class MessageKindMiner:
    """Groups log messages into kinds: messages of one kind differ only in their variable parts. `new_kinds` are those
    that were not in the known templates."""

    def __init__(self, rules: Iterable[CompiledRule], known_templates: Iterable[str]) -> None:
        try:
            from drain3.drain import Drain
        except ImportError as reason:
            raise MachineError(
                f"New kinds of messages need the package drain3-improved ({reason}): pip install drain3-improved."
            ) from None
        self._drain = Drain(sim_th=_MIN_COMMON_WORD_SHARE, max_clusters=_MAX_KINDS, param_str=_VARIABLE_WORD)
        self._rules = [(rule.literals, rule.program, _compile_patterns(rule)) for rule in rules]
        self._known = set(known_templates)
        for template in sorted(self._known):
            self._drain.add_log_message(template)
        self.new_kinds: dict[int, MessageKind] = {}

    def add_message(self, log_line: LogLine, message_time: datetime, source_name: str) -> None:
        """Counts one message, unless a rule matches it."""
        masked = _WORD_WITH_DIGIT_PATTERN.sub(
            _VARIABLE_WORD, f"{log_line.program}: {log_line.text}" if log_line.program else log_line.text
        )
        if masked in self._known or not masked.strip() or self._matches_a_rule(log_line):
            return
        cluster, change = self._drain.add_log_message(masked)
        number = int(cluster.cluster_id)
        if change == "cluster_created":
            self.new_kinds[number] = MessageKind(masked, message_time, log_line.host, log_line.text[:500], source_name)
        elif number in self.new_kinds:
            kind = self.new_kinds[number]
            self.new_kinds[number] = replace(kind, template=cluster.get_template(), count=kind.count + 1)
        elif len(self._known) < _MAX_CACHED_LINES:
            self._known.add(masked)

    def list_templates(self) -> list[str]:
        """Templates of all kinds, known and new."""
        return sorted({cluster.get_template() for cluster in self._drain.clusters})

    def _matches_a_rule(self, log_line: LogLine) -> bool:
        return any(
            pattern.search(log_line.text) and (program is None or program.fullmatch(log_line.program))
            for literals, program, pattern in self._rules
            if not literals or any(literal in log_line.text for literal in literals)
        )


def _compile_patterns(compiled_rule: CompiledRule) -> re.Pattern[str]:
    """One pattern of all lines that a rule uses."""
    end = _PLACEHOLDER_PATTERN.sub(".*", compiled_rule.rule.end_pattern) if compiled_rule.rule.type == "pair" else ""
    return re.compile(f"{compiled_rule.pattern.pattern}|(?:{end})") if end else compiled_rule.pattern


def find_new_message_kinds(
    log_files: Sequence[Path], rules: Sequence[CompiledRule], log_defaults: LogDefaults, templates_file: Path
) -> tuple[list[dict[str, Any]], str, list[str]]:
    """Events for kinds of messages that the file `templates_file` does not have, a sentence on them, and all templates.

    Without that file all kinds are learned and no events are created.
    """
    known_templates = _read_kind_templates(templates_file)
    miner = MessageKindMiner(rules, known_templates or ())
    for family in group_rotated_files(log_files):
        for path, opened in zip(family, open_log_files(family), strict=True):
            try:
                with require_opened(opened) as file:
                    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                    parser = LineParser(LineContext(log_defaults.zone, written, log_defaults.boot, log_defaults.host))
                    limit = (log_defaults.now or datetime.now(UTC)) + MAX_CLOCK_ADVANCE
                    while raw := file.readline(MAX_LINE_BYTES):
                        line = parser.parse_line(raw.decode("utf-8", "replace").rstrip("\r\n"))
                        if line.time is not None and line.time <= limit:
                            miner.add_message(line, line.time, str(path))
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
    left_out = f" The first {_MAX_NEW_KIND_EVENTS} are events." if len(kinds) > _MAX_NEW_KIND_EVENTS else ""
    sentence = f"{format_count_with_noun(len(kinds), 'new kind')} of messages that no rule matches.{left_out}"
    return [_make_kind_event(kind) for kind in kinds[:_MAX_NEW_KIND_EVENTS]], sentence, templates


def store_kind_templates(templates_file: Path, templates: Sequence[str]) -> None:
    """Stores the templates of all known kinds. Raises MachineError."""
    try:
        write_file(templates_file, json.dumps({"schema": _KINDS_FORMAT, "templates": list(templates)}, indent=1) + "\n")
    except OSError as reason:
        raise MachineError(f"{templates_file} cannot be written: {reason.strerror}.") from None


def _read_kind_templates(templates_file: Path) -> list[str] | None:
    """The stored templates; None without the file. Raises EventError when it is damaged."""
    if not templates_file.exists():
        return None
    try:
        document = parse_json(read_text_file(templates_file, "file of log kinds", _MAX_FILE_BYTES, EventError))
        templates = document["templates"]
        if document["schema"] != _KINDS_FORMAT or not all(isinstance(template, str) for template in templates):
            raise ValueError("it has another format")
    except (ValueError, KeyError, TypeError) as reason:
        raise EventError(
            f"{templates_file} is damaged ({reason}); remove it, and the next scan learns again."
        ) from None
    return [str(template) for template in templates]


def _make_kind_event(message_kind: MessageKind) -> dict[str, Any]:
    first = message_kind.first.astimezone(UTC)
    digest = hashlib.sha256(message_kind.template.encode()).hexdigest()[:8]
    host = f" on {message_kind.host}" if message_kind.host else ""
    count = f"{format_count_with_noun(message_kind.count, 'line')}: " if message_kind.count > 1 else ""
    return {
        "schema": EVENT_FORMAT,
        "id": f"{first:%Y-%m-%d}-new-kind-{digest}",
        "when": f"{first:%Y-%m-%dT%H:%M:%S}Z",
        "kind": "other",
        "title": replace_unprintable_characters(f"new kind of message{host}: {message_kind.template[:200]}").strip(),
        "details": replace_unprintable_characters(f"{count}{message_kind.line}"),
        "source": replace_unprintable_characters(f"{message_kind.source}, no rule"),
        "tags": ["log", "new-kind", "info"],
    }
