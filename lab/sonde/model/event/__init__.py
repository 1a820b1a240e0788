# SPDX-License-Identifier: Apache-2.0
"""Events (``schema/event``): what happened outside, when, to which parts, and who says so.

``read_events(path)`` gives `Event`s; ``matching(events, …)`` those that may explain what was measured.
"""

from sonde.model.event.event import Event, matching, read_events
from sonde.model.event.times import Interval

__all__ = ["Event", "Interval", "matching", "read_events"]
