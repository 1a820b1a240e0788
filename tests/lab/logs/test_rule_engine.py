# SPDX-License-Identifier: Apache-2.0
"""Events from lines by single, threshold, pair, suppress and repeat rules, and by contexts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sonde.logs.line_formats import LogLine
from sonde.logs.rule_engine import LogEvent, RuleEngine
from sonde.logs.rule_files import compile_rules
from sonde.model.errors import EventError

START = datetime(2026, 3, 17, tzinfo=UTC)


def run_rules(tmp_path: Path, rules: str, *lines: tuple[int, str]) -> list[LogEvent]:
    """Applies rules to (second, text)."""
    path = tmp_path / "rules.toml"
    path.write_text(f'schema = "sonde-log-rules/1"\ntitle = "test"\n{rules}', encoding="utf-8")
    engine = RuleEngine(compile_rules([path]))
    for second, text in lines:
        engine.process_line(LogLine(None, "h", "p", text), START + timedelta(seconds=second))
    return engine.finish_all_operations()


def summarize_events(events: list[LogEvent]) -> list[tuple[str, int, int, int]]:
    """(title, first second, last second, lines) of each event."""

    def seconds(time: datetime) -> int:
        return int((time - START).total_seconds())

    return [(event.title, seconds(event.first), seconds(event.last), event.count) for event in events]


def test_single_makes_one_event_per_line(tmp_path: Path) -> None:
    rule = "[[rules]]\nid = 'a'\npattern = 'x(?P<n>.)'\ntitle = 'got {n} of {host}'"
    events = run_rules(tmp_path, rule, (0, "x1"), (1, "y"), (2, "x1"))
    assert summarize_events(events) == [("got 1 of h", 0, 0, 1), ("got 1 of h", 2, 2, 1)]


def test_single_with_window_joins_lines_of_one_title(tmp_path: Path) -> None:
    rule = "[[rules]]\nid = 'a'\npattern = 'x(?P<n>.)'\ntitle = '{n}'\nwindow = '10 s'"
    events = run_rules(tmp_path, rule, (0, "x1"), (1, "x2"), (10, "x1"), (11, "x1"), (12, "x1"))
    assert sorted(summarize_events(events)) == [("1", 0, 10, 2), ("1", 11, 12, 2), ("2", 1, 1, 1)]


def test_threshold_rule_counts_lines_in_a_sliding_window(tmp_path: Path) -> None:
    """Lines at 0, 8, 12 and 16 s: the first three do not lie within 10 s, the last three do."""
    rule = "[[rules]]\nid = 'a'\ntype = 'threshold'\npattern = 'x'\ntitle = 't'\nwindow = '10 s'\ncount = 3"
    lines = [(second, "x") for second in (0, 8, 12, 16, 17)]
    assert summarize_events(run_rules(tmp_path, rule, *lines)) == [("t", 8, 17, 4)]
    assert run_rules(tmp_path, rule, (0, "x"), (8, "x"), (12, "x"), (23, "x")) == []


def test_pair_is_one_event_from_begin_to_end(tmp_path: Path) -> None:
    rule = (
        "[[rules]]\nid = 'a'\ntype = 'pair'\npattern = '(?P<n>\\w) lost'\nend_pattern = '^{n} back'\ntitle = '{n}'\n"
        "window = '60 s'"
    )
    events = run_rules(tmp_path, rule, (0, "a lost"), (1, "b lost"), (2, "a lost"), (5, "a back"), (70, "b back"))
    assert summarize_events(events) == [("a", 0, 5, 1), ("b", 1, 1, 1)]
    assert [event.is_open for event in events] == [False, True]


def test_suppressed_line_reaches_no_later_rule(tmp_path: Path) -> None:
    rules = (
        "[[rules]]\nid = 's'\ntype = 'suppress'\npattern = 'harmless'\n"
        "[[rules]]\nid = 'a'\npattern = 'error'\ntitle = 't'"
    )
    assert len(run_rules(tmp_path, rules, (0, "error"), (1, "harmless error"))) == 1


def test_context_enables_rules_until_it_expires(tmp_path: Path) -> None:
    rules = (
        "[[rules]]\nid = 'c'\npattern = 'begin'\ncreates = 'maintenance {host}'\nlifetime = '10 s'\n"
        "[[rules]]\nid = 'd'\npattern = 'end'\ndeletes = 'maintenance {host}'\n"
        "[[rules]]\nid = 'a'\npattern = 'error'\ntitle = 'outside'\ncontext = '!maintenance {host}'\n"
        "[[rules]]\nid = 'b'\npattern = 'error'\ntitle = 'inside'\ncontext = 'maintenance {host}'\n"
    )
    lines = [(0, "error"), (1, "begin"), (5, "error"), (12, "error"), (20, "begin"), (21, "end"), (22, "error")]
    titles = [title for title, *_ in summarize_events(run_rules(tmp_path, rules, *lines))]
    assert titles == ["outside", "inside", "outside", "outside"]


def test_repetitions_that_the_log_counts_are_added(tmp_path: Path) -> None:
    rules = (
        "[[rules]]\nid = 'r'\ntype = 'repeat'\npattern = 'repeated (?P<count>\\d+) times'\n"
        "[[rules]]\nid = 'a'\ntype = 'threshold'\npattern = 'error'\ntitle = 't'\nwindow = '60 s'\ncount = 5"
    )
    assert summarize_events(run_rules(tmp_path, rules, (0, "error"), (9, "repeated 6 times"))) == [("t", 0, 9, 7)]


@pytest.mark.parametrize(
    ("rule", "expected_problem"),
    [
        ("pattern = '('\ntitle = 't'", "no regular expression"),
        ("pattern = 'x'\ntitle = '{nid}'", '"{nid}" is no group'),
        ("pattern = 'x'", "a match would do nothing"),
        ("type = 'threshold'\npattern = 'x'\ntitle = 't'", "needs count and window"),
        ("type = 'pair'\npattern = 'x'\ntitle = 't'", "needs end_pattern"),
        ("type = 'repeat'\npattern = 'x'", "(?P<count>"),
        ("patern = 'x'\npattern = 'x'\ntitle = 't'", 'no member "patern"'),
    ],
)
def test_wrong_rule_is_rejected_with_one_sentence(tmp_path: Path, rule: str, expected_problem: str) -> None:
    with pytest.raises(EventError, match=r"rules\.toml") as raised:
        run_rules(tmp_path, f"[[rules]]\nid = 'a'\n{rule}")
    assert expected_problem in str(raised.value)
