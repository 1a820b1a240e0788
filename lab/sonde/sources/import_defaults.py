# SPDX-License-Identifier: Apache-2.0
"""Facts that the user gives for an import, for what the result file does not contain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo


@dataclass(frozen=True)
class ImportDefaults:
    """Default names, and the time zone of the times in the file."""

    system: str = ""
    file_system: str = ""
    zone: tzinfo = UTC
    file_time: datetime | None = None  # modification time of the file, for results without a time

    def convert_to_utc(self, stated_time: datetime | None) -> datetime:
        """The time of a run in UTC, from what the file says. Raises ValueError if neither the file nor its name states
        a time."""
        time = stated_time or self.file_time
        if time is None:
            raise ValueError("does not say when it was measured")
        return (time if time.tzinfo else time.replace(tzinfo=self.zone)).astimezone(UTC)
