# SPDX-License-Identifier: Apache-2.0
"""What every parallel file system has to give: a check with truth, and the benchmarks of others with their data
compared."""

from __future__ import annotations

import json
import re
import time

import pytest
from real_systems import Storage
from user import MIB, User, in_tree

pytestmark = [pytest.mark.storage, pytest.mark.root, pytest.mark.serial]


def test_check_completes_and_cleans_up(storage: Storage, user: User) -> None:
    done = user.sonde("check", str(storage.mount_path), "--json", "--no-report", patience_s=900)
    assert done.code == 0, done
    ended = [(phase.id, phase.end) for record in user.records() for phase in record.phases.values()]
    assert [phase for phase, end in ended if end is None or end.ops.failed] == []
    assert sum(end.bytes.transferred for _, end in ended if end is not None) > 64 * MIB
    assert json.loads(done.out)["schema"] == "sonde-check/3", done
    assert in_tree(storage.room, storage.mount_path, "sonde-*") == []


def test_ior_reads_back_its_data(storage: Storage, user: User) -> None:
    options = ("-w", "-r", "-W", "-R", "-C", "-e", "-t", "256k", "-b", "4m", "-s", "2")
    for name, kind in (("alone", ("-F",)), ("shared", ())):
        done = user.sonde("ior", "--tasks", "4", "--no-report", *options, *kind, "-O", "summaryFormat=JSON",
                          "-o", str(storage.mount_path / name))  # fmt: skip
        assert done.code == 0, done
        results = json.loads(done.out)["tests"][0]["Results"]
        assert [result["access"] for result in results] == ["write", "read"], done
    assert all(record.end is not None and record.end.exit_code == 0 for record in user.records())
    assert (
        in_tree(storage.room, storage.mount_path, "alone*")
        == in_tree(storage.room, storage.mount_path, "shared*")
        == []
    )


def test_ior_sees_a_byte_that_changed_behind_its_back(storage: Storage, user: User) -> None:
    file = storage.mount_path / "changed"
    command = ("ior", "--tasks", "2", "--no-report", "-t", "64k", "-b", "1m", "-G", "7", "-k", "-o", str(file))
    assert user.sonde(*command, "-w", "-e").code == 0
    # through the other client: what is compared comes from the servers
    other = storage.second / "changed"
    storage.room.run("dd", f"of={other}", "if=/dev/zero", "bs=1", "count=8", "seek=1048584", "conv=notrunc,fsync")
    time.sleep(2)  # attributes and data of a client may be so old
    done = user.sonde(*command[:-3], "-o", str(file), "-r", "-R")
    storage.room.run("rm", "-f", str(file))
    assert done.code != 0, done
    assert "erro" in (done.out + done.err).lower(), done


def test_mdtest_makes_stats_reads_and_removes(storage: Storage, user: User) -> None:
    folder = storage.mount_path / "names"
    storage.room.run("mkdir", str(folder))
    done = user.sonde("mdtest", "--tasks", "4", "--no-report", "-n", "40", "-w", "4096", "-e", "4096", "-i", "2",
                      "-X", "-d", str(folder))  # fmt: skip
    assert done.code == 0, done
    for row in ("Directory creation", "File creation", "File stat", "File read", "File removal"):
        assert re.search(rf"{row}\s+:?\s*[1-9]", done.out), (row, done)
    assert in_tree(storage.room, folder) == []
    storage.room.run("rmdir", str(folder))
