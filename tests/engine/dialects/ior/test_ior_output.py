# SPDX-License-Identifier: Apache-2.0
"""What `sonde-engine ior` prints is what IOR prints, with right numbers: scripts that read the one read the other."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
import subprocess
from pathlib import Path
from typing import Any

import ior_output
import pytest
from engine_under_test import Line, parse_record
from ior_cases import run
from ior_output import COMMANDS, TASKS

MEBI = 1 << 20


def run_ior_with_record(
    engine: Path, command_line: str, folder: Path, tasks: int = TASKS
) -> subprocess.CompletedProcess[str]:
    result = run([str(engine), "ior", *command_line.split(), f"--sonde-processes={tasks}", "--sonde-record=r"], folder)
    assert result.returncode == 0, result.stderr
    return result


def read_json_output(engine: Path, command_line: str, folder: Path, tasks: int = TASKS) -> dict[str, Any]:
    """Our JSON output, which contains members that IOR lacks."""
    answer: dict[str, Any] = json.loads(
        run_ior_with_record(engine, command_line + " -O summaryFormat=JSON --sonde-report=output", folder, tasks).stdout
    )
    return answer


def read_phase_end_lines(folder: Path) -> list[Line]:
    lines = parse_record((folder / "r").read_text(encoding="utf-8"))
    return [line for line in lines if line["type"] == "phase_end" and line["op"] != "remove"]


def test_json_has_the_members_of_ior(engine_path: Path, tmp_path: Path) -> None:
    real = json.loads(ior_output.read_recorded_outputs()["json"])
    output = json.loads(run_ior_with_record(engine_path, COMMANDS["json"], tmp_path).stdout)
    assert list(output) == list(real)
    assert list(output["tests"][0]) == list(real["tests"][0])
    test, recorded_test = output["tests"][0], real["tests"][0]
    # What IOR prints there is the name of the next type of packet.
    assert recorded_test["Parameters"].pop("data packet type") == "g"
    assert test["Parameters"].pop("data packet type") == "timestamp"
    for facts in (recorded_test["Parameters"], test["Parameters"]):
        facts.pop("platform")
    assert test["Parameters"] == recorded_test["Parameters"]
    assert test["Options"] == recorded_test["Options"]
    assert [list(result) for result in recorded_test["Results"]] == [list(result) for result in test["Results"]]
    for result, other in zip(recorded_test["Results"], test["Results"], strict=True):
        for key in ("access", "blockKiB", "xferKiB"):
            assert result[key] == other[key]
    measured = re.compile("bw|OPs|MeanTime")
    for result, other in zip(real["summary"], output["summary"], strict=True):
        assert list(result) == list(other)
        assert {k: v for k, v in result.items() if not measured.match(k)} == {
            k: v for k, v in other.items() if not measured.match(k)
        }


def find_rows(text: str, label: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.split()[:1] == [label]]


@pytest.mark.parametrize("case_name", ["human", "human wear-out"])
def test_human_readable_layout_equals_ior_output(case_name: str, engine_path: Path, tmp_path: Path) -> None:
    real = ior_output.read_recorded_outputs()[case_name]
    output = run_ior_with_record(engine_path, COMMANDS[case_name], tmp_path).stdout
    changing = re.compile(
        r"(IOR-|Began|StartTime|Finished|Command line|Machine|FS|Max |write |read |remove |stonewalling pairs)"
    )
    assert [line for line in output.splitlines() if not changing.match(line)] == [
        line for line in real.splitlines() if not changing.match(line)
    ]
    for label in ("write", "read", "remove"):
        for row, other in zip(find_rows(real, label), find_rows(output, label), strict=True):
            assert len(row) == len(other)
            # Beside what was measured: repetition in the table; test, tasks, sizes, API in the summary.
            assert (row[12:] if len(row) > 12 else row[-1:]) == (other[12:] if len(row) > 12 else other[-1:])
    order = re.compile(r"(write|read|remove|Max \w+|Summary|Operation|Results|Finished|Pairs|stonewalling pairs)")
    titles = [[match[0] for line in text.splitlines() if (match := order.match(line))] for text in (real, output)]
    assert titles[0] == titles[1]


def test_columns_align_with_real_ior_output(engine_path: Path, tmp_path: Path) -> None:
    def find_column_starts(text: str) -> list[list[int]]:
        table = [
            line
            for line in text.splitlines()
            if re.match(r"(write|read|remove) +[\d-]+\S* +\S+ +\S+ +\S+ +\S+  ", line)
        ]
        return [[match.start() for match in re.finditer(r"\S+", line)] for line in table if len(line.split()) == 11]

    real = find_column_starts(ior_output.read_recorded_outputs()["human"])
    columns = find_column_starts(run_ior_with_record(engine_path, COMMANDS["human"], tmp_path).stdout)
    assert real == columns
    assert len(real) == 6


def test_csv_columns_equal_ior_output(engine_path: Path, tmp_path: Path) -> None:
    real = list(csv.DictReader(io.StringIO(ior_output.read_recorded_outputs()["csv"])))
    output_rows = list(csv.DictReader(io.StringIO(run_ior_with_record(engine_path, COMMANDS["csv"], tmp_path).stdout)))
    assert [list(row) for row in output_rows] == [list(row) for row in real]
    same = ("access", "block(KiB)", "xfer(KiB)", "numTasks", "iter")
    for row, other in zip(real, output_rows, strict=True):
        assert row["access"] == other["access"]
        for key in same[1:]:
            assert float(row[key]) == float(other[key])
        assert all(float(value) >= 0 for key, value in other.items() if key != "access")


def test_figures_follow_the_record_by_the_definitions_of_ior(engine_path: Path, tmp_path: Path) -> None:
    results = read_json_output(engine_path, "-w -r -F -t 4k -b 64k -s 3 -i 3 -G 5 -o f", tmp_path)["tests"][0][
        "Results"
    ]
    lines = parse_record((tmp_path / "r").read_text(encoding="utf-8"))
    assert len(results) == 6
    for result, end in zip(results, read_phase_end_lines(tmp_path), strict=True):
        table = next(line for line in lines if line["type"] == "tasks" and line["phase"] == end["phase"])
        tasks = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
        moved = end["bytes"]["transferred"]
        assert moved == TASKS * 3 * 65536
        assert result["bwMiB"] == pytest.approx(moved / end["seconds"]["elapsed"] / MEBI)
        assert result["iops"] == pytest.approx(moved / 4096 / end["seconds"]["transfer"])
        assert result["latency"] == pytest.approx(min(task["transfer_s"] / task["ops"] for task in tasks))
        assert result["totalTime"] == end["seconds"]["elapsed"]
        assert result["latency"] > 0  # four decimals of a second, as IOR has them, would be zero


def test_the_summary_is_max_min_mean_and_deviation_of_the_repetitions(engine_path: Path, tmp_path: Path) -> None:
    document_of_runs = read_json_output(engine_path, "-w -t 4k -b 64k -i 4 -G 5 -o f", tmp_path)
    rates = [repetition["bwMiB"] for repetition in document_of_runs["tests"][0]["Results"]]
    summary = document_of_runs["summary"][0]
    assert len(rates) == 4
    assert summary["bwMaxMIB"] == pytest.approx(max(rates))
    assert summary["bwMinMIB"] == pytest.approx(min(rates))
    assert summary["bwMeanMIB"] == pytest.approx(statistics.fmean(rates))
    assert summary["bwStdMIB"] == pytest.approx(statistics.pstdev(rates))
    assert summary["OPsMax"] == pytest.approx(max(rates) * MEBI / 4096)


def test_verification_counts_in_the_time_of_ior_only(engine_path: Path, tmp_path: Path) -> None:
    result = read_json_output(engine_path, "-w -r -R -t 1m -b 64m -l o -G 5 -o f", tmp_path, 1)["tests"][0]["Results"][
        1
    ]
    figures = result["sonde"]
    assert figures["seconds"]["verify"] > 0
    assert result["totalTime"] == pytest.approx(figures["seconds"]["elapsed"] + figures["seconds"]["verify"])
    assert result["bwMiB"] < figures["rates"]["total"]["bytes_per_s"] / MEBI
    assert figures["checked_bytes"] == 64 * MEBI
    assert figures["mismatches"] == 0


def test_deadline_rates_use_the_names_of_ior_and_of_sonde(engine_path: Path, tmp_path: Path) -> None:
    command_line = "-w -F -t 4k -b 1g -D 1 -O stoneWallingWearOut=1,stoneWallingStatusFile=status -k -a DUMMY"
    summary = read_json_output(engine_path, command_line + " --dummy.delay-xfer=2000 -o f", tmp_path)["summary"][0]
    rate = read_phase_end_lines(tmp_path)[0]["rates"]["stonewall"]
    assert summary["StoneWallbwMeanMIB"] * TASKS == pytest.approx(rate["bytes_per_s"] / MEBI)
    assert summary["sonde"]["StoneWallbwMeanMIB of all tasks"] == pytest.approx(rate["bytes_per_s"] / MEBI)
    # Each task reaches the count of the fastest, which is what the status file says: about 500 in a second.
    count = int((tmp_path / "status").read_text())
    assert count * TASKS * 4096 == read_phase_end_lines(tmp_path)[0]["bytes"]["transferred"]
    assert 200 < count <= 501


def test_results_go_to_a_file_and_warnings_do_not(engine_path: Path, tmp_path: Path) -> None:
    command_line = "-w -r -t 4k -b 64k -a DUMMY -B -O summaryFile=out,summaryFormat=JSON -o f"
    completed = run_ior_with_record(engine_path, command_line, tmp_path)
    assert completed.stdout == "Writing output to out\n"
    assert "-B is from IOR before 3.3" in completed.stderr
    assert len(json.loads((tmp_path / "out").read_text())["tests"][0]["Results"]) == 2


def test_rank_and_operation_times_are_written_as_csv(engine_path: Path, tmp_path: Path) -> None:
    command_line = "-w -F -t 4k -b 64k -i 2 -O saveRankPerformanceDetailsCSV=ranks,savePerOpDataCSV=each -G 5 -o f"
    run_ior_with_record(engine_path, command_line, tmp_path)
    table = list(csv.DictReader(io.StringIO((tmp_path / "ranks").read_text())))
    assert [(row["access"], row["rank"]) for row in table] == [("write", "0"), ("write", "1")] * 2
    for row in table:
        assert float(row["throughput"]) == pytest.approx(65536 / float(row["runtime"]))
        assert float(row["runtime"]) <= float(row["runtime-with-openclose"])
    for repetition in range(2):
        for task in range(TASKS):
            each = list(csv.DictReader(io.StringIO((tmp_path / f"each-{repetition}-{task:05}.csv").read_text())))
            assert len(each) == 16
            assert [float(row["time"]) for row in each] == sorted(float(row["time"]) for row in each)
            assert all(float(row["tp"]) == pytest.approx(4096 / float(row["runtime"]), rel=1e-4) for row in each)


def test_a_dry_run_shows_the_test_and_touches_nothing(engine_path: Path, tmp_path: Path) -> None:
    result = run([str(engine_path), "ior", "--dryRun", "-o", "f"], tmp_path)
    assert result.returncode == 0
    assert "aggregate filesize  : 1 MiB\ndryRun              : 1\n" in result.stdout
    assert list(tmp_path.iterdir()) == []
