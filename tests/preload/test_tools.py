# SPDX-License-Identifier: Apache-2.0
"""Whole tools leave the same files and say the same under the library as without it."""

from __future__ import annotations

import importlib.util
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from preload_under_test import Plain, Preload

Program = Callable[[str], Path]
HERE = Path(__file__).resolve().parent

# Small pages for everything; what people get; pages that go around the kernel's cache.
PARAMS = {
    "small": "*:size=4k:count=8:prefetch=2:alone",
    "usual": "*",
    "auto": "*:auto",
    "alone": "*:alone",
    "direct": "*:size=64k:count=4:direct:alone",
}
every_setting = pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS.keys())


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few folders with files of many sizes: text, noise, holes, nothing, links."""
    root = tmp_path_factory.mktemp("given") / "tree"
    chance = random.Random(5)
    for number in range(60):
        file = root / f"folder{number % 7}" / f"file{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        content = b"".join(b"%d %d\n" % (line, chance.randrange(10**9)) for line in range(chance.randrange(900)))
        file.write_bytes(content if number % 3 else chance.randbytes(chance.randrange(300_000)))
    (root / "empty").touch()
    (root / "link").symlink_to("folder1/file1")
    with (root / "holes").open("wb") as holes:
        holes.seek(3_000_000)
        holes.write(b"end")
    return root


def require_same_files(preload: Preload, run_bare: Plain, folder: Path, script: str, params: str, *needed: str) -> None:
    """`script` of the shell, in one new folder without and in another with the library."""
    for tool in needed:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not on PATH")
    command = ["sh", "-e", "-c", script]
    without = run_bare(command, folder)
    assert without.code == 0, without
    lines = folder / "lines"
    lines.mkdir()
    under = preload.outcome(command, folder / "under", IOBUF_PARAMS=params, SONDE_IOBUF_LINES=str(lines))
    assert (under.code, under.out) == (without.code, without.out)
    assert under.files == without.files
    assert any('"type":"buffer"' in path.read_text(encoding="utf-8") for path in lines.iterdir())


@every_setting
def test_buffered_tar_writes_the_same_files(
    preload: Preload, run_bare: Plain, tmp_path: Path, tree: Path, params: str
) -> None:
    script = (
        f"tar -C {tree.parent} -cf a.tar tree; mkdir out; tar -C out -xf a.tar; tar --compare -C {tree.parent} -f a.tar"
    )
    require_same_files(
        preload,
        run_bare,
        tmp_path,
        f"{script}; tar -rf a.tar -C {tree} empty; tar -tf a.tar; gzip -n a.tar",
        params,
        "tar",
        "gzip",
    )


@every_setting
def test_buffered_cp_and_cat_write_the_same_files(
    preload: Preload, run_bare: Plain, tmp_path: Path, tree: Path, params: str
) -> None:
    script = f"""
        cp -a {tree} copy
        cp --sparse=always copy/holes sparse; cp --reflink=never copy/folder1/* .
        cat copy/folder*/* > all; mv all moved; stat -c %s moved; sha256sum moved
        diff -r {tree} copy; cmp sparse copy/holes"""
    require_same_files(preload, run_bare, tmp_path, script, params, "cp", "diff")


@every_setting
def test_buffered_dd_writes_the_same_files(
    preload: Preload, run_bare: Plain, tmp_path: Path, tree: Path, params: str
) -> None:
    script = f"""
        dd if={tree}/holes of=a bs=1000 status=none
        dd if={tree}/folder1/file1 of=a bs=37 seek=100 conv=notrunc status=none
        dd if={tree}/folder2/file9 of=a bs=8k seek=3 conv=notrunc,fsync status=none
        dd if=a of=b bs=100003 skip=1 status=none
        dd if=a of=b bs=512 count=1000 oflag=append conv=notrunc status=none
        dd if=a bs=777 2>/dev/null | dd of=c ibs=100 obs=5000 status=none
        truncate -s 1234567 c"""
    require_same_files(preload, run_bare, tmp_path, script, params, "dd")


@every_setting
def test_buffered_sort_writes_the_same_files(
    preload: Preload, run_bare: Plain, tmp_path: Path, tree: Path, params: str
) -> None:
    """With little memory sort uses temporary files."""
    script = f"""
        export LC_ALL=C; cat {tree}/folder*/* > all
        sort -S 64k --batch-size=4 -T . all -o sorted; sort -c sorted; rm all"""
    require_same_files(preload, run_bare, tmp_path, script, params, "sort")


@every_setting
def test_buffered_rsync_writes_the_same_files(
    preload: Preload, run_bare: Plain, tmp_path: Path, tree: Path, params: str
) -> None:
    script = f"""
        rsync -a {tree}/ copy; echo more >> copy/folder1/file1
        rsync -a --no-whole-file --checksum --inplace {tree}/ copy; diff -r {tree} copy"""
    require_same_files(preload, run_bare, tmp_path, script, params, "rsync", "diff")


@every_setting
def test_buffered_git_writes_the_same_files(
    preload: Preload, run_bare: Plain, tmp_path: Path, tree: Path, params: str
) -> None:
    fixed = "GIT_AUTHOR_DATE='2020-01-01 00:00:00 +0000' GIT_COMMITTER_DATE='2020-01-01 00:00:00 +0000'"
    script = f"""
        export HOME=$PWD {fixed}
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        git init -q one; cp -a {tree}/. one; cd one; git add -A; git commit -qm first
        echo more >> empty; git rm -q --cached holes; git commit -qam second; git repack -qad; cd ..
        git clone -q --no-local one two; cd two; git fsck --strict; git checkout -q HEAD~1; git rev-parse HEAD; cd ..
        git -C two fsck --connectivity-only; git -C two log --stat --format=%H; rm -rf one two/.git"""
    require_same_files(preload, run_bare, tmp_path, script, params, "git")


SOURCES = {
    "sum.h": "long sum(const int* values, int count);\n",
    "sum.c": '#include "sum.h"\nlong sum(const int* v, int n) { long s = 0; while (n-- > 0) s += *v++; return s; }\n',
    "main.c": '#include <stdio.h>\n#include "sum.h"\nint main(void) { int v[] = {1}; printf("%ld\\n", sum(v, 1)); }\n',
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of three files."""
    source_folder = tmp_path_factory.mktemp("sources")
    for name, text in SOURCES.items():
        (source_folder / name).write_text(text, encoding="ascii")
    return source_folder


@every_setting
def test_compiler_produces_the_same_files(
    preload: Preload, run_bare: Plain, tmp_path: Path, sources: Path, params: str
) -> None:
    script = f"""
        cp {sources}/* .
        for one in sum main; do gcc -O2 -save-temps=obj -c $one.c; done
        ar rcsD libsum.a sum.o; gcc -o program main.o -L. -lsum; ./program; gcc -O2 -flto -o other sum.c main.c; ./other
        rm -f other"""
    require_same_files(preload, run_bare, tmp_path, script, params, "gcc", "ar")


@pytest.fixture(scope="module")
def fortran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with units of all kinds."""
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is not on PATH")
    folder = tmp_path_factory.mktemp("fortran")
    command: list[str | Path] = ["gfortran", "-O1", "-J", folder, "-o", folder / "units", HERE / "programs/units.f90"]
    subprocess.run(command, check=True)
    return folder / "units"


@every_setting
def test_buffered_fortran_program_writes_the_same_files(
    preload: Preload, run_bare: Plain, tmp_path: Path, fortran: Path, params: str
) -> None:
    require_same_files(preload, run_bare, tmp_path, str(fortran), params)


@every_setting
def test_buffered_sqlite_writes_the_same_files(preload: Preload, run_bare: Plain, tmp_path: Path, params: str) -> None:
    script = """
        sqlite3 base <<'END'
            CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c REAL); CREATE INDEX i ON t (b);
            WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 4000)
                INSERT INTO t SELECT x, printf('%08d', x * 7919 % 10007), x / 3.0 FROM n;
            BEGIN; DELETE FROM t WHERE a % 3 = 0; ROLLBACK; DELETE FROM t WHERE a % 5 = 0;
            PRAGMA journal_mode = WAL; UPDATE t SET c = c + 1 WHERE a % 2 = 0; PRAGMA wal_checkpoint(TRUNCATE);
            PRAGMA journal_mode = DELETE; VACUUM;
        END
        sqlite3 base 'PRAGMA integrity_check; SELECT count(*), sum(a), round(sum(c), 3), min(b) FROM t'
        sqlite3 base .dump | sha256sum; rm -f base*"""
    require_same_files(preload, run_bare, tmp_path, script.replace("        END", "END"), params, "sqlite3")


@pytest.mark.parametrize("engine", ["psync", "sync", "pvsync2", "mmap"])
@pytest.mark.parametrize("params", [PARAMS["small"], PARAMS["direct"]], ids=["small", "direct"])
def test_fio_verifies_its_writes(preload: Preload, tmp_path: Path, params: str, engine: str) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not on PATH")
    for pattern in ("write", "randrw"):
        job = f"--name=a --ioengine={engine} --rw={pattern} --bsrange=512-20k --bs_unaligned --size=2m --verify=crc32c"
        more = "--verify_fatal=1 --do_verify=1 --randrepeat=1 --fallocate=none --thread=0 --verify_backlog=50"
        done = preload.run(["fio", *job.split(), *more.split()], tmp_path, IOBUF_PARAMS=params)
        assert done.returncode == 0, done.stdout + done.stderr
        (tmp_path / "a.0.0").unlink()


@pytest.mark.parametrize(
    "params",
    [PARAMS["usual"], PARAMS["small"], PARAMS["direct"]],
    ids=["usual", "small", "direct"],
)
@pytest.mark.parametrize("engine", ["libaio", pytest.param("io_uring", marks=pytest.mark.nightly)])
def test_fio_verifies_its_asynchronous_writes(preload: Preload, tmp_path: Path, params: str, engine: str) -> None:
    """Rings of the kernel work without calls that could be seen: whoever has one is let go."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not on PATH")
    job = f"--name=a --ioengine={engine} --iodepth=8 --rw=randrw --bsrange=512-20k --bs_unaligned --size=2m"
    more = "--verify=crc32c --verify_fatal=1 --do_verify=1 --randrepeat=1 --fallocate=none --thread=0"
    command = ["fio", *job.split(), *more.split()]
    done = preload.run(command, tmp_path, IOBUF_PARAMS=params)
    if done.returncode != 0:
        (tmp_path / "a.0.0").unlink(missing_ok=True)
        if subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode != 0:
            pytest.skip(f"fio has no engine {engine} that works here")
    assert done.returncode == 0, done.stdout + done.stderr


HDF5 = """
import h5py, numpy as np
with h5py.File("data.h5", "w", libver="latest", track_order=True) as made:
    grid = made.create_dataset("grid", (200, 300), chunks=(20, 30), maxshape=(None, 300), compression="gzip")
    flat = made.create_dataset("flat", (5000,), dtype="i4", track_times=False)
    for row in range(0, 200, 7):
        grid[row] = np.arange(300) * row
    for at in range(0, 5000, 11):
        flat[at] = at
    grid.resize(260, axis=0)
    made.attrs["name"] = "x" * 1000
with h5py.File("data.h5", "r+") as given:
    given["grid"][250] = 7
    print(given["grid"][...].sum(), given["flat"][...].sum(), given.attrs["name"][:3])
    given.move("flat", "moved/flat")
with h5py.File("data.h5") as given:
    print(sorted(given), given["moved/flat"][::500].tolist())
import os; os.unlink("data.h5")
"""
NETCDF = """
import netCDF4, numpy as np
for kind in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF4_CLASSIC"):
    with netCDF4.Dataset("data.nc", "w", format=kind) as made:
        made.createDimension("time", None)
        made.createDimension("x", 100)
        variables = [made.createVariable(name, "f8", ("time", "x")) for name in ("u", "v")]
        for step in range(150):
            for variable in variables:
                variable[step] = np.arange(100) * step
    with netCDF4.Dataset("data.nc", "a") as given:
        given["u"][30] = -1
        given.title = "changed"
    with netCDF4.Dataset("data.nc") as given:
        print(kind, given["u"][:].sum(), given["v"][:].sum(), given["u"][149, 99], given.title)
    if kind.startswith("NETCDF4"):
        import os; os.unlink("data.nc")
"""


@pytest.mark.parametrize(("package", "program_text"), [("h5py", HDF5), ("netCDF4", NETCDF)], ids=["h5py", "netCDF4"])
@every_setting
def test_buffered_python_packages_give_the_same_outcome(
    preload: Preload, run_bare: Plain, tmp_path: Path, params: str, package: str, program_text: str
) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed for {sys.executable}")
    without = run_bare([sys.executable, "-c", program_text], tmp_path)
    assert without.code == 0
    assert preload.outcome([sys.executable, "-c", program_text], tmp_path / "under", IOBUF_PARAMS=params) == without


@pytest.mark.parametrize(
    "module", ["test_fileio", "test_file", "test_largefile", "test_mmap", "test_fcntl", "test_sqlite3"]
)
def test_modules_of_python_itself(preload: Preload, tmp_path: Path, module: str) -> None:
    """Runs the test modules of Python that take about a second; compares the result of each test."""
    python = os.path.realpath(sys.executable)
    command = [python, "-m", "test", "-v", "--tempdir", ".", module]

    def outcomes(variables: dict[str, str]) -> list[str]:
        done = preload.run(command, tmp_path, **variables)
        result_lines = [line for line in (done.stdout + done.stderr).splitlines() if " ... " in line]
        # Reasons of skips have names of files with the number of the process.
        return sorted(re.sub(r"@test_\d+_tmp", "@test_tmp", line).split(" in ")[0] for line in result_lines)

    without = outcomes({"LD_PRELOAD": ""})
    if not without:
        pytest.skip(f"Python comes without {module} here")
    assert outcomes({"IOBUF_PARAMS": PARAMS["small"]}) == without
