# SPDX-License-Identifier: Apache-2.0
"""Prometheus: answers of its query API (``/api/v1/query_range``, saved as JSON) with metrics of exporters.

`prometheus_names` lists the names of node_exporter and of three Lustre exporters. The second format is the text that an
exporter itself prints (``curl -s http://NODE:9100/metrics``), saved again and again with ``date +%s`` before each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sonde.model.documents import parse_json
from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat, split_output_at_time_lines
from sonde.telemetry.sources.prometheus_names import METRIC_ALIASES


def is_prometheus_query_answer(answer_text: str) -> bool:
    """Whether the text begins like an answer of the query API."""
    head = answer_text[:400]
    return answer_text.lstrip().startswith("{") and '"status"' in head and '"resultType"' in head


def read_prometheus_query_answer(answer_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """The series of a matrix. Series of other metrics are skipped."""
    document = parse_json(answer_text)
    if document.get("status") != "success" or document["data"].get("resultType") != "matrix":
        raise ValueError("it is no successful answer to a range query")
    builder = TelemetryBuilder("prometheus")
    for series in document["data"]["result"]:
        labels = series["metric"]
        alias = METRIC_ALIASES.get(labels.get("__name__", ""))
        if alias is None:
            builder.unreadable_lines += 1
            continue
        host = _get_host_label(labels, telemetry_defaults)
        part = alias.make_part_name(labels)
        for time, value in series["values"]:
            # One source per metric: series of different metrics have different times.
            number = _parse_sample_value(value)
            if number is not None:
                builder.add_sample(
                    host,
                    f"{alias.source}:{alias.metric}",
                    (alias.metric,),
                    float(time),
                    part,
                    (alias.scale_value(number),),
                )
    return builder.build_files()


def _get_host_label(series_labels: Mapping[str, Any], telemetry_defaults: TelemetryDefaults) -> str:
    instance = str(series_labels.get("nodename") or series_labels.get("host") or series_labels.get("instance") or "")
    return instance.rpartition(":")[0] or instance or telemetry_defaults.host


def _parse_sample_value(number_text: Any) -> float | None:
    try:
        value = float(number_text)
    except (TypeError, ValueError):
        return None
    return value if abs(value) < 1e300 else None


# NAME{label="value",…} VALUE [milliseconds]: https://prometheus.io/docs/instrumenting/exposition_formats
_SAMPLE_LINE_PATTERN = re.compile(
    r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)(?: (?P<time>-?\d+))?$"
)
_LABEL_PAIR_PATTERN = re.compile(r'(\w+)="((?:\\.|[^"\\])*)"')


def is_exporter_text(scrape_text: str) -> bool:
    """Whether a text has metrics of an exporter that are read here."""
    return "\n# TYPE " in scrape_text and any(f"\n{name}" in scrape_text for name in METRIC_ALIASES)


def read_exporter_text(scrape_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """The counters of repeated scrapes. Lines of other metrics are skipped."""
    builder = TelemetryBuilder("exporter")
    for time, scrape in split_output_at_time_lines(scrape_text, telemetry_defaults.zone):
        for line in scrape.splitlines():
            match = None if line.startswith("#") else _SAMPLE_LINE_PATTERN.match(line)
            alias = METRIC_ALIASES.get(match["name"]) if match else None
            value = _parse_sample_value(match["value"]) if match else None
            if match is None or alias is None:
                builder.unreadable_lines += match is None and bool(line.strip()) and not line.startswith("#")
            elif value is not None:
                labels = {
                    name: re.sub(r"\\(.)", r"\1", label)
                    for name, label in _LABEL_PAIR_PATTERN.findall(match["labels"] or "")
                }
                moment = int(match["time"]) / 1000 if match["time"] else time
                source, values = f"{alias.source}:{alias.metric}", (alias.scale_value(value),)
                builder.add_sample(
                    telemetry_defaults.host, source, (alias.metric,), moment, alias.make_part_name(labels), values
                )
    return builder.build_files()


QUERY_FORMAT = TelemetryFormat(
    "prometheus",
    "Prometheus: the answer of /api/v1/query_range as JSON",
    "",
    "ask the server of Prometheus: curl -s 'http://SERVER:9090/api/v1/query_range?query=…&start=…&end=…&step=5'.",
    is_prometheus_query_answer,
    read_prometheus_query_answer,
)
EXPORTER_FORMAT = TelemetryFormat(
    "exporter",
    "exporters of Prometheus (node_exporter, three Lustre exporters): curl -s http://NODE:9100/metrics, repeated, with"
    " `date +%s` before each",
    "prometheus-node-exporter",
    "run it on each node; it is in the package prometheus-node-exporter. Exporters of other nodes are read with curl.",
    is_exporter_text,
    read_exporter_text,
)
