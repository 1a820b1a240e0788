# SPDX-License-Identifier: Apache-2.0
"""Visibility of data that one client wrote under the preload library to another client."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from real_systems import Storage

from sonde.launch.preload import find_preload_library
from sonde.model.errors import MachineError

pytestmark = [pytest.mark.storage, pytest.mark.root, pytest.mark.serial]

READER = """
import hashlib, os, sys
for line in sys.stdin:
    file = os.open(sys.argv[1], os.O_RDONLY)
    found = hashlib.sha256()
    while piece := os.read(file, 1000):
        found.update(piece)
    os.close(file)
    print(found.hexdigest(), flush=True)
"""
WRITER = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
for number in range(3000):
    os.write(file, (b"%07d" % (number + int(sys.argv[2]))) * 11)
os.close(file)
"""


def content(first: int) -> bytes:
    return b"".join(b"%07d" % (number + first) * 11 for number in range(3000))


def test_data_closed_by_a_client_is_visible_to_another_client(storage: Storage, tmp_path: Path) -> None:
    """Also by pages that stayed after a close: they count only when the file is unchanged."""
    try:
        library = os.environ.get("SONDE_PRELOAD") or str(find_preload_library())
    except MachineError as reason:
        pytest.skip(str(reason))
    under = {**os.environ, "LD_PRELOAD": library, "IOBUF_PARAMS": "*:alone:size=64k"}
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "writer.py").write_text(WRITER)
    name = "seen"

    def write(mount_point: Path, first: int) -> None:
        command = storage.room.enter_command(
            sys.executable, "-S", str(tmp_path / "writer.py"), str(mount_point / name), str(first)
        )
        subprocess.run(command, check=True, env=under, timeout=60)

    def hash_expected_content(first: int) -> str:
        return hashlib.sha256(content(first)).hexdigest()

    def sees_content(first: int) -> bool:
        """Whether the storage system shows the content to the other client."""
        return storage.room.output_of("sha256sum", str(storage.second / name)).split()[0] == hash_expected_content(
            first
        )

    write(storage.mount_path, 0)
    reader = subprocess.Popen(
        storage.room.enter_command(sys.executable, "-S", str(tmp_path / "reader.py"), str(storage.second / name)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=under,
    )  # fmt: skip
    assert reader.stdin is not None
    assert reader.stdout is not None
    try:
        for first in (0, 5_000_000, 7):
            if first:
                write(storage.mount_path, first)
            # Some take a second or two. The library must not show it later than the system does.
            storage.room.until(partial(sees_content, first), "the other client does not see it at all")
            print("look", file=reader.stdin, flush=True)
            assert reader.stdout.readline().strip() == hash_expected_content(first), first
    finally:
        reader.stdin.close()
        reader.wait(20)
        reader.stdout.close()
    storage.room.run("rm", str(storage.mount_path / name))
