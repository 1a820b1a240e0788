# SPDX-License-Identifier: Apache-2.0
"""Checks how a run used each member of `clients` and `storage`, and reports members that it did not use.

Members that can be set are set in the plan or in the arguments of the launcher. The others are compared with the record
after the run; a difference is the finding `setting_not_used` in run.json, and claims across cells that differ only in
such a member are not judged. The simulator sets all members but those in `UNSIMULATED_MEMBERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sonde.launch.launchers.launcher import Launcher
from sonde.launch.launchers.mpiexec import MpiexecLauncher
from sonde.model.errors import MachineError, SystemFileError
from sonde.model.experiment.description import Clients, Storage
from sonde.model.lines import NodeLine
from sonde.model.mounts import MOUNTINFO_FILE, find_mount_of_path
from sonde.model.plan import Plan
from sonde.model.quantities import display_count_with_noun
from sonde.model.record import RecordReader
from sonde.model.system import System

UNUSED_MEMBER_FINDING = "setting_not_used"
# Members that a model of a machine does not have: it has no processors to bind a task to.
UNSIMULATED_MEMBERS = ("clients.pin",)
_STRIPED_KINDS = ("lustre", "beegfs")  # whose stripes the engine sets and reads back
_NODE_ROLES: Mapping[str, str] = {"compute": "compute", "service": "service", "server": "system"}


def apply_striping(plan: Plan, storage: Storage, mountinfo: Path = MOUNTINFO_FILE) -> Plan:
    """The plan with the stripes of the cell, where the file system of its target has stripes that can be set."""
    if storage.stripe_count is None and storage.stripe_size is None:
        return plan
    target = plan.document.get("target")
    if not isinstance(target, Mapping) or "striping" in target:
        return plan
    if find_file_system_type(plan.target, mountinfo) not in _STRIPED_KINDS:
        return plan
    count = -1 if storage.stripe_count == "all" else storage.stripe_count
    striping = {"count": count, "size": storage.stripe_size and int(storage.stripe_size)}
    members = {name: value for name, value in striping.items() if value is not None}
    return Plan.from_document({**plan.document, "target": {**target, "striping": members}}, plan.origin)


def find_file_system_type(directory: Path, mountinfo_file: Path = MOUNTINFO_FILE) -> str:
    """The type of the file system of a directory, as proc_pid_mountinfo(5) names it; empty when that is unknown."""
    try:
        mount = find_mount_of_path(str(directory), mountinfo_file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return mount.kind if mount else ""


def make_process_placement_arguments(
    launcher: str, clients: Clients, system: System | None, mpiexec_flavor: str = ""
) -> list[str]:
    """Arguments of the launcher that number and bind processes and select nodes as `clients` requires.
    `mpiexec_flavor`: of mpiexec.

    Raises MachineError when processes must be bound to NUMA nodes and the launcher cannot do it.
    """
    arguments: list[str] = []
    if launcher == "srun":
        names = _list_nodes_of_group(clients, system)
        arguments += [f"--distribution={clients.mapping}"] if clients.mapping else []
        arguments += [f"--nodelist={','.join(sorted(names))}"] if names else []
    if launcher == MpiexecLauncher.name and clients.mapping:
        arguments += _MPI_MAPPINGS.get((mpiexec_flavor, clients.mapping), [])
    if clients.pin == "numa":
        binding = _NUMA_BINDINGS.get((launcher, mpiexec_flavor))
        if binding is None:
            raise MachineError(
                'clients.pin = "numa" needs srun, or the mpiexec of MPICH or Open MPI, to bind the processes; write'
                ' "core" or "none".'
            )
        arguments += binding
    return arguments


_MPI_MAPPINGS: Mapping[tuple[str, str], list[str]] = {
    ("hydra", "cyclic"): ["-ppn", "1"],
    ("openmpi", "block"): ["--map-by", "slot"],
    ("openmpi", "cyclic"): ["--map-by", "node"],
}
_NUMA_BINDINGS: Mapping[tuple[str, str], list[str]] = {
    ("srun", ""): ["--cpu-bind=ldoms"],
    ("mpiexec", "hydra"): ["-bind-to", "numa"],
    ("mpiexec", "openmpi"): ["--bind-to", "numa"],
}


def get_mpi_flavor(launcher: Launcher) -> str:
    """The kind of MPI of an mpiexec; empty for other launchers."""
    return launcher.flavor if isinstance(launcher, MpiexecLauncher) else ""


def find_unused_members(
    clients: Clients,
    storage: Storage,
    record: RecordReader,
    plan: Plan,
    system: System | None = None,
    swept_members: Collection[str] = (),
    is_simulated: bool = False,
) -> list[dict[str, Any]]:
    """The finding, as run.json stores it, that names the members that the run did not follow; empty when there is none.
    `swept_members`: paths of the members whose values distinguish the cells."""
    if is_simulated:
        sentences = [
            (path, "a model of a machine has no processors to bind tasks to.")
            for path in UNSIMULATED_MEMBERS
            if getattr(clients, path.partition(".")[2]) not in ("", "none")
        ]
    else:
        sentences = [
            (path, reason)
            for path, check in CHECKS_BY_MEMBER.items()
            for reason in check(clients, storage, record, plan, system)
        ]
    if not sentences:
        return []
    members = [path for path, _ in sentences]
    return [
        {
            "id": UNUSED_MEMBER_FINDING,
            "severity": "warning",
            "text": f"The run did not follow {' '.join(f'{path}: {reason}' for path, reason in sentences)}",
            "advice": "Run the experiment where these members can be set, or remove them.",
            "evidence": {"members": members, "swept": [path for path in members if path in swept_members]},
        }
    ]


def _check_node_count(
    clients: Clients, storage: Storage, record: RecordReader, plan: Plan, system: System | None
) -> Iterator[str]:
    nodes = record.run.nodes if record.run else None
    if clients.nodes and nodes and nodes != clients.nodes:
        yield f"it requires {display_count_with_noun(clients.nodes, 'node')}, and the run had {nodes}."


def _check_task_mapping(
    clients: Clients, storage: Storage, record: RecordReader, plan: Plan, system: System | None
) -> Iterator[str]:
    nodes = _find_node_of_each_task(record)
    if not clients.mapping or len(set(nodes)) < 2:
        return
    mapping = "block" if nodes == sorted(nodes) else "cyclic" if _is_cyclic(nodes) else "neither block nor cyclic"
    if mapping != clients.mapping:
        yield f"it requires {clients.mapping}, and the tasks were numbered over the nodes {mapping}."


def _find_node_of_each_task(record: RecordReader) -> list[int]:
    for phase in record.phases.values():
        nodes: list[int] = []
        for table in phase.tasks:
            if "node" in table.columns:
                column = table.columns.index("node")
                nodes += [int(row[column] or 0) for row in table.rows]
        if nodes:
            return nodes
    return []


def _is_cyclic(node_of_tasks: Sequence[int]) -> bool:
    """Whether tasks go round over the nodes; several consecutive tasks are the threads of one process."""
    rounds = [node for index, node in enumerate(node_of_tasks) if index == 0 or node_of_tasks[index - 1] != node]
    count = len(set(rounds))
    return all(node == rounds[index % count] for index, node in enumerate(rounds)) and len(rounds) > count


def _check_nodes_belong_to_group(
    clients: Clients, storage: Storage, record: RecordReader, plan: Plan, system: System | None
) -> Iterator[str]:
    if not clients.group:
        return
    names = _list_nodes_of_group(clients, system)
    others = [node.host for node in record.nodes if node.host.split(".")[0] not in names]
    if not names:
        yield f"no system file says which nodes {clients.group} has; name it with --system."
    elif others:
        yield f"{', '.join(others[:3])} {'is' if len(others) == 1 else 'are'} not in {clients.group}."


def _list_nodes_of_group(clients: Clients, system: System | None) -> set[str]:
    if system is None or not clients.group:
        return set()
    try:
        return {str(name) for name in system.resolve_names(clients.group)}
    except SystemFileError:
        return set()


def _check_clients_origin(
    clients: Clients, storage: Storage, record: RecordReader, plan: Plan, system: System | None
) -> Iterator[str]:
    if not clients.origin:
        return
    if clients.origin == "forwarded":
        yield "whether another node executed the calls cannot be set or read back."
        return
    roles = {_find_role_of_node(node, system) for node in record.nodes}
    required = _NODE_ROLES[clients.origin]
    if roles == {""}:
        if required != "compute":  # nodes that no system file describes are compute nodes
            yield f"no system file says that these nodes are of the role {required}; name it with --system."
    elif roles != {required}:
        yield f"it requires {required} nodes, and these are {' and '.join(sorted(roles - {''}))} nodes."


def _find_role_of_node(node_line: NodeLine, system: System | None) -> str:
    """The role of a node in the system file; empty when that is unknown."""
    if system is None:
        return ""
    try:
        return getattr(system.get_part(node_line.host.split(".")[0]).table, "role", "") or "compute"
    except (SystemFileError, KeyError):
        return ""


def _check_task_pinning(
    clients: Clients, storage: Storage, record: RecordReader, plan: Plan, system: System | None
) -> Iterator[str]:
    is_pinned = bool((plan.document.get("tasks") or {}).get("pin"))
    if clients.pin in ("core", "none") and is_pinned != (clients.pin == "core"):
        yield f"the plan {'binds' if is_pinned else 'does not bind'} tasks to cores."


def _check_storage_kind(
    clients: Clients, storage: Storage, record: RecordReader, plan: Plan, system: System | None
) -> Iterator[str]:
    if storage.kind in ("", "any") or not record.nodes:
        return
    tested = record.nodes[0].file_system
    matches = not tested.network if storage.kind == "local" else tested.type.startswith(storage.kind)
    if not matches:
        yield f"it requires {storage.kind}, and the files were on {tested.type or 'an unknown file system'}."


def _make_stripe_check(stripe_member: str) -> _MemberCheck:
    def check_stripe_member(
        clients: Clients, storage: Storage, record: RecordReader, plan: Plan, system: System | None
    ) -> Iterator[str]:
        striping = (plan.document.get("target") or {}).get("striping") or {}
        if getattr(storage, f"stripe_{stripe_member}") is None or stripe_member in striping:
            return  # the engine reads back the stripes that it sets, and reports a difference
        kind = record.nodes[0].file_system.type if record.nodes else ""
        yield f"the files were on {kind or 'an unknown file system'}, which has no stripes that Sonde sets."

    return check_stripe_member


def _check_storage_purpose(
    clients: Clients, storage: Storage, record: RecordReader, plan: Plan, system: System | None
) -> Iterator[str]:
    if storage.purpose:
        yield "what kind of LUN holds a directory cannot be read back."


_MemberCheck = Callable[[Clients, Storage, RecordReader, Plan, System | None], Iterator[str]]
CHECKS_BY_MEMBER: Mapping[str, _MemberCheck] = {
    "clients.nodes": _check_node_count,
    "clients.mapping": _check_task_mapping,
    "clients.group": _check_nodes_belong_to_group,
    "clients.origin": _check_clients_origin,
    "clients.pin": _check_task_pinning,
    "storage.kind": _check_storage_kind,
    "storage.purpose": _check_storage_purpose,
    "storage.stripe_count": _make_stripe_check("count"),
    "storage.stripe_size": _make_stripe_check("size"),
}
