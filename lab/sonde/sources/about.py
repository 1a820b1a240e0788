# SPDX-License-Identifier: Apache-2.0
"""What the one who imports a result knows about it, where the result itself does not say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo


@dataclass(frozen=True)
class About:
    """Names for what the file leaves out, and the zone of its times."""

    system: str = ""
    file_system: str = ""
    zone: tzinfo = UTC
    file_time: datetime | None = None  # of the file, for results that carry no time at all

    def moment(self, found: datetime | None) -> datetime:
        """The time of a run in UTC, from what the file says. Raises ValueError when nothing says it."""
        moment = found or self.file_time
        if moment is None:
            raise ValueError("does not say when it was measured")
        return (moment if moment.tzinfo else moment.replace(tzinfo=self.zone)).astimezone(UTC)
