# SPDX-License-Identifier: Apache-2.0
"""Rule files of SEC: layout, rejected rules, actions with an effect outside, and their events."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.logs.event_scan import scan_log_files
from sonde.logs.scan import LogDefaults
from sonde.logs.sec_engine import SecEngine, SecOutput
from sonde.logs.sec_rules import read_sec_rule_file
from sonde.model.errors import EventError

# The rule for slow storage targets in the manner of sites with Lustre.
SLOW_TARGET_RULE = r"""# slow targets
type=SingleWithThreshold
ptype=RegExp
pattern=(\S+) kernel: .*\b(\S+-OST[0-9a-f]{4}): slow ([\w ]+) (\d+)s
desc=slow_ost $2
action=pipe '%t slow_ost $2 $1' /usr/bin/tool event \
--stdin; shellcmd touch /tmp/must-not-exist
window=600
thresh=2
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "site.sec"
    path.write_text(text, encoding="utf-8")
    return path


def run(path: Path, *lines: str) -> list[SecOutput]:
    engine = SecEngine([read_sec_rule_file(path).rules])
    return [output for line in lines for output in engine.process_line(line, 1_700_000_000)]


def test_continued_lines_and_comments_are_read(tmp_path: Path) -> None:
    (rule,) = read_sec_rule_file(write(tmp_path, SLOW_TARGET_RULE)).rules
    assert (rule.type, rule.line, rule.window, rule.threshold) == ("SingleWithThreshold", 2, 600, 2)
    assert rule.actions[0].texts == ("/usr/bin/tool event --stdin", "%t slow_ost $2 $1")


def test_scan_makes_events_and_executes_nothing(tmp_path: Path) -> None:
    log = tmp_path / "messages"
    line = "2026-03-17T09:30:1{}Z oss3 kernel: Lustre: fs1-OST000e: slow journal start 44s\n"
    log.write_text("no time yet\n" + line.format(1) + line.format(2) + line.format(3), encoding="utf-8")
    documents, problems = scan_log_files([log], [write(tmp_path, SLOW_TARGET_RULE)], LogDefaults())
    assert [document["title"] for document in documents] == [
        "Tue Mar 17 09:30:12 2026 slow_ost fs1-OST000e oss3",
        "touch /tmp/must-not-exist",
    ]
    assert len(problems) == 1
    assert "line 1" in problems[0]
    assert not Path("/tmp/must-not-exist").exists()


def test_rules_that_cannot_be_used_are_reported_and_skipped(tmp_path: Path) -> None:
    good = "type=Single\nptype=SubStr\npattern=a\ndesc=d\naction=logonly"
    rejected = {
        "type=Calendar\ntime=* * * * *\ndesc=d\naction=none": 'type "Calendar"',
        good.replace("SubStr", "PerlFunc"): 'pattern type "PerlFunc"',
        good.replace("desc=d\n", ""): "lacks desc",
        good + "\nwindow=3": "has no window",
        good + "\ncontext== $1 > 3": "Perl code is not executed",
        good.replace("logonly", "create a 3 (logonly"): "not balanced",
        good.replace("logonly", "lcall %o -> (sub { 1 })"): "is not supported",
        good.replace("SubStr", "RegExp").replace("pattern=a", "pattern=a(?{1})"): "is not supported",
    }
    file = read_sec_rule_file(write(tmp_path, "\n\n".join([good, *rejected])))
    assert len(file.rules) == 1
    for problem, expected in zip(file.problems, rejected.values(), strict=True):
        assert expected in problem


def test_file_without_usable_rule_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(EventError, match="no rule of SEC that can be used"):
        read_sec_rule_file(write(tmp_path, "type=Calendar\n"))


def test_goto_jumps_to_its_label(tmp_path: Path) -> None:
    form = "type=Single\nptype=SubStr\npattern=a\ndesc=d\naction=logonly {}\ncontinue={}\n\n"
    rules = form.format(1, "GoTo end") + form.format(2, "TakeNext") + "label=end\n" + form.format(3, "DontCont")
    assert [output.text for output in run(write(tmp_path, rules), "a")] == ["1", "3"]


def test_rules_that_feed_each_other_end(tmp_path: Path) -> None:
    rule = "type=Single\nptype=SubStr\npattern=a\ndesc=d\naction=event a; event a\n"
    engine = SecEngine([read_sec_rule_file(write(tmp_path, rule)).rules])
    assert engine.process_line("a", 1) == []
    assert engine.dropped_events > 0
