# SPDX-License-Identifier: Apache-2.0
"""Links of Markdown files lead to files and headings, also where the files are read without the site; and
tools/check_links.py, which checks the built site too, finds what is broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = '<h1 id="top"><a href="{link}">x</a></h1><img src="picture.png">'


def check(site: Path, *markdown: Path) -> subprocess.CompletedProcess[str]:
    """Runs tools/check_links.py."""
    command = [sys.executable, str(ROOT / "tools" / "check_links.py"), str(site), *map(str, markdown)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def make_site(folder: Path, link: str) -> Path:
    """Returns a site of one page with that link."""
    (folder / "picture.png").write_bytes(b"")
    (folder / "index.html").write_text(PAGE.format(link=link), encoding="utf-8")
    return folder


def test_links_of_all_markdown_files_lead_somewhere(tmp_path: Path) -> None:
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("schema/**/*.md"), *ROOT.glob("tests/**/*.md")]
    assert len(files) > 70
    result = check(make_site(tmp_path, "#top"), *files)
    assert result.returncode == 0, result.stdout


def test_broken_links_of_a_site_are_reported(tmp_path: Path) -> None:
    assert check(make_site(tmp_path, "index.html#top")).returncode == 0
    assert check(make_site(tmp_path, "https://elsewhere.example/none#no")).returncode == 0
    for link, message in (("#none", "leads to no anchor of index.html"), ("gone.html", "leads to no file")):
        result = check(make_site(tmp_path, link))
        assert (result.returncode, message in result.stdout) == (1, True), result.stdout
    (tmp_path / "picture.png").unlink()
    assert "picture.png leads to no file" in check(tmp_path).stdout


def test_broken_heading_link_of_a_markdown_file_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `heading`, two\n\n[good](#a-heading-two) [bad](#a-heading) \n", encoding="utf-8")
    result = check(make_site(tmp_path, "#top"), page)
    assert result.returncode == 1
    assert result.stdout.count("leads to no heading of page.md") == 1


def test_empty_site_is_an_error(tmp_path: Path) -> None:
    assert check(tmp_path).returncode == 1
