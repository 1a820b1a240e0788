#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes inputs that the C++ readers accept, for the fuzzer to begin with. Usage: tests/fuzz/seeds.py CORPUS"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

MANIFEST = {
    "sonde_manifest": 1,
    "run": "a",
    "host": "node",
    "boot": "b",
    "pid_space": "pid:[1]",
    "pid": 1,
    "process_start": 1,
    "period": 4096,
    "epoch_ns": 1,
    "half_rates": {"write": 0.0, "read": 0.0},
    "existed_before": False,
    "files": {"mapping": 0, "group_size": 0, "count": 1, "directories": 0, "name": "data", "across": ["/b"]},
    "threads": 1,
    "node_of_process": [0],
    "data": [],
    "has_data": True,
    "trees": {
        "rules": [
            {
                "top": "tree", "copies": 1, "depth": 1, "branching": 2, "leaf_only": False, "items_per_dir": 3,
                "scope": 0, "home_shift": 0, "branch": "d", "file": "f", "directory": "i", "shared_single": False,
                "created_by_run": True,
            }
        ],
        "states": [],
    },
}  # fmt: skip


def lustre_layout() -> bytes:
    """struct lov_user_md_v1 with two stripes of 64 KiB."""
    head = struct.pack("<IIQQIHH", 0x0BD10BD0, 1, 7, 0, 65536, 2, 0)
    return head + b"".join(struct.pack("<QQII", 7, 0, 0, index) for index in (3, 4))


LAYOUTS = [
    b"l" + lustre_layout(),
    b"g(<DISTRIBUTE:v-dht> (<REPLICATE:v-replicate-0> <POSIX(/bricks/1):server1:/bricks/1/f>))",
    b"cstripe_unit=4194304 stripe_count=1 object_size=4194304 pool=cephfs_data",
    b'p[{"pool_id":1,"pool_name":"data","pg_num":8,"object_hash":2}]\0{"pg_stats":[{"pgid":"1.0","acting_primary":0}]}',
    b"bEntryType: file\n+ Chunksize: 512K\n+ Storage Pool: 1 (Default)\n+ Storage targets:\n  + 4201 @ oss1 [ID: 42]\n",
    b"mchunk 0: 00000000000000AB_00000001 / (id:171 ver:1)\n\tcopy 1: 10.0.0.7:9422 (status:VALID)\n",
    b"dmmlsdisk::HEADER:version:storagePool:nsdName:data:\nmmlsdisk::0:1:p:d1:yes:\n\0mmlsnsd:nsd:HEADER:diskName:\n",
    b"adata replication:     2 max 2\nstorage pool name:    nlsas\n",
    b"i36 35 98:0 / /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n",
]
COMMAND_LINES = [
    ["\0", "-a", "POSIX", "-w", "-r", "-t", "1m", "-b", "4m", "-s", "2", "-F", "-C", "-e", "-i", "2"],
    ["\1", "-n", "100", "-F", "-d", "x", "-w", "4096", "-e", "4096", "-I", "10", "-z", "2", "-b", "3"],
    ["\2", "-I=10", "-D=2", "-P=5", "-S=4000", "-R=2"],
]


def main() -> None:
    """Writes one file for each seed."""
    corpus = Path(sys.argv[1])
    seeds = {"manifest": [json.dumps(MANIFEST).encode()], "layouts": LAYOUTS, "wire": [bytes(64)]}
    seeds["command_lines"] = [(line[0] + "\0".join(line[1:])).encode() for line in COMMAND_LINES]
    for target, contents in seeds.items():
        for number, content in enumerate(contents):
            (corpus / target / f"seed-{number}").write_bytes(content)


if __name__ == "__main__":
    main()
