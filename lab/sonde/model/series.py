# SPDX-License-Identifier: Apache-2.0
"""What makes values of different runs one series: the key, and how each part of it is found.

Values are comparable when the same work was done on the same storage from the same kind of machines and counted in the
same way. Everything else (kernel, mount options, client version, who ran it, when) is what a series is there to judge,
so it never parts one. ``docs/concepts/series`` explains each part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from sonde.model.lines import FileSystem, NodeLine, RunLine
from sonde.model.sameness import plan_hash, short_hash

# What a site says about itself, by variable; the scheduler's name of the cluster is the fallback for the system.
SYSTEM, FILE_SYSTEM, EPOCH, CLUSTER = "SONDE_SYSTEM", "SONDE_FILE_SYSTEM", "SONDE_EPOCH", "SLURM_CLUSTER_NAME"
BYTES, OPERATIONS = "bytes_per_s", "ops_per_s"


@dataclass(frozen=True, order=True)
class RunKey:
    """The part of the key that all phases of a run share."""

    system: str  # name of the machine whose nodes do the I/O
    file_system: str  # the storage and the place in it
    plan_hash: str  # of plan and geometry
    node_class: str  # hardware of the nodes that took part
    epoch: str  # how it was counted, and the site's own word for "from here on everything is different"


@dataclass(frozen=True, order=True)
class SeriesKey(RunKey):
    """One number that can be followed over time."""

    phase: str  # id of the phase in its plan
    op: str
    cache: str  # cold, direct, unknown or cached: a read from memory is not a slow or fast read from storage
    definition: str  # whose number it is, like "sonde total" or "IOR 4.1.0 bw"
    unit: str  # bytes_per_s or ops_per_s

    @property
    def id(self) -> str:
        """Ten hexadecimal digits; the same key has the same id everywhere."""
        return short_hash(asdict(self), 10)

    @property
    def run_key(self) -> RunKey:
        return RunKey(**{one.name: getattr(self, one.name) for one in fields(RunKey)})


def site_facts(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What the environment says about the site; members that it does not say are absent."""
    names = {"system": (SYSTEM, CLUSTER), "file_system": (FILE_SYSTEM,), "epoch": (EPOCH,)}
    found = {
        part: next((environment[one] for one in from_ if environment.get(one)), "") for part, from_ in names.items()
    }
    return {part: value.strip() for part, value in found.items() if value.strip()}


def run_key(run: RunLine, machines: Sequence[NodeLine], target: str, site: Mapping[str, str]) -> RunKey:
    """The key of a run from its record, the directory it was told to measure, and what the site says."""
    if run.simulated:
        # Never one series with what was measured, whatever the site says of itself.
        system = f"simulated {run.simulated.get('system', '')}"
        site = {"system": system, "file_system": str(run.simulated.get("mount", ""))}
    return RunKey(
        system=site.get("system") or _system(machines),
        file_system=site.get("file_system") or _place(machines, target),
        plan_hash=plan_hash(run.plan, run.processes, run.threads, run.nodes, run.overlay),
        node_class=node_class(machines),
        epoch=" ".join(part for part in (run.schema, site.get("epoch", "")) if part),
    )


def cache_state(cache: str, findings: Iterable[str]) -> str:
    """cold, direct, unknown or cached: what a phase planned, unless what it found says otherwise."""
    return "cached" if cache == "warm" or "cache_suspect" in findings else cache or "unknown"


def node_class(machines: Iterable[NodeLine]) -> str:
    """Hardware of the nodes, each kind once: ``AMD EPYC 7763, 128 cpus, 256 GiB``; "" when the record does not say."""
    kinds = {
        ", ".join(
            part
            for part in (
                " ".join(one.cpu_model.split()),
                f"{one.cpus} cpus" if one.cpus else "",
                f"{nominal_gib(one.memory_bytes)} GiB" if one.memory_bytes else "",
            )
            if part
        )
        for one in machines
    }
    return " + ".join(sorted(kinds - {""}))


def nominal_gib(memory_bytes: int) -> int:
    """The installed memory that a kernel shows as `memory_bytes`: the next 2^k or 3 x 2^k GiB. What a kernel keeps for
    itself changes from version to version and would part the series of one machine."""
    size = 1
    while True:
        for candidate in (size, size * 3 // 2):
            if candidate * 2**30 >= memory_bytes:
                return candidate
        size *= 2


def host_stem(host: str) -> str:
    """``nid`` of ``nid00123.local``: what all nodes of a machine share in their names."""
    return re.sub(r"\d+", "", host.split(".")[0]).strip("-_") or host


def _system(machines: Sequence[NodeLine]) -> str:
    """The host names without their numbers: nodes of one machine are called nid00001, nid00002, …"""
    stems = {host_stem(one.host) for one in machines}
    return "+".join(sorted(stems - {""})) or "unknown"


def _place(machines: Sequence[NodeLine], target: str) -> str:
    """The file system and the directory in it. Storage that nodes do not share carries their names."""
    if not machines:
        return f"unknown {target}"
    seen = machines[0].file_system
    name = f"{seen.type}:{_source(seen)}" if seen.type or seen.source else "unknown"
    if not seen.network:
        hosts = sorted({one.host for one in machines})
        name += f"@{hosts[0] if len(hosts) == 1 else f'{len(hosts)} nodes {short_hash(hosts, 6)}'}"
    return f"{name} {_below(target, seen.mount_point)}".strip()


def _source(seen: FileSystem) -> str:
    """The source without what changes when a server fails over: a Lustre client names its servers in any order."""
    if seen.type != "lustre":
        return seen.source
    *servers, name = seen.source.split(":")
    return ":".join([*sorted(servers), name])


def _below(target: str, mount_point: str) -> str:
    """The directory as seen from the root of the file system: striping and pools are set by directory, and nodes may
    mount the same storage in different places."""
    if mount_point and mount_point != "/" and (target == mount_point or target.startswith(f"{mount_point}/")):
        return target[len(mount_point) :].strip("/") or "/"
    return target.strip("/") or "/"
