# SPDX-License-Identifier: Apache-2.0
"""The public class for an archive of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonde.model.errors import UserError
from sonde.public.runs import Run, RunList, load_run
from sonde.store.archive import Archive
from sonde.store.selection import Selection, moment

if TYPE_CHECKING:
    from sonde.store.catalog import Catalog


class ArchiveReader:
    """An archive that was opened. Nothing is locked; each call sees what is there then."""

    def __init__(self, archive: str | Path | None = None) -> None:
        """See `sonde.open`."""
        self._archive = Archive.from_option(str(archive) if archive is not None else None)
        if archive is not None and not self._archive.root.is_dir():
            raise UserError(f"There is no archive {self._archive.root}; name the folder that holds the runs.")

    @property
    def root(self) -> Path:
        """The folder of the archive."""
        return self._archive.root

    def __repr__(self) -> str:
        return f"<archive {self.root}>"

    def runs(
        self,
        *,
        plan: str = "",
        on: str = "",
        system: str = "",
        source: str = "",
        status: str = "",
        validity: str = "",
        tag: str | Sequence[str] = (),
        finding: str = "",
        since: str = "",
        until: str = "",
        last: int | None = None,
    ) -> RunList:
        """Runs that match all filters, the oldest first; the filters are those of `sonde list`.

        `since` and `until` are days, times (UTC) or spans like "7d". Calibrations of checks are left out. Raises
        UserError for a time that is none.
        """
        selection = build_selection(plan, on, system, source, status, validity, tag, finding, since, until)
        return RunList(self._open_catalog, selection, last)

    def run(self, name: str = "last") -> Run:
        """One run: an id, a unique beginning of one, a folder, or "last". Raises UserError unless it is exactly one."""
        return load_run(self._archive.find(name)[-1])

    def query(self, sql: str, allow_files: bool = False) -> Any:
        """The answer to SQL over the tables `runs`, `phases`, `series` and `tasks`, as a pyarrow table.

        The statement reaches no other file unless `allow_files` is true. Raises UserError with the reason when it
        cannot be answered.
        """
        from sonde.store import sql as database

        return database.ask(self._open_catalog(), Selection(), sql, allow_files).table

    def _open_catalog(self) -> Catalog:
        # pyarrow takes a while to import: who only asks for the version does not pay
        from sonde.store.catalog import Catalog

        return Catalog(self.root)


def open_archive(archive: str | Path | None = None) -> ArchiveReader:
    """Opens an archive: that folder, else $SONDE_ARCHIVE, else ./sonde-archive, as for the command.

    Raises UserError if the given folder is not there. Without one, an archive that is not there has no runs.
    """
    return ArchiveReader(archive)


def build_selection(
    plan: str,
    on: str,
    system: str,
    source: str,
    status: str,
    validity: str,
    tag: str | Sequence[str],
    finding: str,
    since: str,
    until: str,
) -> Selection:
    """Returns the selection for the filters of the public methods. Raises UserError for a time that is none."""
    return Selection(
        plan=plan,
        target=on,
        system=system,
        source=source,
        status=status,
        validity=validity,
        tags=(tag,) if isinstance(tag, str) else tuple(tag),
        finding=finding,
        since_s=moment(since, "since") if since else None,
        until_s=moment(until, "until") if until else None,
    )
