# SPDX-License-Identifier: Apache-2.0
"""What another user plants for a watch: states, locks, files of notices, watch files, plans, answers of webhooks."""

from __future__ import annotations

import fcntl
import json
import os
import socketserver
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from other_user import as_neighbor, needs_two_users

from sonde.model.errors import MachineError, UserError
from sonde.watch import installation
from sonde.watch.archive_runner import load_probe_plan
from sonde.watch.configuration import read_watch_file
from sonde.watch.description import ChannelEntry, ProbeEntry, WatchFile
from sonde.watch.notice_channels import deliver_notices, send_test_notice
from sonde.watch.watch_state import HistoryState, Notice, StateStore, WatchState

Sonde = Callable[..., Any]
FORGED = Notice("2026-01-01-slower-1-slower", "slower", "i", 1.7e9, "Forged", "Text.", ["f"])


@pytest.fixture
def shared_folder(tmp_path: Path) -> Path:
    """A directory that everybody may write."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    path = tmp_path / "shared"
    path.mkdir()
    path.chmod(0o777)
    return path


def write_state(folder: Path, state: WatchState) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "state.json").write_text(json.dumps(state.to_json()), encoding="utf-8")


@needs_two_users
def test_state_in_the_folder_of_another_user_is_refused(sonde: Sonde, shared_folder: Path) -> None:
    as_neighbor(lambda: write_state(shared_folder / "watch", WatchState(notices=[FORGED], rounds=1)))
    with pytest.raises(MachineError, match="belongs to another user"):
        StateStore(shared_folder / "watch").load_state()
    assert "Forged" not in sonde("watch", "accept", "last", "--archive", shared_folder).out
    assert sonde("watch", "status", "--archive", shared_folder).code == 0, (
        "reading the watch of a colleague is harmless"
    )


@needs_two_users
def test_state_file_of_another_user_is_refused(shared_folder: Path) -> None:
    (shared_folder / "watch").mkdir(mode=0o777)
    (shared_folder / "watch").chmod(0o777)
    as_neighbor(lambda: write_state(shared_folder / "watch", WatchState(notices=[FORGED])))
    with pytest.raises(MachineError, match="belongs to another user"):
        StateStore(shared_folder / "watch").load_state()


@needs_two_users
def test_reader_cannot_hold_the_lock(shared_folder: Path) -> None:
    store = StateStore(shared_folder / "watch")
    with store.hold_lock():
        assert stat.S_IMODE((store.folder / "lock").stat().st_mode) == 0o600

    def hold_lock() -> None:
        try:
            with (store.folder / "lock").open() as file:
                fcntl.flock(file, fcntl.LOCK_EX)
        except PermissionError:
            return
        raise AssertionError("another user holds the lock")

    as_neighbor(hold_lock)


VALID = WatchState(
    histories={"h": HistoryState({"probe": "a", "phase": "w", "directory": "/"}, "bytes/s", [1.0], [2.0])}, rounds=1
)


@pytest.mark.parametrize(
    ("member", "member_value"),
    [
        ("values", ["x"]),
        ("values", [1.0, 2.0]),
        ("labels", {}),
        ("labels", 5),
        ("unit", None),
        ("reference", "x"),
        ("values", [float("inf")]),
        ("filled", True),
    ],
)
def test_state_of_wrong_types_is_one_sentence(sonde: Sonde, tmp_path: Path, member: str, member_value: object) -> None:
    document = VALID.to_json()
    document["histories"]["h"][member] = member_value
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "state.json").write_text(json.dumps(document), encoding="utf-8")
    result = sonde("watch", "status", "--archive", tmp_path)
    assert result.code == 3
    assert len(result.sentences) == 1
    assert "cannot be used" in result.err


def test_state_is_equal_after_it_was_stored(tmp_path: Path) -> None:
    state = WatchState(**{**vars(VALID), "notices": [FORGED], "durations": {"a": [(1.0, 2.0)]}, "silences": {"": 3.0}})
    StateStore(tmp_path).save_state(state)
    assert StateStore(tmp_path).load_state() == state


def deliver(path: Path) -> list[str]:
    state = WatchState(notices=[Notice(**{**vars(FORGED), "delivered": []})])
    probe = ProbeEntry(id="a", plan="quick", on="/fs")
    watch = WatchFile(
        schema="sonde-watch/1", probes=(probe,), channels=(ChannelEntry(id="f", to="file", path=str(path)),)
    )
    return deliver_notices(watch, state, StateStore(path.parent / "watch"), "n1")


def test_pipe_as_file_of_notices_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "notices")
    (problem,) = deliver(tmp_path / "notices")
    assert "not a regular file" in problem


@needs_two_users
def test_file_of_another_user_suppresses_no_notice(shared_folder: Path) -> None:
    """A file of another user could contain ids of future notices, which would then not be sent."""
    as_neighbor(lambda: (shared_folder / "notices").write_text(json.dumps({"id": FORGED.id}) + "\n"))
    (problem,) = deliver(shared_folder / "notices")
    assert "belongs to another user" in problem


class Garbage(socketserver.BaseRequestHandler):
    """Answers with what is no HTTP."""

    def handle(self) -> None:
        """Sends it."""
        self.request.recv(65536)
        self.request.sendall(b"garbage\r\n\r\n")


class Endless(socketserver.BaseRequestHandler):
    """Answers without end."""

    def handle(self) -> None:
        """Sends until the other side closes."""
        self.request.recv(65536)
        self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                self.request.sendall(b"x" * 65536)
        except OSError:
            return


@pytest.mark.parametrize(("handler", "problems"), [(Garbage, ["w: garbage"]), (Endless, [])])
def test_hostile_answer_of_a_webhook_ends(handler: type, problems: list[str]) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        channel = ChannelEntry(id="w", to="webhook", url=f"http://127.0.0.1:{server.server_address[1]}/")
        watch = WatchFile(schema="sonde-watch/1", probes=(), channels=(channel,))
        reported = send_test_notice(watch, "n1", 0.0)
        server.shutdown()
    assert [problem.strip() for problem in reported] == problems


def write_watch_file(path: Path) -> None:
    path.write_text(f'schema = "sonde-watch/1"\n[[probes]]\nid = "a"\nplan = "quick"\non = "{path.parent}"\n')


def test_world_writable_watch_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "watch.toml"
    write_watch_file(path)
    for mode in (0o620, 0o602):
        path.chmod(mode)
        with pytest.raises(UserError, match=r"can be written by other users.*chmod go-w"):
            read_watch_file(path)
    path.chmod(0o644)
    assert read_watch_file(path).probes[0].plan == "quick"


@needs_two_users
def test_watch_file_and_plan_of_another_user_are_refused(shared_folder: Path) -> None:
    def plant() -> None:
        write_watch_file(shared_folder / "watch.toml")
        (shared_folder / "plan.toml").write_text("")

    as_neighbor(plant)
    with pytest.raises(UserError, match="belongs to user"):
        read_watch_file(shared_folder / "watch.toml")
    with pytest.raises(UserError, match="belongs to user"):
        load_probe_plan(ProbeEntry(id="a", plan="p", on=str(shared_folder)), str(shared_folder / "plan.toml"))


def test_line_break_in_a_path_is_refused_in_units(tmp_path: Path) -> None:
    hostile = tmp_path / "a\nExecStartPre=/bin/evil"
    for make in (installation.make_systemd_units, installation.make_cron_line):
        with pytest.raises(UserError, match="characters that a unit cannot hold"):
            make(hostile, tmp_path)
        with pytest.raises(UserError, match="characters that a unit cannot hold"):
            make(tmp_path, hostile)
