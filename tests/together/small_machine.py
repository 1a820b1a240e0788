# SPDX-License-Identifier: Apache-2.0
"""Small machines whose rates follow from one line of arithmetic: targets of 100 MB/s, without queues, one server."""

from __future__ import annotations

from pathlib import Path

from sonde.model.system import read_system


def small_machine(targets: int, nodes: int, server_threads: int, stripe: str = "") -> str:
    """The text of a system file. Operations on names take 1 ms each; `stripe` is the default of the file system, as a
    table of TOML."""
    return f"""
schema = "sonde-system/2"
id = "small"
title = "{targets} targets of 100 MB/s"

[[nodes]]
id = "n[1-{nodes}]"
group = "all"
model = {{ call_cost = "1 us", copy_rate = "100 GB/s" }}

[[servers]]
id = "oss"
roles = ["oss", "mds", "mgs"]

[servers.model]
create_cost = "1 ms"
stat_cost = "1 ms"
open_cost = "1 ms"
remove_cost = "1 ms"
threads = {server_threads}

[[targets]]
id = "t[0-{targets - 1}]"
kind = "ost"
index = 0
file_system = "fs"
server = "oss"
rate = "100 MB/s"

[[targets]]
id = "mdt"
kind = "mdt"
index = 0
file_system = "fs"
server = "oss"

[[file_systems]]
id = "fs"
kind = "lustre"
{f"stripe = {stripe}" if stripe else ""}

[[mounts]]
id = "m"
file_system = "fs"
path = "/fs"
on = "all"
"""


def resolved(folder: Path, text: str) -> Path:
    """The system file as what simulator and mount read: resolved, as JSON."""
    (folder / "small.toml").write_text(text, encoding="utf-8")
    file = folder / "small.json"
    file.write_text(read_system(str(folder / "small.toml")).to_json(), encoding="utf-8")
    return file
