# SPDX-License-Identifier: Apache-2.0
"""The frame of every page of a site: title, navigation, facts, sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from sonde.charts.markup import Markup
from sonde.charts.page_renderer import render_page_template
from sonde.charts.study import Study, StudySection

_NAVIGATION_PAGES = (
    ("index.html", "Overview"),
    ("histories.html", "Histories"),
    ("events.html", "Events"),
    ("runs.html", "Runs"),
)


@dataclass(frozen=True)
class SitePage(Study):
    """A page of the site. `name` is its path in the site, like ``history/ab12.html``."""

    name: str

    @property
    def path_to_root(self) -> str:
        """The path from this page to the root of the site."""
        return "../" * self.name.count("/")

    @property
    def navigation_links(self) -> list[tuple[str, str, bool]]:
        """Link, text, and whether it is this page."""
        return [(f"{self.path_to_root}{name}", text, name == self.name) for name, text in _NAVIGATION_PAGES]

    def render(self) -> str:
        """The page as HTML."""
        return render_page_template(self, "site.html.j2", package_name="sonde.site")


def make_site_page(
    page_path: str,
    title: str,
    lead_text: str = "",
    labels_with_values: Sequence[tuple[str, str]] = (),
    sections: Sequence[StudySection] = (),
    alarm_texts: Sequence[str] = (),
) -> SitePage:
    """A page of the site."""
    return SitePage(title, lead_text, labels_with_values, alarm_texts, sections, page_path)


def make_page_link(target_page: str, link_text: str, path_to_root: str = "") -> Markup:
    """A link to a page of the site; `path_to_root` is the path from the linking page to the root of the site."""
    return Markup('<a href="{}">{}</a>').format(f"{path_to_root}{quote(target_page, safe='/#.-_~')}", link_text)


def get_history_page_path(history_id: str) -> str:
    """Path of the page of a history, relative to the site."""
    return f"history/{history_id}.html"


def get_run_page_path(run_id: str) -> str:
    """Path of the page with the full report of a run, relative to the site."""
    return f"run/{run_id}.html"
