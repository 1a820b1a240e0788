# SPDX-License-Identifier: Apache-2.0
"""The options of `sonde run`, as groups: what to run, and how to store and print the results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from sonde.cli.options import (
    add_archive_option,
    add_json_option,
    add_mpi_module_option,
    add_report_option,
    parse_locations,
)
from sonde.experiments.executor import ExecutorFactory
from sonde.experiments.locations import RunLocations
from sonde.experiments.single_run import RunLabels
from sonde.launch.session import NO_DEVICE, DevicePermission
from sonde.model.errors import UnitError, UserError
from sonde.model.units import parse_rate
from sonde.store.archive import Archive
from sonde.terminal.metrics_display import MetricsDisplay
from sonde.terminal.run_display import Display, make_display
from sonde.terminal.screen import get_messages_console

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class RunRequest:
    """Options that say how to run: settings, locations, repeats, sweeps, group, tags."""

    profile: str = ""
    settings: tuple[str, ...] = ()
    locations: RunLocations = field(default_factory=RunLocations)
    repeat: int | None = None
    warmup: int | None = None
    prepare: str | None = None
    sweeps: tuple[str, ...] = ()
    group: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    resume: bool = False

    @property
    def run_labels(self) -> RunLabels:
        """Group, tags and comment of the runs."""
        return RunLabels(self.group, self.tags, self.note)

    @property
    def is_experiment(self) -> bool:
        """Whether these options turn a plan into an experiment."""
        return self.has_additions or self.resume

    @property
    def has_additions(self) -> bool:
        """Whether these options add repeats, sweeps or commands to the file."""
        return self.repeat is not None or self.warmup is not None or bool(self.prepare or self.sweeps)


@dataclass(frozen=True)
class OutputOptions:
    """Where to store the runs, and how to print the results."""

    archive: Archive
    mpi_module: Path | None = None
    quiet: bool = False
    as_json: bool = False
    report: bool = False
    dry_run: bool = False
    rate: float | None = None  # bytes/s for the forecast of a dry run
    metrics: Path | None = None  # file with the state of the run in progress
    device_permission: DevicePermission = NO_DEVICE
    create_executor: ExecutorFactory | None = None  # creates the executor; None: the engine


_REQUEST_OPTIONS = (
    click.option(
        "--set",
        "settings",
        metavar="PATH=VALUE",
        multiple=True,
        help="Change one member, like data.access.transfer=4KiB, phases.read.stop.time=10s or repeat.max=20. May be"
        " given several times; null removes a member.",
    ),
    click.option(
        "--gpu-ids",
        metavar="N[,N]…",
        default="",
        help="Keep the tasks' data in the memory of these GPUs, by turns; short for --set data.io.gpus=[N,…].",
    ),
    click.option(
        "--on",
        "directories",
        metavar="[NAME=]DIR",
        multiple=True,
        help="Directory on the storage to measure; for a plan also a block device or s3://BUCKET/PREFIX, for an "
        "experiment also the directory of each file system or mount.",
    ),
    click.option(
        "--pool",
        "pools",
        metavar="NAME=DIR[,DIR]…",
        multiple=True,
        help="Directory of an experiment's pool; several directories are targets of the pool.",
    ),
    click.option(
        "--system",
        metavar="FILE",
        help="System file of this machine: pools, units and mounts are taken from it, and of a plan which server and"
        " unit serves which target.",
    ),
    click.option("--profile", metavar="NAME", default="", help="Scale of an experiment: ci, laptop, published."),
    click.option("--repeat", type=click.IntRange(1, 100_000), metavar="N", help="Run every cell N times."),
    click.option(
        "--warmup",
        type=click.IntRange(0, 1000),
        metavar="N",
        help="Warm-up runs of each cell, which are not evaluated.",
    ),
    click.option("--prepare", metavar="CMD", help="Command to execute before each run, not timed."),
    click.option(
        "--sweep",
        "sweeps",
        metavar="PATH=VALUES",
        multiple=True,
        help="Run once for each value: data.access.transfer=4KiB,64KiB,1MiB or tasks.threads=1..32*2. Several make a"
        " grid.",
    ),
    click.option("--resume", is_flag=True, help="Continue an interrupted experiment; finished runs stay."),
    click.option("--group", metavar="NAME", default="", help="Name of the group that the runs belong to."),
    click.option(
        "--tag", "tags", metavar="TAG", multiple=True, help="Tag of the runs, to find them later; several are possible."
    ),
    click.option("--note", metavar="TEXT", default="", help="Comment to store with the runs."),
)


def add_run_request_options(command: Command) -> Command:
    """Adds --set, --on, --sweep, … --note and passes them as `run_request`. The command also has `add_task_options`."""

    @functools.wraps(command)
    def with_request(*args: Any, **options: Any) -> Any:
        RunLabels(options["group"], options["tags"])  # checked before anything else
        source = click.get_current_context().get_parameter_source("launcher")
        launcher = options["launcher"] if source is not ParameterSource.DEFAULT else ""
        directories, pools, system = (options.pop(name) for name in ("directories", "pools", "system"))
        locations = parse_locations(directories, pools, system, launcher, options["launcher_args"], is_plan_target=True)
        options["settings"] += _make_gpu_settings(options.pop("gpu_ids"))
        members = {field.name: options.pop(field.name) for field in fields(RunRequest) if field.name != "locations"}
        return command(*args, run_request=RunRequest(locations=locations, **members), **options)

    decorated: Any = with_request
    for option in reversed(_REQUEST_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


_DEVICE_OPTIONS = (
    click.option(
        "--allow-device",
        metavar="DEV",
        default="",
        help="Let the plan write to this block device, its target.path; never one that is mounted or in use.",
    ),
    click.option(
        "--destroy",
        is_flag=True,
        help="With --allow-device: write although the device holds a file system, a partition table or the like.",
    ),
)


def add_dry_run_options(command: Command) -> Command:
    """Adds --dry-run and --rate, which `output_options` reads."""
    rate = click.option("--rate", metavar="RATE", help="With --dry-run: rate for the estimated times, like 2GB/s.")
    dry_run = click.option(
        "-n", "--dry-run", is_flag=True, help="Only print what every cell needs, and which cells cannot be run."
    )
    return dry_run(rate(command))


def add_run_output_options(command: Command) -> Command:
    """Adds --mpi-module, --archive, --report, --metrics, --quiet, --json, --allow-device, --destroy.

    Passes them as `output`, with `add_dry_run_options`.
    """

    @functools.wraps(command)
    def with_output(*args: Any, **options: Any) -> Any:
        names = ("archive", "mpi_module", "quiet", "as_json", "report", "dry_run", "metrics")
        members = {name: options.pop(name) for name in names}
        permission = _make_device_permission(options.pop("allow_device"), options.pop("destroy"))
        rate = _parse_rate_option(options.pop("rate"))
        output = OutputOptions(rate=rate, device_permission=permission, **members)
        return command(*args, output=output, **options)

    quiet = click.option("-q", "--quiet", is_flag=True, help="No progress, no tables: the run's name, and errors.")
    metrics = click.option(
        "--metrics",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Keep the state of the run in progress in FILE, as metrics for Prometheus; removed at the end.",
    )
    decorated: Any = with_output
    for decorate in (
        *_DEVICE_OPTIONS,
        metrics,
        add_json_option,
        quiet,
        add_report_option,
        add_archive_option,
        add_mpi_module_option,
    ):
        decorated = decorate(decorated)
    return decorated  # type: ignore[no-any-return]


def make_output_display(output: OutputOptions) -> Display:
    """The display of the runs. Raises MachineError when the file of metrics cannot be written."""
    display = make_display(get_messages_console(), output.quiet)
    return display if output.metrics is None else MetricsDisplay(display, output.metrics)


def _make_gpu_settings(gpu_ids: str) -> tuple[str, ...]:
    if not gpu_ids:
        return ()
    if not all(number.isdecimal() for number in gpu_ids.split(",")):
        raise UserError(f'--gpu-ids "{gpu_ids}" is not a list of numbers such as 0,1; nvidia-smi lists them.')
    return (f"data.io.gpus=[{gpu_ids}]",)


def _make_device_permission(device_option: str, may_destroy: bool) -> DevicePermission:
    if may_destroy and not device_option:
        raise UserError("--destroy needs --allow-device DEV, the device whose data it gives up.")
    return DevicePermission(device_option, may_destroy)


def _parse_rate_option(option_text: str | None) -> float | None:
    try:
        return None if option_text is None else parse_rate(option_text)
    except UnitError as reason:
        raise UserError(f"--rate: {reason}") from None
