# SPDX-License-Identifier: Apache-2.0
"""Writes reference pages from the files they are about, so that nothing is said twice.

A page asks by a line of its own. ``<!-- members of PATH -->``, where PATH names a schema below the root of the
repository, becomes one section for each object in the schema, with a table of its members. ``<!-- experiments -->``
becomes a section for each shipped plan: its title, the words at its head, its text. ``<!-- experiment files -->``
becomes a table for each folder of shipped experiments. ``<!-- claims -->``
becomes two tables: the metrics and the functions that a claim of an experiment may name.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
PLACE = re.compile(r"^<!-- members of (\S+) -->$", re.MULTILINE)
CLAIMS = re.compile(r"^<!-- claims -->$", re.MULTILINE)
FILES = re.compile(r"^<!-- experiment files -->$", re.MULTILINE)
EXPERIMENTS = re.compile(r"^<!-- experiments -->$", re.MULTILINE)
SIZES = {
    "bytes": "size",
    "size": "size",
    "duration": "duration",
    "rate": "rate",
    "amount": "size or amount",
    "op_rate": "operations per second",
    "share": "share",
    "count": "count",
    "number": "number",
    "rates": "rate, or one each for read and write",
    "ids": "ids",
    "settings": "table",
}


def resolve(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The node itself, or what its $ref points to with the words that stand beside the $ref."""
    if "$ref" not in node:
        return node
    target: Any = schema
    for step in node["$ref"].removeprefix("#/").split("/"):
        target = target[step]
    return {**target, **{key: value for key, value in node.items() if key != "$ref"}}


def kind(schema: dict[str, Any], node: dict[str, Any]) -> str:
    """The type of a member in words for people."""
    name = node.get("$ref", "").rpartition("/")[2]
    if name in SIZES:
        return SIZES[name]
    node = resolve(schema, node)
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return " \\| ".join(f"`{value}`" for value in node["enum"])
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(kind(schema, one) for one in node["anyOf"]))
    if node.get("type") == "array":
        return f"list of {kind(schema, node.get('items', {}))}"
    words = {"object": "table", "string": "text", "integer": "whole number", "boolean": "true or false"}
    types = node.get("type", "any")
    names = [words.get(one, one) for one in ([types] if isinstance(types, str) else types)]
    return " or ".join(names) + limits(node)


def limits(node: dict[str, Any]) -> str:
    """The allowed range of a number, as text."""
    low = node.get("minimum", node.get("exclusiveMinimum"))
    high = node.get("maximum")
    if low is not None and high is not None:
        return f", {low} … {high}"
    if "exclusiveMinimum" in node:
        return f" above {low}"
    return f" from {low}" if low not in (None, 0) else ""


def sections(schema: dict[str, Any], node: dict[str, Any], name: str, seen: dict[str, str]) -> Iterator[str]:
    """Markdown of one object and, after it, of the objects inside it. An object that was described under another name
    is not described again: `seen` maps the text of its members to that name."""
    properties: dict[str, Any] = node.get("properties", {})
    required = set(node.get("required", []))
    yield f"## {name}\n"
    if node.get("description"):
        text = plain(node["description"])
        yield text[:1].upper() + text[1:].removesuffix(".") + ".\n"
    yield "| member | type | default | meaning |\n|---|---|---|---|"
    below: list[tuple[str, dict[str, Any]]] = []
    for member, raw in properties.items():
        inner = resolve(schema, raw)
        items = resolve(schema, inner.get("items", {}))
        path = f"{name}.{member}" if "." in name or name != "plan" else member
        nested = inner if "properties" in inner else items if "properties" in items else None
        default = "required" if member in required else f"`{json.dumps(raw['default'])}`" if "default" in raw else ""
        meaning = plain(inner.get("description", ""))
        if nested is not None:
            key = json.dumps(without_defaults(nested["properties"]), sort_keys=True)
            if key in seen:
                meaning = f"{end_sentence(meaning)} See [{seen[key]}](#{anchor(seen[key])}).".strip()
            else:
                title = f"{path}[]" if nested is items else path
                seen[key] = title
                below.append((title, nested))
                meaning = f"{end_sentence(meaning)} See [{title}](#{anchor(title)}).".strip()
        yield f"| `{member}` | {kind(schema, raw)} | {default} | {meaning} |"
    yield ""
    for title, nested in below:
        yield from sections(schema, nested, title, seen)


def end_sentence(meaning: str) -> str:
    """The text with a period at its end, unless it is empty."""
    return f"{meaning.removesuffix('.')}." if meaning else ""


def without_defaults(node: Any) -> Any:
    """What is laid over something has the members of it, but no defaults: they need no second table."""
    if isinstance(node, dict):
        return {name: without_defaults(one) for name, one in node.items() if name != "default"}
    return [without_defaults(one) for one in node] if isinstance(node, list) else node


def plain(text: str) -> str:
    """Words of a schema as Markdown: a place holder such as <run id> is no HTML, a | ends no cell."""
    return text.replace("<", "&lt;").replace("|", "\\|")


def anchor(title: str) -> str:
    """The anchor MyST makes of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def expand(app: Sphinx, _name: str, source: list[str]) -> None:
    """Replaces every asking line of a page."""

    def tables(found: re.Match[str]) -> str:
        app.env.note_dependency(str(ROOT / found[1]))  # so that a changed schema builds the page again
        schema = json.loads((ROOT / found[1]).read_text(encoding="utf-8"))
        return "\n".join(sections(schema, schema, schema["title"].split()[1].strip(",").lower(), {}))

    def experiments(_found: re.Match[str]) -> str:
        files = sorted((ROOT / "experiments").rglob("*.toml"))
        for path in files:
            app.env.note_dependency(str(path))
        return "\n".join(experiment(path) for path in files if not is_experiment(path))

    source[0] = FILES.sub(lambda _: experiment_files(), source[0])
    source[0] = CLAIMS.sub(lambda _: claims(), source[0])
    source[0] = EXPERIMENTS.sub(experiments, PLACE.sub(tables, source[0]))


def claims() -> str:
    """Markdown of the metrics and functions of claims."""
    sys.path.insert(0, str(ROOT / "lab"))
    from sonde.model.experiment.claims import FUNCTIONS, METRICS

    metrics = [f"| `{name}` | {unit} | {plain(meaning)} |" for name, (unit, meaning) in METRICS.items()]
    functions = [
        f"| `{name}(metric{''.join(f', {one}=…' for one in needed)})` | {plain(meaning)} |"
        for name, (needed, _, meaning) in FUNCTIONS.items()
    ]
    return "\n".join(
        [
            "| metric | unit | meaning |",
            "|---|---|---|",
            *metrics,
            "",
            "| function | meaning |",
            "|---|---|",
            *functions,
        ]
    )


def is_experiment(path: Path) -> bool:
    """Whether a shipped file is an experiment; the others are plans."""
    return bool(tomllib.loads(path.read_text(encoding="utf-8"))["schema"] == "sonde-experiment/2")


def experiment_files() -> str:
    """Markdown of a table for each folder of experiments: name, title, status, claims, cells of each profile."""
    sys.path.insert(0, str(ROOT / "lab"))
    from sonde.model.experiment import read_experiment

    folders: dict[str, list[str]] = {}
    for path in sorted((ROOT / "experiments").rglob("*.toml")):
        if not is_experiment(path):
            continue
        whole = read_experiment(path)
        cells = ", ".join(f"{name} {len(read_experiment(path, name).cells)}" for name in whole.profile_names)
        claims = ", ".join(one.id for one in whole.file.expect)
        row = f"| `{path.stem}` | {plain(whole.title)} | {whole.file.status} | {claims} | {cells} |"
        folders.setdefault(path.parent.name, []).append(row)
    head = "| name | what | parameters are | claims | cells |\n|---|---|---|---|---|"
    titles = [(name, "For any file system" if name == "experiments" else name) for name in folders]
    return "\n\n".join(f"### {title}\n\n{head}\n" + "\n".join(folders[name]) for name, title in titles)


def experiment(path: Path) -> str:
    """Markdown of one shipped plan."""
    text = path.read_text(encoding="utf-8")
    head, _, body = text.partition("\nschema =")
    words = [line.removeprefix("#").strip() for line in head.splitlines() if "SPDX" not in line]
    command = [f"```shell\n{line}\n```" for line in words if line.startswith("sonde ")]
    words = [line for line in words if not line.startswith("sonde ")]
    title = tomllib.loads(text)["title"]
    plan = f"```toml\nschema ={body}```"
    return "\n\n".join([f"## {path.stem}", f"*{plain(title)}*", plain(" ".join(words)), *command, plan, ""])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", expand)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
