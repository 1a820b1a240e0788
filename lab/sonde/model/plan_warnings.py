# SPDX-License-Identifier: Apache-2.0
"""Warnings about plan members that are valid but probably a mistake."""

from __future__ import annotations

from sonde.model.plan import Plan

_MIN_PLAUSIBLE_TRANSFER_BYTES = 8  # bytes: one double, the smallest plausible transfer


def find_plan_warnings(plan: Plan) -> list[str]:
    """Returns one sentence for each suspicious member."""
    phases_by_transfer: dict[int, list[str]] = {}
    for phase in plan.resolve()["phases"]:
        transfer = phase.get("access", {}).get("transfer")
        if (
            isinstance(transfer, int)
            and transfer < _MIN_PLAUSIBLE_TRANSFER_BYTES
            and phase["op"] in ("write", "read", "mixed")
        ):
            phases_by_transfer.setdefault(transfer, []).append(phase["id"])
    return [
        f"{plan.origin}: access.transfer of {', '.join(phase_ids)} is {size} B: was a unit forgotten ({size}KiB,"
        f" {size}MiB)?"
        for size, phase_ids in phases_by_transfer.items()
    ]
