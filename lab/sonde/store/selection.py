# SPDX-License-Identifier: Apache-2.0
"""Which runs are meant. ``masks`` finds them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sonde.model.errors import UserError

RUN_STATUSES = ("done", "failed", "interrupted", "mismatch", "lost")
VALIDITIES = ("good", "doubtful", "invalid")


@dataclass(frozen=True)
class Selection:
    """Filters of runs; a run must match all of them. Texts match as substrings and regardless of case, except status,
    validity, tag, finding and hash, which must be equal."""

    plan: str = ""  # in the id or the title
    target: str = ""  # in target, file system or storage
    system: str = ""  # in system or host
    source: str = ""  # tool an imported run came from; "sonde" for our own
    status: str = ""
    validity: str = ""
    plan_hash: str = ""  # beginning of the hash
    tags: Sequence[str] = ()  # all of them
    finding: str = ""
    tasks: int | None = None
    nodes: int | None = None
    since_s: float | None = None  # seconds since 1970
    until_s: float | None = None
    calibrations: bool = False  # these too
    ids: Sequence[str] | None = None

    def list_needed_columns(self) -> list[str]:
        """Columns of the index that are needed to select the runs."""
        columns_of_filters = {"plan": ("plan", "title"), "target": ("target", "file_system", "storage")}
        columns_of_filters |= {"system": ("system", "host"), "tags": ("tags",), "finding": ("findings",)}
        columns_of_filters |= {
            name: (name,) for name in ("source", "status", "validity", "plan_hash", "tasks", "nodes")
        }
        names = {column for name, columns in columns_of_filters.items() if getattr(self, name) for column in columns}
        names |= {"started_s"} if (self.since_s, self.until_s) != (None, None) else set()
        names |= {"run"} if self.ids is not None else set()
        return sorted(names | {"problem", "role"})


def parse_moment(moment_text: str, option_name: str, now: datetime | None = None) -> float:
    """Seconds since 1970 of ``2026-11-21``, ``2026-11-21T14:00`` (UTC unless it says otherwise) or ``7d`` ago."""
    ago = re.fullmatch(r"(\d{1,6})([hdw])", moment_text.strip())
    if ago:
        unit = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}[ago[2]]
        try:
            return ((now or datetime.now(UTC)) - int(ago[1]) * unit).timestamp()
        except OverflowError:
            return 0.0
    try:
        moment = datetime.fromisoformat(moment_text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UserError(
            f'{option_name} "{moment_text}" is not a time; write 2026-11-21, or 12h, 7d, 2w for that long ago.'
        ) from None
