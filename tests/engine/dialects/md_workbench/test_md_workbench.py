# SPDX-License-Identifier: Apache-2.0
"""md-workbench's command line: IOR's own tests of it run, its lines have the form of the real ones, and phases that are
run one at a time continue where the last one ended.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from engine_under_test import BAD_PLAN, DONE, FAILED, MISMATCH

# The twelve command lines of IOR's own tests, one after the other in one folder; three tasks, the last four two.
OF_IOR = [
    "-a POSIX -O=1 -D=1 -G=10 -P=1 -I=1 -R=2 -X",
    "-a POSIX -O=1 -D=4 -G=10 -P=4 -I=1 -R=2 -X -t=0.001 -L=latency.txt",
    "-a POSIX -O=1 -D=2 -G=10 -P=4 -I=3 -R=2 -X -W -w 1",
    "-a POSIX -O=1 -D=2 -G=10 -P=4 -I=3 -1 -W -w 1 --run-info-file=mdw.tst --print-detailed-stats",
    "-a POSIX -O=1 -D=2 -G=10 -P=4 -I=3 -2 -W -w 1 --run-info-file=mdw.tst --print-detailed-stats",
    "-a POSIX -O=1 -D=2 -G=10 -P=4 -I=3 -2 -W -w 1 --read-only --run-info-file=mdw.tst --print-detailed-stats",
    "-a POSIX -O=1 -D=2 -G=10 -P=4 -I=3 -2 -W -w 1 --read-only --run-info-file=mdw.tst --print-detailed-stats",
    "-a POSIX -O=1 -D=2 -G=10 -P=4 -I=3 -3 -W -w 1 --run-info-file=mdw.tst --print-detailed-stats",
    "-a POSIX -O=1 -D=1 -G=3 -P=2 -I=2 -R=2 -X -S 772 --dataPacketType=t",
    "-a POSIX -D=1 -P=2 -I=2 -R=2 -X -G=2252 -S 772 --dataPacketType=i -1",
    "-a POSIX -D=1 -P=2 -I=2 -R=2 -X -G=2252 -S 772 --dataPacketType=i -2",
    "-a POSIX -D=1 -P=2 -I=2 -R=2 -X -G=2252 -S 772 --dataPacketType=i -3",
]
# What the real one printed for -D=2 -P=4 -I=2 -R=1 by two tasks, with every figure that was measured as N.
REAL_OUTPUT_LINES = [
    "precreate process max:Ns min:Ns mean: Ns balance:N stddev:N rate:N iops/s dsets: 4 objects:16 rate:N dset/s "
    "rate:N obj/s tp:N MiB/s op-max:Ns (0 errs) create(Ns, Ns, Ns, Ns, Ns, Ns, Ns)",
    "benchmark process max:Ns min:Ns mean: Ns balance:N stddev:N rate:N iops/s objects:8 rate:N obj/s tp:N MiB/s "
    "op-max:Ns (0 errs) read(Ns, Ns, Ns, Ns, Ns, Ns, Ns) stat(Ns, Ns, Ns, Ns, Ns, Ns, Ns) create(Ns, Ns, Ns, Ns, Ns, "
    "Ns, Ns) delete(Ns, Ns, Ns, Ns, Ns, Ns, Ns)",
    "cleanup process max:Ns min:Ns mean: Ns balance:N stddev:N rate:N iops/s objects:16 dsets: 4 rate:N obj/s "
    "rate:N dset/s op-max:Ns (0 errs) delete(Ns, Ns, Ns, Ns, Ns, Ns, Ns)",
]
# And with --print-detailed-stats: which counts stand in which column.
REAL_ROWS = ["precreate \t4\t0\t16\t0\t0\t0\t", "benchmark \t0\t0\t8\t8\t8\t8\t", "cleanup \t0\t4\t0\t0\t0\t16\t"]


def run(engine: Path, command_line: str, folder: Path, tasks: int = 2) -> subprocess.CompletedProcess[str]:
    command = [str(engine), "md-workbench", *command_line.split(), "-o=w", f"--sonde-processes={tasks}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def list_result_lines(result: subprocess.CompletedProcess[str]) -> list[str]:
    assert result.returncode == DONE, result.stderr
    return [line for line in result.stdout.splitlines() if re.match("precreate|benchmark|cleanup", line)]


def test_md_workbench_tests_of_ior_pass_in_sequence(engine_path: Path, tmp_path: Path) -> None:
    for number, command_line in enumerate(OF_IOR):
        output = list_result_lines(run(engine_path, command_line, tmp_path, 3 if number < 8 else 2))
        assert output, command_line
        assert "errs!!!" not in " ".join(output), command_line
        assert " err\t" not in " ".join(output), command_line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["md-workbench.status", "mdw.tst"]


def test_output_lines_have_the_format_of_md_workbench(engine_path: Path, tmp_path: Path) -> None:
    output_lines = list_result_lines(run(engine_path, "-D=2 -P=4 -I=2 -R=1", tmp_path))
    figure = r"(?:(?<=[:(])|(?<=[:,] ))\d+\.\d+(?:e[+-]\d+)?"
    assert [re.sub(figure, "N", line) for line in output_lines] == REAL_OUTPUT_LINES
    rows = list_result_lines(run(engine_path, "-D=2 -P=4 -I=2 -R=1 --print-detailed-stats", tmp_path))
    assert [row[: len(real)] for row, real in zip(rows, REAL_ROWS, strict=True)] == REAL_ROWS
    assert all(re.search(r"\t\d+\.\d{3}s\t\d+\.\d{3}s\t\d+\.\d\d MiB/s \d\.\d{4}e[+-]\d\d$", row) for row in rows)


def test_heading_counts_objects_like_md_workbench(engine_path: Path, tmp_path: Path) -> None:
    head = run(engine_path, "-D=2 -P=4 -I=2 -R=2 -1", tmp_path).stdout.splitlines()
    assert head[0] == 'Args: md-workbench "-D=2" "-P=4" "-I=2" "-R=2" "-1" "-o=w"'
    assert head[1] == "Nodemap: 11"
    assert head[2].startswith("MD-Workbench total objects: 32 workingset size: 0.060 MiB (version: 4.1.0+sonde) time: ")
    assert re.match(r"Total runtime: \d+s time: \d{4}-", head[-1])
    quiet = run(engine_path, "-D=2 -P=4 -I=2 -R=2 -q", tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in quiet] == ["Nodemap:", "precreate", "benchmark", "benchmark", "cleanup"]


def test_rates_follow_from_counts_and_the_time_of_the_slowest_task(engine_path: Path, tmp_path: Path) -> None:
    (_, bench, _) = list_result_lines(run(engine_path, "-D=3 -P=40 -I=40 -R=1 -S=4096", tmp_path))
    rates = [float(rate) for rate in re.findall(r"rate:([\d.]+)", bench)]
    moved = float(re.findall(r"tp:([\d.]+)", bench)[0])
    assert rates[0] == pytest.approx(4 * rates[1], rel=1e-3)  # stat, read, delete and create of each object
    assert moved == pytest.approx(2 * rates[1] * 4096 / (1 << 20), rel=1e-2)  # read and written


def test_separate_phases_resume_from_the_status_file(engine_path: Path, tmp_path: Path) -> None:
    command_line = "-D=2 -P=5 -I=3 -R=2 -G=4 -X"
    status = tmp_path / "md-workbench.status"
    assert list_result_lines(run(engine_path, command_line + " -1", tmp_path))
    assert status.read_text() == "pos: 0\n"
    assert len(list_result_lines(run(engine_path, command_line + " -2", tmp_path))) == 2
    assert status.read_text() == "pos: 6\n"
    assert list_result_lines(run(engine_path, command_line + " -2 --read-only", tmp_path))
    assert status.read_text() == "pos: 6\n"
    assert sum(path.is_file() for path in (tmp_path / "w").rglob("*")) == 2 * 2 * 5
    (removal_line,) = list_result_lines(run(engine_path, command_line + " -3", tmp_path))
    assert "objects:20 dsets: 4" in removal_line
    assert not (tmp_path / "w").exists()


def test_cleanup_without_a_directory_has_nothing_to_do(engine_path: Path, tmp_path: Path) -> None:
    done = run(engine_path, "-3", tmp_path)
    assert done.returncode == DONE
    assert "w is not there: nothing to clean up" in done.stderr
    assert not re.search("cleanup process", done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_stonewall_ends_all_tasks_at_the_same_iteration(engine_path: Path, tmp_path: Path) -> None:
    command_line = "-D=2 -P=20 -I=100000000 -R=2 -W -w 1 -1 -2"
    output_lines = list_result_lines(run(engine_path, command_line, tmp_path))
    rounds = [int(re.findall(r"stonewall-iter:(\d+)", line)[0]) for line in output_lines[1:]]
    assert all(0 < iteration < 100000000 for iteration in rounds)
    assert (tmp_path / "md-workbench.status").read_text() == f"pos: {sum(rounds)}\n"
    assert sum(path.is_file() for path in (tmp_path / "w").rglob("*")) == 2 * 2 * 20
    assert list_result_lines(run(engine_path, "-D=2 -P=20 -3", tmp_path))


def test_adaptive_waiting_times_double(engine_path: Path, tmp_path: Path) -> None:
    output_lines = list_result_lines(run(engine_path, "-D=1 -P=4 -I=1 -R=2 -T", tmp_path, 1))
    factors = [re.findall(r"waiting_factor:([\d.]+)", line) for line in output_lines[1:-1]]
    assert factors == [[], *([f"{0.0625 * 2**k:.2f}"] for k in range(7))] * 2


def test_wrong_content_is_counted_and_sets_the_exit_code(engine_path: Path, tmp_path: Path) -> None:
    assert list_result_lines(run(engine_path, "-D=1 -P=3 -I=2 -R=1 -G=9 -1", tmp_path))
    wrong = next((tmp_path / "w").rglob("file.0.1"))
    wrong.write_bytes(bytes(wrong.stat().st_size))
    result = run(engine_path, "-D=1 -P=3 -I=2 -R=1 -G=9 -X -2", tmp_path)
    assert result.returncode == MISMATCH
    assert "objects:3 " in result.stdout
    assert "(1 errs!!!)" in result.stdout


def test_a_lost_object_ends_the_run_with_a_sentence(engine_path: Path, tmp_path: Path) -> None:
    assert list_result_lines(run(engine_path, "-D=1 -P=3 -I=2 -R=1 -1", tmp_path))
    next((tmp_path / "w").rglob("file.0.1")).unlink()
    result = run(engine_path, "-D=1 -P=3 -I=2 -R=1 -2", tmp_path)
    assert result.returncode == FAILED
    assert "file.0.1 failed: No such file or directory" in result.stderr


@pytest.mark.parametrize(
    ("command_line", "expected_sentence"),
    [
        ("-2", "run the precreate phase (-1) with the same file first"),
        ("-a HDF5", "must be POSIX or DUMMY"),
        ("-P 0", "must be from 1"),
        ("-t x", "must be a number"),
        ("--nonsense", "is no option of md-workbench"),
        ("-S", "needs a value"),
        ("--GPUid=1", "GPU"),
        ("--dataPacketType=z", "must be one of timestamp"),
    ],
)
def test_invalid_arguments_are_rejected_in_one_sentence(
    command_line: str, expected_sentence: str, engine_path: Path, tmp_path: Path
) -> None:
    result = subprocess.run(
        [str(engine_path), "md-workbench", "-o=w", *command_line.split()], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == BAD_PLAN
    assert expected_sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
