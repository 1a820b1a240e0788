# SPDX-License-Identifier: Apache-2.0
"""The verbs of ``sonde layout`` that look at storage: ``check`` and ``collect``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from sonde.cli.layout_file_system import find_planned_layout, list_mount_points
from sonde.cli.layout_output import print_layout_check
from sonde.cli.options import add_json_option
from sonde.design.checked_items import choose_exit_code
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedStorage
from sonde.design.layout.plan import LayoutPlan, plan_layout
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_OK, UserError
from sonde.model.system import read_system
from sonde.terminal.screen import get_results_console


@click.command("check")
@click.argument("locations", nargs=-1, metavar="[MOUNT|DEVICE|FILE]...")
@click.option(
    "--from",
    "saved_outputs",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Saved output instead of this machine: of `layout collect`, lsblk, mdadm, lvs, multipath, xfs_info, zpool …",
)
@click.option("--plan", "system", metavar="SYSTEM", help="Compare with the layout of this system.")
@click.option(
    "--as",
    "name",
    metavar="NAME",
    help="Which of its file systems (default: that of the mount point; of saved outputs of its only host all local"
    " ones).",
)
@add_json_option
def check_command(
    locations: tuple[str, ...], saved_outputs: tuple[Path, ...], system: str | None, name: str | None, as_json: bool
) -> int:
    """Say what is wrong with the storage beneath a mount point, a directory, a device, or in saved outputs.

    --plan alone reviews the storage that the system file describes.

    Collected outputs of several hosts are checked host by host, and their Lustre targets together.

    Read are sysfs, superblocks, ioctls and tools; nothing is written. For a FILE its extents are looked at too. Exit
    code 1 when something is wrong, 6 when nothing could be compared.

    \b
    Examples:
      sonde layout check /scratch
      sonde layout check /scratch --plan layout/system.toml --as scratch
      sonde layout check --from lsblk.json --from xfs_info.txt
    """
    from sonde.design.layout.check import check_layout
    from sonde.design.layout.check_file_systems import join_checks
    from sonde.design.layout.check_hosts import check_hosts
    from sonde.design.layout.check_partner_storage import exclude_undecided_storage, list_mounts_of_pairs
    from sonde.design.layout.check_system import check_described_storage
    from sonde.design.layout.live.inspection import inspect_storage
    from sonde.design.layout.live.joining import join_observations
    from sonde.design.layout.live.observations import merge_observations
    from sonde.design.layout.live.saved_output import read_hosts
    from sonde.design.layout.written_attributes import list_attributes_of_plan, list_written_attributes

    if not locations and not saved_outputs and (system is None or name is not None):
        raise UserError(
            "There is nothing to check; name a mount point, a device, saved outputs with --from, or with --plan alone"
            " a system whose description is reviewed."
        )
    if system is not None and not locations and not saved_outputs:
        verdict = check_described_storage(read_system(find_system_file(system)))
        print_layout_check({"": ObservedStorage()}, verdict, as_json)
        return choose_exit_code(len(verdict.faults), verdict.checked_items)
    hosts = read_hosts(saved_outputs)
    if locations and len(hosts) > 1:
        raise UserError("Collected outputs of several hosts are checked alone; leave out the mount points and devices.")
    storage = next(iter(hosts.values()))
    for item in locations:
        storage = merge_observations(storage, inspect_storage(item))
    storage = join_observations(storage)
    hosts = hosts if len(hosts) > 1 else {"": storage}
    if system is None and name is not None:
        raise UserError("--as names a file system of a system; give the system with --plan.")
    plan = plan_layout(read_system(find_system_file(system))) if system is not None else None
    directories = [path for item in locations if (path := Path(item)).is_dir()]
    written_by_plan = list_attributes_of_plan(plan.system, plan.file_systems) if plan is not None else ()
    checks = []
    for planned in _choose_layouts(plan, hosts, name, is_live=bool(locations)):
        mounts = list_mount_points(plan.system, planned.id) if plan is not None and planned is not None else []
        written = list_written_attributes(plan.system, planned) if plan is not None and planned is not None else ()
        if len(hosts) > 1:
            checks.append(check_hosts(hosts, planned, mounts, written, written_by_plan))
        else:
            check = check_layout(storage, planned, directories, mounts, written, written_by_plan=written_by_plan)
            pairs = list_mounts_of_pairs(plan.system, planned.id) if plan is not None and planned is not None else {}
            checks.append(exclude_undecided_storage(check, pairs))
    verdict = join_checks(checks) if len(checks) > 1 else checks[0]
    print_layout_check(hosts, verdict, as_json)
    return choose_exit_code(len(verdict.faults), verdict.checked_items)


def _choose_layouts(
    plan: LayoutPlan | None, storage_by_host: Mapping[str, ObservedStorage], name: str | None, *, is_live: bool
) -> Sequence[FileSystemLayout | None]:
    """The planned file systems to compare with: all local ones of a host with saved outputs, else one, or none without
    a plan."""
    from sonde.design.layout.check_file_systems import list_local_layouts

    if plan is None:
        return [None]
    if name is None and not is_live and len(storage_by_host) == 1:
        (storage,) = storage_by_host.values()
        mounts = [path for layout in plan.file_systems for path in list_mount_points(plan.system, layout.id)]
        if layouts := list_local_layouts(plan, storage, mounts):
            return layouts
    mount_points = [item.location for storage in storage_by_host.values() for item in storage.file_systems]
    return [find_planned_layout(plan.system, plan, name, mount_points)]


@click.command("collect")
def collect_command() -> int:
    """Print a shell script that collects, on a machine without Sonde, everything that `layout check --from` reads.

    The script only reads; run it as root to see superblocks.

    \b
    Examples:
      sonde layout collect > collect.sh
      sonde layout collect | ssh oss01 sh > oss01.txt
    """
    from sonde.design.layout.live.collector import make_collector

    get_results_console().print(make_collector(), markup=False, highlight=False, soft_wrap=True, end="")
    return EXIT_OK
