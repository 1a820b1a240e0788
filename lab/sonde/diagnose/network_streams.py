# SPDX-License-Identifier: Apache-2.0
"""What faults of links do to a stream of bytes between two hosts without storage, as iperf3 measures it.

Storage that is slower than the network hides a slow link from transfers of files, but not from a stream. Programs of
servers take no part, so TCP sends segments of a stream again only where the network loses packets.
"""

from __future__ import annotations

from math import log

from sonde.diagnose.description import MeasuredPhase

# A link that is slower by a factor carries a stream that is slower by this factor.
_SLOWER_LINK_FAULT = "slow-link"


def is_stream(phase: MeasuredPhase) -> bool:
    """Whether a phase is the rate of a stream between two hosts, without storage."""
    return phase.traits.get("medium") == "network" and not phase.is_yes_or_no


def compute_stream_change(fault: str, strength_amount: str) -> float | None:
    """Log factor on the rate of a stream over the link that a fault is at; None for faults that have another effect."""
    return -log(float(strength_amount)) if fault == _SLOWER_LINK_FAULT else None
