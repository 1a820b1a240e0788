# SPDX-License-Identifier: Apache-2.0
"""Kinds of messages: lines that differ in numbers and names are one kind, and a new kind is reported once."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sonde.logs.message_kinds import find_new_message_kinds, store_kind_templates
from sonde.logs.rule_files import compile_rules, list_shipped_rule_files
from sonde.logs.scan import LogDefaults
from sonde.model.errors import EventError

RULES = compile_rules(list_shipped_rule_files().values())
DEFAULTS = LogDefaults(now=datetime(2026, 6, 1, tzinfo=UTC))
USUAL_MESSAGES = (
    "systemd[1]: Started Session {number} of user {user}.",
    "sshd[{number}]: Accepted publickey for {user} from 10.0.0.{number} port {number} ssh2",
    "kernel: Lustre: fs1-OST{number:04x}: Client {number:08x} (at 10.1.0.{number}@o2ib) reconnecting",
    "kernel: blk_update_request: I/O error, dev sdq, sector {number}",  # a rule matches
)
UNUSUAL = "kernel: LNetError: bogus frame {number} on link {number}, resetting the credit counter"


def write_log(path: Path, lines: int, *extra: str) -> Path:
    generator = random.Random(lines)
    with path.open("w", encoding="utf-8") as file:
        for index in range(lines):
            for message in (*USUAL_MESSAGES, *extra):
                number, user = generator.randrange(250), generator.choice(("anna", "root", "operator"))
                text = message.format(number=number, user=user)
                file.write(f"2026-03-17T08:{index % 60:02}:00Z oss{number % 4} {text}\n")
    return path


def scan(store: Path, log: Path) -> tuple[list[str], str]:
    events, sentence, templates = find_new_message_kinds([log], RULES, DEFAULTS, store)
    store_kind_templates(store, templates)
    return [event["title"] for event in events], sentence


def test_new_kind_is_reported_once(tmp_path: Path) -> None:
    store = tmp_path / "log-kinds.json"
    assert scan(store, write_log(tmp_path / "first", 100)) == (
        [],
        "3 kinds of messages learned; later scans report new ones.",
    )
    assert scan(store, write_log(tmp_path / "second", 120)) == ([], "0 new kinds of messages that no rule matches.")
    titles, sentence = scan(store, write_log(tmp_path / "third", 50, UNUSUAL))
    assert sentence == "1 new kind of messages that no rule matches."
    assert len(titles) == 1
    assert titles[0].endswith("kernel: LNetError: bogus frame <*> on link <*>, resetting the credit counter")
    assert scan(store, write_log(tmp_path / "fourth", 70, UNUSUAL))[0] == []


def test_event_has_time_and_first_line(tmp_path: Path) -> None:
    store = tmp_path / "log-kinds.json"
    scan(store, write_log(tmp_path / "first", 10))
    (event,), _, _ = find_new_message_kinds([write_log(tmp_path / "second", 30, UNUSUAL)], RULES, DEFAULTS, store)
    assert (event["when"], event["kind"]) == ("2026-03-17T08:00:00Z", "other")
    assert event["details"].startswith("30 lines: LNetError: bogus frame ")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "sonde-log-kinds/1", "templates": [1]}', "[" * 99999])
def test_damaged_store_is_rejected(tmp_path: Path, text: str) -> None:
    store = tmp_path / "log-kinds.json"
    store.write_text(text)
    with pytest.raises(EventError, match="remove it"):
        scan(store, write_log(tmp_path / "log", 1))


def test_many_new_kinds_are_fifty_events(tmp_path: Path) -> None:
    store = tmp_path / "log-kinds.json"
    scan(store, write_log(tmp_path / "first", 10))
    names = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefghij"]
    log = write_log(tmp_path / "second", 1, *(f"kernel: {name}x{name}: the {name} of {name} {name}" for name in names))
    events, sentence, templates = find_new_message_kinds([log], RULES, DEFAULTS, store)
    assert len(events) == 50
    assert sentence == "80 new kinds of messages that no rule matches. The first 50 are events."
    assert len(json.dumps(templates)) < 10_000
