# SPDX-License-Identifier: Apache-2.0
"""``sonde route``: IP and LNet routes around a compute fabric, planned, checked, predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from sonde.cli.options import OutputFile, VerbGroup, add_json_option
from sonde.cli.route_live import latency_command, watch_command
from sonde.cli.route_output import print_mount_comparison, print_route_check, print_verification_result
from sonde.cli.run_selection import open_progress_bar
from sonde.design.checked_items import choose_exit_code
from sonde.design.routes.check_host import check_host
from sonde.design.routes.fabric import Fabric, find_fabrics
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.plan import HASH_SEED, RoutePlan, plan_all_routes
from sonde.design.routes.plan_files import FORMATS, make_plan_files
from sonde.design.routes.route_text import (
    describe_fabric,
    describe_flow_result,
    describe_striping_effect,
    make_plan_rows,
)
from sonde.model.bundled_files import find_system_file
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_FAILED, MachineError, UserError
from sonde.model.system import read_system
from sonde.terminal.screen import get_results_console, make_plain_table, print_json

LNET = "lnet"


@click.group("route", cls=VerbGroup)
def command() -> None:
    """Plan, check and predict routes between a compute fabric and storage, from a system file.

    \b
    Examples:
      sonde route plan cumulus --format iproute2 -o routes/
      sonde route check cumulus --as compute rules.txt routes.txt sysctl.txt
      sonde route simulate cumulus --connections 2
      sonde route latency cumulus --as compute

    More: sonde help tasks/route
    """


command.add_command(watch_command)
command.add_command(latency_command)

_system_argument = click.argument("system", metavar="SYSTEM")


@command.command("plan")
@_system_argument
@click.option(
    "--format",
    "file_format",
    type=click.Choice([*FORMATS, LNET]),
    default="iproute2",
    show_default=True,
    help="Of the files.",
)
@click.option("--class", "class_name", metavar="NAME", help="Files for this class of hosts only.")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write the files."
)
@add_json_option
def plan_command(system: str, file_format: str, class_name: str | None, output: Path | None, as_json: bool) -> int:
    """Plan the routes of SYSTEM: a file, or the name of a shipped system.

    Without -o the files are printed; with it a picture of the fabric is written too. Nothing on this machine is
    changed.

    \b
    Examples:
      sonde route plan cumulus
      sonde route plan cumulus --format networkd --class wolf-servers -o networkd/
      sonde route plan edison --format lnet
    """
    machine = read_system(find_system_file(system))
    if file_format == LNET:
        from sonde.design.routes.configurations import make_lnet_files

        plans: list[RoutePlan] = []
        files = make_lnet_files(machine)
    else:
        plans = plan_all_routes(find_fabrics(machine))
        files = make_plan_files(plans, file_format, class_name)
    if output is not None:
        _write_files(output, files | _draw_fabrics(plans))
    if as_json:
        print_json({"plans": [asdict(plan) for plan in plans], "files": files})
        return 0
    console = get_results_console()
    for plan in plans:
        console.print(describe_fabric(plan.fabric), style="bold", soft_wrap=True)
        table = make_plain_table()
        for title in ("hosts", "rules", "tables", "main table"):
            table.add_column(title)
        for row in make_plan_rows(plan):
            table.add_row(*row)
        console.print(table)
        for note in plan.notes:
            console.print(f"! {note}", soft_wrap=True, highlight=False)
    for name, text in files.items():
        if output is not None:
            console.print(str(output / name), soft_wrap=True)
        else:
            console.print(f"\n--- {name}", style="bold", soft_wrap=True)
            console.print(text, markup=False, highlight=False, soft_wrap=True, end="")
    return 0


def _draw_fabrics(plans: list[RoutePlan]) -> dict[str, str]:
    from sonde.design.routes.diagram import draw_fabric

    return {f"{plan.fabric.name.replace(' ', '-')}.svg": draw_fabric(plan.fabric) for plan in plans}


def _write_files(folder: Path, texts_by_name: dict[str, str]) -> None:
    try:
        for name, text in texts_by_name.items():
            path = folder / name
            write_file(path, text, creates_directory=True)
    except OSError as reason:
        raise MachineError(f"{folder} cannot be written: {reason.strerror}.") from None


@command.command("check")
@_system_argument
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--as",
    "name",
    metavar="NAME",
    required=True,
    help='Whose tables: a class of hosts, a host, a router, or "routers".',
)
@click.option(
    "--other-side",
    "other_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Tables of a host of the other network (same routers for replies?), or of a router (link addresses).",
)
@add_json_option
def check_command(system: str, files: tuple[Path, ...], name: str, other_files: tuple[Path, ...], as_json: bool) -> int:
    """Say what is wrong with rules, routes and settings of a host of SYSTEM.

    FILES are saved output of `ip -j rule`, `ip -j route show table all`, `ip -d -j addr`, `ip -j neigh`, `ip -j
    nexthop`, `ip xfrm policy`, `sysctl -a`, a kernel .config, `ethtool`, `ibstat`, `tc -s qdisc`, `tc -s class show
    dev DEVICE`, `iptables-save`, `nft list ruleset`, `/etc/hosts`, `lnetctl export`, `lctl route_list`, any file that
    `sonde route plan` writes, or folders of these. Without FILES this host is asked. Exit code 1 when something is
    wrong, 6 when nothing could be compared.

    \b
    Examples:
      sonde route check cumulus --as compute
      sonde route check cumulus --as wolf-servers rule-ib1 route-ib1 sysctl.conf
    """
    machine = read_system(find_system_file(system))
    if files:
        from sonde.design.routes.table_reader import read_host_sources

        sources = read_host_sources(_list_files(files), required_files=files)
        tables, configured_tables = sources.live, sources.configured
    else:
        tables, configured_tables = _read_this_host(find_fabrics(machine)), None
    other_tables = None
    if other_files:
        from sonde.design.routes.table_reader import read_host_tables

        other_tables = read_host_tables(other_files)
    verdict = check_host(machine, name, tables, other_tables, configured_tables)
    print_route_check(verdict, as_json)
    return choose_exit_code(len(verdict.faults), verdict.comparisons)


def _list_files(paths: Sequence[Path]) -> list[Path]:
    """The files among some paths, and those in the folders among them. In a folder sysctl.d only *.conf, which alone
    systemd-sysctl reads: others are notes and old copies."""
    files = []
    for path in paths:
        inside = sorted(file for file in path.rglob("*") if _is_read_file(file)) if path.is_dir() else [path]
        if not inside:
            raise UserError(f"{path} holds no file; name the folder that has the saved outputs.")
        files += inside
    return files


def _is_read_file(file: Path) -> bool:
    return file.is_file() and (file.suffix == ".conf" or file.absolute().parent.name != "sysctl.d")


def _read_this_host(fabrics: Sequence[Fabric]) -> HostTables:
    from sonde.design.routes.kernel_tables import read_this_host

    tables = HostTables()
    for version in sorted({fabric.version for fabric in fabrics}):
        tables = tables.merge_tables(read_this_host(version))
    return tables


@command.command("simulate")
@_system_argument
@click.option(
    "--connections",
    "connections_per_pair",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="From a client to a server.",
)
@click.option("--clients", type=click.IntRange(1), metavar="N", help="The first N clients (default: all).")
@click.option(
    "--policy", type=click.Choice(["0", "1"]), default="1", show_default=True, help="fib_multipath_hash_policy."
)
@click.option(
    "--seed", type=click.IntRange(1, 2**32 - 1), default=HASH_SEED, show_default=True, help="fib_multipath_hash_seed."
)
@click.option(
    "--tasks", type=click.IntRange(1, 4096), default=4, show_default=True, help="A client, native against forwarded."
)
@click.option("-o", "--output", type=OutputFile(), metavar="FILE", help="Write a page.")
@add_json_option
def simulate_command(
    system: str,
    connections_per_pair: int,
    clients: int | None,
    policy: str,
    seed: int,
    tasks: int,
    output: Path | None,
    as_json: bool,
) -> int:
    """Predict which router each flow of SYSTEM takes, the rates of clients and in all, and what a lost router costs.

    The kernel's own hash is computed. Clients are the hosts on the side without servers; every client talks to every
    server. Where the system file has a native and a forwarded mount of one file system, both are compared.

    \b
    Examples:
      sonde route simulate cumulus
      sonde route simulate cumulus --policy 0 --clients 1
      sonde route simulate cumulus -o routes.html
    """
    from sonde.design.routes.flows import simulate_flows
    from sonde.design.routes.mount_throughput import compare_mounts

    predictions, machine = [], read_system(find_system_file(system))
    for fabric in find_fabrics(machine):
        near = [address for item in fabric.near.classes for address in item.addresses][:clients]
        far = [address for item in fabric.far.classes for address in item.addresses]
        layer = 4 if policy == "1" else 3
        with open_progress_bar("routers lost in turn") as step:
            traffic = simulate_flows(
                fabric,
                near,
                far,
                connections_per_pair=connections_per_pair,
                hash_layer=layer,
                seed=seed,
                on_progress=step,
            )
        shares = traffic.all_up.shares
        compared = compare_mounts(machine, fabric, shares, client_count=len(near), task_count=tasks)
        predictions.append((fabric, traffic, compared))
    if output is not None:
        from sonde.design.routes.flow_page import write_flow_page

        write_flow_page(predictions, machine.title or machine.id, output)
    if as_json:
        print_json([{"fabric": fabric.name, **asdict(traffic), "paths": [asdict(item) for item in compared]}
                    for fabric, traffic, compared in predictions])  # fmt: skip
        return 0
    console = get_results_console()
    for fabric, traffic, compared in predictions:
        console.print(describe_fabric(fabric), style="bold", soft_wrap=True)
        console.print(f"all routers: {describe_flow_result(traffic.all_up)}", soft_wrap=True, highlight=False)
        for route, outcome in zip(fabric.active_routers, traffic.one_lost, strict=False):
            console.print(f"without {route.name}: {describe_flow_result(outcome)}", soft_wrap=True, highlight=False)
        if not traffic.one_lost:
            console.print("There is no other router: when this one is lost, nothing reaches the other side.")
        if compared:
            print_mount_comparison(compared, describe_striping_effect(traffic.all_up))
    if output is not None:
        console.print(str(output), soft_wrap=True)
    return 0


@command.command("verify")
@_system_argument
@click.option("--flows", type=click.IntRange(1, 1000), default=24, show_default=True, help="Connections.")
@click.option(
    "--losses", type=click.IntRange(0, 100), default=3, show_default=True, help="Routers that die, one by one."
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Which routers die.")
@click.option(
    "--policy", type=click.Choice(["0", "1"]), default="1", show_default=True, help="fib_multipath_hash_policy."
)
@click.option("--watch/--no-watch", "watched", default=True, help="With or without health checks (default: with).")
@add_json_option
def verify_command(system: str, flows: int, losses: int, seed: int, policy: str, watched: bool, as_json: bool) -> int:
    """Try the plan of SYSTEM out: build it in network namespaces of this machine, send flows, let routers die.

    Nothing outside the namespaces is changed, and they are removed at the end. Needs root. Exit code 1 when something
    did not hold.

    \b
    Examples:
      sonde route verify cumulus
      sonde route verify cumulus --losses 20
    """
    from sonde.design.routes.verify import verify_route_plan

    source = find_system_file(system)
    outcomes = []
    for fabric in find_fabrics(read_system(source)):
        with open_progress_bar("routers that die") as step:
            file = str(Path(source).resolve())
            layer = 4 if policy == "1" else 3
            result = verify_route_plan(
                fabric,
                file,
                flow_count=flows,
                loss_count=losses,
                seed=seed,
                with_health_check=watched,
                hash_layer=layer,
                on_progress=step,
            )
        outcomes.append((fabric, result))
    if as_json:
        print_json(
            [{"fabric": fabric.name, "holds": result.is_as_planned, **asdict(result)} for fabric, result in outcomes]
        )
    for fabric, result in outcomes if not as_json else ():
        print_verification_result(fabric, result)
    return 0 if all(result.is_as_planned for _, result in outcomes) else EXIT_FAILED
