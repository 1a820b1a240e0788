# SPDX-License-Identifier: Apache-2.0
"""TOML, JSON, NDJSON and YAML that somebody else may have written, read within limits that later steps rely on."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import yaml

MAX_NESTING_LEVELS = 100  # of tables and lists in each other
TOO_DEEP_MESSAGE = f"it is nested too deeply, in more than {MAX_NESTING_LEVELS} levels"
MAX_DIGITS = 308  # of a whole number: a larger one is no floating-point number either
MAX_LINE_BYTES = 64 << 20  # of NDJSON; the engine writes lines of at most a few MiB
MAX_JSON_BYTES = 64 << 20  # of a JSON file in an archive


class DocumentError(ValueError):
    """A document that exceeds a limit. The text continues "… is not valid TOML: "."""


def parse_toml(toml_text: str) -> dict[str, Any]:
    """The table in TOML text. Raises TOMLDecodeError or DocumentError, which both are ValueError."""
    document: dict[str, Any] = _parse_within_limits(lambda: tomllib.loads(toml_text))
    return document


def parse_json(json_text: str, **hooks: Any) -> Any:
    """The value in JSON text; `hooks` as for `json.loads`. Raises JSONDecodeError or DocumentError, which both are
    ValueError."""
    return _parse_within_limits(lambda: json.loads(json_text, **hooks))


def parse_yaml(yaml_text: str) -> Any:
    """The value in YAML text. Raises YAMLError or DocumentError; an alias is refused, because few of them make a
    document of any size."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 10 times as fast where PyYAML has it
    depth = 0
    try:
        for event in yaml.parse(yaml_text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise DocumentError(f"it uses the alias *{event.anchor}; write the value out")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_NESTING_LEVELS:
                raise DocumentError(TOO_DEEP_MESSAGE)
    except yaml.MarkedYAMLError as reason:
        if "nesting depth" in (reason.problem or ""):  # libyaml's own limit, far above ours; it scans before it parses
            raise DocumentError(TOO_DEEP_MESSAGE) from None
        raise
    return _parse_within_limits(loader(yaml_text).get_single_data)


def read_bounded_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of an open file. A line of more than MAX_LINE_BYTES is empty: its content is never held in memory."""
    while line := file.readline(MAX_LINE_BYTES):
        if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
            yield line
            continue
        while (piece := file.readline(MAX_LINE_BYTES)) and not piece.endswith(b"\n"):
            pass
        yield b""


def _parse_within_limits(parse_document: Callable[[], Any]) -> Any:
    try:
        document = parse_document()
    except RecursionError:
        raise DocumentError(TOO_DEEP_MESSAGE) from None
    except ValueError as reason:
        if "integer string conversion" in str(reason):  # Python's own limit, far above ours
            raise DocumentError(f"it holds a number of more than {MAX_DIGITS} digits") from None
        raise
    _check_limits(document)
    return document


def _check_limits(json_value: Any) -> None:
    """Level by level, not by recursion, which a document could exhaust."""
    largest = 10**MAX_DIGITS
    level, depth = [json_value], 0
    while level:
        if depth > MAX_NESTING_LEVELS:
            raise DocumentError(TOO_DEEP_MESSAGE)
        if any(isinstance(value, int) and not -largest < value < largest for value in level):
            raise DocumentError(f"it holds a number of more than {MAX_DIGITS} digits")
        inner = [value for value in level if isinstance(value, dict | list)]
        level = [item for value in inner for item in (value.values() if isinstance(value, dict) else value)]
        depth += 1
