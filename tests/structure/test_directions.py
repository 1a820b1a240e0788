# SPDX-License-Identifier: Apache-2.0
"""Allowed dependencies between folders. HACKING.md draws the same picture in words; this file is the one that is
enforced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from syntax_trees import list_nodes, parse_python

ROOT = Path(__file__).resolve().parents[2]

# Folder of the engine -> folders whose headers it may include. A folder that is missing here is an error, so that a new
# folder gets its place on purpose.
ENGINE: dict[str, set[str]] = {
    "plan": set(),
    "dialects": {"plan"},
    "meters": {"plan"},
    "patterns": {"plan"},
    "payload": {"plan", "patterns"},
    "ranks": {"plan", "meters"},
    "records": {"plan", "meters"},
    "remote": {"ranks", "records"},
    "objects": {"plan"},
    "backends": {"plan", "meters", "ranks", "objects"},
    "workloads": {"plan", "patterns", "payload", "backends", "meters", "ranks"},
    "files": {"plan", "patterns", "records", "workloads", "objects"},
    "layouts": {"plan", "patterns", "records", "files"},
    "treatments": {"plan", "records"},
    "results": {"plan", "meters", "records"},
    "phases": {
        *("plan", "patterns", "payload", "backends", "meters", "ranks", "records", "workloads"),
        *("files", "layouts", "results", "treatments"),
    },
    "runs": {
        "plan",
        "patterns",
        "payload",
        "backends",
        "meters",
        "ranks",
        "records",
        "objects",
        "files",
        "layouts",
        "results",
        "treatments",
        "phases",
    },
    "main": {
        *("plan", "dialects", "backends", "meters", "patterns", "ranks", "records", "objects", "files", "phases"),
        *("runs", "remote"),
    },
}
# Where the general rule above would allow more than is meant: (from, to) -> the headers that may cross.
NARROW = {
    ("meters", "plan"): {"plan/uint128.hpp"},
    ("backends", "ranks"): {"ranks/mpi_interface.hpp", "ranks/mpi_loader.hpp"},
    ("backends", "meters"): {"meters/clock.hpp"},
    ("ranks", "meters"): {"meters/clock.hpp"},
    ("files", "workloads"): {"workloads/stream.hpp"},
    ("layouts", "files"): {"files/confined_directory.hpp", "files/descriptor.hpp"},
    ("runs", "phases"): {
        *("phases/context.hpp", "phases/board.hpp", "phases/outcome.hpp", "phases/stages.hpp"),
        "phases/collectives.hpp",
        *("phases/phase.hpp", "phases/phase_steps.hpp", "phases/process_phase.hpp"),
    },
    ("main", "phases"): {"phases/outcome.hpp", "phases/stages.hpp", "phases/planned_accesses.hpp"},
}
MPI_FILES = re.compile(r"engine/(ranks/|backends/mpi)")

# The same for the preload library.
MODEL = {"system", "settings", "model"}
PRELOAD: dict[str, set[str]] = {
    "system": set(),
    "settings": {"system"},
    "model": {"system", "settings"},
    "cache": MODEL,
    "guards": MODEL,
    "modes": MODEL | {"cache", "guards"},
    "workers": MODEL | {"cache", "guards", "modes"},
    "files": MODEL | {"cache", "guards", "modes", "workers"},
    "trace": {"system", "settings"},
    "starter": set(),
    "include": set(),  # for programs, not for the library
    "intercept": MODEL | {"guards", "modes", "files", "trace"},
}

# The same for the simulator. Its model knows nothing of the engine; its virtual-time driver is the engine with another
# backend, another team and another clock, so it stands on the engine's folders, as the engine's own tests do. The mount
# does not.
SIMULATE: dict[str, set[str]] = {
    "kernel": set(),
    "system": {"kernel"},
    "model": {"kernel", "system"},
    "virtual": {"kernel", "system", "model"},
    "mounted": {"kernel", "system", "model"},
    "main": {"kernel", "system", "model", "virtual", "mounted"},
}
DRIVES = {"virtual", "main"}  # folders that may include headers of the engine

# Folder of the lab -> folders it may import, besides itself. The ground knows nothing else; findings (what a number is
# worth) and charts (how numbers are drawn) stand on it; services keep, start and conduct; capabilities are what it is
# all for, and know all of these but not each other. Only cli knows capabilities, and nobody knows cli.
COMMON_FOLDERS = {"model", "stats"}
SERVICES = {"findings", "charts", "terminal", "launch", "store", "sources", "telemetry", "logs", "conduct"}
CAPABILITIES = {
    "experiments",
    "dialects",
    "trends",
    "diagnose",
    "watch",
    "advise",
    "tune",
    "design",
    "report",
    "jobs",
    "site",
}
LAB: dict[str, set[str]] = {
    "model": set(),
    "stats": set(),
    **{service: {"model"} for service in ("launch", "store", "sources", "terminal", "telemetry", "logs")},
    **dict.fromkeys(("findings", "charts"), COMMON_FOLDERS),
    "conduct": {"model", "launch", "store", "telemetry"},
    # programs of others reach what the command does: they measure, compare, watch and draw by the same functions
    "public": COMMON_FOLDERS | SERVICES | {"experiments", "trends", "report"},
    **dict.fromkeys(CAPABILITIES, COMMON_FOLDERS | SERVICES),
    "cli": COMMON_FOLDERS | SERVICES | CAPABILITIES,
}
# What the files at the top of the package may import: (folder, file).
ROOT_IMPORTS = {("cli", "__main__.py"), ("public", "__init__.py"), ("model", "__init__.py")}
# Arrows beyond these, each with its reason.
for _from, _to in (
    ("diagnose", "trends"),  # what became slower, and when, is where a diagnosis begins
    ("watch", "trends"),  # probes are gated, and their alarms joined, as histories are
    ("diagnose", "watch"),  # what the probes saw meanwhile
    ("site", "trends"),  # its pages show histories and changes
    ("site", "watch"),  # and incidents
    ("site", "report"),  # and whole runs
    ("store", "findings"),  # tables and summaries keep what each number was about
    ("findings", "telemetry"),  # whether a read came from storage follows from the counters of the device during it
    ("terminal", "findings"),  # the sentences beside a number are the judge's, never the terminal's own
):
    LAB[_from] = LAB[_from] | {_to}


def own_includes(part: str) -> Iterator[tuple[str, str, str]]:
    """(file, folder it is in, header it includes) for every include of our own headers in the engine or in preload."""
    for path in sorted((ROOT / part).rglob("*.[ch]pp")):
        folder = path.relative_to(ROOT / part).parts[0]
        for header in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
            yield path.relative_to(ROOT).as_posix(), folder, header


def lab_imports() -> Iterator[tuple[str, str, str]]:
    """(file, folder it is in, our module it imports) for the whole lab; files at the top have the folder ''."""
    package = ROOT / "lab" / "sonde"
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        folder = parts[0] if len(parts) > 1 else ""
        for node in list_nodes(parse_python(path)):
            modules: list[str] = []
            if isinstance(node, ast.Import):
                modules = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: write imports in full, from sonde.…"
                modules = [node.module or ""]
                if node.module == "sonde":  # from sonde import store
                    modules = [f"sonde.{name.name}".removesuffix(".__version__") for name in node.names]
            for module in modules:
                if module.split(".")[0] == "sonde":
                    yield path.relative_to(ROOT).as_posix(), folder, module


def test_every_engine_folder_has_declared_directions() -> None:
    folders = {path.name for path in (ROOT / "engine").iterdir() if path.is_dir() and any(path.glob("*.cpp"))}
    assert folders
    assert folders <= set(ENGINE)


def test_engine_includes_follow_the_directions() -> None:
    wrong, count = [], 0
    for file, folder, header in own_includes("engine"):
        target = header.split("/")[0]
        assert "/" in header, f'{file} includes "{header}"; name the folder too, "{folder}/{header}"'
        count += 1
        if target == folder:
            continue
        if target not in ENGINE[folder] or header not in NARROW.get((folder, target), {header}):
            wrong.append(f'{file} includes "{header}"')
    assert count > 50
    assert wrong == []


def test_preload_includes_follow_the_directions() -> None:
    folders = {path.name for path in (ROOT / "preload").iterdir() if path.is_dir()}
    assert folders == set(PRELOAD)
    wrong, count = [], 0
    for file, folder, header in own_includes("preload"):
        target = header.split("/")[0]
        count += 1
        if target != folder and target not in PRELOAD[folder]:
            wrong.append(f'{file} includes "{header}"')
    assert count > 30
    assert wrong == []


def test_simulate_includes_follow_the_directions() -> None:
    folders = {path.name for path in (ROOT / "simulate").iterdir() if path.is_dir()}
    assert folders <= set(SIMULATE)
    wrong, count = [], 0
    for file, folder, header in own_includes("simulate"):
        target = header.split("/")[0]
        count += 1
        allowed = SIMULATE[folder] | {folder} | (set(ENGINE) if folder in DRIVES else set())
        if target not in allowed:
            wrong.append(f'{file} includes "{header}"')
    assert count > 20
    assert wrong == []


@pytest.mark.parametrize("graph", [ENGINE, PRELOAD, SIMULATE, LAB], ids=["engine", "preload", "simulate", "lab"])
def test_declared_directions_are_acyclic(graph: dict[str, set[str]]) -> None:
    remaining = {name: set(targets) for name, targets in graph.items()}
    while remaining:
        free = {name for name, targets in remaining.items() if not targets & set(remaining)}
        assert free, f"a circle among {sorted(remaining)}"
        remaining = {name: targets for name, targets in remaining.items() if name not in free}


def test_mpi_types_are_used_in_two_folders_only() -> None:
    wrong = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "engine").rglob("*.[ch]pp")
        if re.search(r"#\s*include\s*<mpi\.h>|\bMPI_(Comm|File|Info|Datatype|Init|Status)\b", strip_comments(path))
        and not MPI_FILES.match(path.relative_to(ROOT).as_posix())
    ]
    assert wrong == []


def strip_comments(path: Path) -> str:
    """C++ text without its comments, roughly: strings that hold // are cut too, which does no harm here."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_lab_imports_follow_the_directions() -> None:
    wrong, count = [], 0
    for file, folder, module in lab_imports():
        count += 1
        target = module.partition(".")[2].partition(".")[0]
        if folder == "":  # __main__ starts the command; sonde itself offers sonde.open and its version
            allowed = (target, Path(file).name) in ROOT_IMPORTS
        else:
            assert folder in LAB, f"lab/sonde/{folder} has no place in the directions yet"
            allowed = target in ("", folder, *LAB[folder])  # sonde itself: the version
        if not allowed:
            wrong.append(f"{file} imports {module}")
    assert count > 10
    assert wrong == []


def test_programs_share_only_the_schema() -> None:
    """No file of engine or preload names a header of the other; no Python file reads from their source folders."""
    wrong = []
    for part, others in {
        "engine": ("preload", "lab", "simulate"),
        "preload": ("engine", "lab", "simulate"),
        "simulate": ("preload", "lab"),
    }.items():
        for path in (ROOT / part).rglob("*.[ch]pp"):
            text = path.read_text(encoding="utf-8")
            wrong += [f"{path} -> {part}" for part in others if re.search(rf'#\s*include\s*"(\.\./)*{part}/', text)]
    for path in (ROOT / "lab").rglob("*.py"):
        for node in list_nodes(parse_python(path)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [part.name for part in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                wrong += [f"{path} -> {name}" for name in names if name.split(".")[0] in ("engine", "preload", "tests")]
    assert wrong == []
