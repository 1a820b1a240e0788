# SPDX-License-Identifier: Apache-2.0
"""A file that a verb writes needs an existing directory: a mistyped path makes no folders."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from sonde.cli.compare import command as compare
from sonde.cli.main import main
from sonde.cli.options import OutputFile
from sonde.cli.report import command as report
from sonde.cli.trend import command as trend


@pytest.mark.parametrize("verb", [report, compare, trend])
def test_page_options_take_files_in_existing_directories(verb: click.Command) -> None:
    (option,) = [parameter for parameter in verb.params if parameter.name == "output"]
    assert isinstance(option.type, OutputFile)


def test_missing_directory_is_rejected_and_not_created(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "missing" / "deeper" / "page.html"
    assert main(["report", "last", "--archive", str(tmp_path), "-o", str(page)]) == 2
    assert f"{page.parent} is no existing directory" in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []
