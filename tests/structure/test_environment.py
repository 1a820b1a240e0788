# SPDX-License-Identifier: Apache-2.0
"""uv installs the packages of developers from the indexes that pip is configured to use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import environment  # noqa: E402


@pytest.fixture(autouse=True)
def pip_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration file that replaces those of the machine and its user."""
    for variable in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONSTRAINT"):
        monkeypatch.delenv(variable, raising=False)
    file = tmp_path / "pip.conf"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    return file


PIP = [sys.executable, "-m", "pip"]


def test_pip_indexes_become_variables_of_uv(pip_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_settings.write_text("[global]\nindex-url = https://index.example/simple\ntimeout = 9\n")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://a.example/simple https://b.example/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels /more-wheels")
    variables = environment.read_uv_variables(PIP)
    assert variables == {
        "UV_DEFAULT_INDEX": "https://index.example/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_FIND_LINKS": "/wheels,/more-wheels",
    }


def test_pip_installs_where_uv_is_not_available(pip_settings: Path) -> None:
    pip_settings.write_text("[global]\nno-index = true\n")
    no_uv = [sys.executable, "-c", "import sys; sys.exit(1)"]
    assert not environment.install_with_uv("dev", "title", no_uv, ["numpy"])
