# SPDX-License-Identifier: Apache-2.0
"""The site in a real browser: quiet console, no request but the page, nothing wider than the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Page, browser, find_browser
from site_builders import make_site_archive, read_manifest

from sonde.cli.main import main

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed (Debian: apt install chromium)"),
]
WIDER = """JSON.stringify([...document.querySelectorAll('body *')].filter(element =>
  element.getBoundingClientRect().right > innerWidth + 0.5 && element.getBoundingClientRect().width > 0 &&
  !element.closest('.scroll')).map(element => element.outerHTML.slice(0, 80)))"""


@pytest.fixture(scope="module")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site."""
    root = tmp_path_factory.mktemp("site")
    make_site_archive(root / "archive")
    arguments = ["site", str(root / "out"), "--reports", "1", "--archive", str(root / "archive")]
    assert main(arguments) == 0
    return root / "out"


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    """A browser."""
    with browser() as page:
        yield page


@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_the_screen_and_ask_for_nothing(site_folder: Path, tab: Page, width: int, tmp_path: Path) -> None:
    pages = read_manifest(site_folder)
    kinds = {name.split("/")[0]: name for name in pages}  # one page of each kind
    assert {"index.html", "histories.html", "events.html", "runs.html", "history", "runs", "run"} <= set(kinds)
    for name in kinds.values():
        tab.open(site_folder / name, width)
        assert tab.requests == [(site_folder / name).resolve().as_uri()] or all(
            url.startswith("data:") for url in tab.requests[1:]
        )
        assert tab.messages == []
        assert tab.evaluate(WIDER) == "[]", name
        assert tab.pdf(tmp_path / "page.pdf").stat().st_size > 5000
