# SPDX-License-Identifier: Apache-2.0
"""Messages of servers as evidence: which kinds of messages the logs of the slow time have, and which parts they name.

The simulator writes the messages of a real server, so what a fault logs is simulated as its rates are.

Messages have names: that of their kind, or `KIND PART` for each part that messages of a kind can name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from sonde.diagnose.description import SERVER
from sonde.diagnose.hypotheses import Hypothesis
from sonde.diagnose.library import list_diagnosis_experiments, list_shipped_log_rules
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.logs.line_formats import LineContext, LineParser
from sonde.logs.log_file import READ_ERRORS, open_log_files
from sonde.logs.rule_files import CompiledRule, fill_template
from sonde.model.errors import UserError
from sonde.stats.ranks import Floats

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
    part_kind: str = ""

    def find_part_names(self, log_line: bytes) -> frozenset[str] | None:
        """Returns how a message names parts: ids, hosts or addresses; empty for none. None for another line."""
        for rule in self.rules:
            if any(text.encode() in log_line for text in rule.rule.contains):
                line = LineParser(LineContext()).parse_line(log_line.decode("utf-8", "replace"))
                match = rule.pattern.search(line.text)
                if match is not None and all(
                    pattern.fullmatch(match.groupdict().get(name) or "") for name, pattern in self.groups.items()
                ):
                    if self.part_kind == SERVER:
                        return frozenset((line.host,))
                    names = {fill_template(part, match.groupdict()) for part in rule.rule.parts}
                    return frozenset(names or {""})
        return None

    def describe_matching_rules(self) -> str:
        """All that decides whether a line is such a message, and which parts it names, as a text."""
        return str([self.id, [rule.rule for rule in self.rules], dict(self.groups), self.part_kind])


@cache
def list_server_message_kinds() -> tuple[ServerMessageKind, ...]:
    """Kinds of messages that experiments of the library ask for."""
    rules = list_shipped_log_rules()
    return tuple(
        ServerMessageKind(
            phase.id,
            tuple(rules[name] for name in phase.rules),
            {group: re.compile(text) for group, text in (phase.where or {}).items()},
            phase.part_kind,
        )
        for experiment in list_diagnosis_experiments()
        for phase in experiment.yes_or_no_phases
        if phase.rules
    )


def list_parts_in_messages(machine: DiagnosedMachine, part_kind: str) -> tuple[str, ...]:
    """The parts of a machine that messages can name; none for messages that name no parts."""
    return tuple(name for group in machine.part_groups if group.kind == part_kind for name in group.members)


def list_message_names(message_id: str, part_kind: str, machine: DiagnosedMachine) -> tuple[str, ...]:
    """The names of messages of one kind on a machine: one for each part that they can name, or the kind."""
    return tuple(f"{message_id} {part}" for part in list_parts_in_messages(machine, part_kind)) or (message_id,)


def compute_chance_of_message(name_count: int) -> float:
    """Probability that logs have a message of one name for other reasons than a cause, where a kind has so many."""
    return float(1 - (1 - LOGGED_BY_CHANCE) ** (1 / name_count))


def find_named_part(hypothesis: Hypothesis, part_kind: str, member: str, machine: DiagnosedMachine) -> str:
    """The part that messages about a member of a hypothesis name; empty when they do not name it."""
    group_kind = hypothesis.group.kind if hypothesis.group else ""
    if group_kind == "target" and part_kind == SERVER:
        return machine.target_servers.get(member, "")
    return member if group_kind == part_kind else ""


def compute_message_probability(probabilities: Mapping[str, Floats], message_name: str) -> Floats | None:
    """The probability of a message of this name, from those of all names of a machine. That of a kind without a part
    is that of one about any part. None when it is not predicted."""
    if message_name in probabilities:
        return probabilities[message_name]
    of_parts = [value for name, value in probabilities.items() if name.startswith(f"{message_name} ")]
    if not of_parts:
        return None
    return np.asarray(1 - np.prod(np.stack(np.broadcast_arrays(*(1 - value for value in of_parts))), axis=0))


def find_messages(logs: Sequence[Path], machine: DiagnosedMachine) -> dict[str, bool]:
    """Returns for each name whether a line of the logs is such a message. A kind whose messages name unknown parts is
    one name. Raises UserError for an unreadable file."""
    kinds = list_server_message_kinds()
    parts_by_name = {kind.id: _list_names_of_parts(machine, kind.part_kind) for kind in kinds}
    logged: dict[str, set[str]] = {}
    for path in logs:
        try:
            (opened,) = open_log_files([path])
            if isinstance(opened, OSError):
                raise opened
            with opened:
                for line in opened:
                    for kind in kinds:
                        if (names := kind.find_part_names(line)) is not None:
                            known_parts = parts_by_name[kind.id]
                            logged.setdefault(kind.id, set()).update(_find_part(known_parts, name) for name in names)
        except READ_ERRORS as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise UserError(f"{path} cannot be read as a log: {reason}.") from None
    messages: dict[str, bool] = {}
    for kind in kinds:
        parts = logged.get(kind.id, set())
        messages |= state_messages(kind.id, parts, kind.part_kind, machine) if "" not in parts else {kind.id: True}
    return messages


def state_messages(
    message_id: str, parts: Collection[str], part_kind: str, machine: DiagnosedMachine
) -> dict[str, bool]:
    """Returns for each name of a kind whether there is such a message, when its messages are about `parts`."""
    names = list_message_names(message_id, part_kind, machine)
    if names == (message_id,):
        return {message_id: bool(parts)}
    return {name: name.removeprefix(f"{message_id} ") in parts for name in names}


def describe_messages(messages: Mapping[str, bool]) -> dict[str, str]:
    """Returns for each kind of message whether there is one: yes, no, or the parts that messages name."""
    parts: dict[str, list[str]] = {}
    for name, is_logged in messages.items():
        message_id, _, part = name.partition(" ")
        parts.setdefault(message_id, []).extend([part or "yes"] if is_logged else [])
    return {message_id: ", ".join(logged) or "no" for message_id, logged in parts.items()}


def _find_part(parts_by_name: Mapping[str, str], name: str) -> str:
    """The part of a name; of an LNet id without an address, like `r1@gni`, the part of that id."""
    return parts_by_name.get(name) or parts_by_name.get(name.partition("@")[0], "")


def _list_names_of_parts(machine: DiagnosedMachine, part_kind: str) -> dict[str, str]:
    """The parts of a kind by all texts that name them in messages: id, addresses, and LNet ids."""
    parts = set(list_parts_in_messages(machine, part_kind))
    names = {}
    for part in machine.document.get(f"{part_kind}s", ()) if part_kind else ():
        if part["id"] in parts:
            names[part["id"]] = part["id"]
            for interface in part.get("interfaces", ()):
                for member in ("nid", "address"):
                    if isinstance(text := interface.get(member), str):
                        names[text] = part["id"]
    return names
