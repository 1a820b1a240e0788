# SPDX-License-Identifier: Apache-2.0
"""All events, the latest first, each with the joint changes that it is near."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.charts.markup import Markup
from sonde.charts.plot import render_html_table
from sonde.charts.study import StudySection
from sonde.model.event import Event
from sonde.model.units import format_count_with_noun
from sonde.site.site_page import SitePage, get_history_page_path, make_page_link, make_site_page
from sonde.trends.changes import Change
from sonde.trends.nearby_events import find_nearby_events
from sonde.trends.survey import Survey
from sonde.trends.survey_text import format_dated_change, make_history_name

_EVENTS_PER_PAGE = 500
_MAX_LISTED_CHANGES = 4


def build_event_pages(events: Sequence[Event], survey: Survey) -> Iterator[SitePage]:
    """``events.html`` with the latest events, and ``events/2.html`` and so on with older ones."""
    near: dict[str, list[Change]] = {}
    for joint in survey.joint:
        for nearby in find_nearby_events(joint, events):
            near.setdefault(nearby.event.id, []).extend(joint.changes)
    ordered = sorted(events, key=lambda event: event.when.first, reverse=True)
    pages = [ordered[first : first + _EVENTS_PER_PAGE] for first in range(0, len(ordered), _EVENTS_PER_PAGE)] or [[]]
    for number, part in enumerate(pages, 1):
        name = "events.html" if number == 1 else f"events/{number}.html"
        root = "../" * name.count("/")
        rows = [_make_event_row(event, near.get(event.id, []), survey, root) for event in part]
        others = [
            make_page_link("events.html" if other == 1 else f"events/{other}.html", f"Page {other}", root)
            for other in range(1, len(pages) + 1)
            if other != number
        ]
        parts = [render_html_table(["When (UTC)", "Kind", "Event", "Parts", "Near changes"], rows, text_columns=5)]
        if others:
            parts.append(Markup('<p class="note">{}</p>').format(Markup(" ").join(others)))
        lead = (
            f"{format_count_with_noun(len(events), 'event')}: entered by people, from logs, and from differences "
            "between runs."
            if events
            else "The archive has no events; `sonde event add` and `sonde event scan` enter some."
        )
        yield make_site_page(
            name, "Events", lead, sections=[StudySection("The latest first", [], parts)] if part else []
        )


def _make_event_row(
    event: Event, changes_during_event: Sequence[Change], survey: Survey, path_to_root: str
) -> tuple[object, ...]:
    links = [
        Markup("{}: {}").format(
            make_page_link(
                get_history_page_path(survey.histories[change.history].labels.get("history", "")),
                make_history_name(survey.histories[change.history], survey.distinguishing_labels),
                path_to_root,
            ),
            format_dated_change(change),
        )
        for change in changes_during_event[:_MAX_LISTED_CHANGES]
    ]
    if len(changes_during_event) > _MAX_LISTED_CHANGES:
        links.append(Markup("and {} more").format(len(changes_during_event) - _MAX_LISTED_CHANGES))
    text = Markup('<a id="{}"></a>{}').format(event.id, event.title)
    if event.details or event.source:
        details = "; ".join(filter(None, (event.details, event.source)))
        text += Markup('<br><span class="detail">{}</span>').format(details)
    when = f"{event.when.first:%Y-%m-%d %H:%M}"
    return when, event.kind, text, ", ".join(event.parts), Markup("<br>").join(links)
