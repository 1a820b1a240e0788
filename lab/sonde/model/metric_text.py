# SPDX-License-Identifier: Apache-2.0
"""Metrics as text that Prometheus, its node exporter's textfile collector and OpenMetrics readers understand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Labels = Mapping[str, str]


class OpenMetricsText:
    """Families of gauges in the order in which they are added.

    All are gauges: the only kind that Prometheus' format and OpenMetrics 1.0 write alike.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add_family(self, metric_name: str, help_text: str, labeled_values: Sequence[tuple[Labels, float]]) -> None:
        """Adds one family; without samples nothing is added."""
        if labeled_values:
            self._lines += [f"# HELP {metric_name} {help_text}", f"# TYPE {metric_name} gauge"]
            self._lines += [f"{metric_name}{_format_labels(labels)} {value!r}" for labels, value in labeled_values]

    def render(self) -> str:
        """The whole text, with the mark that OpenMetrics demands at its end."""
        return "\n".join([*self._lines, "# EOF"]) + "\n"


def _format_labels(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = (
        '{}="{}"'.format(name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
        for name, value in labels.items()
    )
    return "{" + ",".join(pairs) + "}"
