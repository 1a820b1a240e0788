# SPDX-License-Identifier: Apache-2.0
"""Events (``schema/event``): things that happened outside of runs, with time, affected parts and source.

``read_events(path)`` returns `Event`s; ``find_matching_events(events, …)`` those that may explain a measurement.
"""

from sonde.model.event.event import Event, find_matching_events, read_events_file
from sonde.model.event.times import TimeInterval

__all__ = ["Event", "TimeInterval", "find_matching_events", "read_events_file"]
