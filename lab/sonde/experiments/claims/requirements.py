# SPDX-License-Identifier: Apache-2.0
"""Checks the requirements of claims against the records of the runs and the system file.

An unknown fact counts as unmet: a claim that requires parity asks for the system file instead of guessing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sonde.experiments.results import Results
from sonde.model.lines import NodeLine
from sonde.model.record import RECORD_FILE, RecordReader, read_record
from sonde.model.system.system import System


def find_unmet_requirements(results: Results, system: System | None = None) -> dict[str, str]:
    """Returns a reason (without capital and full stop) for each requirement that is not met."""
    records = _read_one_record_per_cell(results)
    return {
        requirement: reason
        for requirement, rule in _RULES_BY_REQUIREMENT.items()
        if (reason := rule(results, records, system))
    }


def _read_one_record_per_cell(results: Results) -> list[RecordReader]:
    """Returns one record of each cell, since the machine does not change between runs of a cell."""
    records: dict[str, RecordReader] = {}
    for run in results.runs:
        if run.cell not in records:
            try:
                records[run.cell] = read_record(run.folder / RECORD_FILE)
            except OSError:
                continue
    return list(records.values())


def _list_machines(records: Sequence[RecordReader]) -> list[NodeLine]:
    return [machine for record in records for machine in record.nodes]


def _list_file_system_types(records: Sequence[RecordReader]) -> set[str]:
    return {machine.file_system.type for machine in _list_machines(records)} - {""}


def _make_file_system_rule(file_system_type: str) -> Callable[[Results, Sequence[RecordReader], System | None], str]:
    def check_file_system_type(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
        if results.simulated and system is not None:
            kinds = {file_system.kind for file_system in system.file_systems}
            return "" if file_system_type in kinds else f"the system has no {file_system_type} file system"
        types = _list_file_system_types(records)
        return (
            ""
            if file_system_type in types
            else f"the file system is {' and '.join(sorted(types)) or 'not known'}, not {file_system_type}"
        )

    return check_file_system_type


def _make_distinct_directories_rule(axis: str) -> Callable[[Results, Sequence[RecordReader], System | None], str]:
    noun = {"mount": "mount", "pool": "pool"}[axis]

    def check_distinct_directories(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
        directories_by_place: dict[str, set[str]] = {}
        for run in results.runs:
            if axis in run.axis_values:
                directories_by_place.setdefault(str(run.axis_values[axis]), set()).add(
                    results.directories.get(run.cell, "")
                )
        if len(directories_by_place) < 2:
            return f"only {len(directories_by_place) or 'no'} {noun} was measured, and two are needed"
        if results.simulated:
            return ""
        directories = set().union(*directories_by_place.values())
        return "" if len(directories) >= 2 else f"all {noun}s are the same directory here"

    return check_distinct_directories


def _check_two_nodes(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    most = max((record.run.nodes or 1 for record in records if record.run), default=1)
    return "" if most >= 2 else "there is one node only"


def _check_mpi_io_used(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    with_mpi = any("mpi" in str(record.run.launch).lower() for record in records if record.run)
    return "" if with_mpi or results.simulated else "it was run without MPI"


def _check_direct_io_used(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    direct = any(phase.begin.direct for record in records for phase in record.phases.values())
    return "" if direct else "no phase was direct"


def _check_parity_raid(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    if system is None:
        return "whether there is parity is not known: name the system with --system"
    return (
        "" if any(int(group.parity or 0) > 0 for group in system.raid_groups) else "the system has no RAID with parity"
    )


def _check_striped_volume(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    if system is None:
        return "whether the volume is striped is not known: name the system with --system"
    return (
        "" if any(volume.stripe_unit is not None for volume in system.volumes) else "the system has no striped volume"
    )


def _check_page_cache_droppable(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    """Checks whether the page cache could be dropped, which requires root. If no treatment tried to, the claim is
    evaluated and fails."""
    treatments = [treatment for record in records for phase in record.phases.values() for treatment in phase.treatments]
    outcomes = {treatment.outcome for treatment in treatments if treatment.kind == "drop_page_cache"}
    if results.simulated or "done" in outcomes:
        return ""
    if outcomes:
        return "the page cache could not be dropped, which requires root"
    if any(treatment.kind == "fadvise" for treatment in treatments):
        return "only pages of the files themselves were evicted (fadvise); dropping the whole page cache requires root"
    return ""


def _check_server_access(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    return "" if results.simulated else "the servers are not accessible here"


_RULES_BY_REQUIREMENT: Mapping[str, Callable[[Results, Sequence[RecordReader], System | None], str]] = {
    "lustre": _make_file_system_rule("lustre"),
    "gpfs": _make_file_system_rule("gpfs"),
    "parity": _check_parity_raid,
    "striped_volume": _check_striped_volume,
    "two_mounts": _make_distinct_directories_rule("mount"),
    "two_pools": _make_distinct_directories_rule("pool"),
    "two_nodes": _check_two_nodes,
    "root": _check_page_cache_droppable,
    "direct": _check_direct_io_used,
    "server_access": _check_server_access,
    "mpi": _check_mpi_io_used,
}
