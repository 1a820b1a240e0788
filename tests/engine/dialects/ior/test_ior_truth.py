# SPDX-License-Identifier: Apache-2.0
"""Where IOR's answer is wrong or missing, ours is right; and the command lines that published studies printed run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import MISMATCH, parse_record
from ior_cases import make_launcher_command, run

WRITE = "-w -k -G 7 -l o -t 4k -b 1m -o f"
CHECK = "-r -R -k -G 7 -l o -t 4k -b 1m -o f"


def run_ior(engine: Path, command_line: str, folder: Path, tasks: int = 1) -> subprocess.CompletedProcess[str]:
    return run([str(engine), "ior", *command_line.split(), f"--sonde-processes={tasks}", "--sonde-record=r"], folder)


def read_error_lines(folder: Path) -> list[dict[str, Any]]:
    return [line for line in parse_record((folder / "r").read_text()) if line["type"] == "error"]


@pytest.mark.parametrize("wrong_blocks", [1, 64, 128, 200])
def test_any_number_of_wrong_blocks_sets_the_exit_code(wrong_blocks: int, engine_path: Path, tmp_path: Path) -> None:
    """IOR's exit code is twice the number of wrong blocks modulo 256: 0 for 128 of them."""
    assert run_ior(engine_path, WRITE, tmp_path).returncode == 0
    file = tmp_path / "f"
    content = bytearray(file.read_bytes())
    for block in range(wrong_blocks):
        content[block * 4096 + 100] ^= 1
    file.write_bytes(content)
    (tmp_path / "r").unlink()
    result = run_ior(engine_path, CHECK, tmp_path)
    assert result.returncode == MISMATCH
    assert f"Incorrect data on read ({wrong_blocks} errors found)." in result.stdout
    first = read_error_lines(tmp_path)[0]
    assert first["path"] == "f"
    assert first["offset"] == 100


def test_swapped_blocks_are_detected_and_located(engine_path: Path, tmp_path: Path) -> None:
    assert run_ior(engine_path, WRITE, tmp_path).returncode == 0
    content = (tmp_path / "f").read_bytes()
    (tmp_path / "f").write_bytes(content[4096:8192] + content[:4096] + content[8192:])
    (tmp_path / "r").unlink()
    assert run_ior(engine_path, CHECK, tmp_path).returncode == MISMATCH
    assert sorted(line["offset"] // 4096 for line in read_error_lines(tmp_path)) == [0, 1]


def test_files_with_errors_are_not_removed_on_request(engine_path: Path, tmp_path: Path) -> None:
    assert run_ior(engine_path, WRITE, tmp_path).returncode == 0
    with (tmp_path / "f").open("r+b") as file:
        file.write(b"?")
    assert run_ior(engine_path, "-r -R -K -G 7 -l o -t 4k -b 1m -o f", tmp_path).returncode == MISMATCH
    assert (tmp_path / "f").exists()
    assert run_ior(engine_path, "-r -R -G 7 -l o -t 4k -b 1m -o f", tmp_path).returncode == MISMATCH
    assert not (tmp_path / "f").exists()


def test_random_packets_without_a_signature_are_verified(engine_path: Path, tmp_path: Path) -> None:
    """IOR writes them with 0 for a signature and expects the time."""
    assert run_ior(engine_path, "-w -r -R -l random -t 4k -b 64k -F -o f", tmp_path, 2).returncode == 0


def test_too_short_file_is_reported_with_its_offset(engine_path: Path, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 10_000)
    result = run_ior(engine_path, "-r -t 4k -b 64k -k -o f", tmp_path)
    assert result.returncode == 1
    assert "read of f at offset 8192 failed: the file ends before the data that was expected" in result.stderr


def test_failed_run_removes_its_files(engine_path: Path, tmp_path: Path) -> None:
    assert run_ior(engine_path, "-r -t 4k -b 64k -k -F -o f", tmp_path, 2).returncode == 1
    (tmp_path / "f.00000001").mkdir()
    assert run_ior(engine_path, "-w -t 4k -b 64k -F -o f", tmp_path, 2).returncode == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.00000001", "r"]


def test_link_is_followed_when_the_file_is_not_removed(engine_path: Path, tmp_path: Path) -> None:
    """Like IOR, the engine with -E writes to the target of the link, and removes the link itself."""
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    (tmp_path / "f").symlink_to(precious)
    assert run_ior(engine_path, "-w -E -t 4k -b 64k -o f", tmp_path).returncode == 0
    assert precious.stat().st_size == 65536
    assert not (tmp_path / "f").is_symlink()


def test_a_link_is_replaced_by_a_fresh_file(engine_path: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    (tmp_path / "f").symlink_to(precious)
    assert run_ior(engine_path, "-w -k -t 4k -b 64k -o f", tmp_path).returncode == 0
    assert precious.read_bytes() == b"mine"
    assert not (tmp_path / "f").is_symlink()


def test_link_to_a_device_is_rejected(engine_path: Path, tmp_path: Path) -> None:
    (tmp_path / "f").symlink_to("/dev/null")
    result = run_ior(engine_path, "-w -E -t 4k -b 64k -o f", tmp_path)
    assert result.returncode == 1
    assert "is not a regular file" in result.stderr


def test_minutes_end_the_repetitions_and_not_a_phase(engine_path: Path, tmp_path: Path) -> None:
    """-T counts whole minutes, so this only sees that a plan with it runs; the rule has a test of its own."""
    assert run_ior(engine_path, "-w -r -T 1 -i 2 -t 4k -b 64k -o f", tmp_path).returncode == 0


# The command lines of a published evaluation of a storage appliance, after the launcher part; its text broke the lines.
# Cut by one option: -b was the number of tasks in GiB, or 20 GiB.
APPLIANCE = [
    "-a MPIIO -F -E -k -b 4m -i 3 -t 1M -B -v -C -o D",
    "-a POSIX -F -E -k -b 4m -i 3 -t 1M -B -v -C -o D",
    "-a POSIX -F -E -k -b 4m -i 3 -t 4M -B -v -C -o D",
]
# The six tests of an acceptance that was published in 2014, cut by -b: a file per process with records of 10,000 B,
# 1,000,000 B and 1 MiB, and one shared file with the same. Of the shared ones the first was printed with collective
# buffering disabled for writes and reads, the other two with both enabled; the names are those that ROMIO has.
ACCEPTANCE = [
    "-a POSIX -F -t 10000 -b 1000000 -o D",
    "-a POSIX -F -t 1000000 -b 4000000 -o D",
    "-a POSIX -F -t 1m -b 4m -o D",
    "-a MPIIO -c -t 10000 -b 1000000 --mpiio.hintsFileName=disable -o D",
    "-a MPIIO -c -t 1000000 -b 4000000 --mpiio.hintsFileName=enable -o D",
    "-a MPIIO -c -t 1m -b 4m --mpiio.hintsFileName=enable -o D",
]


def write_hints(folder: Path) -> None:
    for name in ("enable", "disable"):
        lines = (f"IOR_HINT__MPI__romio_cb_{operation}={name}\n" for operation in ("write", "read"))
        (folder / name).write_text("".join(lines))


@pytest.mark.parametrize("command_line", ACCEPTANCE[3:])
def test_published_command_lines_get_their_published_hints(
    command_line: str, engine_path: Path, tmp_path: Path
) -> None:
    write_hints(tmp_path)
    plan = json.loads(run_ior(engine_path, command_line + " --sonde-plan", tmp_path).stdout)
    wanted = "disable" if "-t 10000 " in command_line else "enable"
    assert plan["data"]["io"]["hints"] == {"romio_cb_write": wanted, "romio_cb_read": wanted}


@pytest.mark.parametrize("command_line", APPLIANCE + ACCEPTANCE)
def test_published_command_lines_run(command_line: str, engine_path: Path, tmp_path: Path) -> None:
    write_hints(tmp_path)
    start = make_launcher_command(2) if "MPIIO" in command_line else []
    module = engine_path.parent / "sonde-mpi-site.so"
    if start is None or (start and not module.exists()):
        pytest.skip("MPI-IO needs a launcher and the MPI module of this site")
    options = [f"--sonde-mpi-module={module}"] if start else ["--sonde-processes=2"]
    command = [
        *start,
        str(engine_path),
        "ior",
        *command_line.split(),
        *options,
        "-O",
        "summaryFile=out,summaryFormat=JSON",
    ]
    result = run(command, tmp_path)
    assert result.returncode == 0, result.stderr
    answer = json.loads((tmp_path / "out").read_text())
    repetitions = 3 if "-i 3" in command_line else 1
    accesses = [result["access"] for result in answer["tests"][0]["Results"] if result["access"] != "remove"]
    assert accesses == ["write", "read"] * repetitions
    size = {"4m": 4 << 20, "1000000": 1_000_000, "4000000": 4_000_000}[command_line.split("-b ")[1].split()[0]]
    assert all(result["xsizeMiB"] * (1 << 20) == pytest.approx(2 * size) for result in answer["summary"])
    if "-k" in command_line:
        assert (tmp_path / "D.00000001").stat().st_size == size


def test_random_reads_wrap_in_files_smaller_than_the_volume(engine_path: Path, tmp_path: Path) -> None:
    """The command line of IO500's random reads asks for 40 GB of each file, whatever its size."""
    assert run_ior(engine_path, "-w -k -F -G 7 -t 4k -b 1m -o f", tmp_path, 2).returncode == 0
    (tmp_path / "r").unlink()
    command_line = "-r -k -F -G 7 -z -z -t=4096 -b=4096 -s=3000 -O stoneWallingWearOut=1 -D 100 -C -Q 2 -o f"
    result = run_ior(engine_path, command_line, tmp_path, 2)
    assert result.returncode == 0, result.stderr
    (end,) = [line for line in parse_record((tmp_path / "r").read_text()) if line["type"] == "phase_end"]
    assert end["ops"]["done"] == 6000
