# SPDX-License-Identifier: Apache-2.0
"""Mistakes at random places of servers of random geometry: each is named with its reason, and nothing else is."""

from __future__ import annotations

from random import Random

import pytest
from drawn_array_mistakes import ARRAY_MISTAKES
from drawn_file_system_mistakes import FILE_SYSTEM_MISTAKES
from drawn_lustre_mistakes import LUSTRE_MISTAKES
from drawn_pool_mistakes import POOL_MISTAKES
from drawn_servers import DrawnServer, draw_server
from fault_naming import require_only
from layout_mistake import Mistake

MISTAKES = [*ARRAY_MISTAKES, *FILE_SYSTEM_MISTAKES, *POOL_MISTAKES, *LUSTRE_MISTAKES]
SEEDS = (2611, 2612)


def draw_server_for(mistake: Mistake, random: Random) -> DrawnServer:
    """A server on which the mistake can be made."""
    while True:
        server = draw_server(random)
        kind = server.plan.table.kind
        if (mistake.needs == "parity" and server.level != "10") or mistake.needs in ("", kind):
            return server


@pytest.mark.parametrize("seed", range(30))
def test_random_server_has_no_fault_in_many_comparisons(seed: int) -> None:
    verdict = draw_server(Random(seed)).check()
    assert verdict.faults == ()
    assert len(verdict.checked_items) > 60


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake.name for mistake in MISTAKES])
def test_random_mistake_is_reported_with_its_reason(mistake: Mistake, seed: int) -> None:
    random = Random(f"{seed}-{mistake.name}")
    server = draw_server_for(mistake, random)
    location = mistake.plant(server, random)
    require_only(server.check().faults, mistake.reason, location, mistake.consequences)


def test_mistakes_are_many_and_different() -> None:
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 101
