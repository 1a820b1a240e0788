# SPDX-License-Identifier: Apache-2.0
"""Deliveries of notices to files, webhooks and mail, failures of them, and metrics that promtool accepts."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from sonde.watch import notice_channels
from sonde.watch.description import ChannelEntry, ProbeEntry, WatchFile
from sonde.watch.notice_channels import deliver_notices, make_webhook_document
from sonde.watch.open_metrics import render_metrics
from sonde.watch.watch_state import HistoryState, Incident, Notice, StateStore, WatchState

NOTICE = Notice("2026-01-01-slower-1-slower", "slower", "2026-01-01-slower-1", 1.7e9, "Title", "Text.", ["channel"])
PROBE = ProbeEntry(id="a", plan="quick", on="/fs")


class Receiver(BaseHTTPRequestHandler):
    """Stores what is posted; `status` is the answer."""

    received: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012 - of one test at a time
    status = 200

    def do_POST(self) -> None:
        """Stores the body."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append((self.headers["Idempotency-Key"], json.loads(body)))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Prints nothing."""


def deliver(folder: Path, channel: ChannelEntry, state: WatchState) -> list[str]:
    watch = WatchFile(schema="sonde-watch/1", probes=(PROBE,), channels=(channel,))
    return deliver_notices(watch, state, StateStore(folder / "watch"), "node1")


def make_state() -> WatchState:
    return WatchState(notices=[Notice(**{**vars(NOTICE), "channels": ["channel"], "delivered": []})])


def test_file_gets_each_notice_once_even_after_a_cut_line(tmp_path: Path) -> None:
    path = tmp_path / "notices.ndjson"
    path.write_text('{"id": "2026-01-01-slow', encoding="utf-8")
    channel = ChannelEntry(id="channel", to="file", path=str(path))
    for _ in range(3):
        assert deliver(tmp_path, channel, make_state()) == []
    assert [json.loads(line)["id"] for line in path.read_text(encoding="utf-8").splitlines()[1:]] == [NOTICE.id]


@pytest.mark.parametrize("form", ["json", "slack", "mattermost", "teams"])
def test_webhook_gets_the_form_of_its_receiver(tmp_path: Path, form: str) -> None:
    Receiver.received, Receiver.status = [], 200
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/hook"
    channel = ChannelEntry(id="channel", to="webhook", url=url, form=form)
    try:
        state = make_state()
        assert deliver(tmp_path, channel, state) == []
        assert state.notices == []
        Receiver.status = 500
        failing = make_state()
        (problem,) = deliver(tmp_path, channel, failing)
        assert "HTTP Error 500" in problem
        assert [notice.failures for notice in failing.notices] == [1]
    finally:
        server.shutdown()
        server.server_close()
    key, body = Receiver.received[0]
    assert key == NOTICE.id
    assert body == make_webhook_document(form, NOTICE, "node1")
    assert "Text." in json.dumps(body)


HOSTILE = Notice("i", "slower", "i", 1.7e9, "a <!channel> & b", "x" * 50_000, ["channel"])


def test_slack_text_has_no_control_characters() -> None:
    (text,) = make_webhook_document("slack", HOSTILE, "node1").values()
    assert text.startswith("*a &lt;!channel&gt; &amp; b*\nxxx")
    (text,) = make_webhook_document("mattermost", HOSTILE, "node1").values()
    assert text.startswith("**a <!channel> & b**\nxxx")


@pytest.mark.parametrize(("form", "most_bytes"), [("slack", 40_000), ("mattermost", 16_383), ("teams", 28_000)])
def test_long_notice_fits_the_limit_of_its_receiver(form: str, most_bytes: int) -> None:
    document = make_webhook_document(form, HOSTILE, "node1")
    assert 4000 < len(json.dumps(document).encode()) < most_bytes
    assert "x…" in json.dumps(document, ensure_ascii=False)


def test_teams_message_is_one_adaptive_card() -> None:
    """The members of the example in Microsoft's "Send Adaptive Cards using an Incoming Webhook"."""
    document = make_webhook_document("teams", NOTICE, "node1")
    assert document["type"] == "message"
    (attachment,) = document["attachments"]
    assert set(attachment) == {"contentType", "contentUrl", "content"}
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert {"$schema", "type", "version", "body"} == set(attachment["content"])
    assert [block["text"] for block in attachment["content"]["body"]] == ["Title", "Text."]


def test_mail_is_sent_by_sendmail_with_a_stable_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "sendmail"
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/mail\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(notice_channels, "_SENDMAIL_PATHS", (str(program),))
    channel = ChannelEntry(id="channel", to="mail", address=("ops@site.org",))
    assert deliver(tmp_path, channel, make_state()) == []
    mail = (tmp_path / "mail").read_text(encoding="utf-8")
    assert "To: ops@site.org" in mail
    assert f"Message-ID: <{NOTICE.id}@node1>" in mail


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_the_metrics() -> None:
    labels = {"directory": '/fs "quoted"\\', "probe": "a", "phase": "write", "operation": "write"}
    history = HistoryState(labels, "bytes/s", [1e9] * 6, [0.0] * 6, [1e9] * 6, incident="i")
    state = WatchState(durations={"a": [(1.7e9, 5.0)]}, histories={"0123456789": history}, skips={"a": "busy"})
    state.incidents.append(Incident("i", 1.7e9, {"0123456789": 0.5}, "slower"))
    text = render_metrics(state, ("a",))
    result = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")
    assert 'sonde_watch_slower{system="",directory="/fs \\"quoted\\"\\\\"' in text
