# SPDX-License-Identifier: Apache-2.0
"""Installs the files of build/release in bare root file systems, each way from nothing, up to the first result.

Usage: tools/install_trials.py [SUITE...]      suites of Debian; default: bookworm trixie
Needs root, debootstrap and a release (make release). Prints a Markdown table with processor and wall times; the
transcripts are in build/install-trials. Each way begins with what `debootstrap --variant=minbase` makes: an overlay
in a mount namespace of its own holds all changes, and both go away with it.
Exit code: 0 each way ended with its result, 1 one did not, 3 something is missing here.
"""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "build" / "release"
WORK = ROOT / "build" / "install-trials"
SUITES = ("bookworm", "trixie")
TIMEOUT_S = 1800
VENV = (
    "apt-get -qq update && apt-get -qq -y install --no-install-recommends python3-venv >/dev/null "
    "&& python3 -m venv /opt/sonde"
)
PIP = "/opt/sonde/bin/pip install --quiet --disable-pip-version-check"


@dataclass(frozen=True)
class InstallMethod:
    """One way of installation: commands of a shell in which /release has the files, and what they must leave."""

    name: str
    commands: str
    result: str  # what the transcript must have


METHODS = (
    InstallMethod(
        "engine tarball, no Python",
        "tar xzf /release/sonde-engine-*-linux-$(uname -m).tar.gz -C /opt && cd /tmp && "
        "/opt/sonde-engine-*/bin/sonde-engine ior -a POSIX -F -t 1m -b 64m -o /tmp/file",
        "Summary of all tests:",
    ),
    InstallMethod(
        "python3-venv, platform wheel",
        f"{VENV} && {PIP} /release/sonde-*-manylinux_2_28_$(uname -m).whl && mkdir /tmp/target && cd /tmp && "
        "/opt/sonde/bin/sonde check /tmp/target && ls sonde-archive/reports/*.html",
        "\nsonde-archive/reports/",
    ),
    InstallMethod(
        "python3-venv, wheel without programs",
        f"{VENV} && {PIP} /release/sonde-*-py3-none-any.whl && mkdir /tmp/run && cd /tmp && "
        "cp /record.ndjson run/record.ndjson && /opt/sonde/bin/sonde report run -o report.html && ls report.html",
        "report.html",
    ),
)


@dataclass(frozen=True)
class Trial:
    """What one way took, and whether it ended with its result."""

    suite: str
    method: InstallMethod
    good: bool
    processor_s: float
    wall_s: float


def find_network_files() -> list[Path]:
    """Returns the files with which this machine reaches package indexes: resolver, settings of apt's downloads."""
    files = [Path("/etc/resolv.conf")]
    files += [path for path in Path("/etc/apt/apt.conf.d").iterdir() if "Acquire::" in path.read_text(encoding="utf-8")]
    return [path for path in files if path.exists()]


def fail(sentence: str) -> None:
    """Ends with exit code 3: this machine lacks something."""
    sys.stderr.write(f"tools/install_trials.py: {sentence}\n")
    raise SystemExit(3)


def make_base(suite: str) -> Path:
    """Returns the bare root file system of a suite; makes it when it is not there yet."""
    base = WORK / suite
    if not (base / "etc" / "debian_version").exists():
        shutil.rmtree(base, ignore_errors=True)
        print(f"Making a bare root file system of {suite}", flush=True)
        with (WORK / f"{suite}-debootstrap.txt").open("w") as log:
            command = ["debootstrap", "--variant=minbase", suite, str(base)]
            if subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=TIMEOUT_S).returncode:
                fail(f"debootstrap of {suite} failed; its output is in {log.name}.")
    return base


def try_method(suite: str, base: Path, method: InstallMethod) -> Trial:
    """Installs one way in a fresh overlay of the base."""
    folder = WORK / "overlay"
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("upper", "work", "root"):
        (folder / part).mkdir(parents=True)
    root = folder / "root"
    copies = "; ".join(f"mkdir -p {root}{file.parent}; cp {file} {root}{file}" for file in find_network_files())
    inner = f"export HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive; {method.commands}"
    certificates = os.environ.get("PIP_CERT", "")  # a copy: a package that is installed may replace the file
    if certificates:
        copies += f"; cp {certificates} {root}/certificates.crt"
        inner = f"export PIP_CERT=/certificates.crt; {inner}"
    script = (
        f"set -e; mount -t overlay overlay -o lowerdir={base},upperdir={folder}/upper,workdir={folder}/work {root}; "
        f"mount -t proc proc {root}/proc; mkdir {root}/release; mount --bind {RELEASE} {root}/release; "
        f"cp {ROOT}/tests/data/records/sonde-0.1.0.ndjson {root}/record.ndjson; {copies}; "
        f"exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot {root} sh -c {shlex.quote(inner)}"
    )
    transcript = WORK / f"{suite}-{method.name.replace(',', '').replace(' ', '-')}.txt"
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with transcript.open("w", encoding="utf-8") as log:
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
        code = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=TIMEOUT_S).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    good = code == 0 and method.result in transcript.read_text(encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    return Trial(suite, method, good, processor, time.monotonic() - start)


def main() -> None:
    """Tries each way in each suite."""
    suites = sys.argv[1:] or list(SUITES)
    if os.geteuid():
        fail("mounting root file systems needs root. Run it as root, for example in a virtual machine.")
    if shutil.which("debootstrap") is None:
        fail("debootstrap is missing. Install the package debootstrap.")
    if not (RELEASE / "SHA256SUMS").exists():
        fail(f"{RELEASE} has no release. Run `make release` first.")
    WORK.mkdir(parents=True, exist_ok=True)
    trials = [try_method(suite, make_base(suite), method) for suite in suites for method in METHODS]
    print("| way | system | processor time | wall time | result |\n|---|---|---|---|---|")
    for trial in trials:
        result = "yes" if trial.good else "no"
        print(f"| {trial.method.name} | {trial.suite} | {trial.processor_s:.1f} s | {trial.wall_s:.0f} s | {result} |")
    raise SystemExit(0 if all(trial.good for trial in trials) else 1)


if __name__ == "__main__":
    main()
