# SPDX-License-Identifier: Apache-2.0
"""A room for daemons: namespaces of processes, mounts and network, with one address on loopback.

What is started in it ends with it, and so do its mounts and their loop devices, however the tests end: the first
process of the room reads from a pipe of the tests, and the kernel ends the others when it ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

ADDRESS = "10.99.0.1"  # daemons of storage refuse 127.0.0.1
_PATIENCE_S = 60.0
_BLKIO = Path("/sys/fs/cgroup/blkio")
# Reaps what daemons leave behind, and ends when the pipe does.
_FIRST = "import signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); print(1, flush=True); sys.stdin.read()"


# Before all others, or on a busy machine its victim goes for as long as this waits for a core.
_STOPS = """import os, signal, sys, time
pid, stopped, going = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
os.setpriority(os.PRIO_PROCESS, 0, -20)
while True:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(stopped)
    os.kill(pid, signal.SIGCONT)
    time.sleep(going)
"""


class NotStartedError(Exception):
    """A daemon did not come up."""


def lacking(*programs: str) -> str:
    """Why a room with these programs cannot be made here; empty when it can."""
    if os.geteuid() != 0:
        return "namespaces, mounts and loop devices are made as root"
    absent = [name for name in ("unshare", "nsenter", "ip", *programs) if program(name) is None]
    if absent:
        return f"{', '.join(absent)} is not installed: tools/system-packages storage"
    return "" if os.access("/dev/fuse", os.R_OK | os.W_OK) else "/dev/fuse cannot be used here"


def program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def no_throttle() -> str:
    """Why no process can be given less of a disk here; empty when it can.

    Of cgroup v1: what is read, and what a process writes itself (fsync, O_DIRECT), counts as its own, not what the
    kernel writes later.
    """
    here = (_BLKIO / "blkio.throttle.write_bps_device").exists()
    return "" if here else f"no disk can be throttled: {_BLKIO} (cgroup v1) is not here"


class Room:
    """`folder` is seen inside and outside; what is mounted below it is seen inside only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        namespaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
        self._maker = subprocess.Popen(
            ["unshare", *namespaces, sys.executable, "-S", "-c", _FIRST],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._maker.stdout is not None
        assert self._maker.stderr is not None
        if self._maker.stdout.readline().strip() != "1":
            self.close()
            raise NotStartedError(self._maker.stderr.read().strip() or "no namespaces can be made here")
        children = Path(f"/proc/{self._maker.pid}/task/{self._maker.pid}/children")
        self._first = int(children.read_text().split()[0])
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "address", "add", f"{ADDRESS}/32", "dev", "lo")
        # Where daemons keep what they know of the machine: of this room only.
        for covered in ("/run", "/var/log"):
            self.cover(covered)

    def enter_command(self, *arguments: str, directory: Path | None = None) -> list[str]:
        """The command that does `words` inside."""
        inside = ["nsenter", f"--target={self._first}", "--mount", "--net", "--pid", "--"]
        # `nsenter --wd` names a directory of outside, where other things are mounted.
        return [*inside, "/bin/sh", "-c", 'cd "$0" && exec "$@"', str(directory or self.folder), *arguments]

    def run(
        self,
        *arguments: str,
        check: bool = True,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> subprocess.CompletedProcess[str]:
        """Does `words` inside and waits for it. Raises NotStartedError with what it said."""
        path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
        done = subprocess.run(
            self.enter_command(*arguments, directory=directory), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=patience_s, check=False, env={**os.environ, "PATH": path, **(environment or {})},
        )  # fmt: skip
        if check and done.returncode:
            raise NotStartedError(f"{' '.join(arguments)}: {(done.stdout + done.stderr).strip()}")
        return done

    def output_of(self, *arguments: str) -> str:
        """Output of a command that runs inside the namespace."""
        return self.run(*arguments).stdout

    def blocks(self, path: Path) -> int:
        """The size of the file system at `place`, as statfs tells it."""
        return int(self.output_of("stat", "-f", "-c", "%b", str(path)))

    def cover(self, path: str) -> None:
        """An empty directory over what the machine has at `place`."""
        self.run("mkdir", "-p", path)
        self.run("mount", "-t", "tmpfs", "-o", "mode=755", "none", path)

    def disk(self, name: str, mebibytes: int = 512) -> Path:
        """An empty XFS of a loop device; full is full, whatever happens. Removed data also leaves the image."""
        image, mount_point = self.folder / f"{name}.img", self.folder / name
        with image.open("wb") as file:
            file.truncate(mebibytes << 20)
        mount_point.mkdir()
        self.run("mkfs.xfs", "-q", str(image))
        self.run("mount", "-o", "loop,discard", str(image), str(mount_point))
        return mount_point

    def until(self, done: Callable[[], bool], condition: str) -> None:
        """Waits for `done`. Raises NotStartedError."""
        end = time.monotonic() + _PATIENCE_S
        while not done():
            if time.monotonic() > end:
                raise NotStartedError(f"{condition} within {_PATIENCE_S:g} s")
            time.sleep(0.1)

    @contextlib.contextmanager
    def slowed(self, pid: int, stopped_ms: int = 30, going_ms: int = 5) -> Iterator[None]:
        """A process (as it is called inside) that is stopped most of the time: slow, and not broken."""
        command = (sys.executable, "-S", "-c", _STOPS, str(pid), str(stopped_ms / 1000), str(going_ms / 1000))
        slower = subprocess.Popen(self.enter_command(*command), start_new_session=True)
        try:
            yield
        finally:
            os.killpg(slower.pid, signal.SIGKILL)
            slower.wait()
            self.run("/bin/sh", "-c", f"kill -CONT {pid}", check=False)

    def hang(self, pid: int) -> None:
        """A process that keeps its connections and says nothing any more, until `wake`."""
        self.run("/bin/sh", "-c", f"kill -STOP {pid}")

    def wake(self, pid: int) -> None:
        self.run("/bin/sh", "-c", f"kill -CONT {pid}")

    @contextlib.contextmanager
    def throttled(self, pid: int, path: Path, bytes_per_s: int) -> Iterator[None]:
        """A process (as it is called inside) that gets so many bytes a second, each way, of the disk at `place`."""
        device = int(self.output_of("stat", "-c", "%d", str(path)))
        group = _BLKIO / f"sonde-{self._first}-{pid}"
        group.mkdir()
        try:
            for direction in ("read", "write"):
                limit = f"{os.major(device)}:{os.minor(device)} {bytes_per_s}"
                (group / f"blkio.throttle.{direction}_bps_device").write_text(limit)
            self._into(group, pid)
            yield
        finally:
            self._into(_BLKIO, pid)
            group.rmdir()

    def _into(self, group: Path, pid: int) -> None:
        """By its number inside: the kernel takes it as the one of who writes. One that has ended is in no group."""
        self.run("/bin/sh", "-c", f"echo {pid} >{group}/cgroup.procs", check=False)

    def forget(self, path: Path, names: str) -> None:
        """Of files so called on the disk at `place` nothing is kept in memory: reads come from the disk."""
        drop = ("dd", "if=/dev/null", "of={}", "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none")
        self.run("find", str(path), "-type", "f", "-name", names, "-exec", *drop, ";")

    def close(self) -> None:
        """Ends every process of the room; its mounts go with them."""
        assert self._maker.stdin is not None
        self._maker.stdin.close()
        try:
            self._maker.wait(20)
        except subprocess.TimeoutExpired:
            self._maker.kill()
            self._maker.wait()
        for pipe in (self._maker.stdout, self._maker.stderr):
            if pipe is not None:
                pipe.close()
        for image in self.folder.glob("*.img"):
            image.unlink()
