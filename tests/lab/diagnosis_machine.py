# SPDX-License-Identifier: Apache-2.0
"""A small machine for diagnoses: eight targets of 100 MB/s on four servers, four nodes, two routers."""

from __future__ import annotations

from pathlib import Path

from sonde.diagnose.machine_map import DiagnosedMachine, read_machine
from sonde.model.system import read_system

SYSTEM = """
schema = "sonde-system/2"
id = "small"
title = "eight targets on four servers"

[[networks]]
id = "fabric"
kind = "infiniband"
lnet = "o2ib"
rate = "1 GB/s"

[[networks]]
id = "compute"
kind = "aries"
lnet = "gni"

[[nodes]]
id = "n[1-4]"
memory = "8 GB"
model = { call_cost = "1 us", copy_rate = "5 GB/s" }
[[nodes.interfaces]]
network = "compute"

[[routers]]
id = "r[1-2]"
protocol = "lnet"
[[routers.interfaces]]
network = "compute"
[[routers.interfaces]]
network = "fabric"

[[servers]]
id = "oss[1-4]"
roles = ["oss"]
failover = "pairs"
model = { cache = "1 GB" }
[[servers.interfaces]]
network = "fabric"

[[servers]]
id = "mds"
roles = ["mds", "mgs"]
model = { threads = 2 }
[[servers.interfaces]]
network = "fabric"

[[targets]]
id = "t[0-7]"
kind = "ost"
index = 0
file_system = "fs"
server = "oss[1-4]"
rate = "100 MB/s"

[[targets]]
id = "mdt"
kind = "mdt"
index = 0
file_system = "fs"
server = "mds"

[[file_systems]]
id = "fs"
kind = "lustre"

[[mounts]]
id = "m"
file_system = "fs"
path = "/fs"
on = "n[1-4]"
"""


def write_small_system(folder: Path, text: str = SYSTEM) -> Path:
    """Writes the system file of the small machine."""
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path


def read_small_machine(folder: Path, text: str = SYSTEM) -> DiagnosedMachine:
    """The mount of the small machine."""
    return read_machine(read_system(str(write_small_system(folder, text))))
