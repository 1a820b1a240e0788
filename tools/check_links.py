# SPDX-License-Identifier: Apache-2.0
"""Checks every link inside the built documentation and of the Markdown files beside it, without a network.

Usage: tools/check_links.py SITE [MARKDOWN...]. A link must lead to an existing file and, after #, to an anchor in it.
Links to other hosts are not followed. Prints one line for each broken link; exit code 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LINK_ATTRIBUTE_BY_TAG = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src", "object": "data"}
_FENCE_PATTERN = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_MARKDOWN_LINK_PATTERN = re.compile(r"\]\(([^()\s]+)\)")
_HEADING_PATTERN = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


class PageParser(HTMLParser):
    """Collects the links and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        for name in ("id", "name"):
            if (anchor := values.get(name)) and (name == "id" or tag == "a"):
                self.anchors.add(anchor)
        if tag in _LINK_ATTRIBUTE_BY_TAG and (link := values.get(_LINK_ATTRIBUTE_BY_TAG[tag])):
            self.links.append(link)


@cache
def parse_page(path: Path) -> PageParser:
    """Returns the links and anchors of an HTML file."""
    parser = PageParser()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


@cache
def find_markdown_anchors(path: Path) -> set[str]:
    """Returns the anchors that GitHub makes of the headings of a Markdown file."""
    headings = _HEADING_PATTERN.findall(_FENCE_PATTERN.sub("", path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def find_broken_links(path: Path, links: Iterable[str]) -> Iterator[str]:
    """Yields a sentence for each link of the file that leads nowhere."""
    for link in links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        anchor = unquote(parts.fragment)
        if target.is_dir() and (target / "index.html").is_file():
            target /= "index.html"
        if not target.exists():
            yield f"{path}: {link} leads to no file."
        elif anchor and target.suffix == ".html" and anchor not in parse_page(target).anchors:
            yield f"{path}: {link} leads to no anchor of {target.name}."
        elif anchor and target.suffix == ".md" and anchor not in find_markdown_anchors(target):
            yield f"{path}: {link} leads to no heading of {target.name}."


def check_site(site_folder: Path) -> Iterator[str]:
    """Yields a sentence for each broken link between the pages of a site."""
    for page in sorted(site_folder.rglob("*.html")):
        yield from find_broken_links(page, parse_page(page).links)


def check_markdown(path: Path) -> Iterator[str]:
    """Yields a sentence for each broken link of a Markdown file."""
    yield from find_broken_links(
        path, _MARKDOWN_LINK_PATTERN.findall(_FENCE_PATTERN.sub("", path.read_text(encoding="utf-8")))
    )


def main(site_folder: Path, markdown_files: list[Path]) -> int:
    """Prints the broken links, or how many pages are good."""
    pages = sum(1 for _ in site_folder.rglob("*.html"))
    broken = [*check_site(site_folder), *(line for path in markdown_files for line in check_markdown(path))]
    print("\n".join(broken) or f"All links of {pages} pages and {len(markdown_files)} files lead somewhere.")
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), [Path(name).resolve() for name in sys.argv[2:]]))
