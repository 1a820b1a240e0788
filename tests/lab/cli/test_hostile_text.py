# SPDX-License-Identifier: Apache-2.0
"""Text that another user put into a run reaches no terminal as control characters, whichever verb prints it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archive_builders import store_run
from hypothesis import given
from hypothesis import strategies as st
from record_scene import Scene, Work
from rich.text import Text

from sonde.store.events import EVENTS_FILE
from sonde.telemetry.file_format import SAMPLED_FILE, TELEMETRY_FORMAT
from sonde.terminal.encoding import encode_json, escape_as_line, escape_control_characters
from sonde.terminal.screen import _NonCroppingConsole, make_plain_table

Sonde = Callable[..., Any]
RUNS = [f"2026010{day}T000000Z-hostile-0000000{day}" for day in range(1, 7)]
HOSTILE = {
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;cm0gLXJmIH4K\x07",
    "cursor": "\x1b[2J\x1b[H\x1b[1;31m",
    "c1": "\x9b31m\x9d0;owned\x9c\x90",
    "bidi": "\u202egnp.exe\u202c\u2066\u2067\u2069\u200f",
    "carriage": "good\rbad\b\b\b\x0b\x0c\x00\x7f",
    "separators": "a\u2028b\u2029c\x85d",
}
# What each archive of the test holds: sequences that a terminal executes, and characters that move text.
GROUPS = {
    "terminal": "".join(HOSTILE[name] for name in ("title", "clipboard", "cursor", "c1")),
    "layout": "".join(HOSTILE[name] for name in ("bidi", "carriage", "separators")),
}
# Newlines and tabs are the only ones that Sonde itself prints.
FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


STRUCTURE = {
    *("schema", "type", "status", "op", "backend", "cache", "stopped_by", "severity", "scope", "kind", "id", "phase"),
    *("started", "role", "columns", "classification", "validity", "launch", "definition", "unit", "extreme"),
}


def append_to_texts(value: Any, text: str, key: str = "") -> Any:
    """The document with `text` at the end of every text that is not part of the format."""
    if isinstance(value, dict):
        return {name: append_to_texts(item, text, name) for name, item in value.items()}
    if isinstance(value, list):
        return [append_to_texts(item, text, key) for item in value]
    return value + text if isinstance(value, str) and key not in STRUCTURE else value


@pytest.fixture(params=["terminal", "layout"])
def hostile_text(request: pytest.FixtureRequest, archive: Path) -> str:
    """An archive in which every text of every run holds such characters."""
    text = GROUPS[request.param]
    finding = {"id": f"odd{text}", "severity": "warning", "text": f"Odd{text}.", "phase": "write"}
    for number, run in enumerate(RUNS):
        folder = store_run(
            archive, run, Scene(works=[Work(findings=[finding]), Work(id="read", op="read")], seed=number)
        )
        document = append_to_texts(json.loads((folder / "run.json").read_text()), text)
        document["findings"] = [finding]
        (folder / "run.json").write_text(json.dumps(document))
        lines = [json.loads(line) for line in (folder / "record.ndjson").read_text().splitlines()]
        (folder / "record.ndjson").write_text("".join(json.dumps(append_to_texts(line, text)) + "\n" for line in lines))
        (folder / "tags.json").write_text(json.dumps({"tags": [f"tag{text}", "all"]}))
        (folder / SAMPLED_FILE).write_text("".join(json.dumps(line) + "\n" for line in make_telemetry_lines(text)))
    event = {"schema": "sonde-event/1", "id": "repair", "kind": "repair", "when": "2026-01-03"}
    (archive / EVENTS_FILE).write_text(json.dumps({**event, "title": f"Replaced{text}", "who": text, "source": text}))
    return text


def make_telemetry_lines(text: str) -> list[dict[str, Any]]:
    """Counters of a device and a file server whose names hold `text`, and a source that ended."""
    sources = {"disks": ["disk_read_bytes", "disk_written_bytes"]}
    times = [1767225600 + second for second in (0, 1, 2, 3600)]  # from 2026-01-01T00:00:00Z
    return [
        {
            "type": "telemetry",
            "schema": TELEMETRY_FORMAT,
            "host": f"n1{text}",
            "sources": sources,
            "unavailable": {text: text},
        },
        *({"type": "sample", "time": time, "disks": {f"sda{text}": [time, time]}} for time in times),
        {"type": "lost", "time": times[-1], "source": f"disks{text}", "text": text},
    ]


VERBS: list[tuple[str, ...]] = [
    ("list",),
    ("list", "--json"),
    ("list", "--tag", "all"),
    ("show", RUNS[0]),
    ("show", RUNS[0], "--json"),
    ("compare", RUNS[0], RUNS[1]),
    ("compare", RUNS[0], RUNS[1], "--json"),
    ("trend",),
    ("trend", "--json"),
    ("tag",),
    ("tag", "--json"),
    ("tag", RUNS[0]),
    ("query", "SELECT run, target, host, tags, findings FROM runs"),
    ("query", "SELECT * FROM runs"),
    ("query", "SELECT * FROM phases", "--json"),
    ("query", "SELECT * FROM phases_full"),
    ("query", "SELECT chr(27) || ']0;x' AS a, chr(10) AS b, 1 AS \"c\x1b[2J\""),
    ("query", "SELECT \x1b[2J FROM runs"),
    ("gate", RUNS[0], "--against", RUNS[1]),
    ("baseline", "show"),
    ("rm", "--dry-run", "--tag", "all"),
    ("telemetry", "show", RUNS[0]),
    ("telemetry", "show", RUNS[0], "--json"),
    ("event", "list"),
    ("event", "list", "--json"),
    ("event", "scan", "{log}", "--dry-run"),
    ("event", "scan", "{log}", "--json"),
    ("show", "\x1b]0;x\x07\x9b"),
    ("list", "--\x1b[2J"),
]


def test_no_verb_prints_control_characters(sonde: Sonde, hostile_text: str, tmp_path: Path) -> None:
    log = tmp_path / f"messages{hostile_text.replace(chr(0), '')}"
    log.write_text(
        f"Jan  3 12:00:00 node7{hostile_text} kernel: sda{hostile_text}: I/O error, dev sda{hostile_text}, sector 5\n"
        * 2
    )
    for verb in [*VERBS, ("export", str(tmp_path / "out.zip"), RUNS[0]), ("export", str(tmp_path / "out.csv"), *RUNS)]:
        result = sonde(*(str(log) if argument == "{log}" else argument for argument in verb))
        printed = result.out + result.err
        assert printed, verb
        assert "An error in Sonde itself" not in printed, (verb, printed)
        assert FORBIDDEN.findall(printed) == [], (verb, printed)


def test_json_of_hostile_text_reads_back_as_it_was(sonde: Sonde, hostile_text: str) -> None:
    assert sonde("tag", RUNS[0], "--json").json == {RUNS[0]: ["all", f"tag{hostile_text}"]}


def test_line_break_in_a_cell_makes_no_row(sonde: Sonde, archive: Path) -> None:
    folder = store_run(archive, RUNS[0], Scene())
    document = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**document, "target": "/a\nforged-run  2026-01-01  /b"}))
    assert not any(line.startswith("forged") for line in sonde("list").out.splitlines())
    assert not any(line.startswith("forged") for line in sonde("query", "SELECT target FROM runs").out.splitlines())


@given(st.text())
def test_encoded_text_holds_no_control_characters(text: str) -> None:
    assert not FORBIDDEN.search(escape_control_characters(text))
    assert not re.search(r"[\n\t]", escape_as_line(text))
    encoded = encode_json({"a": [text]})
    assert not FORBIDDEN.search(encoded)
    assert json.loads(encoded) == {"a": [text]}


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=200))
def test_visible_text_is_not_changed(text: str) -> None:
    assert escape_control_characters(text) == text


@pytest.mark.parametrize("text", HOSTILE.values())
def test_terminal_gets_styles_and_nothing_else(text: str) -> None:
    """rich's style codes reach the terminal; without them the text has no control characters."""
    file = io.StringIO()
    console = _NonCroppingConsole(
        file=file, force_terminal=True, width=80, color_system="standard", legacy_windows=False
    )
    table = make_plain_table()
    table.add_column("a")
    table.add_row(Text(text, style="red"))
    for item in (text, Text(text, style="bold red"), table):
        console.print(item)
    output = file.getvalue()
    assert "\x1b[" in output
    assert not FORBIDDEN.search(re.sub(r"\x1b\[[0-9;]*m", "", output))
