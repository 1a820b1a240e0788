# SPDX-License-Identifier: Apache-2.0
"""Pages of the documentation, as installed with Sonde, in the terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.markdown import Markdown

from sonde.findings.explanations import FINDINGS_PAGE as FINDINGS_PAGE
from sonde.findings.explanations import read_explanations
from sonde.model.bundled_files import find_bundled_folder
from sonde.model.errors import MachineError, UserError, suggest_close_name
from sonde.terminal.screen import get_results_console, make_plain_table

_MAX_TEXT_COLUMNS = 100  # columns of a page
# Folders of pages, in the order in which a bare name is looked for.
TOPIC_FOLDERS = ("start", "tasks", "concepts", "reference", "develop")
_INCLUDE_DIRECTIVE_PATTERN = re.compile(r"```\{include\} (\S+)\n```")
_DIRECTIVE_PATTERN = re.compile(r"(?ms)^(?:```|:::)\{[^}]+\}.*?^(?:```|:::)$")
_HTML_COMMENT_PATTERN = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_MARKDOWN_IMAGE_PATTERN = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_MARKDOWN_LINK_PATTERN = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class HelpTopic:
    """A page: its name ("tasks/compare"), title and file; or a section of it, with its text."""

    name: str
    title: str
    path: Path
    section: str = ""


def list_topics() -> dict[str, HelpTopic]:
    """Returns all pages by name. Raises MachineError if they are not installed."""
    docs = find_bundled_folder("docs")
    topics = {}
    for folder in TOPIC_FOLDERS if docs else ():
        for path in sorted((docs / folder).glob("*.md")) if docs else ():
            title = _read_page_title(path)
            if not title:
                continue  # a table that another page includes
            name = folder if path.stem == "index" else f"{folder}/{path.stem}"
            topics[name] = HelpTopic(name, title, path)
    if not topics:
        raise MachineError("The documentation is not installed with this Sonde; read the folder docs of its sources.")
    return topics


def _read_page_title(page_file: Path) -> str:
    for line in _read_page(page_file).splitlines():
        if line.startswith("# "):
            return line.removeprefix("# ").strip()
    return ""


def find_topic(topic_name: str) -> HelpTopic:
    """Returns the page of that name, with or without its folder, or the explanation of the finding of that name. Raises
    UserError with pages that mention the name."""
    topics = list_topics()
    for candidate in (topic_name, *(f"{folder}/{topic_name}" for folder in TOPIC_FOLDERS)):
        if candidate in topics:
            return topics[candidate]
    if text := read_explanations().get(topic_name):
        return HelpTopic(topic_name, topic_name, topics[FINDINGS_PAGE].path, f"# `{topic_name}`\n\n{text}\n")
    mentions = [topic.name for topic in topics.values() if topic_name.lower() in _read_page(topic.path).lower()]
    if topic_name.strip() and mentions:
        commands = ", ".join(f"`sonde help {topic}`" for topic in mentions[:6])
        raise UserError(f'There is no page "{topic_name}". Pages that mention it: {commands}.')
    hint = suggest_close_name(topic_name, {topic.partition("/")[2] or topic for topic in topics})
    raise UserError(f'There is no verb and no page "{topic_name}".{hint} `sonde help topics` lists the pages.')


def print_topics() -> None:
    """Prints names and titles of all pages."""
    table = make_plain_table()
    table.add_column("topic", no_wrap=True)
    table.add_column("page")
    for topic in list_topics().values():
        table.add_row(topic.name, topic.title)
    get_results_console().print(table)


def print_topic(topic: HelpTopic) -> None:
    """Prints a page. Links to other pages become the command that shows them."""
    console = get_results_console()
    page = Markdown(convert_page_for_terminal(topic, list_topics()), hyperlinks=False)
    console.print(page, width=min(console.width, _MAX_TEXT_COLUMNS))


def convert_page_for_terminal(topic: HelpTopic, topics: Mapping[str, HelpTopic]) -> str:
    """Returns a page as plain Markdown: without comments, images and directives of the documentation's site."""
    text = _DIRECTIVE_PATTERN.sub("", _HTML_COMMENT_PATTERN.sub("", topic.section or _read_page(topic.path)))
    text = _MARKDOWN_IMAGE_PATTERN.sub(r"\1", text)
    names_by_path = {other.path.resolve(): name for name, other in topics.items()}

    def replace_link_by_command(match: re.Match[str]) -> str:
        target = match[2].partition("#")[0]
        if not target or ":" in match[2]:
            return match[1] if not target else f"{match[1]} ({match[2]})"
        name = names_by_path.get((topic.path.parent / target).resolve())
        return f"{match[1]} (`sonde help {name}`)" if name else match[1]

    return _MARKDOWN_LINK_PATTERN.sub(replace_link_by_command, text)


def _read_page(page_file: Path) -> str:
    """Returns the text of a page, with other files that it includes."""
    text = page_file.read_text(encoding="utf-8")

    def read_included_file(match: re.Match[str]) -> str:
        file = page_file.parent / match[1]
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    return _INCLUDE_DIRECTIVE_PATTERN.sub(read_included_file, text)
