# SPDX-License-Identifier: Apache-2.0
"""What is allowed in a plan and was hardly meant."""

from __future__ import annotations

from sonde.model.plan import Plan

_SMALLEST_MEANT = 8  # bytes: a number of double precision, the smallest thing that programs read and write alone


def remarks_on(plan: Plan) -> list[str]:
    """One sentence each, for people; none when all is ordinary."""
    tiny: dict[int, list[str]] = {}
    for phase in plan.resolved()["phases"]:
        transfer = phase.get("access", {}).get("transfer")
        if isinstance(transfer, int) and transfer < _SMALLEST_MEANT and phase["op"] in ("write", "read", "mixed"):
            tiny.setdefault(transfer, []).append(phase["id"])
    return [
        f"{plan.origin}: access.transfer of {', '.join(phases)} is {size} B: was a unit forgotten ({size}KiB,"
        f" {size}MiB)?"
        for size, phases in tiny.items()
    ]
