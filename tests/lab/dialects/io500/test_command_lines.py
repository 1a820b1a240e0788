# SPDX-License-Identifier: Apache-2.0
"""The command lines of all phases are those that IO500 itself printed for the same ini file and time stamp."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sonde.dialects.io500.command_lines import is_phase_enabled, make_phase_command_line, make_run_directories
from sonde.dialects.io500.ini import read_ini_file
from sonde.dialects.io500.phases import ALL_PHASES, list_io500_phases

DATA = Path(__file__).resolve().parents[3] / "data"
# ini file, result.txt of IO500 isc26_v2, time stamp, extended mode
RECORDED = [
    ("io500/short.ini", "results/io500-isc26-result.txt", "STAMP1", False),
    ("io500/options.ini", "io500/options-result.txt", "2026.11.22-03.30.06", True),
]


def parse_command_lines(path: Path) -> dict[str, str]:
    """Phase -> the command line in a result file; the phases in its order."""
    text = path.read_text(encoding="utf-8")
    sections = re.findall(r"^\[([\w-]+)\]\n(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    # IO500 forgets to end the line of one of its warnings.
    matches = {name: re.search(r"(?:^|limits!)exe\s+= (.*)$", body, re.MULTILINE) for name, body in sections}
    return {name: exe[1] if exe else "" for name, exe in matches.items() if name not in ("run", "SCORE", "SCOREX")}


@pytest.mark.parametrize(("ini_file", "result_file", "stamp", "extended"), RECORDED, ids=["standard", "every option"])
def test_command_lines_equal_recorded_io500_command_lines(
    ini_file: str, result_file: str, stamp: str, extended: bool
) -> None:
    config, wanted = read_ini_file(DATA / ini_file), parse_command_lines(DATA / result_file)
    phases = list_io500_phases(extended)
    assert [phase.name for phase in phases] == list(wanted)
    for phase in phases:
        if phase.is_measured:
            assert (
                " ".join(make_phase_command_line(phase, config, make_run_directories(config, stamp)))
                == wanted[phase.name]
            ), phase.name


@pytest.mark.parametrize("ini_file", ["short.ini", "options.ini"])
def test_command_lines_and_hash_equal_the_installed_io500(ini_file: str, tmp_path: Path) -> None:
    program = shutil.which("io500")
    if program is None:
        pytest.skip("there is no io500 on PATH to compare with")
    text = re.sub(r"/scratch|/home/user", ".", (DATA / "io500" / ini_file).read_text(encoding="utf-8"))
    # One process, without a launcher.
    (tmp_path / "my.ini").write_text(text.replace("nproc = 2", "nproc = 1"))
    (tmp_path / "search.sh").write_text("#!/bin/sh\n")
    (tmp_path / "search.sh").chmod(0o755)
    command_line = [program, "my.ini", "--timestamp=T", "--dry-run", "--mode=extended"]
    done = subprocess.run(command_line, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    config = read_ini_file(tmp_path / "my.ini")
    places = make_run_directories(config, "T")
    result = tmp_path / places.results / "result.txt"
    for phase, wanted in parse_command_lines(result).items():
        phase_found = next(phase_type for phase_type in ALL_PHASES if phase_type.name == phase)
        if phase_found.tool in ("ior", "mdtest", "find"):
            assert " ".join(make_phase_command_line(phase_found, config, places)) == wanted, phase
    assert f"config-hash     = {config.settings_hash}\n" in result.read_text()


def test_every_phase_has_section_and_can_be_disabled() -> None:
    config = read_ini_file(DATA / "io500/short.ini")
    for phase in ALL_PHASES:
        assert is_phase_enabled(phase, config)
        if phase.is_measured:
            assert not is_phase_enabled(phase, config.replace_values({(phase.name, "run"): "FALSE"}))
            assert not is_phase_enabled(phase, config.replace_values({(phase.part, "run"): "FALSE"}))


def test_cleanup_runs_only_the_delete_phases() -> None:
    assert [phase.name for phase in list_io500_phases(False, includes_removal=True)] == [
        "mdtest-easy-delete",
        "mdtest-hard-delete",
    ]
