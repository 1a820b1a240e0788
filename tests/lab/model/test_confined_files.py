# SPDX-License-Identifier: Apache-2.0
"""Files in directories that others may write: links, pipes and swapped directories lead nowhere."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from other_user import NEIGHBOR, as_neighbor, needs_two_users

from sonde.model import confined_files
from sonde.model.confined_files import ConfinedDirectory, create_file, open_file, open_file_to_append, write_file


@pytest.fixture
def victim_file(tmp_path: Path) -> Path:
    """A file that nothing may change."""
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


@pytest.fixture
def shared_folder(tmp_path: Path) -> Path:
    """A directory that everybody may write."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    path = tmp_path / "shared"
    path.mkdir()
    path.chmod(0o777)
    return path


def test_file_replaces_a_link_and_leaves_its_target(shared_folder: Path, victim_file: Path) -> None:
    (shared_folder / "out").symlink_to(victim_file)
    write_file(shared_folder / "out", "new")
    assert victim_file.read_text() == "precious"
    assert (shared_folder / "out").read_text() == "new"
    assert not (shared_folder / "out").is_symlink()
    assert [path.name for path in shared_folder.iterdir()] == ["out"]


def test_growing_file_replaces_a_link(shared_folder: Path, victim_file: Path) -> None:
    (shared_folder / "out").symlink_to(victim_file)
    with create_file(shared_folder / "out") as file:
        file.write(b"new")
    assert victim_file.read_text() == "precious"


def test_link_is_not_appended_to_and_not_read(shared_folder: Path, victim_file: Path) -> None:
    (shared_folder / "out").symlink_to(victim_file)
    for operation in (open_file_to_append, open_file):
        with pytest.raises(OSError, match="symbolic link"):
            operation(shared_folder / "out")


def test_pipe_does_not_block(shared_folder: Path) -> None:
    os.mkfifo(shared_folder / "pipe")
    for operation in (open_file_to_append, open_file):
        with pytest.raises(OSError, match=r"not a regular file|No such device"):
            operation(shared_folder / "pipe")


def test_failed_replacement_leaves_the_old_file_and_nothing_else(shared_folder: Path) -> None:
    write_file(shared_folder / "out", "old")

    def fail_half_way() -> None:
        with confined_files.open_atomic_replacement(shared_folder / "out") as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert [path.name for path in shared_folder.iterdir()] == ["out"]
    assert (shared_folder / "out").read_text() == "old"


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "/etc", "a\0b"])
def test_name_of_several_components_is_refused(shared_folder: Path, name: str) -> None:
    with ConfinedDirectory.open(shared_folder) as directory:
        for operation in (
            directory.open_subdirectory,
            directory.open_file,
            directory.create_file,
            directory.remove_file,
        ):
            with pytest.raises(OSError, match="not the name of a file"):
                operation(name)


def test_directory_beneath_follows_no_link(shared_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / "run").mkdir(parents=True)
    (shared_folder / "month").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match=r"symbolic link|Not a directory"):
        ConfinedDirectory.open_beneath(shared_folder, shared_folder / "month" / "run")
    with pytest.raises(ValueError, match="subpath"):
        ConfinedDirectory.open_beneath(shared_folder, tmp_path / "other")


def test_removal_of_a_tree_does_not_follow_links(shared_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "inner").mkdir(parents=True)
    (other / "inner" / "file").write_text("precious")
    (shared_folder / "tree" / "a").mkdir(parents=True)
    (shared_folder / "tree" / "a" / "b").symlink_to(other)
    (shared_folder / "tree" / "c").symlink_to(other / "inner")
    confined_files.remove_tree(shared_folder / "tree")
    assert not (shared_folder / "tree").exists()
    assert (other / "inner" / "file").read_text() == "precious"
    (shared_folder / "link").symlink_to(other)
    with pytest.raises(OSError, match=r"symbolic link|Not a directory"):
        confined_files.remove_tree(shared_folder / "link")
    assert (other / "inner" / "file").exists()


@needs_two_users
def test_output_directory_that_another_user_linked_is_refused(shared_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    as_neighbor(lambda: (shared_folder / "reports").symlink_to(tmp_path / "other"))
    with pytest.raises(OSError, match="of another user"):
        write_file(shared_folder / "reports" / "page.html", "x")
    assert list((tmp_path / "other").iterdir()) == []
    (shared_folder / "mine").symlink_to(tmp_path / "other")
    write_file(shared_folder / "mine" / "page.html", "x")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["page.html"]


@needs_two_users
def test_files_of_another_user_are_not_trusted(shared_folder: Path) -> None:
    as_neighbor(lambda: (shared_folder / "theirs").write_text("{}"))
    write_file(shared_folder / "ours", "{}")
    with ConfinedDirectory.open(shared_folder) as directory:
        assert directory.read_json_file("theirs") == {}
        assert directory.read_json_file("theirs", trusted_only=True) is None
        assert directory.read_json_file("ours", trusted_only=True) == {}
        assert not directory.is_protected_from_others()
    os.chown(shared_folder, NEIGHBOR, NEIGHBOR)
    shared_folder.chmod(0o755)
    with ConfinedDirectory.open(shared_folder) as directory:
        assert not directory.is_protected_from_others(), "its owner may rename what is in it"


@needs_two_users
def test_pipe_of_another_user_is_not_written_to(shared_folder: Path) -> None:
    as_neighbor(lambda: os.mkfifo(shared_folder / "out"))
    with pytest.raises(OSError, match="not a regular file"):
        write_file(shared_folder / "out", "secret")


@needs_two_users
@pytest.mark.parametrize("folder", ["shared", "/dev/shm"])
def test_link_of_another_user_is_rejected_or_replaced(shared_folder: Path, victim_file: Path, folder: str) -> None:
    """A link to a pipe is refused; a link to a file is replaced, also below /dev."""
    target = shared_folder if folder == "shared" else Path(tempfile.mkdtemp(dir=folder))
    target.chmod(0o777)
    pipe = victim_file.parent / "pipe"
    os.mkfifo(pipe, 0o600)

    def plant() -> None:
        (target / "a").symlink_to(pipe)
        (target / "b").symlink_to(victim_file)

    as_neighbor(plant)
    before = victim_file.read_text()
    try:
        with pytest.raises(OSError, match="not a regular file"):
            write_file(target / "a", "secret")
        write_file(target / "b", "page")
        assert (victim_file.read_text(), (target / "b").is_symlink()) == (before, False)
    finally:
        if target != shared_folder:
            shutil.rmtree(target)


@needs_two_users
def test_hard_link_is_not_appended_to(shared_folder: Path, victim_file: Path) -> None:
    """Some kernels let users create hard links to files of other users (fs.protected_hardlinks = 0)."""
    before = victim_file.read_text()
    (shared_folder / "events.ndjson").hardlink_to(victim_file)
    with pytest.raises(OSError, match="another name elsewhere"):
        open_file_to_append(shared_folder / "events.ndjson")
    assert victim_file.read_text() == before


@needs_two_users
def test_file_of_another_user_is_not_appended_to(shared_folder: Path) -> None:
    as_neighbor(lambda: (shared_folder / "lock").write_text(""))
    open_file_to_append(shared_folder / "lock").close()
    with pytest.raises(PermissionError, match="another user"):
        open_file_to_append(shared_folder / "lock", trusted_only=True)


def test_block_device_is_not_written_to(shared_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a device")
    os.mknod(shared_folder / "disk", stat.S_IFBLK | 0o600, os.makedev(7, 250))
    with pytest.raises(OSError):  # noqa: PT011 - a device without a driver cannot even be opened
        write_file(shared_folder / "disk", "x")
    assert stat.S_ISBLK((shared_folder / "disk").stat().st_mode)


def test_device_is_written_to_and_not_replaced() -> None:
    write_file(Path("/dev/null"), "x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_writes_race_with_links_ten_thousand_times(shared_folder: Path, victim_file: Path) -> None:
    """While another thread puts a link in place of the file again and again, its target keeps its content."""
    stop = threading.Event()
    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)  # more interleavings, in a third of the time

    def swap_links_until_stopped() -> None:
        while not stop.is_set():
            try:
                os.symlink(victim_file, shared_folder / "swap")
                os.replace(shared_folder / "swap", shared_folder / "out")
            except FileExistsError:
                os.unlink(shared_folder / "swap")

    attacker = threading.Thread(target=swap_links_until_stopped)
    attacker.start()
    try:
        with ConfinedDirectory.open(shared_folder) as directory:
            for number in range(10_000):
                part = f".{number}.part"
                with directory.create_file(part) as file:
                    file.write(b"new")
                directory.rename_entry(part, directory, "out")
                try:
                    directory.open_file("out").close()
                except OSError as reason:
                    assert "symbolic link" in str(reason)  # noqa: PT017
    finally:
        stop.set()
        attacker.join()
        sys.setswitchinterval(switch_interval)
    assert victim_file.read_text() == "precious"
