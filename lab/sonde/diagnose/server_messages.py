# SPDX-License-Identifier: Apache-2.0
"""Messages of servers as evidence: which kinds of messages the logs of the slow time have.

The simulator writes the messages of a real server, so what a fault logs is simulated as its rates are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sonde.diagnose.library import list_diagnosis_experiments, list_shipped_log_rules
from sonde.logs.log_file import READ_ERRORS, open_log_files
from sonde.logs.rule_files import CompiledRule
from sonde.model.errors import UserError

# The experiment during whose simulation messages are collected, and the one that asks for them.
SIMULATED_WITH, MESSAGE_EXPERIMENT = "every-target", "server-messages"
# Assumptions: the logs have the message of a cause that logs one this often; they have it for other reasons this often.
LOGGED_WITH_CAUSE, LOGGED_BY_CHANCE = 0.95, 0.05


@dataclass(frozen=True)
class ServerMessageKind:
    """Log rules of which a line matches one, and what groups of their patterns must be."""

    id: str
    rules: tuple[CompiledRule, ...]
    groups: Mapping[str, re.Pattern[str]]

    def matches_line(self, log_line: bytes) -> bool:
        """Whether a line of a log is such a message."""
        return any(self._matches_rule(rule, log_line) for rule in self.rules)

    def _matches_rule(self, rule: CompiledRule, log_line: bytes) -> bool:
        if not any(text.encode() in log_line for text in rule.rule.contains):
            return False
        match = rule.pattern.search(log_line.decode("utf-8", "replace"))
        return match is not None and all(
            pattern.fullmatch(match.groupdict().get(name) or "") for name, pattern in self.groups.items()
        )

    def describe_matching_rules(self) -> str:
        """All that decides whether a line is such a message, as a text."""
        return str([self.id, [rule.rule for rule in self.rules], dict(self.groups)])


@cache
def list_server_message_kinds() -> tuple[ServerMessageKind, ...]:
    """Kinds of messages that experiments of the library ask for."""
    rules = list_shipped_log_rules()
    return tuple(
        ServerMessageKind(
            phase.id,
            tuple(rules[name] for name in phase.rules),
            {group: re.compile(text) for group, text in (phase.where or {}).items()},
        )
        for experiment in list_diagnosis_experiments()
        for phase in experiment.message_phases
    )


def find_messages(logs: Sequence[Path]) -> dict[str, bool]:
    """Returns for each kind whether a line of the logs is such a message. Raises UserError for an unreadable file."""
    kinds = list_server_message_kinds()
    messages = {kind.id: False for kind in kinds}
    for path in logs:
        try:
            (opened,) = open_log_files([path])
            if isinstance(opened, OSError):
                raise opened
            with opened:
                for line in opened:
                    for kind in kinds:
                        messages[kind.id] = messages[kind.id] or kind.matches_line(line)
        except READ_ERRORS as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise UserError(f"{path} cannot be read as a log: {reason}.") from None
    return messages
