# SPDX-License-Identifier: Apache-2.0
"""What works on this machine and why not: one fact after the other, each with what would help."""

from __future__ import annotations

import os
import platform
import resource
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sonde
from sonde.launch.engine import Engine, find_engine
from sonde.launch.launchers.launcher import Launcher
from sonde.launch.launchers.list import LAUNCHERS, LOCAL
from sonde.launch.launchers.mpiexec import MpiexecLauncher, find_mpiexec
from sonde.model.errors import UserError
from sonde.model.units import counted, format_bytes

YES, PARTLY, NO = "yes", "partly", "no"
_MANY_FILES = 4096
_MUCH_LOCKED = 64 << 20
# Processes that want to run, on average, from which the engine will find a node noisy: it does so from a quarter of a
# core on, and the load of an idle machine is a little above nothing.
_BUSY = 0.5


@dataclass(frozen=True)
class Fact:
    """One line of the diagnosis."""

    topic: str
    state: str  # yes, partly, no
    text: str
    remedy: str = ""
    essential: bool = False  # without it nothing works


def facts(directory: Path | None, archive: Path) -> list[Fact]:
    """All of them. Never raises: what cannot be found out is a fact too."""
    found = [_lab()]
    try:
        engine = find_engine()
        found.append(_engine(engine))
    except UserError as reason:
        return [*found, Fact("engine", NO, str(reason), essential=True)]
    place = directory or Path(".")
    found += _asked(lambda: _machine(engine.probe(place), directory))
    found += _asked(lambda: [_backend(entry, directory) for entry in engine.backends(directory)])
    found += [_drop_caches(), *_limits(), *_mpi(engine), _archive(archive)]
    return found


def _asked(question: Callable[[], list[Fact]]) -> list[Fact]:
    try:
        return question()
    except UserError as reason:
        return [Fact("engine", NO, str(reason), essential=True)]


def _lab() -> Fact:
    return Fact("lab", YES, f"sonde {sonde.__version__}, Python {platform.python_version()}")


def _engine(engine: Engine) -> Fact:
    try:
        version = engine.version()
    except UserError as reason:
        return Fact("engine", NO, str(reason), essential=True)
    text = f"{version}, {engine.path} ({engine.source})"
    if version.split("+")[0] != sonde.__version__.split("+")[0]:
        return Fact("engine", PARTLY, text, f"The lab is {sonde.__version__}; install both from the same source.")
    return Fact("engine", YES, text)


def _machine(found: dict[str, Any], directory: Path | None) -> list[Fact]:
    system = found.get("file_system") or {}
    facts = [_cpus(found), _load(len(os.sched_getaffinity(0))), _clock(found)]
    if directory is not None:
        facts += [_file_system(directory, system), _direct(system)]
    return facts


def _cpus(found: dict[str, Any]) -> Fact:
    usable, memory = len(os.sched_getaffinity(0)), found.get("memory_bytes")
    text = f"{usable} cores usable" + (f", {format_bytes(memory)} memory" if memory else "")
    return Fact("machine", YES, f"{found.get('host', platform.node())}: {text}, Linux {platform.release()}")


def _load(cores: int) -> Fact:
    """What others do meanwhile: a measurement beside it is one of both."""
    try:
        busy = os.getloadavg()[0]
    except OSError:
        return Fact("load", PARTLY, "not known")
    text = f"{busy:.1f} processes wanted to run in the last minute, on {counted(cores, 'core')}"
    if busy < _BUSY:
        return Fact("load", YES, text)
    return Fact("load", PARTLY, text, "Others use this machine: numbers will be doubtful until they have ended.")


def _clock(found: dict[str, Any]) -> Fact:
    source = str(found.get("clock", "unknown"))
    if source.startswith(("tsc", "cntvct")):
        return Fact("clock", YES, f"{source}: the processor's own counter, a few nanoseconds a reading")
    kernel = _word("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    why = f"the kernel's clock source is {kernel}" if kernel else "the kernel's clock source is not known"
    return Fact("clock", PARTLY, f"{source}, because {why}: right, but slower to read in operations of a microsecond")


def _file_system(directory: Path, system: dict[str, Any]) -> Fact:
    kind = str(system.get("type") or "unknown")
    available = system.get("available_bytes")
    text = f"{directory}: {kind}" + (f", {format_bytes(available)} available" if available is not None else "")
    if system.get("read_only"):
        return Fact("target", NO, f"{text}, mounted read-only", "Choose another directory.", essential=True)
    if not os.access(directory, os.W_OK | os.X_OK):
        return Fact("target", NO, f"{text}, not writable for you", "Choose a directory of yours.", essential=True)
    if system.get("memory_backed"):
        return Fact("target", PARTLY, f"{text}: keeps files in memory, so no number from here is one of storage")
    return Fact("target", YES, text)


def _direct(system: dict[str, Any]) -> Fact:
    offset, memory = system.get("direct_offset_align_bytes"), system.get("direct_memory_align_bytes")
    if offset:
        return Fact("O_DIRECT", YES, f"offsets in steps of {offset} B, memory in steps of {memory or offset} B")
    return Fact("O_DIRECT", PARTLY, "the file system does not say what alignment it needs; `sonde check` tries it out")


def _backend(entry: dict[str, Any], directory: Path | None) -> Fact:
    name, usable = str(entry.get("name", "?")), bool(entry.get("usable"))
    text = str(entry.get("summary", "")) if usable else str(entry.get("why") or "does not say why")
    return Fact(f"backend {name}", YES if usable else NO, text)


def _drop_caches() -> Fact:
    if os.access("/proc/sys/vm/drop_caches", os.W_OK):
        return Fact("drop caches", YES, "permitted; it slows down everybody on this machine, so checks use it last")
    text = "only for root; the cache of Sonde's own files is emptied without it (posix_fadvise)"
    return Fact("drop caches", PARTLY, text)


def _limits() -> list[Fact]:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    open_files = Fact("open files", YES, f"{files} per process")
    if files != resource.RLIM_INFINITY and files < _MANY_FILES:
        open_files = Fact("open files", PARTLY, f"{files} per process", f"ulimit -n {_MANY_FILES} allows more tasks.")
    if locked == resource.RLIM_INFINITY or os.geteuid() == 0 or locked >= _MUCH_LOCKED:
        shown = "unlimited" if locked == resource.RLIM_INFINITY else format_bytes(locked)
        return [open_files, Fact("locked memory", YES, f"{shown}: io_uring can register its buffers")]
    text = f"{format_bytes(locked)}: io_uring goes on with unregistered buffers when that is used up"
    return [
        open_files,
        Fact("locked memory", PARTLY, text, "ulimit -l unlimited, or a limit in limits.conf, lifts it."),
    ]


def _mpi(engine: Engine) -> list[Fact]:
    modules = sorted(path.stem.removeprefix("sonde-mpi-") for path in engine.path.parent.glob("sonde-mpi-*.so"))
    if modules:
        names = {"abi": "standard ABI (MPICH 5, Intel MPI)", "site": "this site's MPI"}
        found = [Fact("MPI modules", YES, ", ".join(names.get(name, name) for name in modules))]
    else:
        text = "none beside the engine: it runs on one node only"
        found = [
            Fact(
                "MPI modules",
                NO,
                text,
                "`sonde doctor --build-mpi` makes one for the MPI that is here; `pip install mpich` brings an MPI.",
            )
        ]
    try:
        mpiexec = find_mpiexec()
        found.append(Fact("mpiexec", YES, f"{mpiexec.program} ({mpiexec.flavour}, {mpiexec.version})"))
    except UserError as reason:
        found.append(Fact("mpiexec", NO, str(reason)))
    return found + [_launcher(one) for one in LAUNCHERS if one.name not in (LOCAL, MpiexecLauncher.name)]


def _launcher(launcher: type[Launcher]) -> Fact:
    reason = launcher.available()
    return Fact(launcher.name, NO if reason else YES, reason or shutil.which(launcher.name) or "can be used")


def _archive(root: Path) -> Fact:
    existing = root
    while not existing.exists() and existing != existing.parent:
        existing = existing.absolute().parent
    if os.access(existing, os.W_OK | os.X_OK):
        return Fact("archive", YES, f"{root}" if root.exists() else f"{root} (made by the first run)")
    remedy = "Name another folder with --archive DIR or $SONDE_ARCHIVE."
    return Fact("archive", NO, f"{root} cannot be written", remedy, essential=True)


def _word(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
