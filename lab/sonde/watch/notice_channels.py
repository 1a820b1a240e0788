# SPDX-License-Identifier: Apache-2.0
"""Delivers notices: files, mail, webhooks. Each delivery can be repeated after a kill without a second message.

A file is searched for the id of the notice first. Mail has a Message-ID and a webhook an Idempotency-Key that follow
from the id, by which receivers drop a second copy; it exists only when a kill falls between sending and saving.
"""

from __future__ import annotations

import json
import smtplib
import subprocess
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from http.client import HTTPException
from pathlib import Path
from typing import Any

from sonde.model.confined_files import open_file, open_file_to_append
from sonde.watch.description import ChannelEntry, WatchFile
from sonde.watch.watch_state import Notice, StateStore, WatchState

_TIMEOUT_S = 15.0
_SENDMAIL_PATHS = ("/usr/sbin/sendmail", "/usr/lib/sendmail")
_DELIVERY_ERRORS = (OSError, ValueError, HTTPException, smtplib.SMTPException, subprocess.SubprocessError)
_MAX_CHAT_CHARACTERS = 4000  # characters of a title or text in a chat
_MAX_DELIVERY_FAILURES = 50  # rounds; then the notice is only in the status


def deliver_notices(
    watch_settings: WatchFile, watch_state: WatchState, state_store: StateStore, host_name: str
) -> list[str]:
    """Sends each notice to the channels that lack it and saves after each. Returns one sentence for each failure."""
    channels = {channel.id: channel for channel in watch_settings.channels}
    problems: list[str] = []
    for notice in list(watch_state.notices):
        for name in notice.channels:
            channel = channels.get(name)
            if name in notice.delivered or channel is None:
                continue
            try:
                SENDERS[channel.to](channel, notice, host_name)
            except _DELIVERY_ERRORS as error:
                notice.failures += 1
                notice.last_failure = f"{name}: {error}"
                problems.append(f"Notice {notice.id} could not be sent to {name}: {error}; it is tried again.")
                continue
            notice.delivered.append(name)
            state_store.save_state(watch_state)
        is_complete = all(name in notice.delivered or name not in channels for name in notice.channels)
        if is_complete or notice.failures > _MAX_DELIVERY_FAILURES:
            watch_state.notices.remove(notice)
    state_store.save_state(watch_state)
    return problems


def send_test_notice(watch_settings: WatchFile, host_name: str, now_s: float) -> list[str]:
    """Sends a test to every channel. Returns one sentence, beginning with the channel, for each that failed."""
    stamp = f"{datetime.fromtimestamp(now_s, UTC):%Y-%m-%dT%H:%M:%S}"
    text = "This is a test: notices of sonde watch arrive here."
    notice = Notice(f"{stamp}-test", "test", "", now_s, "Test of sonde watch", text, [])
    problems = []
    for channel in watch_settings.channels:
        if channel.to in SENDERS:
            try:
                SENDERS[channel.to](channel, notice, host_name)
            except _DELIVERY_ERRORS as error:
                problems.append(f"{channel.id}: {error}")
    return problems


def make_notice_document(notice: Notice, host_name: str) -> dict[str, Any]:
    """The notice as JSON."""
    time = datetime.fromtimestamp(notice.time, UTC).isoformat(timespec="seconds")
    return {
        "id": notice.id,
        "kind": notice.kind,
        "incident": notice.incident,
        "time": time,
        "host": host_name,
        "title": notice.title,
        "text": notice.text,
    }


def make_webhook_document(webhook_form: str, notice: Notice, host_name: str) -> dict[str, Any]:
    """The body of a webhook in the form of its receiver.

    Slack, "Formatting text for app surfaces": &, < and > are control characters. Microsoft, "Create incoming webhooks":
    a message has 28 KB at most; Mattermost splits or refuses posts above 16,383 characters.
    """
    if webhook_form == "json":
        return make_notice_document(notice, host_name)
    title, text = (_shorten_message(part, _MAX_CHAT_CHARACTERS) for part in (notice.title, notice.text))
    if webhook_form == "slack":
        return {"text": f"*{_escape_for_slack(title)}*\n{_escape_for_slack(text)}"}
    if webhook_form == "mattermost":
        return {"text": f"**{title}**\n{text}"}
    if webhook_form == "teams":
        blocks = [
            {"type": "TextBlock", "weight": "Bolder", "text": title, "wrap": True},
            {"type": "TextBlock", "text": text, "wrap": True},
        ]
        card = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "body": blocks,
        }
        return {
            "type": "message",
            "attachments": [
                {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
            ],
        }
    raise ValueError(f"there is no form {webhook_form}")


def _escape_for_slack(notice_text: str) -> str:
    """Escapes mentions and links of Slack: ``<!channel>`` would notify everybody."""
    return notice_text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _shorten_message(notice_text: str, max_characters: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return notice_text if len(notice_text) <= max_characters else notice_text[: max_characters - 1] + "…"


def make_mail(channel: ChannelEntry, notice: Notice, host_name: str) -> EmailMessage:
    """The mail of a notice."""
    mail = EmailMessage()
    mail["Subject"] = notice.title
    mail["From"] = channel.sender or f"sonde@{host_name}"
    mail["To"] = ", ".join(channel.address)
    mail["Date"] = datetime.fromtimestamp(notice.time, UTC)
    mail["Message-ID"] = f"<{notice.id}@{host_name}>"
    origin = (
        f"Incident {notice.incident}, watched from {host_name}." if notice.incident else f"Watched from {host_name}."
    )
    mail.set_content(f"{notice.text}\n\n{origin}\n")
    return mail


def _send_to_file(channel: ChannelEntry, notice: Notice, host_name: str) -> None:
    path = Path(channel.path)
    try:
        with open_file(path, trusted_only=True) as file:
            content = file.read()
    except FileNotFoundError:
        content = b""
    for line in content.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # cut by a kill
        if isinstance(entry, dict) and entry.get("id") == notice.id:
            return
    text = json.dumps(make_notice_document(notice, host_name), ensure_ascii=False) + "\n"
    separator = "\n" if content and not content.endswith(b"\n") else ""
    with open_file_to_append(path, trusted_only=True) as file:
        file.write(f"{separator}{text}".encode())


def _send_mail(channel: ChannelEntry, notice: Notice, host_name: str) -> None:
    mail = make_mail(channel, notice, host_name)
    if channel.server:
        name, _, port = channel.server.partition(":")
        with smtplib.SMTP(name, int(port or 25), timeout=_TIMEOUT_S) as server:
            server.send_message(mail)
        return
    program = next((path for path in _SENDMAIL_PATHS if Path(path).exists()), "sendmail")
    subprocess.run([program, "-t", "-i"], input=mail.as_bytes(), timeout=_TIMEOUT_S, check=True, capture_output=True)


def _post_webhook(channel: ChannelEntry, notice: Notice, host: str) -> None:
    body = json.dumps(make_webhook_document(channel.form, notice, host)).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": notice.id}
    request = urllib.request.Request(channel.url, body, headers)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S):  # nosec B310 # the watch file has http(s) only
        pass  # the status counts; an answer may be endless


SENDERS: Mapping[str, Callable[[ChannelEntry, Notice, str], None]] = {
    "file": _send_to_file,
    "mail": _send_mail,
    "webhook": _post_webhook,
}
