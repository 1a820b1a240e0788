# SPDX-License-Identifier: Apache-2.0
"""Fills the templates: everything that reaches the page is escaped here, once, for all of them."""

from __future__ import annotations

import functools
import re
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined

from sonde.charts.markup import Markup

CHARTS_PACKAGE = "sonde.charts"
_MAX_UNBROKEN_WORD_LENGTH = 20
_BREAK_OPPORTUNITY_PATTERN = re.compile(r"(?<=[./,:])(?=[^\s\d])|(?<==)")


def render_page_template(page_view: object, template_name: str, package_name: str = CHARTS_PACKAGE) -> str:
    """A page as one HTML document: `page_view` laid out by the template of that name, which the package `package_name`
    keeps.

    The shared templates and the style sheet are in this package.
    """
    style = Markup(_load_template("style.css", CHARTS_PACKAGE))  # nosec B704 # a file of this package
    return _make_environment(package_name).get_template(template_name).render(view=page_view, style=style)


@functools.cache
def _make_environment(package_name: str) -> Environment:
    """The templates of a package. A site has hundreds of pages: each template is compiled once."""
    environment = Environment(
        # Read as package resources: works from a wheel, an editable installation and a zip alike.
        loader=FunctionLoader(
            lambda wanted: _load_template(wanted, package_name) or _load_template(wanted, CHARTS_PACKAGE)
        ),
        autoescape=True,
        finalize=Markup.escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = insert_line_break_opportunities
    return environment


def insert_line_break_opportunities(page_text: str) -> Markup:
    """Text in which a line may break within words that a narrow screen cannot hold: after a period, slash, comma, colon
    or equals sign, not within a name or number."""
    return Markup("").join(
        Markup("<wbr>").join(_BREAK_OPPORTUNITY_PATTERN.split(token))
        if len(token) > _MAX_UNBROKEN_WORD_LENGTH
        else token
        for token in re.split(r"(\s+)", page_text)
    )


@functools.cache
def _load_template(template_name: str, package_name: str) -> str | None:
    """The text of a template of that package; None when it has none of that name."""
    file = resources.files(package_name).joinpath("templates", template_name)
    return file.read_text(encoding="utf-8") if file.is_file() else None
