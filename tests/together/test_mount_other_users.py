# SPDX-License-Identifier: Apache-2.0
"""Another user at a mounted machine: without `--allow-other` nothing is reachable, with it the permissions of the files
count, and faults can be switched by the user who mounted only.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

from other_user import NEIGHBOR, as_neighbor, needs_two_users

pytestmark = [needs_two_users, pytest.mark.root]
Mount = Callable[..., Path]


def refused(action: Callable[[], object]) -> bool:
    try:
        action()
    except PermissionError:
        return True
    return False


def reachable_by_others(directory: Path) -> None:
    """Lets other users enter all folders above, which the test has made."""
    for folder in directory.parents:
        if folder.owner() == "root" and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o011)


def test_mount_is_closed_to_other_users_by_default(mount_model: Mount) -> None:
    directory = mount_model("--no-cost")
    (directory / "file").write_bytes(b"secret")
    reachable_by_others(directory)

    def visit() -> None:
        for path in (directory, directory / "file", directory / ".sonde" / "faults"):
            assert refused(path.stat), path
        assert refused(lambda: os.listdir(directory))

    as_neighbor(visit)


def test_other_user_may_not_switch_faults_or_touch_files(mount_model: Mount) -> None:
    directory = mount_model("--no-cost", "--allow-other")
    private = directory / "private"
    private.write_bytes(b"secret")
    private.chmod(0o600)
    (directory / "shared").mkdir()
    (directory / "shared").chmod(0o777)
    reachable_by_others(directory)
    control = directory / ".sonde"

    def visit() -> None:
        assert (control / "faults").read_text() == ""
        for name in ("faults", "drop_caches"):
            assert refused(partial((control / name).open, "w"))
            assert refused(partial((control / name).chmod, 0o666))
        for action in (
            private.read_bytes,
            private.unlink,
            lambda: (directory / "new").write_bytes(b""),
            lambda: (control / "new").write_bytes(b""),
            lambda: os.link(private, directory / "shared" / "link"),
            lambda: os.mknod(directory / "shared" / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3)),
        ):
            assert refused(action), action
        own_file = directory / "shared" / "own"
        own_file.write_bytes(b"mine")
        own_file.chmod(0o4755)
        assert own_file.stat().st_uid == NEIGHBOR

    as_neighbor(visit)
    assert private.read_bytes() == b"secret"
    assert (control / "faults").read_text() == ""
    assert sorted(os.listdir(directory / "shared")) == ["own"]
    options = next(line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(directory) in line)
    assert {"nosuid", "nodev"} <= set(options.split(" - ")[0].split()[5].split(","))


def test_mounting_user_may_change_faults(mount_model: Mount) -> None:
    directory = mount_model("--no-cost", "--allow-other")
    assert (directory / ".sonde" / "faults").stat().st_uid == os.geteuid()
    (directory / ".sonde" / "faults").write_text("slow-target 0 10x\n")
    assert (directory / ".sonde" / "faults").read_text().startswith("slow-target 0")
