#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the s3 backend costs: beside the bare loop over libcurl, with the same signed requests to the same server.

The server is nginx (Debian: nginx-light), which stores what is put and serves ranges of it; it is started on loopback
and ends with this program. Each round lets both put objects, put them again and get them, one request at a time; see
`--help` of bench/hdf5.py for what is printed. Client and server each need a processor: with fewer than two the ratio
of rates says little, that of processor time still holds. Needs libcurl with its headers (libcurl4-openssl-dev on
Debian) and a build: cmake --preset dev && cmake --build --preset dev.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beside.library_loop import build_loop, compare_cells, make_parser, make_phases
from beside.places import open_new_folder
from overhead.cells import KIB, MIB
from overhead.contestants import ENGINE_DATA, ENGINE_DATA_LONG

ACCESS_KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1"}
# nginx answers what the engine asks of a bucket beside its objects with empty lists.
NGINX_CONFIGURATION = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off; client_max_body_size 0; keepalive_requests 1000000000; sendfile on; tcp_nodelay on;
    client_body_temp_path {folder}/tmp; proxy_temp_path {folder}/tmp; fastcgi_temp_path {folder}/tmp;
    uwsgi_temp_path {folder}/tmp; scgi_temp_path {folder}/tmp;
    server {{
        listen 127.0.0.1:{port}; root {folder}/root;
        location / {{
            if ($args ~ list-type) {{ return 200 "<ListBucketResult></ListBucketResult>"; }}
            if ($args ~ uploads) {{ return 200 "<ListMultipartUploadsResult></ListMultipartUploadsResult>"; }}
            dav_methods PUT DELETE; create_full_put_path on;
        }}
    }}
}}
"""


@dataclass(frozen=True)
class Objects:
    """Objects of one task. `transfer`: bytes of each, moved by one request."""

    name: str
    transfer: int
    count: int

    def plan(self, where: str, seconds: float) -> dict[str, Any]:
        return {
            "target": {"path": "s3://bench/engine", "s3": {"endpoints": [where]}},
            "data": {
                "backend": "s3",
                "files": {"mapping": "many", "count": self.count},
                "access": {"transfer": self.transfer},
            },
            "phases": make_phases(seconds, rewrite="write"),  # objects are stored anew, never changed
        }

    def command(self, loop: Path, where: str, seconds: float) -> list[str]:
        data = ENGINE_DATA[self.transfer >= ENGINE_DATA_LONG]
        numbers = (self.transfer, self.count, data, seconds)
        # Signing a longer name takes longer: the names are as long as those of the engine, "data.t00000000.00000000".
        return [
            str(loop),
            f"{where}/bench/engine/loop-20260101T000000Z-bench-100000/data.t00000000.",
            *map(str, numbers),
        ]


OBJECT_CELLS = (Objects("4k", 4 * KIB, 256), Objects("64k", 64 * KIB, 256), Objects("1m", MIB, 64))


def find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.contextmanager
def run_server(folder: Path) -> Iterator[str]:
    """nginx with the bucket `bench`; gives its address."""
    program = shutil.which("nginx")
    if program is None:
        raise SystemExit("bench/s3.py: nginx is not on PATH: install nginx-light.")
    (folder / "root/bench").mkdir(parents=True)
    (folder / "tmp").mkdir()
    port = find_free_port()
    configuration = folder / "nginx.conf"
    configuration.write_text(NGINX_CONFIGURATION.format(folder=folder, port=port), encoding="utf-8")
    server = subprocess.Popen([program, "-c", str(configuration), "-e", str(folder / "error.log")])
    try:
        end = time.monotonic() + 10
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                break
            if server.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"bench/s3.py: nginx did not start; see {folder / 'error.log'}.")
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), help="where the objects are (%(default)s)")
    arguments = parser.parse_args()
    with open_new_folder(arguments.dir) as folder, run_server(folder) as endpoint:
        loop = build_loop("s3_loop.cpp", "libcurl", "libcurl4-openssl-dev", folder, "c++")
        return compare_cells(OBJECT_CELLS, arguments, loop, endpoint, folder, ACCESS_KEYS)


if __name__ == "__main__":
    sys.exit(main())
