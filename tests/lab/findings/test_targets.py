# SPDX-License-Identifier: Apache-2.0
"""A slow storage target among others: named with its interval, and nobody where none is slow."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw_counts import draw_by_day_and_night
from make_record import write_run
from record_scene import Scene, Work, steady

from sonde.findings.assessment import assess_phase_rate
from sonde.findings.targets import (
    FileFragmentation,
    SlowTarget,
    TargetRates,
    TargetUsage,
    collect_target_rates,
    collect_target_usage,
    count_fragments,
    describe_pool_disks,
    describe_slow_targets,
    describe_unknown_layout,
    find_slow_targets,
)
from sonde.model.lines import Finding, LayoutLine, PhaseBeginLine, TableLine
from sonde.model.quantities import replace_no_break_spaces
from sonde.model.record import PhaseRecord
from sonde.model.run import read_recorded_run_folder
from sonde.report import write_report
from sonde.stats.ratio import MIN_RUNS_PER_SIDE

COLUMNS = ("file", "task", "bytes", "shape", "targets")


def draw_file_rates(random: np.random.Generator, targets: int, files: int) -> dict[str, np.ndarray]:
    """Rates of files: targets differ by 3 %, files by 10 %, and one file in twenty is twice as slow."""
    rates = {}
    for index in range(targets):
        target_rate = 100e6 * np.exp(random.normal(0, 0.03))
        file_rates = target_rate * np.exp(random.normal(0, 0.1, files))
        file_rates[random.random(files) < 0.05] /= 2
        rates[f"OST{index:04x}"] = file_rates
    return rates


def make_target_rates(rates: dict[str, np.ndarray]) -> list[TargetRates]:
    return [TargetRates(name, tuple(float(rate) for rate in values)) for name, values in rates.items()]


@draw_by_day_and_night(60, 200)
def test_half_speed_target_is_reported_with_a_covering_interval(draws: int) -> None:
    named_count = held = 0
    for seed in range(draws):
        random = np.random.default_rng(seed)
        rates = draw_file_rates(random, int(random.integers(4, 40)), int(random.integers(8, 20)))
        rates["OST0002"] = rates["OST0002"] / 2
        slow = find_slow_targets(make_target_rates(rates))
        assert {target.name for target in slow} <= {"OST0002"}
        if slow:
            named_count += 1
            held += slow[0].low <= 2.0 <= slow[0].high
    assert named_count >= 0.98 * draws
    assert held >= 0.95 * named_count


@draw_by_day_and_night(120, 500)
def test_no_target_is_reported_if_none_is_slow(draws: int) -> None:
    named_count = 0
    for seed in range(draws):
        random = np.random.default_rng(1000 + seed)
        named_count += bool(
            find_slow_targets(
                make_target_rates(draw_file_rates(random, int(random.integers(2, 60)), int(random.integers(5, 20))))
            )
        )
    assert named_count <= 2


def test_wide_scatter_of_files_blames_few_targets() -> None:
    """Files that differ by 30 %: of 40 targets some are 1.3 times slower by chance. Without a level shared by all
    targets 16 of these 40 draws would name one, with an interval from 0.9 on ten."""
    named_count = 0
    for seed in range(5000, 5040):
        scatter = np.random.default_rng(seed).normal(0, 0.3, (40, 8))
        rates = {f"OST{index:04x}": row for index, row in enumerate(100e6 * np.exp(scatter))}
        named_count += bool(find_slow_targets(make_target_rates(rates)))
    assert named_count <= 3


def test_single_slow_file_or_four_files_name_no_target() -> None:
    random = np.random.default_rng(3)
    rates = draw_file_rates(random, 8, 10)
    rates["OST0003"][0] /= 50
    assert find_slow_targets(make_target_rates(rates)) == []
    few = draw_file_rates(random, 8, MIN_RUNS_PER_SIDE - 1)
    few["OST0003"] = few["OST0003"] / 10
    assert find_slow_targets(make_target_rates(few)) == []
    enough = draw_file_rates(random, 8, MIN_RUNS_PER_SIDE)
    enough["OST0003"] = enough["OST0003"] / 10
    assert [target.name for target in find_slow_targets(make_target_rates(enough))] == ["OST0003"]


def test_undecidable_target_is_not_reported() -> None:
    """Half as fast in the middle, but its files scatter as far as those of all others."""
    others = tuple(float(rate) for rate in np.linspace(40e6, 160e6, 40))
    rates = [TargetRates("OST0000", (30e6, 50e6, 62e6, 90e6, 155e6)), TargetRates("OST0001", others)]
    assert np.median(others) / np.median(rates[0].rates) > 1.5
    assert find_slow_targets(rates) == []


def make_layout_line(rows: list[tuple[int, int | None, list[Any]]]) -> LayoutLine:
    return LayoutLine(
        t=0.0,
        phase="write",
        kind="lustre",
        files=len(rows),
        reported=len(rows),
        columns=COLUMNS,
        rows=tuple((file, task, 100, 0, held) for file, task, held in rows),
        target_columns=("target", "files", "bytes"),
        targets=(("OST0000", 3, 300), ("OST0001", 2, 200)),
    )


def test_only_single_task_files_on_a_single_target_count() -> None:
    phase = PhaseRecord(PhaseBeginLine(t=0.0, phase="write", op="write"))
    phase.tasks.append(
        TableLine(
            t=0.0,
            phase="write",
            columns=("task", "bytes_per_s"),
            rows=tuple((index, 10.0 + index) for index in range(6)),
        )
    )
    first, second = ["OST0000", 100], ["OST0001", 100]
    phase.layout = make_layout_line(
        [
            (0, 0, [first]),
            (1, 1, [second]),
            (2, None, [first]),  # shared
            (3, 2, [first, second]),  # striped
            (4, 3, [first]),
            (5, 3, [first]),  # two files of one task: only their sum is known
            (6, 4, []),  # empty
            (7, 9, [first]),  # a task that nobody knows
            (8, 5, [first]),
        ]
    )
    rates = {target.name: target.rates for target in collect_target_rates(phase, counts_operations=False)}
    assert rates == {"OST0000": (10.0, 15.0), "OST0001": (11.0,)}
    phase.layout = None
    assert collect_target_rates(phase, counts_operations=False) == []
    assert describe_slow_targets(phase, counts_operations=False) == ""


def test_slow_target_is_reported_and_page_shows_the_layout(tmp_path: Path) -> None:
    slow = {task: 2.5 for task in range(24) if task % 4 == 1}
    folder = write_run(tmp_path / "run", Scene(works=[Work(curve=steady(240e6), slow=slow, fsync=0)], tasks=24))
    run = read_recorded_run_folder(folder)
    phase = run.phases[0]
    phase.layout = make_layout_line([(task, task, [[f"OST{task % 4:04x}", 100]]) for task in range(24)])
    text = replace_no_break_spaces(assess_phase_rate(run, phase).slow_targets)
    assert text.startswith("Files on target OST0001 (6 files) were 2.")
    assert text in replace_no_break_spaces(" ".join(assess_phase_rate(run, phase).detail_sentences))
    assert assess_phase_rate(run, phase).to_json()["slow_targets"] == text
    record = folder / "record.ndjson"
    lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
    (end,) = [index for index, line in enumerate(lines) if '"type": "nodes"' in line]
    lines.insert(end, describe_layout(24))
    record.write_text("".join(lines), encoding="utf-8")
    page = write_report([folder], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Where the bytes lie, from the layouts of all files" in page
    assert "Median file of each target" in page
    assert "Files on target OST0001" in page


@pytest.mark.parametrize("finding_id", ["layout_unreadable", "placement_unknown"])
def test_reason_for_unknown_targets_is_reported(finding_id: str, tmp_path: Path) -> None:
    run = read_recorded_run_folder(
        write_run(tmp_path / "run", Scene(works=[Work(curve=steady(240e6), fsync=0)], tasks=4))
    )
    phase = run.phases[0]
    phase.findings.append(Finding(id="other", text="nothing of that kind"))
    assert assess_phase_rate(run, phase).slow_targets == ""
    phase.findings.append(Finding(id=finding_id, phase=phase.id, text="the pool stands for all OSDs: no answer"))
    judged = assess_phase_rate(run, phase)
    assert judged.slow_targets == "The pool stands for all OSDs: no answer."
    assert judged.slow_targets in judged.detail_sentences


def describe_layout(tasks: int) -> str:
    """The same as the line of a record."""
    line = vars(make_layout_line([(task, task, [[f"OST{task % 4:04x}", 100]]) for task in range(tasks)]))
    return json.dumps({"type": "layout", "shapes": [], **line}) + "\n"


@pytest.mark.parametrize("broken", [[(0, 0, "OST0000")], [(0, 0, [3])], [(0, "a", [["OST0000", 1]])], [(0, 0, [[]])]])
def test_malformed_layout_gives_no_rates(broken: list[Any]) -> None:
    phase = PhaseRecord(PhaseBeginLine(t=0.0, phase="write", op="write"))
    phase.tasks.append(TableLine(t=0.0, phase="write", columns=("task", "bytes_per_s"), rows=((0, 10.0),)))
    phase.layout = make_layout_line(broken)
    assert collect_target_rates(phase, counts_operations=False) == []


def test_local_layout_reports_extents_and_unplaced_bytes() -> None:
    columns = ("file", "task", "bytes", "shape", "targets", "extents", "fragments", "longest_bytes", "unplaced_bytes")
    rows = ((0, 0, 100, 0, [["sda1", 100]], 5, 3, 50, 0), (1, 1, 90, 0, [["sda1", 90]], 2, 1, 60, 30))
    layout = LayoutLine(kind="local", files=3, reported=3, columns=columns, rows=rows)
    assert count_fragments(layout) == FileFragmentation(2, 4, 30)
    more = (2, 2, 10**9, 0, [["sda1", 10**9]], None, None, None, None)  # in more pieces than were looked at
    assert count_fragments(replace(layout, rows=(*rows, more))) == FileFragmentation(2, 4, 30)
    assert count_fragments(replace(layout, rows=(more,))) is None
    assert count_fragments(LayoutLine(kind="lustre", columns=columns[:5], rows=(rows[0][:5],))) is None


def test_pool_description_counts_disks_and_servers() -> None:
    members = ["nsd1@ec01,ec02", "nsd2@ec02,ec01", "nsd3"]
    shape = [{"pattern": "whole", "start": 0, "stripe_count": 1, "pool": "nlsas", "members": members}]
    assert replace_no_break_spaces(describe_pool_disks(LayoutLine(kind="gpfs", shapes=(shape, shape)))) == (
        "pool nlsas is 3 disks of 2 servers: which of them holds which byte nobody tells"
    )
    alone = [{"pattern": "whole", "pool": "system", "members": ["nsd1"]}]
    assert replace_no_break_spaces(describe_pool_disks(LayoutLine(shapes=(alone,)))) == (
        "pool system is 1 disk: which of them holds which byte nobody tells"
    )
    # A volume below a local file system has members and is no pool; a pool without members says nothing.
    assert describe_pool_disks(LayoutLine(shapes=([{"members": ["sda", "sdb"]}], [{"pool": "p"}], "?"))) == ""


def test_target_usage_is_read_by_column_name() -> None:
    line = LayoutLine(
        target_columns=("bytes", "target", "files"), targets=((300, "a", 3), (200, 7, 2), (1, "b", None), (2, "c"))
    )
    assert collect_target_usage(line) == [TargetUsage("a", 3, 300), TargetUsage("7", 2, 200)]
    assert collect_target_usage(LayoutLine(target_columns=("target", "files"), targets=(("a", 3),))) == []


def select_slow_targets(slowdown: float, file_count: int = 12, other_files: int = 40) -> list[SlowTarget]:
    rates = [TargetRates("slow", (100.0 / slowdown,) * file_count), TargetRates("rest", (100.0,) * other_files)]
    return find_slow_targets(rates)


def test_a_target_is_slow_from_a_factor_of_1_3_on() -> None:
    (slow,) = select_slow_targets(1.31)
    assert (slow.name, slow.files) == ("slow", 12)
    assert (slow.factor, slow.low, slow.high) == pytest.approx((1.31, 1.31, 1.31))
    assert select_slow_targets(1.29) == []


def test_slow_target_test_needs_five_files_of_other_targets() -> None:
    assert select_slow_targets(4.0, other_files=MIN_RUNS_PER_SIDE - 1) == []
    assert len(select_slow_targets(4.0, other_files=MIN_RUNS_PER_SIDE)) == 1


@pytest.mark.parametrize(
    ("slow_targets", "expected_ending"),
    [(3, ""), (4, " So were those on 1 other target."), (5, " So were those on 2 other targets.")],
)
def test_three_slowest_targets_are_described_and_more_counted(slow_targets: int, expected_ending: str) -> None:
    phase = PhaseRecord(PhaseBeginLine(phase="write", op="write"))
    rates = [("sound", 100.0)] * 200 + [
        (f"t{index}", 100.0 / (index + 2)) for index in range(slow_targets) for _ in range(12)
    ]
    rows = tuple((task, rate) for task, (_, rate) in enumerate(rates))
    phase.tasks.append(TableLine(phase="write", columns=("task", "bytes_per_s"), rows=rows))
    phase.layout = make_layout_line([(task, task, [[name, 100]]) for task, (name, _) in enumerate(rates)])
    text = replace_no_break_spaces(describe_slow_targets(phase, counts_operations=False))
    worst = slow_targets - 1
    assert text.startswith(
        f"Files on target t{worst} (12 files) were {worst + 2:.1f} times slower than those on the others (95 % interval"
        f" over all targets: {worst + 2:.1f} to {worst + 2:.1f}). Files on target t{worst - 1} (12 files) were"
    )
    assert text.count("Files on target") == 3
    assert text.endswith(f".{expected_ending}")
    assert ("other target" in text) == bool(expected_ending)


def test_names_of_pools_and_reasons_are_cut() -> None:
    def pool(name: str) -> str:
        return describe_pool_disks(LayoutLine(shapes=([{"pool": name, "members": ["d"]}],)))

    assert pool("p" * 40).startswith(f"pool {'p' * 40} is")
    assert pool("p" * 41).startswith(f"pool {'p' * 40}… is")
    two = LayoutLine(shapes=(({"pool": "a", "members": ("d@s1", "e@s1,s2,")}, {"pool": "b", "members": ["f@s3"]}),))
    assert replace_no_break_spaces(describe_pool_disks(two)) == (
        "pool a is 2 disks of 2 servers; pool b is 1 disk of 1 server: which of them holds which byte nobody tells"
    )
    phase = PhaseRecord(PhaseBeginLine(phase="p"))
    assert describe_unknown_layout(phase) == ""
    for length, text in ((600, "X" + "x" * 599 + "."), (601, "X" + "x" * 599 + "….")):
        phase.findings[:] = [Finding(id="placement_unknown", text="x" * length)]
        assert describe_unknown_layout(phase) == text
