# SPDX-License-Identifier: Apache-2.0
"""The pages of the reproduction, from the shapes (docs/published/shapes.toml) and the numbers that were kept."""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sonde.experiments.source_documents import DOCUMENT_TITLES

ROOT = Path(__file__).resolve().parents[1]
SHAPES_FILE = ROOT / "docs" / "published" / "shapes.toml"
NUMBERS_FOLDER = ROOT / "docs" / "published" / "simulated"
PAGE_FILE = ROOT / "docs" / "concepts" / "reproduction.md"
PAGES_FOLDER = ROOT / "docs" / "concepts" / "reproduction"

HOLDS, FAILS, NOT_SEEN, ABSENT = "holds", "**fails**", "not looked at", "not in the model"
# Why a shape that holds says little: `by` in the list of shapes.
REASONS = {"construction": "holds by construction", "equality": "holds by equality"}
# Letter of the shapes, folder of the experiments, system, and title of each document.
DOCUMENTS: tuple[tuple[str, str, str, str], ...] = (
    ("A", "cray-x1", "cray-x1", DOCUMENT_TITLES["A"]),
    ("B", "edison", "edison", DOCUMENT_TITLES["B"]),
    ("C", "cumulus", "cumulus", DOCUMENT_TITLES["C"]),
    ("D", "sonexion-1300", "sonexion-1300", DOCUMENT_TITLES["D"]),
    ("E", "hpcs", "hpcs-demo", DOCUMENT_TITLES["E"]),
)
INTRODUCTION = """# Five documents, simulated

The tests of five published documents ([](../published/index.md)), run at their published scale on models of the
machines that they describe ([](simulate.md)). Nothing here was measured. What is asked for is not the same number but
the same relation: which of two is faster, by about how much, what grows, falls, or stays. Each relation is a *shape*.
It holds or fails by the same code that judges measurements; where the machine has no noise, one run of a cell is
enough. A *control* is the same claim on a machine from which the cause was taken away: it has to fail, or the claim
says nothing.

One command does all of it again: `.venv/bin/python tools/reproduction.py`. Shapes and controls are listed in
`docs/published/shapes.toml`; numbers of every experiment lie in `docs/published/simulated`.
"""
READING = """**holds**: in every place that the claim looks at. **holds by construction**: what comes out was put in, as
a parameter that is published or fitted. **holds by equality**: both sides are equal, which the claim allows, and the
effect is not in the model. **fails**: said here with the reason, where one is
known, and not fitted away. **arithmetic**: printed numbers are held against each other by tests, with wrong ones as the
control. **not in the model**: what the shape is about is nothing that a model of storage has, and why.
**not looked at**: not simulated, and why.
"""


@functools.cache
def read_shapes() -> dict[str, Any]:
    """The list of experiments and shapes."""
    return tomllib.loads(SHAPES_FILE.read_text(encoding="utf-8"))


def list_shapes() -> list[dict[str, Any]]:
    return list(read_shapes()["shapes"])


@functools.cache
def read_numbers(experiment_name: str) -> dict[str, Any] | None:
    """Numbers of an experiment, where it was run."""
    path = NUMBERS_FOLDER / f"{experiment_name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def describe_outcome(shape: Mapping[str, Any]) -> str:
    """Outcome of a shape: the worst outcome of its claims."""
    if "tests" in shape:
        return "arithmetic"
    if "absent" in shape:
        return ABSENT
    numbers = read_numbers(shape["experiment"]) if "experiment" in shape else None
    if numbers is None:
        return NOT_SEEN
    outcomes = {claim["verdict"] for claim in numbers["claims"] if claim["id"] in shape["claims"]}
    if "fails" in outcomes:
        return FAILS
    held = REASONS[shape["by"]] if "by" in shape else HOLDS
    return held if outcomes == {"holds"} else " and ".join(sorted(outcomes))


def describe_claim_results(shape: Mapping[str, Any]) -> str:
    """The sentences with the results of a shape's claims."""
    numbers = read_numbers(shape.get("experiment", ""))
    if numbers is None:
        return ""
    texts = [claim["found"] for claim in numbers["claims"] if claim["id"] in shape["claims"]]
    return " ".join(dict.fromkeys(texts))


def describe_control_results(shape: Mapping[str, Any]) -> str:
    """Outcome of the controls of a shape."""
    if "tests" in shape:
        return "in the tests"
    numbers = read_numbers(shape.get("experiment", ""))
    controls = [control for control in numbers["controls"] if control["id"] in shape["claims"]] if numbers else []
    if not controls:
        return "none" if numbers else ""
    return "; ".join(
        f"{control['change']}: "
        f"{'fails, as it must' if control['verdict'] == 'fails' else '**' + control['verdict'] + '**'}"
        for control in controls
    )


def escape_table_cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def list_table_lines(document_letter: str) -> Iterator[str]:
    yield "| shape | published | asked for | outcome | found, and why | control |"
    yield "|---|---|---|---|---|---|"
    for shape in list_shapes():
        if not shape["id"].startswith(f"{document_letter}-"):
            continue
        arguments = [
            describe_claim_results(shape),
            shape.get("note", ""),
            shape.get("unseen", ""),
            shape.get("absent", ""),
        ]
        label = f"**{shape['id']}** {shape['what']}"
        cells = [
            label,
            shape["published"],
            shape["requirement"],
            describe_outcome(shape),
            " ".join(w for w in arguments if w),
            describe_control_results(shape),
        ]
        yield f"| {' | '.join(escape_table_cell(text) for text in cells)} |"


def list_fitted_numbers(toml_value: Any, part_path: str = "") -> Iterator[tuple[str, str, str]]:
    """Part, value and note of every number of a system file that was fitted."""
    if isinstance(toml_value, list):
        for table_text in toml_value:
            yield from list_fitted_numbers(table_text, part_path)
    elif isinstance(toml_value, dict):
        if toml_value.get("status") == "fitted" and "value" in toml_value:
            yield part_path, str(toml_value["value"]), str(toml_value.get("note", ""))
            return
        name = f"{part_path} {toml_value['id']}" if isinstance(toml_value.get("id"), str) else part_path
        for key, value in toml_value.items():
            if isinstance(value, list):
                yield from list_fitted_numbers(value, name if name else key)
            else:
                yield from list_fitted_numbers(value, f"{name}, {key}")


def list_fitted_table_lines(system_name: str) -> list[str]:
    tables = tomllib.loads((ROOT / "systems" / f"{system_name}.toml").read_text(encoding="utf-8"))
    rows: dict[tuple[str, str], list[str]] = {}
    for parts in tables.values():
        if not isinstance(parts, list):
            continue
        for where, value, note in list_fitted_numbers(parts, ""):
            part, _, member = where.strip().partition(",")
            rows.setdefault((value, note), []).append(f"`{part.strip()}`{member.replace(', model', '')}")
    return [f"| {', '.join(where)} | {value} | {note} |" for (value, note), where in rows.items()]


def format_index_page() -> str:
    counted = Counter(describe_outcome(shape).strip("*") for shape in list_shapes())
    total = ", ".join(
        f"{count} {word.replace('holds', 'hold').replace('fails', 'fail')}" for word, count in counted.most_common()
    )
    lines = [INTRODUCTION, f"Of {len(list_shapes())} shapes: {total}.", "", READING]
    for letter, folder, system, title in DOCUMENTS:
        if not any(shape["id"].startswith(f"{letter}-") for shape in list_shapes()):
            continue
        link = (
            f"Figures: [](reproduction/{folder}.md)."
            if list_simulated_experiments(folder)
            else "None of its experiments was simulated."
        )
        lines += [f"## {title}", "", f"Machine: `systems/{system}.toml`. {link}", ""]
        lines += [*list_table_lines(letter), ""]
        fits = list_fitted_table_lines(system)
        if fits:
            lines += [
                "Fitted to the document; all other parameters are published or assumed, as the system file says:",
                "",
            ]
            lines += ["| part | value | fitted to |", "|---|---|---|", *fits, ""]
    lines += ["```{toctree}", ":hidden:", ""]
    lines += [f"reproduction/{folder}" for _, folder, _, _ in DOCUMENTS if (list_simulated_experiments(folder))]
    return "\n".join([*lines, "```", ""])


@functools.cache
def list_simulated_experiments(experiment_folder: str) -> list[str]:
    """Experiments of a document that were simulated."""
    names = read_shapes()["experiments"]
    return [
        name
        for name in names
        if (ROOT / "experiments" / experiment_folder / f"{name}.toml").exists() and read_numbers(name)
    ]


def format_document_page(experiment_folder: str, title: str) -> str:
    """Figures, tables and claims of every experiment of a document."""
    lines = [
        f"# {title}, simulated",
        "",
        "All numbers are of a model, at the published scale. What they show: [](../reproduction.md).",
        "",
    ]
    for name in list_simulated_experiments(experiment_folder):
        text = tomllib.loads((ROOT / "experiments" / experiment_folder / f"{name}.toml").read_text(encoding="utf-8"))
        lines += [f"## {text['title']}", "", f"<!-- simulated: {name} -->", ""]
    return "\n".join(lines)


def format_all_pages() -> dict[Path, str]:
    """Every page by its path."""
    documents = {
        PAGES_FOLDER / f"{folder}.md": format_document_page(folder, title)
        for _, folder, _, title in DOCUMENTS
        if list_simulated_experiments(folder)
    }
    return {PAGE_FILE: format_index_page(), **documents}
