# SPDX-License-Identifier: Apache-2.0
"""What the real IOR, mdtest and md-workbench take, ours take: each line below was run with the real tools first.

What is refused on purpose stands on the pages in docs/reference and in the tests of words.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

# Words of IOR, and what its output must then hold.
IOR = {
    "-t 4kb -b 1mB": "blocksize           : 1 MiB",
    "-t 4KiB -b 64KB": "xfersize            : 4096 bytes",
    "-t 4K -b 64k -s 2.9": "segments            : 2",
    "-t 4k -b 64k -d 0.5": "write ",
    "-t 4k -b 64k -D 1.5": "stonewallingTime    : 1",
    "-t 4k -b 64k -i 0": "repetitions         : 1",
    "-t 4k -b 64k -i 1.9": "repetitions         : 1",
    "-t 4k -b 64k -G -7 -X -3": "write ",
    "-a DUMMY -e -t 4k -b 8k --dummy.delay-create=100 --dummy.delay-close=100 --dummy.delay-sync=100": "write ",
    "-a DUMMY -t 4k -b 8k --dummy.delay-xfer=10 --dummy.delay-only-rank0": "write ",
    "-t 4k -b 64k -O numTasks=1,useO_DIRECT=0": "tasks               : 1",
    "-t 4k -b 64k -A abc -O summaryFormat=JSON": '"ReferenceNumber": -1',
    "-t 4k -b 64k -w -z-F": "access              : file-per-process",
    "-f script": "write ",
}
# A script with tabs, comments before and behind, and directives that older versions had.
SCRIPT = """# a comment before the start
 IOR START
api=posix
writeFile =1
   randomOffset=1
\t\t# tab-prefixed comment, with a comma
transferSize=10k   # behind
blockSize=20k
    # space-prefixed comment
numTasks=1
run
--dummy.delay-create=10
useo_direct=0
#--posix.odirect=0
api=dummy
    ior stop
"""
# Words of mdtest, and the tests that must have a rate, by their first letters: all, "f" files, "t" the tree.
MDTEST = {
    "-n 10.5": "adeft",
    "-n 4 -R --random-seed=-5": "adeft",
    "-n 4kb -F": "ft",
    "-F=1 -D=0 -n 3": "ft",
    "-n 4 -i 0": "",
    "": "t",
    "-n 2 -b 3 -z 1": "t",
    "-n 2 -w 4096 -e 4096 --posix.odirect": "adeft",
    "-n 3 -F -a DUMMY --dummy.delay-create=10 --dummy.delay-close=10 --dummy.delay-xfer=10 -w 8 -e 8": "ft",
    "-n 3 -F -a DUMMY --dummy.delay-sync=10 --dummy.delay-only-rank0 -w 8 -y": "ft",
    "-n 3 -V=4 -v": "adeft",
    "-T": "",
}


def run(engine: Path, tool: str, command_line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(engine), tool, *command_line.split()], cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("command_line", IOR)
def test_ior_accepts_option(command_line: str, engine_path: Path, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(SCRIPT)
    result = run(engine_path, "ior", f"{command_line} -o f", tmp_path)
    assert result.returncode == 0, result.stderr
    assert IOR[command_line] in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["script"]


@pytest.mark.parametrize("command_line", MDTEST)
def test_mdtest_accepts_option(command_line: str, engine_path: Path, tmp_path: Path) -> None:
    result = run(engine_path, "mdtest", f"{command_line} -d m", tmp_path)
    assert result.returncode == 0, result.stderr
    table = [line.split() for line in result.stdout.split("SUMMARY")[1].splitlines() if line.count(".") == 4]
    assert len(table) in (6, 10)
    rated = {" ".join(row[:2]) for row in table if float(row[2]) > 0}
    expected = {"": 0, "t": 2, "ft": 6, "adeft": 10}[MDTEST[command_line]]
    assert len(rated) == expected, rated
    assert list(tmp_path.iterdir()) == []


def test_dummy_backend_delays_take_the_requested_time(engine_path: Path, tmp_path: Path) -> None:
    """At least so long, for each create and close; with rank 0 only, the other task is done before."""
    command_line = "-a DUMMY -F -w -t 4k -b 8k --dummy.delay-create=20000 --dummy.delay-close=30000 --sonde-processes=2"
    result = run(
        engine_path, "ior", command_line + " -O saveRankPerformanceDetailsCSV=r --dummy.delay-only-rank0 -o f", tmp_path
    )
    assert result.returncode == 0, result.stderr
    first, second = (line.split(",") for line in (tmp_path / "r").read_text().splitlines()[1:])
    assert float(first[2]) >= 0.05
    assert float(second[2]) < float(first[2])


def test_commands_of_mdtest_run_before_and_after_every_test(engine_path: Path, tmp_path: Path) -> None:
    for command_line, pairs in (("-n 2", 8), ("-n 2 -C -F", 1), ("-n 2 -T -F -d n", 1)):
        command = [str(engine_path), "mdtest", *command_line.split(), *(() if "-d" in command_line else ("-d", "m"))]
        command += ["--run-cmd-before-phase=echo b >> log", "--run-cmd-after-phase=echo a >> log"]
        if "-d" in command_line:
            subprocess.run(
                [str(engine_path), *["mdtest", "-C", "-F", "-n", "2", "-d", "n"]],
                cwd=tmp_path,
                check=True,
                capture_output=True,
            )
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "log").read_text().split() == ["b", "a"] * pairs
        (tmp_path / "log").unlink()


def test_direct_io_of_mdtest_is_verified(engine_path: Path, tmp_path: Path) -> None:
    command_line = "-n 3 -F -w 8192 -e 8192 --posix.odirect -X -G 5 -d m"
    result = run(engine_path, "mdtest", command_line, tmp_path)
    assert result.returncode == 0, result.stderr
    planned = run(engine_path, "mdtest", command_line + " --sonde-plan", tmp_path)
    assert '"direct": true' in planned.stdout
