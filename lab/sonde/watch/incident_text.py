# SPDX-License-Identifier: Apache-2.0
"""One sentence for a joint change: what became slower by how much, and what the changed histories have in common."""

from __future__ import annotations

from collections.abc import Mapping

from sonde.trends.scope import explain_changes

# Labels that say what was measured where; the others only name things.
_SCOPE_LABELS = ("system", "directory", "plan", "phase", "operation")
_CAUSE_PHRASES = {
    "clients": "look at the client software or the test first",
    "storage": "look at that storage first",
    "machine": "look at the machine or its network first",
    "machine or storage": "look at the machine and the storage first",
    "test": "look at the test first",
    "everything": "everything that is measured changed: look at what all share first",
}


def summarize_changes(
    ratios_by_history: Mapping[str, float], labels_by_history: Mapping[str, Mapping[str, str]]
) -> str:
    """`ratios_by_history`: history -> value after divided by value before; `labels_by_history`: labels of all
    histories."""
    ratios = sorted(ratios_by_history.values())
    drops = [f"{1 - ratio:.0%}" for ratio in (ratios[-1], ratios[0])]
    size = drops[0] if drops[0] == drops[1] else f"{drops[0]} to {drops[1]}"
    labels = [_select_scope_labels(labels_by_history[name]) for name in ratios_by_history]
    unchanged = [
        _select_scope_labels(entry) for name, entry in labels_by_history.items() if name not in ratios_by_history
    ]
    if len(labels) == 1:
        only = labels_by_history[next(iter(ratios_by_history))]
        others = f"; {len(unchanged)} other histories did not" if unchanged else ""
        return f"{only['phase']} of {only['probe']} on {only['directory']} fell by {size}{others}."
    explanation = explain_changes(labels, unchanged)
    scopes = [
        " and ".join(f"{_describe_label(name)} {value}" for name, value in scope.conditions.items()) or "everything"
        for scope in explanation.scopes
    ]
    cause = _CAUSE_PHRASES.get(explanation.cause)
    return (
        f"{len(labels)} histories fell by {size}, {len(unchanged)} did not; in common: {'; '.join(scopes)}"
        f"{f' ({cause})' if cause else ''}."
    )


def _select_scope_labels(history_labels: Mapping[str, str]) -> dict[str, str]:
    """The labels of scopes; a directory is a file system there."""
    return {
        ("file_system" if name == "directory" else name): history_labels[name]
        for name in _SCOPE_LABELS
        if history_labels.get(name)
    }


def _describe_label(label_name: str) -> str:
    return "directory" if label_name == "file_system" else label_name
