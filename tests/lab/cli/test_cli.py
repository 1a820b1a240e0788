# SPDX-License-Identifier: Apache-2.0
"""The command: help, version, and what it prints when something fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from sonde.cli.main import command, list_verbs

Fake = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("short_report")


def test_every_verb_has_help_with_examples(sonde: Any) -> None:
    for verb in list_verbs():
        result = sonde(verb, "--help")
        assert result.code == 0
        assert "Examples:" in result.out
        assert f"sonde {verb}" in result.out
        assert result.err == ""


def test_the_command_alone_shows_help(sonde: Any) -> None:
    result = sonde()
    assert result.code == 0
    assert "sonde check /scratch" in result.out
    for verb in list_verbs():
        assert verb in result.out


def test_every_option_has_help() -> None:
    for verb in list_verbs():
        verb_command = command.get_command(click.Context(command), verb)
        assert verb_command is not None
        assert verb_command.name == verb
        for parameter in verb_command.params:
            assert isinstance(parameter, click.Argument) or (isinstance(parameter, click.Option) and parameter.help)


def test_version_option_prints_version(sonde: Any) -> None:
    result = sonde("--version")
    assert result.code == 0
    assert result.out.startswith("sonde ")


def test_archive_option_overrides_environment(sonde: Any, quick_result: Any, tmp_path: Path, target: Path) -> None:
    other = tmp_path / "other"
    assert sonde("run", "quick", "--on", target, "--archive", other).code == 0
    assert len(sonde("list", "--json", "--archive", other).json) == 1


def test_internal_error_prints_sentence_and_details_file(
    sonde: Any, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fail_unexpectedly(self: object) -> None:
        raise RuntimeError("unthinkable")

    monkeypatch.setattr("sonde.store.archive.Archive.recover_unfinished_runs", fail_unexpectedly)
    result = sonde("list")
    assert result.code == 1
    assert len(result.err.splitlines()) == 1
    assert "RuntimeError: unthinkable" in result.err
    (file,) = tmp_path.glob("sonde-error-*.txt")
    assert "Traceback" in file.read_text()
    monkeypatch.setenv("SONDE_DEBUG", "1")
    with pytest.raises(RuntimeError):
        sonde("list")


def test_interrupt_outside_run_exits_with_5(sonde: Any, monkeypatch: pytest.MonkeyPatch, archive: Path) -> None:
    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sonde.store.archive.Archive.recover_unfinished_runs", interrupted)
    assert sonde("list").code == 5


def test_control_characters_in_names_are_escaped(sonde: Any, fake_engine: Fake, tmp_path: Path) -> None:
    result = sonde("run", "quick", "--on", "no\x1b[31m\nsuch")
    assert result.code == 2
    assert "\x1b" not in result.err
    assert len(result.err.splitlines()) == 1


def test_markup_in_names_is_printed_as_text(sonde: Any, fake_engine: Fake, tmp_path: Path) -> None:
    odd = tmp_path / "[bold]odd[/bold] [/nope]"
    odd.mkdir(parents=True)
    for arguments in (
        ["run", "quick", "--on", odd],
        ["show"],
        ["list"],
        ["plan", "quick", "--on", odd],
        ["doctor", odd],
    ):
        result = sonde(*arguments)
        assert result.code == 0, result.err
    heading, *lines = sonde("list").out.splitlines()
    begin, end = heading.index("target"), heading.index("tasks")  # a long place takes several lines of its column
    assert "[bold]odd[/bold][/nope]" in "".join(line[begin:end] for line in lines).replace(" ", "")
