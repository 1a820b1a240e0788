# SPDX-License-Identifier: Apache-2.0
"""The key that assigns values of different runs to one history.

Values are comparable when the same work was done on the same storage from the same class of nodes and counted in the
same way. Everything else (kernel, mount options, client version, user, time) is what a history tracks, so it is not
part of the key. ``docs/concepts/histories`` explains each part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from sonde.model.line_members import FileSystemFacts
from sonde.model.lines import NodeLine, RunLine
from sonde.model.plan_hash import compute_plan_hash, hash_json
from sonde.model.simulation import find_simulated_system, format_simulated_system_name
from sonde.model.target_names import is_object_store_target

# Environment variables with facts about the site; the scheduler's cluster name is the fallback for the system.
SYSTEM_VARIABLE, FILE_SYSTEM_VARIABLE, EPOCH_VARIABLE, CLUSTER_VARIABLE = (
    "SONDE_SYSTEM",
    "SONDE_FILE_SYSTEM",
    "SONDE_EPOCH",
    "SLURM_CLUSTER_NAME",
)
BYTES_PER_S, OPS_PER_S = "bytes_per_s", "ops_per_s"


@dataclass(frozen=True, order=True)
class RunKey:
    """The part of the key that is common to all phases of a run."""

    system: str  # name of the system whose nodes do the I/O
    file_system: str  # the file system and the directory in it
    plan_hash: str  # of the plan and the number of processes, threads and nodes
    node_class: str  # hardware of the nodes
    epoch: str  # record format and the site's epoch, which begins a new history


@dataclass(frozen=True, order=True)
class HistoryKey(RunKey):
    """The key of one history."""

    phase: str  # id of the phase in its plan
    op: str
    cache: str  # cold, direct, unknown or cached: reads from memory and from storage are different histories
    definition: str  # tool and definition of the rate, like "sonde total" or "IOR 4.1.0 bw"
    unit: str  # bytes_per_s or ops_per_s

    @property
    def id(self) -> str:
        """Ten hexadecimal digits; equal keys have equal ids on every machine."""
        return hash_json(asdict(self), 10)

    @property
    def run_key(self) -> RunKey:
        return RunKey(**{field.name: getattr(self, field.name) for field in fields(RunKey)})


def read_site_facts(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns system, file system and epoch from the environment; unset ones are absent."""
    variables_by_part = {
        "system": (SYSTEM_VARIABLE, CLUSTER_VARIABLE),
        "file_system": (FILE_SYSTEM_VARIABLE,),
        "epoch": (EPOCH_VARIABLE,),
    }
    values = {
        name: next((environment[variable] for variable in variables if environment.get(variable)), "")
        for name, variables in variables_by_part.items()
    }
    return {name: value.strip() for name, value in values.items() if value.strip()}


def compute_run_key(
    run_line: RunLine, node_lines: Sequence[NodeLine], target_directory: str, site_facts: Mapping[str, str]
) -> RunKey:
    """Returns the key of a run from its record, its target directory and the facts about the site."""
    simulated_system = find_simulated_system(run_line, node_lines)
    if simulated_system is not None:
        # Simulated and measured runs must not share a history.
        site_facts = {
            "system": format_simulated_system_name(simulated_system),
            "file_system": str(run_line.simulated.get("mount", "")),
        }
    return RunKey(
        system=site_facts.get("system") or _derive_system_name(node_lines),
        file_system=site_facts.get("file_system") or _describe_storage(node_lines, target_directory),
        plan_hash=compute_plan_hash(run_line.plan, run_line.processes, run_line.threads, run_line.nodes),
        node_class=describe_node_class(node_lines),
        epoch=" ".join(part for part in (run_line.schema, site_facts.get("epoch", "")) if part),
    )


def classify_cache(planned_cache: str, finding_ids: Iterable[str]) -> str:
    """Returns cold, direct, unknown or cached: the planned cache state, corrected by findings."""
    return "cached" if planned_cache == "warm" or "cache_suspect" in finding_ids else planned_cache or "unknown"


def describe_node_class(node_lines: Iterable[NodeLine]) -> str:
    """Returns the distinct node hardware: ``AMD EPYC 7763, 128 cpus, 256 GiB``; "" when it is not recorded."""
    classes = {
        ", ".join(
            part
            for part in (
                " ".join(node.cpu_model.split()),
                f"{node.cpus} cpus" if node.cpus else "",
                f"{estimate_installed_gib(node.memory_bytes)} GiB" if node.memory_bytes else "",
            )
            if part
        )
        for node in node_lines
    }
    return " + ".join(sorted(classes - {""}))


def estimate_installed_gib(memory_bytes: int) -> int:
    """Returns the installed memory for the kernel's `memory_bytes`: the next 2^k or 3 x 2^k GiB.

    The kernel's reserved memory differs between versions, which must not begin a new history.
    """
    power = 1
    while True:
        for candidate in (power, power * 3 // 2):
            if candidate * 2**30 >= memory_bytes:
                return candidate
        power *= 2


def strip_host_numbers(host_name: str) -> str:
    """Returns ``nid`` for ``nid00123.local``: the part of a host name that all nodes of a system share."""
    return re.sub(r"\d+", "", host_name.split(".")[0]).strip("-_") or host_name


def _derive_system_name(node_lines: Sequence[NodeLine]) -> str:
    """Returns the host names without numbers: nodes of one system are named nid00001, nid00002, …"""
    stems = {strip_host_numbers(node.host) for node in node_lines}
    return "+".join(sorted(stems - {""})) or "unknown"


def _describe_storage(node_lines: Sequence[NodeLine], target_directory: str) -> str:
    """Returns the file system and the directory in it, or the bucket. Node-local storage includes the host names."""
    if is_object_store_target(target_directory):
        return target_directory.rstrip("/")
    if not node_lines:
        return f"unknown {target_directory}"
    file_system = node_lines[0].file_system
    name = (
        f"{file_system.type}:{_normalize_source(file_system)}" if file_system.type or file_system.source else "unknown"
    )
    if not file_system.network:
        hosts = sorted({node.host for node in node_lines})
        name += f"@{hosts[0] if len(hosts) == 1 else f'{len(hosts)} nodes {hash_json(hosts, 6)}'}"
    return f"{name} {_strip_mount_point(target_directory, file_system.mount_point)}".strip()


def _normalize_source(file_system: FileSystemFacts) -> str:
    """Returns the source with Lustre servers sorted: their order changes after a failover."""
    if file_system.type != "lustre":
        return file_system.source
    *servers, name = file_system.source.split(":")
    return ":".join([*sorted(servers), name])


def _strip_mount_point(target_directory: str, mount_point: str) -> str:
    """Returns the directory relative to the root of the file system.

    Striping and pools are set by directory, and nodes may mount the same file system at different paths.
    """
    if (
        mount_point
        and mount_point != "/"
        and (target_directory == mount_point or target_directory.startswith(f"{mount_point}/"))
    ):
        return target_directory[len(mount_point) :].strip("/") or "/"
    return target_directory.strip("/") or "/"
