# SPDX-License-Identifier: Apache-2.0
"""What the real tools accept is accepted, or the reference page says that it is refused: every option of IOR, mdtest
and md-workbench 4.1 (their tables of options, all interfaces) is tried, and held against its row of the page.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[3] / "docs" / "reference"

# Options of interfaces that are built into IOR where their libraries are, with a value where they take one.
POSIX = """--posix.odirect --posix.rangelocks --posix.lustre.stripecount=4 --posix.lustre.stripesize=1m
--posix.lustre.startost=1 --posix.lustre.ignorelocks --posix.lustre.pool=p --posix.beegfs.NumTargets=4
--posix.beegfs.ChunkSize=1m --posix.gpfs.hintaccess --posix.gpfs.releasetoken=1 --posix.gpfs.finegrainwritesharing
--posix.gpfs.finegrainreadsharing --posix.gpfs.createsharing --gpuDirect"""
BUILT_IN = """--dummy.delay-create=1 --dummy.delay-close=1 --dummy.delay-sync=1 --dummy.delay-xfer=1
--dummy.delay-only-rank0 --mpiio.hintsFileName=hints --mpiio.showHints --mpiio.preallocate --mpiio.useStridedDatatype
--mpiio.useFileView --hdf5.hintsFileName=hints --hdf5.showHints --hdf5.collectiveMetadata --hdf5.individualDataSets
--hdf5.setAlignment=8 --hdf5.noFill --hdf5.chunkSize=8 --ncmpi.hintsFileName=hints --ncmpi.showHints
--ncmpi.preallocate --ncmpi.useStridedDatatype --ncmpi.useFileView --mmap.madv_dont_need --mmap.madv_pattern
--aio.max-pending=8
--aio.granularity=4"""
OTHER_BACKEND_OPTIONS = """--dfs.pool=p --dfs.group=g --dfs.cont=c --dfs.chunk_size=1m
--dfs.oclass=S1 --dfs.dir_oclass=S1 --dfs.prefix=p --dfs.destroy --rados.user=u --rados.conf=c --rados.pool=p
--cephfs.user=u --cephfs.conf=c --cephfs.prefix=p --cephfs.remote_prefix=p --cephfs.olazy --hdfs.odirect
--hdfs.user=u --hdfs.name_node=n --hdfs.replicas=1 --hdfs.block_size=1m --ime.odirect --libnfs.url=u
--chfs.chunk_size --finchfs.chunk_size --S3-4c.user=u --S3-4c.bucket-name=b --S3-curl.bucket=b --S3-curl.access-key=k
--S3-curl.secret-key=k --S3-curl.host=h --S3-curl.region=r --S3-curl.use-ssl --S3-curl.timeout=1 --S3-curl.verify-ssl
--S3-libs3.bucket-per-file --S3-libs3.bucket-name-prefix=p --S3-libs3.dont-suffix-bucket --S3-libs3.s3-compatible
--S3-libs3.use-ssl --S3-libs3.host=h --S3-libs3.secret-key=k --S3-libs3.access-key=k --S3-libs3.region=r
--S3-libs3.location=l"""
INTERFACES = f"{POSIX} {BUILT_IN} {OTHER_BACKEND_OPTIONS}"
IOR = """-a=POSIX -A=1 -b=1m -c -C -d=0 -D=1 -e -E -F -g -G=5 -i=1 -j=1 -k -K -l=offset --dataPacketType=o -m -M=1%
-N=1 -o=f -Q=1 -r -R -s=1 -t=4k -T=1 -u -v -w -W -x -X=1 -y -Y -z -Z --collective --randomPrefill=64k
--random-offset-seed=5 --warningAsErrors --dryRun"""
DIRECTIVES = """api=POSIX summaryFile=s saveRankPerformanceDetailsCSV=r savePerOpDataCSV=p summaryFormat=JSON
refNum=1 debug=1 platform=p testFile=f dualMount=1 allocateBufferOnGPU=1 GPUid=1 GPUDirect=1
deadlineForStonewalling=1 stoneWallingWearOut=0 stoneWallingWearOutIterations=1 stoneWallingStatusFile=s
maxTimeDuration=1 minTimeDuration=1 outlierThreshold=1 numNodes=1 numTasks=1 numTasksOnNode0=1 repetitions=1
interTestDelay=0 interIODelay=1 readFile=1 writeFile=1 filePerProc=1 taskPerNodeOffset=1 reorderTasksConstant=1
reorderTasksRandom=1 reorderTasksRandomSeed=1 reorderTasks=1 checkWrite=1 checkRead=0 keepFile=1 keepFileWithError=1
multiFile=1 warningAsErrors=1 segmentCount=1 blockSize=1m transferSize=4k singleXferAttempt=1 intraTestBarriers=1
verbose=1 collective=0 setTimeStampSignature=1 dataPacketType=o uniqueDir=1 useExistingTestFile=1 fsyncPerWrite=1
fsync=1 randomOffset=1 memoryPerTask=1m memoryPerNode=1% summaryAlways=1 useO_DIRECT=1"""
MDTEST = """-a=POSIX -b=1 -d=m -B=1 -C -T -E -r -U -D -e=0 -f=1 -F -g -G=1 -i=1 -I=1 -k -l=1 -L -n=4 -N=1 -p=0 -P
--print-all-procs -R --random-seed=1 -s=1 -S -c -t -u -v -V=1 -w=8 -W=1 -x=status -X --verify-read --verify-write -y
-Y -z=0 -Z --dataPacketType=o --run-cmd-before-phase=true --run-cmd-after-phase=true --allocateBufferOnGPU=1
--GPUid=1 --warningAsErrors --saveRankPerformanceDetails=r --savePerOpDataCSV=p --showRankStatistics"""
MD_WORKBENCH = """-O=1 -a=POSIX -I=10 -L=file -P=10 -D=2 -G=1 -o=m -q -S=8 -R=1 -t=0 -T -1 -2 -3 -w=1 -W -X -v
--offset=1 --api=POSIX --obj-per-proc=10 --latency=f --latency-all --precreate-per-set=10 --data-sets=2 --quiet
--object-size=8 --iterations=1 --waiting-time=0 --adaptive-waiting --run-precreate --run-benchmark --run-cleanup
--stonewall-timer=1 --stonewall-wear-out --verify-read --dataPacketType=o --allocateBufferOnGPU=1 --GPUid=1
--start-item=1 --print-detailed-stats --read-only --ignore-precreate-errors --process-reports --verbose
--run-info-file=i"""
# What an option needs beside it, in the real tool too.
REQUIRED_OPTIONS = {
    "ior": {"-c": "-a MPIIO", "--collective": "-a MPIIO", "-R": "-w", "--randomPrefill": "-z -b 1m", "-y": "-F"}
    | {"allocateBufferOnGPU": "-O GPUid=0"}
    | dict.fromkeys(("GPUDirect", "--gpuDirect"), "-O allocateBufferOnGPU=3 -O GPUid=0")
    | {"stoneWallingStatusFile": "-k -r"},
    "mdtest": {"-X": "-w 8 -e 8 -n 2", "--verify-read": "-w 8 -e 8 -n 2", "-I": "-n 0", "-W": "-n 2", "-k": "-n 2"}
    | {"--warningAsErrors": "-C -n 2"},
    "md-workbench": {},
}
CASES = [
    *(("ior", option) for option in f"{IOR} {INTERFACES}".split()),
    *(("ior", directive) for directive in DIRECTIVES.split()),
    *(("mdtest", option) for option in f"{MDTEST} {INTERFACES}".split()),
    *(("md-workbench", option) for option in f"{MD_WORKBENCH} {INTERFACES}".split()),
]


def find_row(tool: str, option: str) -> str:
    """The page's table row of an option; a row may cover several options (`--dfs.*`)."""
    options = (PAGES / f"{tool}.md").read_text(encoding="utf-8").partition("## Options\n")[2]
    for line in options.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        option_names = [word for cell in cells[:-1] for word in re.findall(r"`([^`]+)`", cell)]
        if any(option == word or (word.endswith(".*") and option.startswith(word[:-1])) for word in option_names):
            return cells[-1]
    return ""


@pytest.mark.parametrize("tool", ["ior", "mdtest", "md-workbench"])
def test_every_option_of_the_peer_is_accepted_or_refused_on_its_page(
    tool: str, engine_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "hints").write_text("")
    wrong = []
    for _, option in (case for case in CASES if case[0] == tool):
        name = option.partition("=")[0]
        row_text = find_row(tool, name)
        arguments = [option] if name.startswith("-") else ["-O", option]
        command = [str(engine_path), tool, *arguments, *REQUIRED_OPTIONS[tool].get(name, "").split(), "--sonde-plan"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        if not row_text:
            wrong.append(f"{name}: not on the page")
        elif (done.returncode == 2) != row_text.startswith("refused"):
            wrong.append(f"{name}: the page says {row_text!r}; exit code {done.returncode} {done.stderr.strip()}")
        elif done.returncode == 2 and done.stderr.count("\n") != 1:
            wrong.append(f"{name}: refused in more than one sentence")
    assert not wrong, "\n".join(wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["hints"]


@pytest.mark.parametrize(
    "arguments", ["ior -b 4k -t 4k -w -k -o", "mdtest -n 2 -F -C -d", "md-workbench -1 -D 1 -P 1 -I 1 -o"]
)
def test_name_that_is_not_utf8_is_refused(arguments: str, engine_path: Path, tmp_path: Path) -> None:
    """A plan could only hold another name, and the data would be written there."""
    command = [os.fsencode(engine_path), *map(os.fsencode, arguments.split()), b"x\xcd\xff"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    (sentence,) = done.stderr.decode().splitlines()
    assert "not UTF-8" in sentence
    assert list(tmp_path.iterdir()) == []
