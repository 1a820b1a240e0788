# SPDX-License-Identifier: Apache-2.0
"""Tables and reliability diagram of diagnosed trials, for docs/concepts/diagnosis.md."""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

from sonde.diagnose.hypotheses import NOTHING_PRIOR, UNEXPLAINED_PRIOR

PAGES_FOLDER = Path(__file__).resolve().parents[1] / "docs" / "concepts"
FIGURES, PAGE, DIAGRAM = (
    PAGES_FOLDER / "diagnosis-figures.json",
    PAGES_FOLDER / "diagnosis.md",
    PAGES_FOLDER / "diagnosis.svg",
)
BEGIN, END = "<!-- figures: tools/diagnosis_calibration.py -->", "<!-- end of figures -->"
_TITLES = {
    "covered": "fault of the model",
    "cause": "cause outside the model",
    "healthy": "healthy machine",
    "uncovered": "cause that no hypothesis covers",
    "pair": "two faults of the model, both named",
}
_PROBABILITY_LIMITS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.01)
_RESAMPLES = 2000


def summarize_trials(trial_outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the figures of all trials."""
    kinds = {}
    for kind in _TITLES:
        items = [item for item in trial_outcomes if item["kind"] == kind]
        if items:
            compared = [item for item in items if item["checklist_s"]]
            checklist_s = sum(item["checklist_s"] for item in compared)
            kinds[kind] = {
                "trials": len(items),
                "right": sum(item["is_right"] for item in items),
                "hypothesis_right": sum(item["is_hypothesis_right"] for item in items),
                "sure": sum(item["is_sure"] for item in items),
                "surely_wrong": sum(item["is_sure"] and not item["is_right"] for item in items),
                "experiments": statistics.median(item["experiments"] for item in items),
                "cost_share": round(sum(item["cost_s"] for item in compared) / checklist_s, 3) if checklist_s else None,
            }
    planted: dict[str, dict[str, Any]] = {}
    for item in trial_outcomes:
        if item["kind"] not in ("healthy", "pair"):
            text = str(item["planted"])
            prefix = "" if item["kind"] == "covered" else f"{item['kind']}: "
            name = prefix + (text if prefix else text.split(":")[0])
            row = planted.setdefault(name, {"trials": 0, "hypothesis_right": 0, "right": 0, "taken_for": {}})
            row["trials"] += 1
            row["hypothesis_right"] += item["is_hypothesis_right"]
            row["right"] += item["is_right"]
            if not item["is_hypothesis_right"]:
                confusion = str(item["answer"]).split(":")[0]
                row["taken_for"][confusion] = row["taken_for"].get(confusion, 0) + 1
    forecasting = [item for item in trial_outcomes if item["forecasts"]]
    errors = [[(value - right) ** 2 for value, right in item["forecasts"]] for item in forecasting]
    weights = np.repeat(
        compute_prior_weights([str(item["kind"]) for item in forecasting]), [len(row) for row in errors]
    )
    return {
        "machines": sorted({str(item["machine"]) for item in trial_outcomes}),
        "kinds": kinds,
        "planted": dict(sorted(planted.items())),
        "forecasts": len(weights),
        "brier": round(float(np.average(np.concatenate(errors), weights=weights)), 4),
        "reliability": compute_reliability(forecasting),
    }


def compute_prior_weights(trial_kinds: Sequence[str]) -> np.ndarray:
    """Returns the weight of each trial: kinds are planted about equally often, and weigh by their prior probability.

    A probability is right on average over what is planted as often as the prior says.
    """
    counts = Counter(trial_kinds)
    priors = {"healthy": NOTHING_PRIOR, "uncovered": UNEXPLAINED_PRIOR}
    described = sum(count for kind, count in counts.items() if kind not in priors)
    share = 1 - NOTHING_PRIOR - UNEXPLAINED_PRIOR
    return np.array([
        (priors[kind] / counts[kind] if kind in priors else share / described) * len(trial_kinds)
        for kind in trial_kinds
    ])  # fmt: skip


def compute_reliability(trial_outcomes: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Returns for ranges of probability: the mean probability, the share that was right, the number of forecasts, and
    the 95 % interval of the share.

    Forecasts of a trial depend on each other, so the interval comes from trials that are drawn again with replacement.
    """
    trials = [np.array([[value, right] for value, right in item["forecasts"]], dtype=float) for item in trial_outcomes]
    weights = compute_prior_weights([str(item["kind"]) for item in trial_outcomes])
    copies = np.random.default_rng(1).multinomial(len(trials), np.full(len(trials), 1 / len(trials)), _RESAMPLES)
    rows = []
    for low, high in pairwise(_PROBABILITY_LIMITS):
        inside = [trial[(trial[:, 0] >= low) & (trial[:, 0] < high)] for trial in trials]
        counts = weights * [len(item) for item in inside]
        if not np.sum(counts):
            continue
        right = weights * [np.sum(item[:, 1]) for item in inside]
        stated = weights * [np.sum(item[:, 0]) for item in inside]
        totals = copies @ counts
        shares = (copies @ right)[totals > 0] / totals[totals > 0]
        rows.append([
            round(float(np.sum(stated) / np.sum(counts)), 3),
            round(float(np.sum(right) / np.sum(counts)), 3),
            sum(len(item) for item in inside),
            *(round(float(value), 3) for value in np.quantile(shares, (0.025, 0.975))),
        ])  # fmt: skip
    return rows


def format_tables(figures: Mapping[str, Any]) -> str:
    """Returns the figures as Markdown."""
    lines = [
        "| planted | trials | right | sure and wrong | experiments, median | cost against the checklist |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for kind, row in figures["kinds"].items():
        lines.append(
            f"| {_TITLES[kind]} | {row['trials']} | {row['right']} ({100 * row['right'] / row['trials']:.0f} %)"
            f" | {row['surely_wrong']} | {row['experiments']:g}"
            f" | {'' if row['cost_share'] is None else format(row['cost_share'], '.2f')} |"
        )
    lines += ["", "| planted | trials | hypothesis right | part too | taken for |", "|---|--:|--:|--:|---|"]
    for name, row in figures["planted"].items():
        confusions = ", ".join(f"{other} ({count})" for other, count in row["taken_for"].items())
        lines.append(f"| {name} | {row['trials']} | {row['hypothesis_right']} | {row['right']} | {confusions} |")
    machines = ", ".join(figures["machines"])
    lines += [
        "",
        f"Machines: {machines}. Brier score of the first hypothesis after each experiment: {figures['brier']:.3f}"
        f" ({figures['forecasts']} forecasts).",
        "",
        "| stated probability, mean | right | 95 % interval | forecasts |",
        "|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {100 * stated:.0f} % | {100 * right:.0f} % | {100 * low:.0f} to {100 * high:.0f} % | {count} |"
        for stated, right, count, low, high in figures["reliability"]
    ]
    return "\n".join(lines) + "\n"


def draw_diagram(stated_and_right_shares: Sequence[Sequence[float]]) -> str:
    """Returns the reliability diagram as SVG."""
    size, margin = 300, 45

    def locate_point(stated_probability: float, right_share: float) -> tuple[float, float]:
        return margin + size * stated_probability, margin + size * (1 - right_share)

    points = [locate_point(row[0], row[1]) for row in stated_and_right_shares]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#0072b2"/>' for x, y in points)
    for stated, _, _, low, high in stated_and_right_shares:
        (x, bottom), (_, top) = locate_point(stated, low), locate_point(stated, high)
        dots += f'<line x1="{x:.1f}" y1="{bottom:.1f}" x2="{x:.1f}" y2="{top:.1f}" stroke="#0072b2"/>'
    full, end = size + 2 * margin, margin + size
    middle = margin + size / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {full}" font-family="sans-serif" font-size="12">'
        f'<rect width="{full}" height="{full}" fill="#fff"/>'
        f'<rect x="{margin}" y="{margin}" width="{size}" height="{size}" fill="none" stroke="#888"/>'
        f'<line x1="{margin}" y1="{end}" x2="{end}" y2="{margin}" stroke="#888" stroke-dasharray="4"/>'
        f'<polyline points="{path}" fill="none" stroke="#0072b2"/>{dots}'
        f'<text x="{middle}" y="{full - 12}" text-anchor="middle">stated probability, 0 to 1</text>'
        f'<text x="15" y="{middle}" text-anchor="middle" transform="rotate(-90 15 {middle})">'
        "share that was right</text>"
        "</svg>\n"
    )


def write_figures(figures: Mapping[str, Any]) -> None:
    """Replaces the stored figures."""
    FIGURES.write_text(json.dumps(figures, separators=(",", ":")) + "\n", encoding="utf-8")


def write_page() -> None:
    """Replaces tables and diagram by those of the stored figures."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    tables = f"{BEGIN}\n\n{format_tables(figures)}\n{END}"
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: tables, text, flags=re.DOTALL), encoding="utf-8")
    DIAGRAM.write_text(draw_diagram(figures["reliability"]), encoding="utf-8")
