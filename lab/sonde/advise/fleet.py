# SPDX-License-Identifier: Apache-2.0
"""Ranks the applications, users, changes and access patterns of a fleet of jobs by the process-hours they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from sonde.advise.log_table import open_log_table
from sonde.advise.triggers import CostKind
from sonde.model.errors import UserError
from sonde.model.shell import quote_command

FLEET_FORMAT = "sonde-fleet/1"
# The variable that switches buffering of small calls on without a change of the program.
_IOBUF_VARIABLE = "IOBUF_PARAMS"

# The newest row of each log. `lost` of a job is its largest gain, because gains of different changes overlap.
_JOBS_VIEW_SQL = """
create temp view newest as select * from rows
    qualify row_number() over (partition by log order by log_modified_ns desc) = 1;
create temp view jobs as select *, processes * seconds / 3600 as hours, processes * io_s / 3600 as io_hours,
        list_max([gain.value_s for gain in gains]) as lost_s,
        list_max([gain.low_s for gain in gains]) as lost_low_s,
        list_max([gain.high_s for gain in gains]) as lost_high_s,
        coalesce(nullif(regexp_extract(program, '([^/ ]+)( |$)', 1), ''), 'unknown') as application
    from newest where refused is null;
"""
_LOSSES_BY_GROUP_SQL = """
select {key} as name, count(*) as jobs, sum(hours) as process_hours, sum(io_hours) as io_hours,
    coalesce(sum(lost_low_s * processes), 0) / 3600 as lost_low_hours,
    coalesce(sum(lost_s * processes), 0) / 3600 as lost_hours,
    coalesce(sum(lost_high_s * processes), 0) / 3600 as lost_high_hours
from jobs group by name order by lost_hours desc, io_hours desc, name
"""
_LOSSES_BY_CHANGE_SQL = """
select gain.change as name, count(*) as jobs, sum(hours) as process_hours, sum(io_hours) as io_hours,
    sum(gain.low_s * processes) / 3600 as lost_low_hours, sum(gain.value_s * processes) / 3600 as lost_hours,
    sum(gain.high_s * processes) / 3600 as lost_high_hours
from (select processes, hours, io_hours, unnest(gains) as gain from jobs)
group by name order by lost_hours desc, name
"""
_JOBS_FOR_PRELOAD_LIBRARY_SQL = """
select log, application, user, lost_s * processes / 3600 as lost_hours from (
    select log, application, user, processes, list_max([gain.value_s for gain in gains
        if gain.change in ($reads, $writes) and list_contains(gain.settings, $library)]) as lost_s from jobs)
where lost_s > 0 order by lost_hours desc, log
"""
_ACCESSES_SQL = """
select a.direction as direction, a.interface as interface, a.is_shared as is_shared, a.order as access_order,
    a.size_class as size_class, count(distinct log) as jobs, sum(a.files)::bigint as files,
    sum(a.calls)::bigint as calls, sum(a.bytes)::hugeint::double as bytes, sum(a.seconds) / 3600 as process_hours
from (select log, unnest(accesses) as a from jobs)
group by all order by process_hours desc, calls desc, direction, access_order, size_class
"""
_JOB_MIX_SQL = """
select count(*) as jobs, count(distinct application) as applications, count(distinct user) as users,
    coalesce(sum(hours), 0) as process_hours, coalesce(sum(io_hours), 0) as io_hours,
    coalesce(sum(lost_s * processes), 0) / 3600 as lost_hours,
    coalesce(sum(calls), 0)::double as calls, coalesce(sum(small_calls), 0)::double as small_calls,
    coalesce(sum(unaligned_calls), 0)::double as unaligned_calls,
    coalesce(sum(random_calls), 0)::double as random_calls,
    coalesce(sum(read_bytes), 0)::double as read_bytes, coalesce(sum(written_bytes), 0)::double as written_bytes
from jobs
"""


@dataclass(frozen=True)
class FleetLosses:
    """Losses of all jobs of a fleet by application, user, change and access; each list has the largest loss first.

    Hours are process-hours: seconds of a job times its processes. The loss of a job is the largest gain of any single
    change. `changes` counts each change alone, so its rows do not add up to the loss."""

    storage: str
    mix: Mapping[str, Any]
    refused: Sequence[Mapping[str, Any]]
    applications: Sequence[Mapping[str, Any]]
    users: Sequence[Mapping[str, Any]]
    changes: Sequence[Mapping[str, Any]]
    accesses: Sequence[Mapping[str, Any]]
    library: Sequence[Mapping[str, Any]]


def rank_fleet_losses(log_table: Path) -> FleetLosses:
    """Ranks what the table of logs holds. Raises UserError when it holds nothing."""
    rows = open_log_table(log_table)
    if rows is None:
        raise UserError(f"There is no table of logs in {log_table}.")
    with duckdb.connect(":memory:") as connection:
        connection.register("rows", rows)
        connection.execute(_JOBS_VIEW_SQL)
        library = {"reads": CostKind.READS.value, "writes": CostKind.WRITES.value, "library": _IOBUF_VARIABLE}
        accesses = _fetch_rows(connection, _ACCESSES_SQL)
        hours = sum(row["process_hours"] for row in accesses)
        return FleetLosses(
            storage=_fetch_rows(connection, "select any_value(storage) as storage from newest")[0]["storage"],
            mix=_fetch_rows(connection, _JOB_MIX_SQL)[0],
            refused=_fetch_rows(connection, "select log, refused from newest where refused is not null order by log"),
            applications=_fetch_rows(connection, _LOSSES_BY_GROUP_SQL.format(key="application")),
            users=_fetch_rows(connection, _LOSSES_BY_GROUP_SQL.format(key="coalesce(user, 'unknown')")),
            changes=_fetch_rows(connection, _LOSSES_BY_CHANGE_SQL),
            accesses=[_add_time_share_and_ior_command(row, hours) for row in accesses],
            library=_fetch_rows(connection, _JOBS_FOR_PRELOAD_LIBRARY_SQL, library),
        )


def build_fleet_document(losses: FleetLosses) -> dict[str, Any]:
    """The survey as JSON."""
    return {"schema": FLEET_FORMAT} | {name: getattr(losses, name) for name in losses.__dataclass_fields__}


def _fetch_rows(
    connection: duckdb.DuckDBPyConnection, sql_query: str, parameters: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    result = connection.execute(sql_query, dict(parameters) if parameters else None)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def _add_time_share_and_ior_command(access_row: Mapping[str, Any], fleet_hours: float) -> dict[str, Any]:
    """Adds the share of all seconds in I/O calls, and the acceptance test that has this pattern."""
    share = access_row["process_hours"] / fleet_hours if fleet_hours > 0 else 0.0
    return {**access_row, "share_of_time": share, "test": _build_ior_command(access_row)}


def _build_ior_command(access_row: Mapping[str, Any]) -> str:
    """An IOR command with the mean transfer size of the pattern, rounded to a power of two."""
    size = 1 << max(0, round(access_row["bytes"] / access_row["calls"]) - 1).bit_length()
    command = ["sonde", "ior", "-a", "MPIIO" if access_row["interface"] == "MPI-IO" else "POSIX"]
    # Reads need data, so the test writes in any case.
    command += ["-w", "-r"] if access_row["direction"] == "read" else ["-w"]
    command += ["-t", _format_ior_size(size)]
    # Strided: each process accesses one transfer, then skips those of the others.
    is_strided = access_row["access_order"] == "strided"
    command += ["-b", _format_ior_size(size), "-s", "1024"] if is_strided else ["-b", _format_ior_size(size * 1024)]
    if access_row["access_order"] == "random":
        command.append("-z")
    if not access_row["is_shared"]:
        command.append("-F")
    return quote_command(command)


def _format_ior_size(byte_count: int) -> str:
    """A power of two as IOR reads it."""
    for suffix, unit in (("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)):
        if byte_count >= unit:
            return f"{byte_count // unit}{suffix}"
    return str(byte_count)
