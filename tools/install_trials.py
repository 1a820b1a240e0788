# SPDX-License-Identifier: Apache-2.0
"""Installs the files of a release in bare root file systems, each way from nothing, up to the first result.

Usage: tools/install_trials.py [--machine MACHINE] [--release DIR] [--only TEXT] [SUITE...]
       suites of Debian; default: all in which a way is tried. --only: ways whose name contains TEXT
Needs root, debootstrap and a release (make release). Prints a Markdown table with processor and wall times; the
transcripts are in build/install-trials. Each way begins with what `debootstrap --variant=minbase` makes: an overlay
in a mount namespace of its own holds all changes, and both go away with it. Systems of another machine run in a user
namespace in which qemu-user-static is registered for their programs, so that nothing is registered outside.
Exit code: 0 each way ended with its result, 1 one did not, 3 something is missing here.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
WORK_FOLDER = ROOT / "build" / "install-trials"
DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
TIMEOUT_S = 3600
# Which programs qemu runs: those whose first bytes say ELF, 64 bits, little-endian, and this machine.
ELF_MACHINES = {"x86_64": r"\x3e", "aarch64": r"\xb7"}
VENV = (
    "apt-get -qq update && apt-get -qq -y install --no-install-recommends python3-venv >/dev/null "
    "&& python3 --version && python3 -m venv /opt/sonde"
)
PIP = "/opt/sonde/bin/pip install --quiet --disable-pip-version-check"


@dataclass(frozen=True)
class InstallMethod:
    """One way of installation: commands of a shell in which /release has the files, and what they must leave."""

    name: str
    suites: tuple[str, ...]
    commands: str
    result: str  # what the transcript must have


METHODS = (
    InstallMethod(
        "engine tarball, no Python",
        ("bullseye", "bookworm", "trixie"),
        "tar xzf /release/sonde-engine-*-linux-$(uname -m).tar.gz -C /opt && cd /tmp && "
        "/opt/sonde-engine-*/bin/sonde-engine ior -a POSIX -F -t 1m -b 64m -o /tmp/file",
        "Summary of all tests:",
    ),
    InstallMethod(
        "python3-venv, platform wheel",
        ("bookworm", "trixie"),
        f"{VENV} && {PIP} /release/sonde-*-manylinux_2_28_$(uname -m).whl && mkdir /tmp/target && cd /tmp && "
        "/opt/sonde/bin/sonde check /tmp/target && ls sonde-archive/reports/*.html",
        "\nsonde-archive/reports/",
    ),
    InstallMethod(
        "python3-venv, wheel without programs",
        ("bookworm", "trixie", "sid"),
        f"{VENV} && {PIP} /release/sonde-*-py3-none-any.whl && mkdir /tmp/run && cd /tmp && "
        "cp /record.ndjson run/record.ndjson && /opt/sonde/bin/sonde report run -o report.html && ls report.html",
        "report.html",
    ),
    InstallMethod(
        "sources, make demo",
        ("bookworm", "trixie"),
        "apt-get -qq update && apt-get -qq -y install --no-install-recommends make >/dev/null && "
        "tar xzf /release/sonde-[0-9]*.[0-9].tar.gz -C /opt && cd /opt/sonde-* && make demo",
        "\nReport  sonde-archive/reports/",
    ),
    InstallMethod(
        "Debian package from the sources",
        ("bookworm", "trixie"),
        "apt-get -qq update && apt-get -qq -y install --no-install-recommends dpkg-dev lintian >/dev/null && "
        "tar xzf /release/sonde-[0-9]*.[0-9].tar.gz -C /opt && cd /opt/sonde-* && cp -r packaging/debian debian && "
        "apt-get -qq -y build-dep --no-install-recommends . >/dev/null && "
        "{ dpkg-buildpackage -us -uc -b >../build.log || "
        "{ grep -m 9 -A 9 -E 'FAILED|error:' ../build.log; exit 1; }; } && "
        "lintian --fail-on error,warning ../*.changes && apt-get -qq -y install ../sonde-engine_*.deb >/dev/null && "
        "sonde-engine ior -a POSIX -F -t 1m -b 64m -o /tmp/file",
        "Summary of all tests:",
    ),
)


@dataclass(frozen=True)
class BareSystem:
    """A root file system that debootstrap makes from a suite for an architecture."""

    suite: str
    machine: str

    @property
    def name(self) -> str:
        """As the table and the transcripts call it."""
        return self.suite if self.machine == os.uname().machine else f"{self.suite}-{self.machine}"

    @property
    def base(self) -> Path:
        """Its root file system, which no trial changes."""
        return WORK_FOLDER / self.name


@dataclass(frozen=True)
class InstallTrial:
    """Result of one installation method: its duration, and whether it succeeded."""

    system: BareSystem
    method: InstallMethod
    good: bool
    processor_s: float
    wall_s: float


def find_network_files() -> dict[Path, Path]:
    """Returns the files with which this machine reaches package indexes (resolver, settings of apt's downloads), and
    where a bare system gets them. Those of apt get another name: a package that is installed may bring a file of the
    same one, and dpkg would ask which to keep."""
    settings = [path for path in Path("/etc/apt/apt.conf.d").iterdir() if "Acquire::" in path.read_text("utf-8")]
    files = {Path("/etc/resolv.conf"): Path("/etc/resolv.conf")}
    files |= {path: path.with_name(f"trial-{path.name}") for path in settings}
    return {path: copy for path, copy in files.items() if path.exists()}


def exit_with_error(sentence: str) -> NoReturn:
    """Ends with exit code 3: this machine lacks something."""
    sys.stderr.write(f"tools/install_trials.py: {sentence}\n")
    raise SystemExit(3)


def write_chroot_lines(architecture: str, root_folder: Path, shell_command: str, folder: Path) -> str:
    """Returns lines of a shell that run a command in the root file system; `folder` holds two pipes.

    For another machine they make a user namespace with a binfmt_misc of its own. The mounts are made before, because a
    file system that is mounted in a user namespace has no devices.
    """
    chroot = f"env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot {root_folder} sh -c {shlex.quote(shell_command)}"
    if architecture == os.uname().machine:
        return f"exec {chroot}"
    magic = rf"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00{ELF_MACHINES[architecture]}\x00"
    mask = r"\xff\xff\xff\xff\xff\xff\xff\x00" + r"\xff" * 8 + r"\xfe\xff\xff\xff"
    # F: the kernel opens the emulator now, so that the root file system need not have it.
    registration = f":emulated:M::{magic}:{mask}:{find_emulator(architecture)}:F"
    inside = (
        "mount -t binfmt_misc none /proc/sys/fs/binfmt_misc; "
        f"printf %s {shlex.quote(registration)} >/proc/sys/fs/binfmt_misc/register; exec {chroot}"
    )
    waiting = f"echo >{folder}/made; read _ <{folder}/mapped; exec sh -ec {shlex.quote(inside)}"
    return (
        f"mkfifo {folder}/made {folder}/mapped; unshare --user --mount sh -c {shlex.quote(waiting)} & "
        f"read _ <{folder}/made; echo 0 0 65536 >/proc/$!/uid_map; echo 0 0 65536 >/proc/$!/gid_map; "
        f"echo >{folder}/mapped; wait $!"
    )


def find_emulator(architecture: str) -> str:
    """Returns the static emulator of programs of that machine."""
    emulator = shutil.which(f"qemu-{architecture}-static")
    if emulator is None:
        exit_with_error(
            f"qemu-{architecture}-static is missing, which runs programs of {architecture}. Install qemu-user-static."
        )
    return emulator


def run_in_namespace(shell_script: str, transcript_file: Path) -> int:
    """Runs lines of a shell with mounts of their own; returns the exit code."""
    with transcript_file.open("a", encoding="utf-8") as log:
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", shell_script]
        return subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=TIMEOUT_S).returncode


def make_base(system: BareSystem) -> None:
    """Makes the bare root file system unless it exists."""
    base, ready = system.base, system.base.with_suffix(".ready")
    if ready.exists():
        return
    shutil.rmtree(base, ignore_errors=True)
    sys.stderr.write(f"Making a bare root file system of {system.name}\n")
    transcript = WORK_FOLDER / f"{system.name}-debootstrap.txt"
    transcript.unlink(missing_ok=True)
    foreign = ["--foreign"] if system.machine != os.uname().machine else []
    command = ["debootstrap", f"--arch={DEBIAN_NAMES[system.machine]}", *foreign, "--variant=minbase", system.suite]
    code = run_in_namespace(shlex.join([*command, str(base)]), transcript)
    if code == 0 and foreign:
        with tempfile.TemporaryDirectory(dir=WORK_FOLDER) as folder:
            # As in a container: devices are there from the first stage, and none can be made in the namespace.
            stage = "container=lxc /debootstrap/debootstrap --second-stage"
            second = write_chroot_lines(system.machine, base, stage, Path(folder))
            code = run_in_namespace(f"mount -t proc proc {base}/proc; {second}", transcript)
    if code:
        exit_with_error(f"debootstrap of {system.name} failed; its output is in {transcript}.")
    ready.touch()


def try_method(system: BareSystem, method: InstallMethod, release_folder: Path) -> InstallTrial:
    """Installs one way in a fresh overlay of the base."""
    folder = WORK_FOLDER / "overlay"
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("upper", "work", "root"):
        (folder / part).mkdir(parents=True)
    root = folder / "root"
    copies = "; ".join(
        f"mkdir -p {root}{copy.parent}; cp {file} {root}{copy}" for file, copy in find_network_files().items()
    )
    inner = f"export HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive; {method.commands}"
    certificates = os.environ.get("PIP_CERT", "")  # a copy: a package that is installed may replace the file
    if certificates:
        copies += f"; cp {certificates} {root}/certificates.crt"
        inner = f"export PIP_CERT=/certificates.crt; {inner}"
    layers = f"lowerdir={system.base},upperdir={folder}/upper,workdir={folder}/work"
    script = (
        f"mount -t overlay overlay -o {layers} {root}; "
        f"mount -t proc proc {root}/proc; mkdir {root}/release; mount --bind {release_folder} {root}/release; "
        f"cp {ROOT}/tests/data/records/sonde-0.1.0.ndjson {root}/record.ndjson; {copies}; "
    )
    transcript = WORK_FOLDER / f"{system.name}-{method.name.replace(',', '').replace(' ', '-')}.txt"
    transcript.unlink(missing_ok=True)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    code = run_in_namespace(script + write_chroot_lines(system.machine, root, inner, folder), transcript)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    good = code == 0 and method.result in transcript.read_text(encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    return InstallTrial(system, method, good, processor, time.monotonic() - start)


def main() -> None:
    """Tries each way in each suite."""
    parser = argparse.ArgumentParser(description="Installs a release in bare root file systems.")
    parser.add_argument("--machine", default=os.uname().machine, choices=list(DEBIAN_NAMES))
    parser.add_argument("--release", type=Path, default=ROOT / "build" / "release", metavar="DIR")
    parser.add_argument("--only", default="", metavar="TEXT", help="only ways whose name contains TEXT")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    options = parser.parse_args()
    if os.geteuid():
        exit_with_error("mounting root file systems needs root. Run it as root, for example in a virtual machine.")
    if shutil.which("debootstrap") is None:
        exit_with_error("debootstrap is missing. Install the package debootstrap.")
    release = options.release.resolve()
    if not (release / "SHA256SUMS").exists():
        exit_with_error(f"{release} has no release. Run `make release` first.")
    chosen = [
        (BareSystem(suite, options.machine), method)
        for method in METHODS
        for suite in method.suites
        if options.only in method.name and suite in (options.suites or method.suites)
    ]
    if not chosen:
        parser.error("no way of installation has this name and suite")
    WORK_FOLDER.mkdir(parents=True, exist_ok=True)
    trials = []
    print("| way | system | processor time | wall time | result |\n|---|---|---|---|---|")
    for system, method in chosen:
        make_base(system)
        trials.append(try_method(system, method, release))
        trial = trials[-1]
        times = f"{trial.processor_s:.1f} s | {trial.wall_s:.0f} s"
        print(f"| {method.name} | {system.name} | {times} | {'yes' if trial.good else 'no'} |", flush=True)
    raise SystemExit(0 if all(trial.good for trial in trials) else 1)


if __name__ == "__main__":
    main()
