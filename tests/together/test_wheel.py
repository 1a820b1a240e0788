# SPDX-License-Identifier: Apache-2.0
"""The wheel without programs on every Python that is here: installed with what it requires, it reads, imports, compares
and reports; without the engine it says what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def run(*command: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command without the modules of this process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SONDE_"))}
    return subprocess.run(
        [str(argument) for argument in command],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as tools/release.py builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = (sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", folder, ROOT)
    done = run(*command, SONDE_PURE="1", SONDE_NO_MPI="1")
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("sonde-*-py3-none-any.whl")
    return path


@pytest.fixture(scope="module", params=VERSIONS)
def sonde(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in an environment of that Python, with nothing else installed."""
    python = shutil.which(f"python{request.param}")
    if python is None or run(python, "--version").returncode != 0:
        pytest.skip(f"there is no Python {request.param} here")
    folder = tmp_path_factory.mktemp("environment")
    assert run(python, "-m", "venv", folder).returncode == 0
    done = run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    assert done.returncode == 0, done.stderr
    return folder / "bin" / "sonde"


def test_laptop_reads_imports_compares_and_reports(sonde: Path, tmp_path: Path) -> None:
    rows = ["start,operation,rate,benchmark"]
    rows += [f"2026-01-{day:02d}T00:00:00Z,write,{2 if day < 7 else 1},daily" for day in range(1, 13)]
    (tmp_path / "rates.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    variables = {"SONDE_ARCHIVE": str(tmp_path / "archive")}
    columns = ("time=start", "op=operation", "rate=rate GiB/s", "experiment=benchmark")
    options = [option for column in columns for option in ("--map", column)]
    done = run(sonde, "import", tmp_path / "rates.csv", *options, "--system", "ours", **variables)
    assert done.returncode == 0, done.stderr
    done = run(sonde, "list", "--json", **variables)
    assert done.stdout.count('"status"') == 12, done.stdout + done.stderr
    done = run(sonde, "compare", "2026-01-01..2026-01-06", "2026-01-07..2026-01-12", **variables)
    assert "slower" in done.stdout, done.stdout + done.stderr
    done = run(sonde, "trend", "-o", tmp_path / "trend.html", **variables)
    assert (tmp_path / "trend.html").is_file(), done.stderr
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copy(ROOT / "tests" / "data" / "records" / "sonde-0.1.0.ndjson", folder / "record.ndjson")
    done = run(sonde, "report", folder, "-o", tmp_path / "report.html", **variables)
    assert (tmp_path / "report.html").is_file(), done.stderr


def test_verb_without_its_program_explains_the_remedy(sonde: Path, tmp_path: Path) -> None:
    done = run(sonde, "check", tmp_path, SONDE_ARCHIVE=str(tmp_path / "archive"))
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert "engine" in done.stderr
