# SPDX-License-Identifier: Apache-2.0
"""Serves the pages of a site on the loopback interface, read-only.

Only files that the manifest of the site lists are served. Requests for another host name are refused, so that a page
of another site cannot read this one through a name that leads to 127.0.0.1 (DNS rebinding).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sonde.model.confined_files import ConfinedDirectory
from sonde.model.errors import MachineError
from sonde.site.site_folder import MANIFEST_FILE

LOOPBACK_ADDRESS = "127.0.0.1"
_ALLOWED_HOSTS = (LOOPBACK_ADDRESS, "localhost")
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)


def make_site_server(site_root: Path, port: int, refresh_site: Callable[[], None]) -> ThreadingHTTPServer:
    """A server of the site in `site_root`; `refresh_site` is called before the overview is sent. Port 0: any free one.

    Raises MachineError when the port cannot be used.
    """
    lock = threading.Lock()

    class Handler(_SiteHandler):
        folder = site_root

        def refresh_site(self) -> None:
            with lock:
                refresh_site()

    try:
        return ThreadingHTTPServer((LOOPBACK_ADDRESS, port), Handler)
    except OSError as error:
        raise MachineError(
            f"Port {port} on {LOOPBACK_ADDRESS} cannot be used: {error.strerror}; choose another."
        ) from None


class _SiteHandler(BaseHTTPRequestHandler):
    folder: Path
    server_version = "sonde"
    sys_version = ""
    timeout = 30

    def refresh_site(self) -> None:
        """Brings the site up to date."""

    def do_GET(self) -> None:
        """Sends a page."""
        self._answer_request(sends_body=True)

    def do_HEAD(self) -> None:
        """Sends the head of a page."""
        self._answer_request(sends_body=False)

    def _answer_request(self, sends_body: bool) -> None:
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if host not in _ALLOWED_HOSTS:
            self.send_error(HTTPStatus.FORBIDDEN, "This server answers to 127.0.0.1 and localhost only")
            return
        name = unquote(urlsplit(self.path).path).lstrip("/") or "index.html"
        if name == "index.html":
            self.refresh_site()
        content = self._read_page(name)
        if content is None:
            self.send_error(HTTPStatus.NOT_FOUND, "The site has no such page")
            return
        self.send_response(HTTPStatus.OK)
        for header, value in (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Length", str(len(content))),
            ("Content-Security-Policy", _CONTENT_SECURITY_POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-cache"),
        ):
            self.send_header(header, value)
        self.end_headers()
        if sends_body:
            self.wfile.write(content)

    def _read_page(self, page_path: str) -> bytes | None:
        folder, _, file = page_path.rpartition("/")
        try:
            with ConfinedDirectory.open(self.folder) as directory:
                manifest = directory.read_json_file(MANIFEST_FILE, trusted_only=True) or {}
            if page_path not in manifest.get("pages", {}):
                return None
            with (
                ConfinedDirectory.open_beneath(self.folder, self.folder / folder) as directory,
                directory.open_file(file) as stream,
            ):
                return stream.read()
        except (OSError, ValueError, TypeError, json.JSONDecodeError):
            return None

    def log_message(self, format: str, *args: object) -> None:
        """Logs no requests, because the terminal is not an access log."""
