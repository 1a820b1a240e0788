# SPDX-License-Identifier: Apache-2.0
"""Declarations of the members of a file of log rules."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.model.event.description import EVENT_KINDS
from sonde.model.tables.members import declare_choice, declare_plain_number, declare_tables, declare_text, declare_texts

LOG_RULES_FORMAT = "sonde-log-rules/1"
RULE_TYPES = ("single", "threshold", "pair", "suppress", "repeat")
SEVERITIES = ("info", "warning", "error")


@dataclass(frozen=True, kw_only=True)
class LogRule:
    """One rule: lines that match become events, or are suppressed, or count as repetitions."""

    id: str = declare_text("name of the rule, used once", required=True, pattern=r"[a-z0-9][a-z0-9-]*")
    type: str = declare_choice(
        "single: every match is an event; threshold: `count` matches within `window`; pair: `pattern` until "
        "`end_pattern`; suppress: later rules of the file do not see the line; repeat: the line says how often the "
        "previous message of its host was repeated",
        RULE_TYPES,
        default_word="single",
    )
    pattern: str = declare_text("regular expression (Python) searched in the message", required=True)
    contains: tuple[str, ...] = declare_texts(
        "texts of which every matching line has at least one; they make the scan fast"
    )
    program: str = declare_text("regular expression for the whole name of the program, like kernel or ceph-osd")
    end_pattern: str = declare_text(
        "pair: regular expression of the line that ends it; {name} is the text of that group of `pattern`"
    )
    end_contains: tuple[str, ...] = declare_texts("pair: the same as `contains` for `end_pattern`")
    window: float | None = declare_plain_number(
        "duration",
        "threshold: time in which `count` lines lie; pair: the longest time until the end; single: later matches with "
        "the same title within this time of the first belong to its event",
    )
    count: int | None = declare_plain_number("count", "threshold: number of lines", min_value=1)
    kind: str = declare_choice("kind of the event", EVENT_KINDS, default_word="other")
    severity: str = declare_choice("how bad it is for measurements", SEVERITIES, default_word="warning")
    title: str = declare_text(
        "title of the event; {name} is the text of a group of `pattern`, {host} the host of the line"
    )
    parts: tuple[str, ...] = declare_texts("parts that the event happened to, written like `title`; default: the host")
    context: tuple[str, ...] = declare_texts(
        "contexts that must exist, or with ! before it must not; written like `title`"
    )
    creates: tuple[str, ...] = declare_texts("contexts that a match creates")
    deletes: tuple[str, ...] = declare_texts("contexts that a match deletes")
    lifetime: float | None = declare_plain_number("duration", "how long created contexts exist; default: until deleted")
    samples: tuple[str, ...] = declare_texts("real lines that match; they test the rule")
    end_samples: tuple[str, ...] = declare_texts("pair: real lines that end it")


@dataclass(frozen=True, kw_only=True)
class LogRulesFile:
    """Rules that turn lines of logs into events. The rules of a file see a line in their order."""

    schema: str = declare_choice("version of this format", (LOG_RULES_FORMAT,), required=True)
    title: str = declare_text("what the rules are about", required=True)
    rules: tuple[LogRule, ...] = declare_tables("the rules", LogRule, required=True)
