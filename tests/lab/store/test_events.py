# SPDX-License-Identifier: Apache-2.0
"""Events of an archive: entered, entries, refused, never lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import EventError
from sonde.store.events import EVENTS_FILE, add_archive_events, make_event_id, read_archive_events

UPGRADE = {"schema": "sonde-event/1", "id": "u", "when": "2026-03-02", "kind": "upgrade", "title": "Upgraded the MDS"}


def test_added_events_are_read_in_order_of_time(tmp_path: Path) -> None:
    add_archive_events(tmp_path, [UPGRADE])
    add_archive_events(tmp_path, [{**UPGRADE, "id": "earlier", "when": "2026-03-01"}])
    assert [event.id for event in read_archive_events(tmp_path)] == ["earlier", "u"]


def test_archive_without_events_has_none(tmp_path: Path) -> None:
    assert read_archive_events(tmp_path) == []


@pytest.mark.parametrize(
    "wrong", [{"id": "u"}, {"when": "yesterday"}, {"kind": "party"}, {"hue": "red"}, {"parts": ["a[1-"]}]
)
def test_wrong_event_is_refused_and_nothing_is_written(tmp_path: Path, wrong: dict[str, object]) -> None:
    add_archive_events(tmp_path, [UPGRADE])
    before = (tmp_path / EVENTS_FILE).read_bytes()
    with pytest.raises(EventError):
        add_archive_events(tmp_path, [{**UPGRADE, "id": "new"}, {**UPGRADE, "id": "new2", **wrong}])
    assert (tmp_path / EVENTS_FILE).read_bytes() == before


def test_event_id_has_day_and_title() -> None:
    assert make_event_id("Upgraded the MDS to 2.15.5!", "2026-03-02") == "2026-03-02-upgraded-the-mds-to-2-15-5"
    assert make_event_id("…", "2026-03-02") == "2026-03-02"


def test_command_adds_imports_and_lists(tmp_path: Path, sonde: Any) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    result = sonde("event", "add", "Replaced a drive", "--at", "2026-03-05T09:30Z", "--kind", "repair",
                 "--parts", "drive1, drive2", "--archive", str(archive))  # fmt: skip
    assert (result.code, result.out) == (0, "Added 2026-03-05-replaced-a-drive: Replaced a drive\n")
    file = tmp_path / "maintenance.toml"
    file.write_text(
        'schema = "sonde-event/1"\nzone = "+01:00"\n[[events]]\nid = "m"\nwhen = "2026-03-04T18:00/2026-03-04T20:00"\n'
        'kind = "maintenance"\ntitle = "Firmware"\nscope = "parts"\n'
    )
    assert sonde("event", "import", str(file), "--archive", str(archive)).code == 0
    entries = json.loads(sonde("event", "list", "--json", "--archive", str(archive)).out)
    assert [entry["id"] for entry in entries] == ["m", "2026-03-05-replaced-a-drive"]
    assert entries[0]["when"].startswith("2026-03-04T18:00:00+01:00/2026-03-04T20:00:")
    assert (entries[0]["scope"], entries[1]["scope"]) == ("parts", "dependents")
    assert entries[1]["parts"] == ["drive1", "drive2"]


def test_wrong_time_is_one_sentence_with_exit_code_2(tmp_path: Path, sonde: Any) -> None:
    result = sonde("event", "add", "T", "--at", "soon", "--archive", str(tmp_path))
    assert result.code == 2
    assert "soon" in result.err
    assert len(result.err.splitlines()) == 1
