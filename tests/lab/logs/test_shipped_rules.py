# SPDX-License-Identifier: Apache-2.0
"""Each shipped rule matches its sample lines, is reached by the prefilter, and makes an event that can be stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sonde.logs.line_formats import LineContext, LineParser
from sonde.logs.prefilter import build_prefilter
from sonde.logs.rule_engine import RuleEngine
from sonde.logs.rule_files import CompiledRule, compile_rules, list_shipped_rule_files
from sonde.logs.scan import make_event_document
from sonde.store.events import add_archive_events

FILES = list_shipped_rule_files()
RULES = compile_rules(FILES.values())
CONTEXT = LineContext(written=datetime(2024, 6, 1, tzinfo=UTC))
PREFILTER = build_prefilter(RULES)


def get_rule_id(compiled_rule: CompiledRule) -> str:
    return compiled_rule.rule.id


def test_each_supported_system_has_rules() -> None:
    assert set(FILES) == {"ceph", "disks", "gpfs", "kernel", "lustre", "multipath", "network"}
    assert len(RULES) > 50


@pytest.mark.parametrize("compiled_rule", RULES, ids=get_rule_id)
def test_samples_of_a_rule_yield_a_single_event(compiled_rule: CompiledRule, tmp_path: Path) -> None:
    """The samples, repeated as often as the rule counts, are one event with a title and without a placeholder."""
    assert compiled_rule.rule.samples
    for sample in compiled_rule.rule.samples:
        engine = RuleEngine([compiled_rule])
        line = LineParser(CONTEXT).parse_line(sample)
        assert line.time is not None
        assert line.host or not sample.startswith("Mar 17")
        assert PREFILTER.find_lines(sample.encode()), "the prefilter skips the line"
        for second in range(compiled_rule.rule.count or 1):
            assert engine.process_line(line, line.time + timedelta(seconds=second))
        events = engine.finish_all_operations()
        if compiled_rule.rule.type == "repeat":
            assert events == []
            continue
        assert len(events) == 1
        assert events[0].title == events[0].title.strip() or "{" not in events[0].title
        added = add_archive_events(tmp_path, [{**make_event_document(events[0]), "id": f"e{hash(sample)}"}])
        assert added[0].kind == compiled_rule.rule.kind


@pytest.mark.parametrize("compiled_rule", [rule for rule in RULES if rule.rule.type == "pair"], ids=get_rule_id)
def test_pair_ends_with_its_end_samples(compiled_rule: CompiledRule) -> None:
    assert compiled_rule.rule.end_samples
    for sample in compiled_rule.rule.end_samples:
        engine = RuleEngine([compiled_rule])
        begin = LineParser(CONTEXT).parse_line(compiled_rule.rule.samples[0])
        end = LineParser(CONTEXT).parse_line(sample)
        assert begin.time is not None
        assert end.time is not None
        assert PREFILTER.find_lines(sample.encode())
        engine.process_line(begin, begin.time)
        assert engine.drain_finished_events() == []
        assert engine.process_line(end, begin.time + timedelta(seconds=60))
        (event,) = engine.drain_finished_events()
        assert (event.last - event.first, event.is_open) == (timedelta(seconds=60), False)


@pytest.mark.parametrize("compiled_rule", [rule for rule in RULES if rule.rule.type == "threshold"], ids=get_rule_id)
def test_threshold_needs_all_its_lines(compiled_rule: CompiledRule) -> None:
    engine = RuleEngine([compiled_rule])
    line = LineParser(CONTEXT).parse_line(compiled_rule.rule.samples[0])
    assert line.time is not None
    assert compiled_rule.rule.count is not None
    for _ in range(compiled_rule.rule.count - 1):
        engine.process_line(line, line.time)
    assert engine.finish_all_operations() == []


@pytest.mark.parametrize("compiled_rule", RULES, ids=get_rule_id)
def test_rule_ignores_samples_of_other_systems(compiled_rule: CompiledRule) -> None:
    """Samples of other files match a rule only where both systems report the same thing."""
    matches = {
        other.rule.id
        for other in RULES
        if other.file != compiled_rule.file
        for sample in other.rule.samples
        if RuleEngine([compiled_rule]).process_line(
            line := LineParser(CONTEXT).parse_line(sample), line.time or datetime.now(UTC)
        )
    }
    assert matches <= {"lustre-read-only-target"}
