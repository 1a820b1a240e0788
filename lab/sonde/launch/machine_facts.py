# SPDX-License-Identifier: Apache-2.0
"""Collects the facts that `sonde doctor` prints: each states whether a feature works on this machine, with a remedy if
not."""

from __future__ import annotations

import os
import platform
import resource
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.launch.engine import Engine, find_engine
from sonde.launch.installation import describe_installation
from sonde.launch.launchers.launcher import Launcher
from sonde.launch.launchers.list import LAUNCHERS, LOCAL
from sonde.launch.launchers.mpiexec import MpiexecLauncher, find_mpiexec
from sonde.model.errors import UserError
from sonde.model.units import format_bytes, format_count_with_noun
from sonde.model.version import __version__

YES, PARTLY, NO = "yes", "partly", "no"
_MIN_OPEN_FILES_LIMIT = 4096
_MIN_LOCKED_MEMORY_BYTES = 64 << 20
# Load average from which this machine counts as busy. The engine reports a noisy node from a quarter of a core on; the
# load of an idle machine is slightly above zero.
# Linux, mm/page-writeback.c; dirty_bytes and dirty_background_bytes replace the ratios when they are set.
_WRITE_BACK_DEFAULTS = {
    "dirty_ratio": "20",
    "dirty_background_ratio": "10",
    "dirty_bytes": "0",
    "dirty_background_bytes": "0",
    "dirty_expire_centisecs": "3000",
    "dirty_writeback_centisecs": "500",
}
_MIN_BUSY_LOAD = 0.5


@dataclass(frozen=True)
class MachineFact:
    """One line of the diagnosis of this machine."""

    topic: str
    state: str  # YES, PARTLY or NO
    text: str
    remedy: str = ""
    essential: bool = False  # without it nothing works


def collect_machine_facts(probed_directory: Path | None, archive_folder: Path) -> list[MachineFact]:
    """All facts about this machine. Never raises: what cannot be determined is a fact too."""
    facts = [_make_lab_fact(), MachineFact("installed", YES, describe_installation())]
    try:
        engine = find_engine()
        facts.append(_make_engine_fact(engine))
    except UserError as reason:
        return [*facts, MachineFact("engine", NO, str(reason), essential=True)]
    facts += _list_engine_facts(
        lambda: _make_machine_facts(engine.probe_directory(probed_directory or Path(".")), probed_directory)
    )
    facts += _list_engine_facts(lambda: [_make_backend_fact(entry) for entry in engine.list_backends(probed_directory)])
    facts += [
        _make_drop_caches_fact(),
        make_write_back_fact(),
        *_list_limit_facts(),
        *_make_mpi_facts(engine),
        _make_archive_fact(archive_folder),
    ]
    return facts


def _list_engine_facts(query_engine: Callable[[], list[MachineFact]]) -> list[MachineFact]:
    try:
        return query_engine()
    except UserError as reason:
        return [MachineFact("engine", NO, str(reason), essential=True)]


def _make_lab_fact() -> MachineFact:
    return MachineFact("lab", YES, f"sonde {__version__}, Python {platform.python_version()}")


def _make_engine_fact(engine: Engine) -> MachineFact:
    try:
        version = engine.read_version()
    except UserError as reason:
        return MachineFact("engine", NO, str(reason), essential=True)
    text = f"{version}, {engine.path} ({engine.source})"
    if version.split("+")[0] != __version__.split("+")[0]:
        return MachineFact("engine", PARTLY, text, f"The lab is {__version__}; install both from the same source.")
    return MachineFact("engine", YES, text)


def _make_machine_facts(node_facts: dict[str, Any], probed_directory: Path | None) -> list[MachineFact]:
    file_system = node_facts.get("file_system") or {}
    facts = [_make_cpu_fact(node_facts), _make_load_fact(len(os.sched_getaffinity(0))), _make_clock_fact(node_facts)]
    if probed_directory is not None:
        facts += [_make_file_system_fact(probed_directory, file_system), _make_direct_io_fact(file_system)]
    return facts


def _make_cpu_fact(node_facts: dict[str, Any]) -> MachineFact:
    usable, memory = len(os.sched_getaffinity(0)), node_facts.get("memory_bytes")
    text = f"{usable} cores usable" + (f", {format_bytes(memory)} memory" if memory else "")
    return MachineFact("machine", YES, f"{node_facts.get('host', platform.node())}: {text}, Linux {platform.release()}")


def _make_load_fact(core_count: int) -> MachineFact:
    """Load by other programs: a run measures it together with its own."""
    try:
        load = os.getloadavg()[0]
    except OSError:
        return MachineFact("load", PARTLY, "unknown")
    cores = format_count_with_noun(core_count, "core")
    text = f"{load:.1f} processes were runnable on average in the last minute, on {cores}"
    if load < _MIN_BUSY_LOAD:
        return MachineFact("load", YES, text)
    return MachineFact("load", PARTLY, text, "Other programs use this machine: numbers are doubtful until they end.")


def _make_clock_fact(node_facts: dict[str, Any]) -> MachineFact:
    source = str(node_facts.get("clock", "unknown"))
    if source.startswith(("tsc", "cntvct")):
        return MachineFact("clock", YES, f"{source}: the processor's own counter, a few nanoseconds a reading")
    kernel = _read_first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    reason = f"the kernel's clock source is {kernel}" if kernel else "the kernel's clock source is unknown"
    return MachineFact("clock", PARTLY, f"{source}, because {reason}: correct, but slow for microsecond operations")


def _make_file_system_fact(directory: Path, file_system: dict[str, Any]) -> MachineFact:
    kind = str(file_system.get("type") or "unknown")
    available = file_system.get("available_bytes")
    text = f"{directory}: {kind}" + (f", {format_bytes(available)} available" if available is not None else "")
    if file_system.get("read_only"):
        return MachineFact("target", NO, f"{text}, mounted read-only", "Choose another directory.", essential=True)
    if not os.access(directory, os.W_OK | os.X_OK):
        remedy = "Choose a directory that you may write."
        return MachineFact("target", NO, f"{text}, not writable for you", remedy, essential=True)
    if file_system.get("memory_backed"):
        return MachineFact("target", PARTLY, f"{text}: stores files in memory, so no number from it is one of storage")
    return MachineFact("target", YES, text)


def _make_direct_io_fact(file_system: dict[str, Any]) -> MachineFact:
    offset, memory = file_system.get("direct_offset_align_bytes"), file_system.get("direct_memory_align_bytes")
    if offset:
        return MachineFact("O_DIRECT", YES, f"offsets in steps of {offset} B, memory in steps of {memory or offset} B")
    text = "the file system does not report the alignment it needs; `sonde check` determines it"
    return MachineFact("O_DIRECT", PARTLY, text)


def _make_backend_fact(backend_entry: dict[str, Any]) -> MachineFact:
    name, usable = str(backend_entry.get("name", "?")), bool(backend_entry.get("usable"))
    text = (
        str(backend_entry.get("summary", ""))
        if usable
        else str(backend_entry.get("why") or "the engine gives no reason")
    )
    return MachineFact(f"backend {name}", YES if usable else NO, text)


def _make_drop_caches_fact() -> MachineFact:
    if os.access("/proc/sys/vm/drop_caches", os.W_OK):
        return MachineFact(
            "drop caches", YES, "permitted; it slows down all users of the machine, so checks do it last"
        )
    text = "only for root; Sonde evicts its own files from the cache without it (posix_fadvise)"
    return MachineFact("drop caches", PARTLY, text)


def make_write_back_fact(settings_folder: Path = Path("/proc/sys/vm")) -> MachineFact:
    """Says which settings of the page cache's write-back are not the kernel's defaults, with a caution."""
    changed = []
    for name, default in _WRITE_BACK_DEFAULTS.items():
        value = _read_first_line(str(settings_folder / name))
        if value and value != default:
            changed.append(f"{name} = {value} (default {default})")
    if not changed:
        return MachineFact("write-back", YES, "the kernel's defaults")
    remedy = (
        "Changes are generally not required: limits that are too large delay programs when much dirty data is written"
        " at once, so some sites lower them to prevent hangs. Compare runs with and without a change before keeping it."
    )
    return MachineFact("write-back", PARTLY, ", ".join(changed), remedy)


def _list_limit_facts() -> list[MachineFact]:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    open_files = MachineFact("open files", YES, f"{files} per process")
    if files != resource.RLIM_INFINITY and files < _MIN_OPEN_FILES_LIMIT:
        remedy = f"ulimit -n {_MIN_OPEN_FILES_LIMIT} allows more tasks."
        open_files = MachineFact("open files", PARTLY, f"{files} per process", remedy)
    if locked == resource.RLIM_INFINITY or os.geteuid() == 0 or locked >= _MIN_LOCKED_MEMORY_BYTES:
        limit = "unlimited" if locked == resource.RLIM_INFINITY else format_bytes(locked)
        return [open_files, MachineFact("locked memory", YES, f"{limit}: io_uring can register its buffers")]
    text = f"{format_bytes(locked)}: io_uring uses unregistered buffers beyond that"
    remedy = "ulimit -l unlimited, or a limit in limits.conf, raises it."
    return [open_files, MachineFact("locked memory", PARTLY, text, remedy)]


def _make_mpi_facts(engine: Engine) -> list[MachineFact]:
    modules = sorted(path.stem.removeprefix("sonde-mpi-") for path in engine.path.parent.glob("sonde-mpi-*.so"))
    if modules:
        titles = {"abi": "standard ABI (MPICH 5, Intel MPI)", "site": "this site's MPI"}
        facts = [MachineFact("MPI modules", YES, ", ".join(titles.get(name, name) for name in modules))]
    else:
        text = "none next to the engine: it runs on one node only"
        remedy = "`sonde doctor --build-mpi` builds one for this machine's MPI; `pip install mpich` installs an MPI."
        facts = [MachineFact("MPI modules", NO, text, remedy)]
    try:
        mpiexec = find_mpiexec()
        facts.append(MachineFact("mpiexec", YES, f"{mpiexec.program} ({mpiexec.flavor}, {mpiexec.version})"))
    except UserError as reason:
        facts.append(MachineFact("mpiexec", NO, str(reason)))
    return facts + [
        _make_launcher_fact(launcher) for launcher in LAUNCHERS if launcher.name not in (LOCAL, MpiexecLauncher.name)
    ]


def _make_launcher_fact(launcher: type[Launcher]) -> MachineFact:
    reason = launcher.describe_unavailability()
    return MachineFact(launcher.name, NO if reason else YES, reason or shutil.which(launcher.name) or "can be used")


def _make_archive_fact(archive_root: Path) -> MachineFact:
    existing = archive_root
    while not existing.exists() and existing != existing.parent:
        existing = existing.absolute().parent
    if os.access(existing, os.W_OK | os.X_OK):
        return MachineFact(
            "archive", YES, f"{archive_root}" if archive_root.exists() else f"{archive_root} (the first run creates it)"
        )
    remedy = "Name another folder with --archive DIR or $SONDE_ARCHIVE."
    return MachineFact("archive", NO, f"{archive_root} cannot be written", remedy, essential=True)


def _read_first_line(kernel_file: str) -> str:
    try:
        return Path(kernel_file).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
