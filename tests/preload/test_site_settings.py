# SPDX-License-Identifier: Apache-2.0
"""Settings for a site: one switch, a stage that only counts, a stage that compares, a summary, rules for programs."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from preload_under_test import ROOT, Preload

PYTHON = os.path.realpath(sys.executable)
MODULES = ROOT / "packaging/modules"
TASK_PROLOG = ROOT / "packaging/slurm/task-prolog-iobuf.sh"
WRITER = """
import os
fd = os.open("data", os.O_RDWR | os.O_CREAT)
for _ in range(2000): os.write(fd, b"x" * 100)
os.lseek(fd, 0, 0)
for _ in range(2000): assert os.read(fd, 100) == b"x" * 100
os.close(fd)
"""

READER = """
import os
fd = os.open("data", os.O_RDWR | os.O_CREAT)
for _ in range(100): os.write(fd, b"x" * 100)
os.fsync(fd)
assert os.pread(fd, 100, 0) == b"x" * 100
os.write(1, b"r")
os.read(0, 1)
assert os.pread(fd, 100, 0) == b"x" * 100
os.close(fd)
"""


def summarize(preload: Preload, folder: Path, **variables: str) -> dict[str, Any]:
    file = folder / "summary.ndjson"
    done = preload.run([PYTHON, "-S", "-c", WRITER], folder, SONDE_IOBUF_SUMMARY=str(file), **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "data").stat().st_size == 200_000
    return read_summary(file)


def read_summary(file: Path) -> dict[str, Any]:
    (line,) = file.read_text(encoding="utf-8").splitlines() if file.exists() else ["{}"]
    return dict(json.loads(line))


def test_counting_stage_buffers_nothing(preload: Preload, tmp_path: Path) -> None:
    summary = summarize(preload, tmp_path, SONDE_IOBUF="count", SLURM_JOB_ID="17")
    assert (summary["stage"], summary["job"], summary["program"]) == ("count", "17", PYTHON)
    assert (summary["files"], summary["buffered"]) == (1, 1)  # would gain
    assert summary["storage_calls"] == summary["calls"] > 3000


def test_comparing_stage_finds_no_difference(preload: Preload, tmp_path: Path) -> None:
    summary = summarize(preload, tmp_path, SONDE_IOBUF="verify", IOBUF_PARAMS="*/data")
    assert (summary["stage"], summary["calls"], summary["differences"]) == ("verify", 4000, 0)


@pytest.mark.parametrize(
    "variables",
    [
        {"SONDE_IOBUF": "off", "IOBUF_PARAMS": "*/data"},
        {"IOBUF_PARAMS": "*/data:not=python*"},
        {"IOBUF_PARAMS": "*/data,%process:only=solver"},
        {"IOBUF_PARAMS": "*/data", "SLURM_PROCID": "3"},
    ],
)
def test_excluded_program_has_no_summary(preload: Preload, tmp_path: Path, variables: dict[str, str]) -> None:
    assert summarize(preload, tmp_path, **variables) == {}


def test_comparing_stage_reports_write_by_other_process(preload: Preload, tmp_path: Path) -> None:
    file = tmp_path / "summary.ndjson"
    variables = {"IOBUF_PARAMS": "*/data,%process:threads=0", "SONDE_IOBUF": "verify", "SONDE_IOBUF_SUMMARY": str(file)}
    with subprocess.Popen(
        [PYTHON, "-S", "-c", READER],
        cwd=tmp_path,
        env=preload.environment(**variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.read(1) == b"r"
        with (tmp_path / "data").open("r+b") as data:
            data.seek(40)
            data.write(b"other")
        errors = reader.communicate(b"x", timeout=60)[1].decode()
    assert reader.returncode == 0
    assert errors.startswith(f"sonde: {tmp_path}/data: at byte 40 storage holds other data than the buffer"), errors
    assert read_summary(file)["differences"] == 1


@pytest.mark.parametrize(
    ("variable", "value", "expected_message"),
    [
        ("SONDE_IOBUF_SUMMARY", "/missing/summary", "SONDE_IOBUF_SUMMARY: /missing/summary cannot be written."),
        ("SONDE_IOBUF_SUMMARY", "summary", 'SONDE_IOBUF_SUMMARY is syslog or a path that begins with "/"; no summary'),
        ("SONDE_IOBUF_LINES", "/missing", "SONDE_IOBUF_LINES: /missing/buffer-"),
        ("SONDE_IOBUF_FILE", "/missing", "the settings file named by SONDE_IOBUF_FILE cannot be read"),
        ("SONDE_IOBUF", "offf", "SONDE_IOBUF is off, count or verify; another value has no effect."),
    ],
)
def test_unusable_variable_is_reported_in_one_line(
    preload: Preload, tmp_path: Path, variable: str, value: str, expected_message: str
) -> None:
    done = preload.run([PYTHON, "-S", "-c", WRITER], tmp_path, IOBUF_PARAMS="*/data", **{variable: value})
    assert done.returncode == 0
    assert done.stderr.startswith(f"sonde: {expected_message}"), done.stderr
    assert done.stderr.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["data"]


def test_long_settings_file_is_reported(preload: Preload, tmp_path: Path) -> None:
    settings = tmp_path / "settings"
    settings.write_text(f"*/data\n#{'x' * 65536}\n*.log:off\n", encoding="utf-8")
    done = preload.run([PYTHON, "-S", "-c", WRITER], tmp_path, SONDE_IOBUF_FILE=str(settings))
    assert done.stderr == (
        "sonde: the settings file named by SONDE_IOBUF_FILE is longer than 64 KiB; the rest of it is not used.\n"
    )


# Some programs write their title over the environment, which the kernel shows as their command line.
OVERWRITE_ENVIRONMENT = """
import ctypes
entries = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
count = 0
while entries[count]:
    ctypes.memset(entries[count], ord("Z"), len(ctypes.string_at(entries[count])))
    count += 1
"""


@pytest.mark.parametrize("variable", ["SONDE_IOBUF_LINES", "SONDE_IOBUF_SUMMARY", "SONDE_TRACE"])
def test_output_survives_overwritten_environment(preload: Preload, tmp_path: Path, variable: str) -> None:
    folder = tmp_path / "output"
    folder.mkdir()
    value = folder / "summary" if variable == "SONDE_IOBUF_SUMMARY" else folder
    command = [PYTHON, "-S", "-c", OVERWRITE_ENVIRONMENT + WRITER]
    done = preload.run(command, tmp_path, IOBUF_PARAMS="*/data", **{variable: str(value)})
    assert (done.returncode, done.stderr) == (0, "")
    assert [bool(file.read_text(encoding="utf-8")) for file in folder.iterdir()] == [True]


# Each test mounts its file in a new mount namespace.
ENTER_ETC = 'mount --bind "$1" /etc && exec "${@:2}"'
ENTER_LOG = 'mount -t tmpfs none /dev && touch /dev/log && mount --bind "$1" /dev/log && exec "${@:2}"'


def run_inside(preload: Preload, enter: str, mounted: Path, **variables: str) -> str:
    """The writer's output on standard error."""
    command = ["unshare", "--mount", "--propagation", "private", "bash", "-c", enter, "enter", str(mounted), "env"]
    command += [f"LD_PRELOAD={preload.library}", *(f"{name}={value}" for name, value in variables.items())]
    command += [PYTHON, "-S", "-c", WRITER]
    done = subprocess.run(command, cwd=mounted.parent, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a file of root, and a mount")
@pytest.mark.parametrize(
    ("settings_text", "file_mode", "params", "expected_calls", "expected_message"),
    [
        ("# site\n*/data", 0o644, "", 4000, ""),
        ("%locked:off", 0o644, "*/data", None, ""),
        ("%locked:off:only=solver", 0o644, "*/data", 4000, ""),
        (
            "%locked:size=2M",
            0o644,
            "*/data:size=4M",
            4000,
            "site has set this option in /etc/sonde/iobuf.conf; ignored: size=4M",
        ),
        ("*/data", 0o666, "", None, "/etc/sonde/iobuf.conf is not used: it must be a file that only root can write."),
    ],
)
def test_settings_file_of_site_comes_first(
    preload: Preload,
    tmp_path: Path,
    settings_text: str,
    file_mode: int,
    params: str,
    expected_calls: int | None,
    expected_message: str,
) -> None:
    etc = tmp_path / "etc"
    (etc / "sonde").mkdir(parents=True)
    shutil.copy("/etc/ld.so.cache", etc)
    (etc / "sonde/iobuf.conf").write_text(f"{settings_text}\n", encoding="utf-8")
    (etc / "sonde/iobuf.conf").chmod(file_mode)
    file = tmp_path / "summary.ndjson"
    errors = run_inside(preload, ENTER_ETC, etc, SONDE_IOBUF_SUMMARY=str(file), IOBUF_PARAMS=params)
    assert read_summary(file).get("calls") == expected_calls, errors
    assert (expected_message in errors) if expected_message else errors == ""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a mount over /dev/log")
def test_summary_reaches_system_log(preload: Preload, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(tmp_path / "log"))
        log.settimeout(10)
        assert (
            run_inside(preload, ENTER_LOG, tmp_path / "log", SONDE_IOBUF_SUMMARY="syslog", IOBUF_PARAMS="*/data") == ""
        )
        priority, line = log.recv(8192).decode().split(": ", 1)
    assert priority == "<14>sonde-iobuf"
    assert json.loads(line)["calls"] == 4000


LMOD = "/usr/share/lmod/lmod/libexec/lmod"
LOAD = """
module() { eval "$("$LMOD_CMD" bash "$@")"; }
module load sonde-iobuf && echo "$LD_PRELOAD $IOBUF_PARAMS"
module unload sonde-iobuf && echo "${LD_PRELOAD-none} ${IOBUF_PARAMS-none}"
"""


@pytest.mark.skipif(not os.access(LMOD, os.X_OK), reason="Lmod is not installed")
@pytest.mark.parametrize(("module_file", "version"), [("sonde-iobuf.lua", "1.lua"), ("sonde-iobuf.tcl", "1")])
def test_module_sets_environment_and_removes_it(tmp_path: Path, module_file: str, version: str) -> None:
    library = tmp_path / "lib/python3.12/site-packages/sonde/lib/libsonde-preload.so"
    for path, text in (
        (library, ""),
        (tmp_path / "modules/sonde-iobuf" / version, (MODULES / module_file).read_text()),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    variables = {"MODULEPATH": str(tmp_path / "modules"), "SONDE_PREFIX": str(tmp_path), "LMOD_CMD": LMOD}
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **variables}
    done = subprocess.run(["bash", "-c", LOAD], env=environment, capture_output=True, text=True, check=False)
    # The library is an empty file here: the loader says so, and nothing is preloaded.
    assert done.stdout.splitlines() == [f"{library} *:auto", "none none"], done.stderr


@pytest.mark.parametrize(
    ("variables", "printed"),
    [
        ({}, ["LD_PRELOAD=LIBRARY", "IOBUF_PARAMS=*:auto", "SONDE_IOBUF_SUMMARY=syslog"]),
        ({"IOBUF_PARAMS": "*.dat", "SONDE_IOBUF_SUMMARY": "/f"}, ["LD_PRELOAD=LIBRARY"]),
        ({"SONDE_IOBUF": "off"}, []),
        ({"SONDE_IOBUF_LIBRARY": "/missing"}, []),
    ],
)
def test_task_prolog_prints_variables(tmp_path: Path, variables: dict[str, str], printed: list[str]) -> None:
    library = tmp_path / "library.so"
    library.touch()
    environment = {"SONDE_IOBUF_LIBRARY": str(library), **variables}
    output = subprocess.run(
        ["/bin/sh", TASK_PROLOG], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert output.splitlines() == [f"export {line}".replace("LIBRARY", str(library)) for line in printed]
