# SPDX-License-Identifier: Apache-2.0
"""The mark of tests that start the engine and the simulator."""

from __future__ import annotations

import pytest

from sonde.launch.engine import find_engine
from sonde.launch.simulator import find_simulator
from sonde.model.errors import MachineError


def are_programs_built() -> bool:
    try:
        find_engine()
        find_simulator()
    except MachineError:
        return False
    return True


needs_programs = pytest.mark.skipif(not are_programs_built(), reason="engine or simulator is not built")
