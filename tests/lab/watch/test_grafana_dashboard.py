# SPDX-License-Identifier: Apache-2.0
"""The shipped Grafana dashboard: its structure, and its queries on the metrics that `sonde watch` writes.

Structure: Grafana, "Dashboard JSON model" (classic model), members of dashboard, panel, target and variable.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sonde.watch.open_metrics import render_metrics
from sonde.watch.watch_state import HistoryState, WatchState

DASHBOARD = Path(__file__).resolve().parents[3] / "packaging/grafana/sonde-watch.json"
COLUMNS = 24  # of Grafana's grid
RATE, USUAL = 0.6e9, 1e9

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return document


@pytest.fixture(scope="module")
def metrics() -> str:
    """The metrics of a watch with a slow history of each unit, and one that is as usual."""
    histories = {}
    for name, unit, rate in (("a", "bytes/s", RATE), ("b", "op/s", RATE), ("c", "bytes/s", USUAL)):
        labels = {"system": "edison", "directory": f"/{name}", "probe": "daily", "phase": "write", "operation": "write"}
        incident = "i" if rate < USUAL else ""
        histories[name] = HistoryState(labels, unit, [USUAL] * 9 + [rate], [0.0] * 10, [USUAL] * 9, incident=incident)
    state = WatchState(durations={"daily": [(1000.0, 5.0)]}, histories=histories, skips={"daily": "busy"})
    return render_metrics(state, ("daily",))


def list_queries(dashboard: dict[str, Any]) -> Iterator[str]:
    """Every expression of the panels and annotations, with each variable as Grafana replaces "All"."""
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield re.sub(r"\$\w+", ".*", target["expr"])
    for annotation in dashboard["annotations"]["list"]:
        yield re.sub(r"\$\w+", ".*", annotation["expr"])


def find_query(dashboard: dict[str, Any], title: str) -> str:
    (panel,) = (panel for panel in dashboard["panels"] if panel["title"] == title)
    return re.sub(r"\$\w+", ".*", panel["targets"][0]["expr"])


def test_dashboard_has_the_members_of_the_model(dashboard: dict[str, Any]) -> None:
    assert dashboard["id"] is None, "a number would replace a dashboard of the site"
    assert 8 <= len(dashboard["uid"]) <= 40
    assert isinstance(dashboard["schemaVersion"], int)
    assert {"from", "to"} == set(dashboard["time"])
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in dashboard["panels"]:
        assert {"id", "type", "title", "datasource", "gridPos", "targets", "fieldConfig", "options"} <= set(panel)
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0
        grid = panel["gridPos"]
        assert 0 <= grid["x"] < grid["x"] + grid["w"] <= COLUMNS


def test_panels_do_not_overlap(dashboard: dict[str, Any]) -> None:
    occupied: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        grid = panel["gridPos"]
        fields = {
            (x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not occupied & fields, panel["title"]
        occupied |= fields


def test_every_variable_is_defined_and_used(dashboard: dict[str, Any]) -> None:
    names = [variable["name"] for variable in dashboard["templating"]["list"]]
    assert dashboard["templating"]["list"][0]["type"] == "datasource"
    used = set(re.findall(r"\$\{?(\w+)", json.dumps([dashboard["panels"], dashboard["annotations"]])))
    assert used == set(names)
    for part in (*dashboard["panels"], *(target for panel in dashboard["panels"] for target in panel["targets"])):
        assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_queries_use_all_metrics_and_only_their_labels(dashboard: dict[str, Any], metrics: str) -> None:
    labels = set(re.findall(r'(\w+)="', metrics))
    queries = list(list_queries(dashboard))
    variables = [variable.get("definition", "") for variable in dashboard["templating"]["list"]]
    assert {name for query in queries for name in re.findall(r"sonde_\w+", query)} == set(
        re.findall(r"^# TYPE (\w+)", metrics, re.MULTILINE)
    )
    assert {label for query in (*queries, *variables) for label in re.findall(r"(\w+)=~?\"", query)} <= labels
    legends = [target["legendFormat"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert {label for legend in legends for label in re.findall(r"{{(\w+)}}", legend)} <= labels


@needs_promtool
def test_prometheus_accepts_every_query(dashboard: dict[str, Any], tmp_path: Path) -> None:
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(list_queries(dashboard))]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    result = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(rules)} rules found" in result.stdout


@needs_promtool
@pytest.mark.parametrize(
    ("title", "values"),
    [
        ("Open incidents", [0.0]),
        ("Slower histories", [2.0]),
        ("Skipped probes", [1.0]),
        ("Rate as a fraction of the usual rate", [RATE / USUAL, RATE / USUAL, 1.0]),
        ("Rates and limits of data", [RATE, USUAL]),
        ("Rates and limits of metadata", [RATE]),
        ("Time since the latest run", [200.0]),
    ],
)
def test_prometheus_computes_the_panel_values(
    dashboard: dict[str, Any], metrics: str, tmp_path: Path, title: str, values: list[float]
) -> None:
    """`promtool test rules` evaluates the query 1,200 s after 1970 on the metrics of the file."""
    series = [
        {"series": name, "values": f"{float(value)!r}x99"}
        for name, value in (line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
    ]
    rounded = f"sort(round(sum by (directory) ({find_query(dashboard, title)}), 0.001))"
    if title not in (
        "Rate as a fraction of the usual rate",
        "Rates and limits of data",
        "Rates and limits of metadata",
    ):
        rounded = f"sum(round({find_query(dashboard, title)}, 0.001))"
    directories = {1: [""], 2: ["/a", "/c"], 3: ["/a", "/b", "/c"]}[len(values)]
    if title.endswith("of metadata"):
        directories = ["/b"]
    samples = [
        {"labels": f'{{directory="{directory}"}}' if directory else "{}", "value": value}
        for directory, value in zip(directories, values, strict=True)
    ]
    expected = {"expr": rounded, "eval_time": "20m", "exp_samples": samples}
    document = {"evaluation_interval": "1m", "tests": [
        {"interval": "1m", "input_series": series, "promql_expr_test": [expected]}
    ]}  # fmt: skip
    file = tmp_path / "test.yml"
    file.write_text(json.dumps(document), encoding="utf-8")
    result = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
