# SPDX-License-Identifier: Apache-2.0
"""Wrong words: one sentence that says what and what to do, exit code 2, and nothing left behind. IOR prints pages,
aborts its ranks or continues with something else; on some of these it exits with 0.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from ior_cases import run

REJECTED_ARGUMENTS = {
    "-t 3": "multiple of 8",
    "-t 4k -b 6k": "whole number of transfers",
    "-t 4k -b 1k": "whole number of transfers",
    "-t 0": "multiple of 8",
    "-t -8": "multiple of 8",
    "-t 4q": "-t",
    "-t": "needs a value",
    "-t=": "needs a value",
    "-b 4kk": "powers of 1024",
    "-b 99999999999999999999": "-b",
    "-b 9000p -t 8p": "8 EiB",
    "-i x": "must be a whole number",
    "-t 4x": "must be a whole number",
    "-b 1.5m": "must be a whole number",
    "-i 1m": "at most 10000",
    "-s 0": "at least one segment",
    "-k stray": "stands where an option was expected",
    "--nosuch": "--nosuch",
    "--nosuch=1": "--nosuch",
    "-j": "needs a value",
    "-kq": "-q",
    "-H": "--mpiio.showHints",
    "-U hints": "--mpiio.hintsFileName",
    "-S": "useStridedDatatype",
    "-a PMDK": "not built into Sonde",
    "-a HDF5 -z": "-z does not go with -a HDF5",
    "-a HDF5 -Y": "use -e",
    "-a NCMPI -z": "-z does not go with -a NCMPI",
    "-I": "--hdf5.individualDataSets",
    "--hdf5.individualDataSets": "IOR itself refuses it",
    "-a S3-libs3": "not built into Sonde",
    "-a NOSUCH": "there is no API NOSUCH",
    "-l x": "no type of data packet",
    "-C -Z -F": "exclude each other",
    "-z -t 4k -b 4k": "larger than a transfer",
    "-z -C": "use -F",
    "-z -R -w": "--random-offset-seed",
    "-r -R": "-G",
    "-O": "needs a value",
    "-O nosuch=1": "nosuch",
    "-O blockSize": "key=value",
    "-O =3": "key=value",
    "-O blockSize=x": "blockSize",
    "-O summaryFormat=XML": "default, JSON or CSV",
    "-O stoneWallingWearOut=1": "-D",
    "-O stoneWallingStatusFile=s -w": "-k",
    "-O stoneWallingStatusFile=s -w -k": "stoneWallingWearOut=1",
    "-O GPUDirect=1": "add -O allocateBufferOnGPU=3",
    "-O allocateBufferOnGPU=1": "add -O GPUid=0",
    "-O allocateBufferOnGPU=1 -O GPUid=-1": "add -O GPUid=0",
    "-O allocateBufferOnGPU=1 -O GPUid=0@x": "GPUid is",
    "-O allocateBufferOnGPU=1 -O GPUid=0@-2": "GPUid is",
    "-O allocateBufferOnGPU=1 -O GPUid=0 -a DUMMY": "moves no data",
    "-O allocateBufferOnGPU=2 -O GPUid=0": "use 1, which verifies on the processor",
    "-O allocateBufferOnGPU=3 -O GPUid=0": "add --gpuDirect, or use 1",
    "-O allocateBufferOnGPU=4 -O GPUid=0": "must be 0, 1, or 3",
    "-O allocateBufferOnGPU=3 -O GPUid=0 --gpuDirect -a MPIIO": "use -a POSIX",
    "-O summaryFile=/nosuch/x": "summaryFile",
    "--randomPrefill=4k": "-z",
    "--posix.lustre.stripecount=4 -w -o f": "not told how to stripe files",
    "--posix.lustre.stripesize=5000 -w -o f": "multiple of 64 KiB",
    "--posix.lustre.ignorelocks": "may lose data",
    "--posix.gpfs.hintaccess": "gpfs_fcntl",
    "--mpiio.useStridedDatatype": "useFileView",
    "--mpiio.hintsFileName=/nosuch/hints": "/nosuch/hints",
    "-y -F": "path1@path2",
    "-u -F -o a@b": "several paths",
    "-M 120%": "memory",
    "-N 0": "at least one task",
    "-f /nosuch/script": "/nosuch/script",
    "-o /nosuch/dir/f": "/nosuch/dir",
    "-o @": "names no file",
    "--sonde-nosuch=1": "--sonde-record",
    "-u --warningAsErrors": "-u goes with -F",
}


def run_rejected_command(engine: Path, arguments: list[str], folder: Path) -> str:
    """The one sentence about words that are not taken."""
    result: subprocess.CompletedProcess[str] = run([str(engine), "ior", *arguments], folder)
    assert result.returncode == 2, result
    assert result.stdout == ""
    assert result.stderr.startswith("sonde-engine: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


@pytest.mark.parametrize("command_line", REJECTED_ARGUMENTS)
def test_invalid_arguments_are_rejected_in_one_sentence(command_line: str, engine_path: Path, tmp_path: Path) -> None:
    assert REJECTED_ARGUMENTS[command_line] in run_rejected_command(engine_path, command_line.split(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_error_in_a_script_is_reported_with_its_line(engine_path: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("IOR START\ntransferSize=4k\n\nblockSice=16k\nRUN\nIOR STOP\n")
    assert "script line 4 blockSice" in run_rejected_command(engine_path, ["-f", "script"], tmp_path)
    script.write_text("transferSize=4k\nRUN\n")
    assert "no line IOR START" in run_rejected_command(engine_path, ["-f", "script"], tmp_path)


def test_help_lists_every_option_and_is_no_error(engine_path: Path, tmp_path: Path) -> None:
    for word in ("-h", "--help"):
        result = run([str(engine_path), "ior", word], tmp_path)
        assert result.returncode == 0
        for option in ("-a=X", "-Z", "--random-offset-seed=X", "-O summaryFormat=X", "-f FILE", "--sonde-record"):
            assert option in result.stdout


def test_number_with_suffix_after_an_option_sets_no_flag(engine_path: Path, tmp_path: Path) -> None:
    """IOR takes the k of -t4k for the flag -k as well, and the m of -b1m for -m."""
    result = run([str(engine_path), "ior", "-w", "-t4k", "-b1m", "-o", "f"], tmp_path)
    assert result.returncode == 0
    assert "xfersize            : 4096 bytes\nblocksize           : 1 MiB\n" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_title_option_sets_the_title_of_the_plan(engine_path: Path, tmp_path: Path) -> None:
    arguments = ["ior", "-a", "DUMMY", "-o", "f", "--sonde-plan", "--sonde-title", 'the "first" of many']
    result = run([str(engine_path), *arguments], tmp_path)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["title"] == 'the "first" of many'


def test_collective_calls_without_mpiio_are_a_note(engine_path: Path, tmp_path: Path) -> None:
    result = run([str(engine_path), "ior", "-c", "-w", "-t", "4k", "-b", "4k", "-o", "f"], tmp_path)
    assert result.returncode == 0, result.stderr
    assert "-c is for MPIIO and HDF5; with POSIX the calls are independent, as in IOR" in result.stdout + result.stderr
    assert "type                : independent" in result.stdout


@pytest.mark.parametrize("layout", ["JSON", "CSV"])
def test_document_in_a_joint_log_has_no_other_lines(engine_path: Path, tmp_path: Path, layout: str) -> None:
    arguments = ["ior", "-w", "-t", "4k", "-b", "64k", "-o", "f", "-O", f"summaryFormat={layout}"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.run([str(engine_path), *arguments], cwd=tmp_path, stdout=log, stderr=log, check=True)
    assert process.returncode == 0
    text = (tmp_path / "log").read_text()
    assert "sonde:" not in text
    if layout == "JSON":
        assert json.loads(text)["tests"]
    assert "sonde:" in run([str(engine_path), *arguments], tmp_path).stderr, "where errors go elsewhere"
