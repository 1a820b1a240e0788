# SPDX-License-Identifier: Apache-2.0
"""Error messages about files that are read or shipped, word for word."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from error_text import get_error_text

from sonde.model.bundled_files import find_bundled_toml_files, find_system_file, is_file_reference
from sonde.model.errors import (
    PlanError,
)
from sonde.model.event import read_events_file
from sonde.model.experiment import read_experiment
from sonde.model.file_text import read_text_file
from sonde.model.plan import read_plan_document
from sonde.model.schemas import read_schema_text
from sonde.model.system import read_system


def test_unreadable_text_files_have_exact_error_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(path: Path, largest: int = 1 << 20, regular: bool = False) -> str:
        message = get_error_text(lambda path: read_text_file(path, "plan file", largest, PlanError, regular), path)
        return message.replace(f"{tmp_path}/", "").replace(str(tmp_path), "HERE")

    assert of(tmp_path) == "HERE is a directory, not a plan file."
    assert of(tmp_path / "a") == "There is no plan file a."
    file = tmp_path / "b"
    file.write_bytes(b"x" * (1 << 20))
    assert of(file) == ""
    assert read_text_file(file, "plan file", 1 << 20, PlanError) == "x" * (1 << 20)
    file.write_bytes(b"x" * ((1 << 20) + 1))
    assert of(file) == "b is larger than 1 MiB; that cannot be a plan file."
    file.write_bytes(b"ab\xff")
    assert of(file) == "b is not a text file: byte 2 is not UTF-8."
    null = Path("/dev/null")
    assert of(null, regular=True) == "/dev/null is not a regular file, so it is no plan file."
    assert of(null) == ""
    file.write_bytes(b"x")

    def broken(*_: Any, **__: Any) -> str:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "open", broken)
    assert of(file) == "b cannot be read: Input/output error."


def test_shipped_files_are_resolved_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    systems = find_bundled_toml_files("systems")
    assert list(systems) == sorted(systems)
    assert systems["hpcs-demo"].name == "hpcs-demo.toml"
    assert find_system_file("hpcs-demo") == str(systems["hpcs-demo"])
    assert get_error_text(find_system_file, "hpcs-dmeo") == (
        f'There is no system file "hpcs-dmeo" and no described system of that name; described are {", ".join(systems)}.'
        ' Did you mean "hpcs-demo"?'
    )
    assert [is_file_reference(name, ["a"]) for name in ("a/b", "a.toml", "a.json", "a.txt", "a")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    (tmp_path / "hpcs-demo").touch()
    assert find_system_file("hpcs-demo") == str(systems["hpcs-demo"]), "a planted file does not count"
    (tmp_path / "own").touch()
    assert find_system_file("own") == "own"
    assert find_bundled_toml_files("no-such-folder") == {}
    inside = find_bundled_toml_files("systems", include_subfolders=True)
    assert set(systems) < set(inside), "those in folders of the folder too"


def test_missing_schema_file_is_reported() -> None:
    assert get_error_text(read_schema_text, "plan/none.json") == (
        "The schema file plan/none.json is missing from this installation; install sonde again."
    )


@pytest.mark.parametrize(
    ("read", "file_name", "description", "limit_mib"),
    [
        (read_plan_document, "a.toml", "plan file", 16),
        (read_events_file, "a.toml", "file of events", 256),
        (read_system, "a.toml", "system file", 256),
        (read_experiment, "a.toml", "experiment file", 16),
    ],
)
def test_too_large_file_is_not_read(
    read: Callable[[Any], object], file_name: str, description: str, limit_mib: int, tmp_path: Path
) -> None:
    """A hole takes no space."""
    file = tmp_path / file_name
    file.touch()
    os.truncate(file, (limit_mib << 20) + 1)
    assert get_error_text(read, str(file)) == f"{file} is larger than {limit_mib} MiB; that cannot be a {description}."
