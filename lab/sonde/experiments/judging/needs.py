# SPDX-License-Identifier: Apache-2.0
"""What claims may need, and whether it is there: decided from the records of the runs and from the system file.

What nobody knows is not there: a claim that needs parity says that the machine has to be named, and does not guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sonde.experiments.results import Results
from sonde.model.lines import NodeLine
from sonde.model.record import RecordReader, read_record
from sonde.model.system.system import System

RECORD = "record.ndjson"


def lacking(results: Results, system: System | None = None) -> dict[str, str]:
    """A sentence (without capital and full stop) for each need of the format that is not met."""
    records = _records(results)
    return {need: told for need, rule in _RULES.items() if (told := rule(results, records, system))}


def _records(results: Results) -> list[RecordReader]:
    """One record of each cell: what a cell ran on does not change between its runs."""
    found: dict[str, RecordReader] = {}
    for run in results.runs:
        if run.cell not in found:
            try:
                found[run.cell] = read_record(run.folder / RECORD)
            except OSError:
                continue
    return list(found.values())


def _machines(records: Sequence[RecordReader]) -> list[NodeLine]:
    return [machine for record in records for machine in record.machines]


def _types(records: Sequence[RecordReader]) -> set[str]:
    return {machine.file_system.type for machine in _machines(records)} - {""}


def _file_system(kind: str) -> Callable[[Results, Sequence[RecordReader], System | None], str]:
    def rule(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
        if results.simulated and system is not None:
            kinds = {one.kind for one in system.file_systems}
            return "" if kind in kinds else f"the system has no {kind} file system"
        types = _types(records)
        return "" if kind in types else f"the file system is {' and '.join(sorted(types)) or 'not known'}, not {kind}"

    return rule


def _places(axis: str) -> Callable[[Results, Sequence[RecordReader], System | None], str]:
    words = {"mount": "mount", "pool": "pool"}[axis]

    def rule(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
        seen: dict[str, set[str]] = {}
        for run in results.runs:
            if axis in run.at:
                seen.setdefault(str(run.at[axis]), set()).add(results.directories.get(run.cell, ""))
        if len(seen) < 2:
            return f"only {len(seen) or 'no'} {words} was measured, and two are needed"
        if results.simulated:
            return ""
        directories = set().union(*seen.values())
        return "" if len(directories) >= 2 else f"all {words}s are the same directory here"

    return rule


def _two_nodes(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    most = max((record.run.nodes or 1 for record in records if record.run), default=1)
    return "" if most >= 2 else "there is one node only"


def _mpi(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    with_mpi = any("mpi" in str(record.run.launch).lower() for record in records if record.run)
    return "" if with_mpi or results.simulated else "it was run without MPI"


def _direct(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    direct = any(phase.begin.direct for record in records for phase in record.phases.values())
    return "" if direct else "no phase was direct"


def _groups(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    if system is None:
        return "whether there is parity is not known: name the system with --system"
    return "" if any(int(one.parity or 0) > 0 for one in system.raid_groups) else "the system has no RAID with parity"


def _volumes(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    if system is None:
        return "whether the volume is striped is not known: name the system with --system"
    return "" if any(one.stripe_unit is not None for one in system.volumes) else "the system has no striped volume"


def _root(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    """Emptying the whole cache takes root. Where nobody was to empty anything, nothing stands in the way of a claim: it
    is judged, and fails."""
    found = [one for record in records for phase in record.phases.values() for one in phase.treatments]
    outcomes = {one.outcome for one in found if one.kind == "drop_page_cache"}
    if results.simulated or "done" in outcomes:
        return ""
    if outcomes:
        return "the page cache could not be emptied, which takes root"
    if any(one.kind == "fadvise" for one in found):
        return "only pages of the files themselves were let go of (fadvise); to empty the whole cache takes root"
    return ""


def _servers(results: Results, records: Sequence[RecordReader], system: System | None) -> str:
    return "" if results.simulated else "nothing here reaches the servers"


_RULES: Mapping[str, Callable[[Results, Sequence[RecordReader], System | None], str]] = {
    "lustre": _file_system("lustre"),
    "gpfs": _file_system("gpfs"),
    "parity": _groups,
    "striped_volume": _volumes,
    "two_mounts": _places("mount"),
    "two_pools": _places("pool"),
    "two_nodes": _two_nodes,
    "root": _root,
    "direct": _direct,
    "server_access": _servers,
    "mpi": _mpi,
}
