# SPDX-License-Identifier: Apache-2.0
"""``sonde serve``: pages of the manifest on the loopback interface, nothing else, to nobody else."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sonde.site.site_folder import SiteFolder
from sonde.site.site_server import LOOPBACK_ADDRESS, make_site_server


@pytest.fixture
def refreshes() -> list[int]:
    """Grows when the site is brought up to date."""
    return []


@pytest.fixture
def port(tmp_path: Path, refreshes: list[int]) -> Iterator[int]:
    """The port of a server of a small site."""
    site = SiteFolder.open_site(tmp_path / "site")
    site.write_page("index.html", "1", lambda: "<p>overview</p>")
    site.write_page("run/a b.html", "2", lambda: "<p>run</p>")
    site.remove_stale_pages()
    (tmp_path / "site" / "planted.html").write_text("planted")
    (tmp_path / "secret.html").write_text("secret")
    with make_site_server(tmp_path / "site", 0, lambda: refreshes.append(1)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        assert server.server_address[0] == LOOPBACK_ADDRESS
        yield int(server.server_address[1])
        server.shutdown()
        thread.join()


def request(port: int, path: str, method: str = "GET", host: str = "") -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection(LOOPBACK_ADDRESS, port, timeout=10)
    connection.request(method, path, headers={"Host": host or f"{LOOPBACK_ADDRESS}:{port}"})
    answer = connection.getresponse()
    return answer.status, answer.read(), dict(answer.getheaders())


def test_overview_is_refreshed_and_sent_with_a_policy(port: int, refreshes: list[int]) -> None:
    status, body, headers = request(port, "/")
    assert (status, body) == (200, b"<p>overview</p>")
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert refreshes == [1]
    assert request(port, "/run/a%20b.html")[:2] == (200, b"<p>run</p>")
    assert refreshes == [1]
    assert request(port, "/", "HEAD")[:2] == (200, b"")


@pytest.mark.parametrize(
    "path", ["/planted.html", "/../secret.html", "/%2e%2e/secret.html", "//etc/passwd", "/sonde-site.json", "/run/"]
)
def test_other_files_are_not_served(port: int, path: str) -> None:
    assert request(port, path)[0] == 404


def test_other_hosts_and_methods_are_refused(port: int) -> None:
    assert request(port, "/", host="evil.example:80")[0] == 403
    assert request(port, "/", host="localhost")[0] == 200
    for method in ("POST", "PUT", "DELETE"):
        assert request(port, "/", method)[0] == 501
