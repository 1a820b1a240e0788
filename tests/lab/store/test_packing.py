# SPDX-License-Identifier: Apache-2.0
"""Packs of runs: links and devices neither leave an archive nor come into one, and bombs end within limits."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from make_record import write_run
from other_user import NEIGHBOR, needs_two_users
from record_scene import Scene

from sonde.store import packs

RUN = "20260101T000000Z-packed-00000000"
Sonde = Callable[..., Any]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that only the caller may read."""
    path = tmp_path / "secret"
    path.write_text("root:$6$hash")
    path.chmod(0o600)
    return path


def run_with_traps(folder: Path, secret: Path) -> Path:
    """A run that also holds a link to a secret, a named pipe and a link to nothing."""
    write_run(folder, Scene())
    (folder / "messages.txt").symlink_to(secret)
    (folder / "nothing.txt").symlink_to(folder / "absent")
    os.mkfifo(folder / "pipe.txt")
    return folder


def names_and_bytes(pack: Path) -> dict[str, bytes]:
    """The files of a pack."""
    if pack.suffix == ".zip":
        with zipfile.ZipFile(pack) as packed:
            return {name: packed.read(name) for name in packed.namelist()}
    with tarfile.open(pack) as tape:
        return {member.name: (tape.extractfile(member) or io.BytesIO()).read() for member in tape.getmembers()}


@pytest.mark.parametrize("ending", [".zip", ".tar", ".tar.gz"])
def test_export_omits_entries_that_are_no_regular_files(
    sonde: Sonde, archive: Path, tmp_path: Path, secret: Path, ending: str
) -> None:
    folder = run_with_traps(archive / "2026-01" / RUN, secret)
    out = tmp_path / f"out{ending}"
    result = sonde("export", out, RUN)
    held = names_and_bytes(out)
    assert {name.rpartition("/")[2] for name in held} == {"record.ndjson", "plan.json", "run.json"}
    assert b"$6$hash" not in out.read_bytes()
    assert held[f"{RUN}/record.ndjson"] == (folder / "record.ndjson").read_bytes()
    assert result.err.count("it is a symbolic link") == 2
    assert "pipe.txt cannot be read (it is not a regular file)" in result.err


@needs_two_users
def test_export_omits_hard_links_to_foreign_files(sonde: Sonde, archive: Path, tmp_path: Path, secret: Path) -> None:
    """Some kernels let users create hard links to files of other users (fs.protected_hardlinks = 0)."""
    folder = write_run(archive / "2026-01" / RUN, Scene())
    (folder / "secret").hardlink_to(secret)
    os.chown(folder, NEIGHBOR, NEIGHBOR)
    result = sonde("export", tmp_path / "out.zip", RUN)
    assert "a link to a file of another user" in result.err
    names = names_and_bytes(tmp_path / "out.zip")
    assert f"{RUN}/record.ndjson" in names
    assert f"{RUN}/secret" not in names


def test_import_skips_a_run_with_links(sonde: Sonde, archive: Path, tmp_path: Path, secret: Path) -> None:
    run_with_traps(tmp_path / "other" / "2026-01" / RUN, secret)
    write_run(tmp_path / "other" / "2026-01" / f"{RUN}2", Scene())
    result = sonde("import", tmp_path / "other")
    assert [path.name for path in archive.glob("2*/*")] == [f"{RUN}2"]
    assert "symbolic link" in result.err
    assert not list(archive.glob(".incoming-*"))


def tar_with(out: Path, *members: tarfile.TarInfo) -> Path:
    """A whole run, and these members beside its files."""
    folder = write_run(out.parent / "made" / RUN, Scene())
    with tarfile.open(out, "w:gz") as tape:
        for member in members:
            tape.addfile(member, io.BytesIO(bytes(member.size)))
        for path in folder.iterdir():
            tape.add(path, f"{RUN}/{path.name}")
    return out


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, 3 if kind == tarfile.REGTYPE else 0
    return info


@pytest.mark.parametrize(
    ("trap", "expected_problem"),
    [
        (member(f"{RUN}/a.txt", tarfile.SYMTYPE, "/etc/passwd"), "is a link"),
        (member(f"{RUN}/a.txt", tarfile.LNKTYPE, "/etc/passwd"), "is a link"),
        (member(f"{RUN}/a.txt", tarfile.CHRTYPE), "is a device"),
        (member(f"{RUN}/a.txt", tarfile.FIFOTYPE), "is a device"),
        (member(f"/{RUN}/a.txt"), "leads outside"),
        (member(f"../{RUN}/a.txt"), "leads outside"),
        (member(f"{RUN}/../../a.txt"), "leads outside"),
    ],
)
def test_tar_member_that_is_no_regular_file_is_omitted(
    sonde: Sonde, archive: Path, tmp_path: Path, trap: tarfile.TarInfo, expected_problem: str
) -> None:
    result = sonde("import", tar_with(tmp_path / "pack.tar.gz", trap))
    (folder,) = archive.glob("2*/*")
    assert {path.name for path in folder.iterdir()} == {"record.ndjson", "plan.json", "run.json"}
    assert expected_problem in result.err
    assert {path.name for path in tmp_path.iterdir()} <= {"archive", "pack.tar.gz", "made"}


def test_link_in_a_zip_is_omitted(sonde: Sonde, archive: Path, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "made" / RUN, Scene())
    with zipfile.ZipFile(tmp_path / "pack.zip", "w") as packed:
        info = zipfile.ZipInfo(f"{RUN}/a.txt")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(info, "/etc/passwd")
        for path in folder.iterdir():
            packed.write(path, f"{RUN}/{path.name}")
    result = sonde("import", tmp_path / "pack.zip")
    assert not list(archive.glob("2*/*/a.txt"))
    assert "is a link" in result.err


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "MAX_MEMBERS", 100)
    monkeypatch.setattr(packs, "MAX_UNPACKED_BYTES", 64 << 20)
    monkeypatch.setattr(packs, "_MIN_BYTES_FOR_RATIO_CHECK", 4 << 20)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("ending", [".zip", ".tar.gz"])
def test_bomb_is_refused_within_its_ratio(sonde: Sonde, archive: Path, tmp_path: Path, ending: str) -> None:
    pack = tmp_path / f"bomb{ending}"
    zeros = bytes(32 << 20)
    if ending == ".zip":
        with zipfile.ZipFile(pack, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr(f"{RUN}/record.ndjson", zeros)
    else:
        info = tarfile.TarInfo(f"{RUN}/record.ndjson")
        info.size = len(zeros)
        with tarfile.open(pack, "w:gz") as tape:
            tape.addfile(info, io.BytesIO(zeros))
    result = sonde("import", pack)
    assert result.code == 2
    assert "more than 250 times its size" in result.err
    assert not list(archive.rglob("*.ndjson"))


@pytest.mark.usefixtures("small_limits")
def test_huge_tar_header_is_rejected(sonde: Sonde, tmp_path: Path) -> None:
    """A header of zeros: tarfile holds headers in memory."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 32 << 20
    pack = tmp_path / "bomb.tar.gz"
    with gzip.open(pack, "wb") as file:
        file.write(info.tobuf(tarfile.USTAR_FORMAT) + bytes(info.size))
    result = sonde("import", pack)
    assert result.code == 2
    assert "more than 1 MiB" in result.err


@pytest.mark.usefixtures("small_limits")
def test_pack_with_too_many_members_is_refused(sonde: Sonde, tmp_path: Path) -> None:
    pack = tmp_path / "many.tar"
    with tarfile.open(pack, "w") as tape:
        for number in range(200):
            tape.addfile(tarfile.TarInfo(f"x/{number}"))
    result = sonde("import", pack)
    assert result.code == 2
    assert "more than 100 members" in result.err


def test_encrypted_zip_is_refused_with_a_sentence(sonde: Sonde, tmp_path: Path) -> None:
    pack = tmp_path / "locked.zip"
    with zipfile.ZipFile(pack, "w") as packed:
        packed.writestr(f"{RUN}/run.json", "{}")
    content = bytearray(pack.read_bytes())
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(magic) + offset] |= 1
    pack.write_bytes(content)
    result = sonde("import", pack)
    assert result.code == 2
    assert "no pack of runs that can be read" in result.err
