# SPDX-License-Identifier: Apache-2.0
"""Every command that README and docs print is executed, in order and as printed, the commands of a page in one folder.

What the pages presuppose is made beforehand: a program with small I/O, results of other tools, an archive with runs of
the months that a page names. /scratch, /project and other places of a site are folders of the test. Measurements that
take minutes go to an engine that answers at once (their plans are measured by the real one in tests of their own); what
looks at the machine, plans, traces and buffers is real.

What cannot be executed stands in the source of the page with its reason, `<!-- not run: REASON: BEGINNING OF THE
COMMAND -->`, before the block. Such a command is still read by the command line that it is for.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lab"))

from archive_builders import NOISY, store_run  # noqa: E402
from record_scene import Scene, Work, steady  # noqa: E402
from service_stand_ins import write_service_stand_ins  # noqa: E402
from warm_sonde import WarmSonde  # noqa: E402

from sonde.cli.main import command as sonde_command  # noqa: E402
from sonde.store.tags import change_tags  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = {"shell", "sh", "bash", "console"}
# More than these is a page that nobody tries. A dozen stand on the page of clusters, whose jobs test_slurm.py submits.
MAX_NOT_RUN = 36
SITE_PATH = re.compile(r"(?<![\w./-])/(scratch|project|other|mnt)\b")
MARK = re.compile(r"<!-- not run: (?P<reason>[^:]+): (?P<beginning>.+?) -->")


@dataclass(frozen=True)
class Command:
    """One command of a page; `reason` says why it is not run, and is empty for most."""

    page: Path
    line: int
    text: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}: {self.text}"


def commands_of(page: Path) -> Iterator[Command]:
    """The commands of a page in order, continued lines joined."""
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    marks: list[re.Match[str]] = []
    for _, line in lines:
        marks += MARK.finditer(line)
        if not line.startswith("```"):
            continue
        language, block = line[3:].strip(), []
        for number, inside in lines:
            if inside.startswith("```"):
                break
            block.append((number, inside))
        if language in SHELLS or (not language and looks_like_commands(block)):
            yield from split_marked_block(page, list(joined(block)), marks)
            marks = []
    assert not marks, f"{page}: {marks[0][0]} stands before no block of commands"


def looks_like_commands(block: list[tuple[int, str]]) -> bool:
    """Whether a block is of commands: listings of folders and forms of output are not."""
    return any(line.startswith("sonde ") for _, line in block)


def joined(block: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Joins lines that end in a backslash with the next line."""
    begun: tuple[int, str] | None = None
    for number, line in block:
        first_number, text = (begun[0], begun[1] + line.strip()) if begun else (number, line)
        begun = (first_number, text[:-1]) if text.endswith("\\") else None
        if not begun and text.strip() and not text.lstrip().startswith("#"):
            yield first_number, text


def split_marked_block(page: Path, block: list[tuple[int, str]], marks: list[re.Match[str]]) -> Iterator[Command]:
    """The commands of a block, those that are not run with their reason."""
    for mark in marks:
        count = sum(text.startswith(mark["beginning"]) for _, text in block)
        assert count >= 1, f"{page}: {mark[0]} fits {count} commands of the block after it"
    for number, text in block:
        reason = next((mark["reason"] for mark in marks if text.startswith(mark["beginning"])), "")
        yield Command(page, number, text, reason)


COMMANDS = [command for page in PAGES for command in commands_of(page)]
WITH_COMMANDS = list(dict.fromkeys(command.page for command in COMMANDS if not command.reason))

# --- what pages presuppose ------------------------------------------------------------------------------------------

RESULTS = ROOT / "tests" / "data" / "results"
FIFTH = Work("write", curve=steady(100e6), seconds=2.0), Work("read", "read", curve=steady(150e6), seconds=2.0, fsync=0)


def runs(archive: Path, *days: str, plan: str = "quick", status: str = "done") -> None:
    """Two runs of each day."""
    for index, (day, hour) in enumerate(itertools.product(days, (3, 15))):
        works = [replace(work, noise=0.02 + 0.001 * index) for work in FIFTH]
        scene = Scene(works=works, seed=index, plan=plan, started=f"{day}T{hour:02d}:00:00Z", status=status)
        store_run(archive, f"{day.replace('-', '')}T{hour:02d}0000Z-{plan}-{index:08x}", scene)


def month(first: str) -> list[str]:
    """Four days of a month."""
    return [f"{first}-{day:02d}" for day in range(20, 24)]


def archive_page(folder: Path) -> None:
    """Runs of the names, days and findings that the page asks for."""
    archive = folder / "sonde-archive"
    store_run(archive, "20261121T204501Z-quick-ab12cd34", Scene(works=FIFTH, plan="quick", findings=(NOISY,)))
    runs(archive, "2026-11-02", "2026-11-03", plan="daily")
    runs(archive, "2025-11-02", plan="broken", status="failed")
    runs(folder / "other" / "sonde-archive", "2026-10-02")
    (folder / "notes.csv").write_text("run,note\n20261121T204501Z-quick-ab12cd34,after the upgrade\n", encoding="utf-8")


def cluster_page(folder: Path) -> None:
    """A run in the archive."""
    store_run(folder / "sonde-archive", "20261121T204501Z-quick-ab12cd34", Scene(works=FIFTH, plan="quick"))


def compare_page(folder: Path) -> None:
    """An archive with the runs of two months, a tag for each, and the tag of the baseline that the page uses."""
    archive = folder / "sonde-archive"
    runs(archive, *month("2026-08"), *month("2026-12"))
    for folders, tag in (("2026-08", "old-client"), ("2026-12", "new-client"), ("2026-08", "baseline:acceptance")):
        for run_folder in sorted((archive / folders).iterdir()):
            change_tags(run_folder, [tag])


def import_page(folder: Path) -> None:
    """Results under the names of the page, and a CSV file with its columns."""
    for name, source in {
        "ior-1.txt": "ior-4.1.txt",
        "ior-2.txt": "ior-3.0.txt",
        "fio.json": "fio-3.33.json",
        "elbencho.csv": "elbencho-3.1.csv",
        "mdtest.log": "mdtest-4.1.txt",
    }.items():
        shutil.copy(RESULTS / source, folder / name)
    io500 = folder / "results" / "2026.11.20-10.23.49"
    io500.mkdir(parents=True)
    shutil.copy(RESULTS / "io500-result.txt", io500 / "result.txt")
    shutil.copy(RESULTS / "io500-summary.txt", io500 / "result_summary.txt")
    rows = [f"2026-11-{day:02d}T03:00:00,ior,read,shared,64,edison,scratch1,{1 + day / 10}" for day in range(1, 9)]
    header = "start,benchmark,operation,files,tasks,system,file_system,rate_GiBps"
    (folder / "daily.csv").write_text("\n".join([header, *rows]), encoding="utf-8")


def coming_from_page(folder: Path) -> None:
    """Results, a log of a job and counters of a server, for a stored run; and probes of some days."""
    import_page(folder)
    advise_page(folder)
    store_run(folder / "sonde-archive", "20261121T204501Z-quick-ab12cd34", Scene(works=FIFTH))
    rows = [f"2026-11-21 20:45:{second:02d},fs1-OST0000,{second}00,{second}000" for second in range(8)]
    text = "\n".join(["TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES", *rows])
    (folder / "ost-data.csv").write_text(f"{text}\n", encoding="utf-8")
    runs(folder / "sonde-archive", *month("2026-08"))


def program_page(folder: Path) -> None:
    """A program that writes small records."""
    (folder / "input.nml").write_text("&input /\n", encoding="utf-8")
    solver = folder / "solver"
    text = "import sys\nwith open('out.dat', 'wb', 0) as f:\n    for _ in range(2000): f.write(b'r' * 500)\n"
    solver.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    solver.chmod(0o755)


def advise_page(folder: Path) -> None:
    """Logs of jobs: one with small writes, alone and among others."""
    from darshan_builder import DarshanBuilder

    values = {"OPENS": 1, "WRITES": 5000, "BYTES_WRITTEN": 5_000_000, "SIZE_WRITE_1K_10K": 5000, "F_WRITE_TIME": 9.0}
    log = DarshanBuilder(processes=1).counters("POSIX", "/lus/out", values, rank=0)
    (folder / "logs").mkdir()
    for path in ("job.darshan", "logs/1.darshan", "logs/2.darshan"):
        log.write(folder / path)


def plan_page(folder: Path) -> None:
    """The plan that the page prints before its commands."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    text = page.split("```toml\n")[1].split("```")[0]
    (folder / "shared-file.toml").write_text(SITE_PATH.sub(rf"{folder}/\1", text), encoding="utf-8")


def experiment_page(folder: Path) -> None:
    """The experiment beside the page, and what its second side needs."""
    shutil.copy(ROOT / "docs" / "tasks" / "layouts.toml", folder)


def load_page(folder: Path) -> None:
    """The plan beside the page."""
    text = (ROOT / "docs" / "tasks" / "load.toml").read_text(encoding="utf-8")
    (folder / "load.toml").write_text(SITE_PATH.sub(rf"{folder}/\1", text), encoding="utf-8")


def object_page(folder: Path) -> None:
    """The plan that the page prints after its commands."""
    page = (ROOT / "docs" / "tasks" / "object-storage.md").read_text(encoding="utf-8")
    (folder / "objects.toml").write_text(page.split("```toml\n")[1].split("```")[0], encoding="utf-8")


def start_page(folder: Path) -> None:
    """The plan beside the page."""
    text = (ROOT / "docs" / "start" / "mine.toml").read_text(encoding="utf-8")
    (folder / "mine.toml").write_text(SITE_PATH.sub(rf"{folder}/\1", text), encoding="utf-8")


def watch_page(folder: Path) -> None:
    """Two weeks of probes, a log, and services of the machine."""
    write_service_stand_ins(folder.parent / "programs")
    text = (ROOT / "docs" / "tasks" / "watch.toml").read_text(encoding="utf-8")
    text = text.replace("/var/log/messages", "/scratch/messages")
    (folder / "watch.toml").write_text(SITE_PATH.sub(rf"{folder}/\1", text), encoding="utf-8")
    line = "Nov 17 08:40:00 oss3 kernel: md/raid:md3: Disk failure on sdq1, disabling device.\n"
    (folder / "scratch" / "messages").write_text(line, encoding="utf-8")
    days = [f"2026-11-{day:02d}" for day in range(1, 15)]
    runs(folder / "sonde-archive", *days)


def route_page(folder: Path) -> None:
    """Outputs of a host of the worked example."""
    source = ROOT / "tests" / "data" / "routes"
    for name, other in {
        "rule-ib1": "storage-rule-interface",
        "route-ib1": "storage-route-interface",
        "sysctl.conf": "wolf-sysctl.conf",
    }.items():
        shutil.copy(source / other, folder / name)


def record_page(folder: Path) -> None:
    """A record in the folder."""
    run = store_run(folder / "sonde-archive", "20261121T204501Z-quick-ab12cd34", Scene(works=FIFTH))
    shutil.copy(run / "record.ndjson", folder)


def layout_page(folder: Path) -> None:
    """Saved outputs of a server with faults."""
    saved = ROOT / "tests" / "data" / "layout"
    for name, source in (("lsblk.json",) * 2, ("mdadm-detail.txt",) * 2, ("xfs_info.txt", "mkfs-4plus1.txt")):
        shutil.copy(saved / source, folder / name)


PROPS: Mapping[str, Callable[[Path], None]] = {
    "README.md": plan_page,
    "docs/reference/record.md": record_page,
    "docs/start/index.md": start_page,
    "docs/tasks/archive.md": archive_page,
    "docs/tasks/cluster.md": cluster_page,
    "docs/tasks/coming-from.md": coming_from_page,
    "docs/tasks/compare.md": compare_page,
    "docs/tasks/experiment.md": experiment_page,
    "docs/tasks/load.md": load_page,
    "docs/tasks/import.md": import_page,
    "docs/tasks/layout.md": layout_page,
    "docs/tasks/object-storage.md": object_page,
    "docs/tasks/route.md": route_page,
    "docs/tasks/advise.md": advise_page,
    "docs/tasks/small-io.md": program_page,
    "docs/tasks/watch.md": watch_page,
}
# Exit codes that the page itself speaks of.
OTHER_CODES: Mapping[str, int | tuple[int, ...]] = {
    "sonde layout check --from lsblk.json": 1,  # it finds the faults of the saved outputs
    "sonde layout check --plan cray-x1": 1,  # its description names no spares
    "sonde layout check /scratch": (0, 1, 6),  # whether the disk of this machine has a fault
    "sonde route check cumulus --as wolf-servers": 1,  # it finds the faults of the listings
    "sonde rm 20261121T204501Z-quick": 2,  # it asks first, and there is nobody to ask
}

# --- the tests ------------------------------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path, engine: Path, warm_process: WarmSonde) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs one command of a page in its folder."""
    programs = tmp_path / "programs"
    programs.mkdir()
    measured = "check|run|watch|tune|suite|gate|iozone|obdfilter-survey"
    fake = ROOT / "tests" / "lab" / "fake_engine.py"
    engines = f"case $1 in {measured}) export SONDE_ENGINE={fake};; esac\nunset LD_PRELOAD\n"
    warm_process.write_program(programs / "sonde", before=engines)
    folder = tmp_path / "folder"
    for name in ("scratch/tester", "project", "other", "mnt/ost0", "mnt/ost1", "mnt/ost2", "mnt/ost3"):
        (folder / name).mkdir(parents=True)
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith(("SONDE_", "IOBUF", "LD_PRELOAD"))
    }
    environment |= {"PYTHONPATH": str(ROOT / "lab")}
    environment |= {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "USER": "tester",
        "HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path),
        "SONDE_ENGINE": str(engine),
        "COLUMNS": "80",
    }
    if "SONDE_PRELOAD" in os.environ:
        environment["SONDE_PRELOAD"] = os.environ["SONDE_PRELOAD"]

    def run(text: str) -> subprocess.CompletedProcess[str]:
        line = SITE_PATH.sub(rf"{folder}/\1", text)
        return subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment, input="y\n", capture_output=True, text=True, timeout=120
        )

    return run


# A page of simulations that take a minute of processor time.
SLOW_PAGE = ROOT / "docs" / "tasks" / "diagnose.md"


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.nightly if page == SLOW_PAGE else ()) for page in WITH_COMMANDS],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_documented_commands_run_in_order(
    page: Path, shell: Callable[[str], subprocess.CompletedProcess[str]], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    name = page.relative_to(ROOT).as_posix()
    if name == "docs/tasks/small-io.md":
        request.getfixturevalue("library")
    if name in PROPS:
        PROPS[name](tmp_path / "folder")
    for command in COMMANDS:
        if command.page == page and not command.reason:
            done = shell(command.text)
            expected = next((code for beginning, code in OTHER_CODES.items() if command.text.startswith(beginning)), 0)
            assert done.returncode in (expected if isinstance(expected, tuple) else (expected,)), (
                f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
            )
            assert "Traceback" not in done.stderr, command


def test_few_commands_are_not_run_and_each_has_a_reason() -> None:
    not_run = [command for command in COMMANDS if command.reason]
    assert len(not_run) <= MAX_NOT_RUN, "\n".join(map(str, not_run))
    assert len(COMMANDS) - len(not_run) >= 60, "the pages lost their commands, or this test cannot read them"


def arguments_of(command: Command) -> list[str]:
    """The arguments for Sonde: without what stands before it and the remark after it."""
    arguments = shlex.split(command.text.split(" && ")[-1], comments=True)
    return arguments[arguments.index("sonde") + 1 :] if "sonde" in arguments else []


@pytest.mark.parametrize(
    "command", [command for command in COMMANDS if command.reason and arguments_of(command)], ids=str
)
def test_command_that_is_not_run_parses(command: Command) -> None:
    arguments, verb = arguments_of(command), None
    group: click.Command = sonde_command
    context = click.Context(group, info_name="sonde")
    while arguments and isinstance(group, click.Group):
        name, *arguments = arguments
        verb = group.get_command(context, name)
        assert verb is not None, command
        context, group = click.Context(verb, parent=context, info_name=name), verb
    assert verb is not None, command
    try:
        verb.make_context(verb.name or "", list(arguments), parent=context.parent)
    except click.BadParameter as reason:
        # files that a page names are not here; arguments and options are what is looked at
        if "does not exist" not in reason.message:
            raise
