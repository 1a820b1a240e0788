# SPDX-License-Identifier: Apache-2.0
"""The worked example of routes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.design.routes.fabric import Fabric, find_fabrics
from sonde.model.system import read_system

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="session")
def cumulus() -> Fabric:
    (fabric,) = find_fabrics(read_system(ROOT / "systems" / "cumulus.toml"))
    return fabric
