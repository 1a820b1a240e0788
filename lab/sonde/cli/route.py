# SPDX-License-Identifier: Apache-2.0
"""``sonde route``: IP and LNet routes around a compute fabric, planned, checked, predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from sonde.cli.options import VerbGroup, json_option
from sonde.cli.selecting import steps
from sonde.design.routes.check import check_both, check_host
from sonde.design.routes.fabric import Fabric, fabrics
from sonde.design.routes.faults import Fault
from sonde.design.routes.health import Timing
from sonde.design.routes.paths import Compared
from sonde.design.routes.plan import HASH_SEED, RoutePlan, plan_routes
from sonde.design.routes.tables import HostTables
from sonde.design.routes.verify import Verified
from sonde.design.routes.words import (
    ahead_words,
    fabric_words,
    gathered,
    outcome_words,
    path_rows,
    plan_words,
    striped_words,
    unknown_words,
)
from sonde.model.errors import FAILED, MachineError
from sonde.model.shipped import system_source
from sonde.model.system import read_system
from sonde.model.units import counted
from sonde.terminal.screen import messages, plain_table, print_json, results

# Hosts behind the routers that a health check asks.
_BEHIND = 3
FORMATS = ("iproute2", "network-scripts", "networkd", "networkmanager", "nmstate", "ansible", "lnet")


@click.group("route", cls=VerbGroup)
def command() -> None:
    """Plan, check and predict routes between a compute fabric and storage, from a system file.

    \b
    Examples:
      sonde route plan cumulus --format iproute2 -o routes/
      sonde route check cumulus --as compute rules.txt routes.txt sysctl.txt
      sonde route simulate cumulus --connections 2
    """


_system = click.argument("system", metavar="SYSTEM")


@command.command("plan")
@_system
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="iproute2", show_default=True, help="Of the files."
)
@click.option("--class", "only", metavar="NAME", help="Files for this class of hosts only.")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write the files."
)
@json_option
def plan_command(system: str, form: str, only: str | None, output: Path | None, as_json: bool) -> int:
    """Plan the routes of SYSTEM: a file, or the name of a ready-made system.

    Without -o the files are printed; with it a picture of the fabric is written too. Nothing on this machine is
    changed.

    \b
    Examples:
      sonde route plan cumulus
      sonde route plan cumulus --format networkd --class wolf-servers -o networkd/
      sonde route plan edison --format lnet
    """
    known = read_system(system_source(system))
    if form == "lnet":
        from sonde.design.routes.configurations import lnet_files

        plans: list[RoutePlan] = []
        files = lnet_files(known)
    else:
        plans = [plan_routes(fabric) for fabric in fabrics(known)]
        files = {name: text for plan in plans for name, text in _files(plan, form, only).items()}
    if output is not None:
        _write(output, files | _pictures(plans))
    if as_json:
        print_json({"plans": [asdict(plan) for plan in plans], "files": files})
        return 0
    console = results()
    for plan in plans:
        console.print(fabric_words(plan.fabric), style="bold", soft_wrap=True)
        table = plain_table()
        for title in ("hosts", "rules", "tables", "main table"):
            table.add_column(title)
        for row in plan_words(plan):
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


def _files(plan: RoutePlan, form: str, only: str | None) -> dict[str, str]:
    from sonde.design.routes import configurations, scripts

    hosts = plan.hosts if only is None else (plan.of(only),)
    if form == "iproute2":
        every = scripts.scripts_of(plan)
        return every if only is None else {name: text for name, text in every.items() if only in name}
    if form == "ansible":
        return configurations.ansible_files(plan)
    makers = {
        "network-scripts": scripts.legacy_files,
        "networkd": configurations.networkd_files,
        "networkmanager": configurations.keyfile_files,
        "nmstate": configurations.nmstate_files,
    }
    # the same file name may be wanted by several classes: each has its own folder
    return {f"{host.name}/{name}": text for host in hosts for name, text in makers[form](host).items()}


def _pictures(plans: list[RoutePlan]) -> dict[str, str]:
    from sonde.design.routes.diagram import diagram

    return {f"{plan.fabric.name.replace(' ', '-')}.svg": diagram(plan.fabric) for plan in plans}


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as reason:
        raise MachineError(f"{folder} cannot be written: {reason.strerror}.") from None


@command.command("check")
@_system
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--as", "name", metavar="NAME", required=True, help='Whose tables: a class of hosts, a host, or "routers".'
)
@click.option(
    "--other-side",
    "others",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Tables of a host of the other network: do replies come back by the same routers?",
)
@json_option
def check_command(system: str, files: tuple[Path, ...], name: str, others: tuple[Path, ...], as_json: bool) -> int:
    """Say what is wrong with rules, routes and settings of a host of SYSTEM.

    FILES are saved output of `ip -j rule`, `ip -j route show table all`, `ip -j addr`, `sysctl -a`, a kernel .config,
    or scripts and files that hold rules and routes. Without FILES this host is asked. Exit code 1 when something is
    wrong.

    \b
    Examples:
      sonde route check cumulus --as compute
      sonde route check cumulus --as wolf-servers rule-ib1 route-ib1 sysctl.conf
    """
    faults: list[Fault] = []
    unknown: list[str] = []
    for fabric in fabrics(read_system(system_source(system))):
        own = _tables(fabric, files)
        verdict = check_host(fabric, name, own)
        faults += verdict.faults
        if others:
            faults += _both(fabric, name, own, _tables(fabric, others))
        unknown += [*verdict.unknown, *([] if others else ["the other side, so whether replies return the same way"])]
    unknown = list(dict.fromkeys(unknown))
    if as_json:
        print_json({"host": name, "faults": [asdict(one) for one in faults], "not_given": unknown})
    else:
        _print_faults(name, faults, unknown)
    return FAILED if faults else 0


def _both(fabric: Fabric, name: str, own: HostTables, other: HostTables) -> list[Fault]:
    return check_both(fabric, *((own, other) if fabric.near.class_of(name) else (other, own)))


def _tables(fabric: Fabric, files: tuple[Path, ...]) -> HostTables:
    if files:
        from sonde.design.routes.tables import read_tables

        return read_tables(files)
    from sonde.design.routes.live import this_host

    return this_host(fabric.version)


def _print_faults(name: str, faults: list[Fault], unknown: list[str]) -> None:
    console = results()
    for fault, places in gathered(faults):
        where = places[0] if len(places) == 1 else f"{places[0]}, and {len(places) - 1} more like it"
        console.print(f"{fault.kind}  {where}", style="bold red", soft_wrap=True)
        console.print(f"  {fault.what}: {fault.remedy}.", soft_wrap=True, highlight=False)
    said = "Nothing wrong was found" if not faults else f"{len(faults)} faults" if len(faults) > 1 else "1 fault"
    blind = f" Not given, so not checked: {', '.join(unknown)}." if unknown else ""
    console.print(f"{name}: {said}.{blind}", soft_wrap=True)


@command.command("simulate")
@_system
@click.option(
    "--connections", type=click.IntRange(1, 1000), default=1, show_default=True, help="From a client to a server."
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
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page.")
@json_option
def simulate_command(
    system: str,
    connections: int,
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
    from sonde.design.routes.flows import simulate
    from sonde.design.routes.paths import compare_paths

    found, known = [], read_system(system_source(system))
    for fabric in fabrics(known):
        near = [address for one in fabric.near.classes for address in one.addresses][:clients]
        far = [address for one in fabric.far.classes for address in one.addresses]
        layer = 4 if policy == "1" else 3
        with steps("routers lost in turn") as step:
            traffic = simulate(fabric, near, far, connections=connections, layer=layer, seed=seed, step=step)
        shares = traffic.all_living.shares
        compared = compare_paths(known, fabric, shares, clients=len(near), tasks=tasks)
        found.append((fabric, traffic, compared))
    if output is not None:
        from sonde.design.routes.page import write_page

        write_page(found, known.title or known.id, output)
    if as_json:
        print_json([{"fabric": fabric.name, **asdict(traffic), "paths": [asdict(one) for one in compared]}
                    for fabric, traffic, compared in found])  # fmt: skip
        return 0
    console = results()
    for fabric, traffic, compared in found:
        console.print(fabric_words(fabric), style="bold", soft_wrap=True)
        console.print(f"all routers: {outcome_words(traffic.all_living)}", soft_wrap=True, highlight=False)
        for way, outcome in zip(fabric.active, traffic.one_lost, strict=False):
            console.print(f"without {way.router}: {outcome_words(outcome)}", soft_wrap=True, highlight=False)
        if not traffic.one_lost:
            console.print("There is no other router: when this one is lost, nothing reaches the other side.")
        if compared:
            _print_paths(compared, striped_words(traffic.all_living))
    if output is not None:
        console.print(str(output), soft_wrap=True)
    return 0


def _print_paths(compared: Sequence[Compared], striped: str) -> None:
    console = results()
    console.print(f"\nNative against forwarded, {counted(compared[0].tasks, 'task')} a client", style="bold")
    table = plain_table()
    for title in ("operation", "clients", *(path.mount for path, _ in compared[0].mounts), "times"):
        table.add_column(title, justify="left" if title == "operation" else "right")
    for row in path_rows(compared):
        table.add_row(*row)
    console.print(table)
    for words in (*ahead_words(compared[:2]), striped, unknown_words(compared)):
        if words:
            console.print(words, soft_wrap=True, highlight=False)


@command.command("watch")
@_system
@click.option("--as", "name", metavar="CLASS", required=True, help="The class of hosts that this host is one of.")
@click.option(
    "--interval", type=click.FloatRange(0.05, 60), default=Timing.interval_s, show_default=True, help="Seconds."
)
@click.option(
    "--down", type=click.IntRange(1, 100), default=Timing.down, show_default=True, help="Failed rounds to take out."
)
@click.option(
    "--up", type=click.IntRange(1, 1000), default=Timing.up, show_default=True, help="Good rounds to put back."
)
def watch_command(system: str, name: str, interval: float, down: int, up: int) -> int:
    """Ask every router of SYSTEM again and again, and take the dead ones out of the multipath route of this host.

    For a service on every host (packaging/systemd). It runs until it is ended; the route is whole again then. The last
    router is never taken out. Needs root.

    \b
    Examples:
      sonde route watch cumulus --as compute
    """
    from sonde.design.routes.health import Watched, change_route, watch

    timing = Timing(interval, down, up)
    known = fabrics(read_system(system_source(system)))
    (fabric, *more) = [one for one in known if one.near.class_of(name) or one.far.class_of(name)] or known
    if more:
        messages().print(f"sonde: only {fabric.name} is watched; start another for {more[0].name}.", soft_wrap=True)
    plan = plan_routes(fabric).of(name)
    near = plan.side == fabric.near.network
    other = fabric.far if near else fabric.near
    watched = Watched(
        plan,
        tuple(way.far if near else way.near for way in fabric.ways),
        tuple(address for one in other.classes for address in one.addresses)[:_BEHIND],
    )
    change = change_route(fabric.version, plan.mtu)
    messages().print(
        f"Watching {counted(len(fabric.ways), 'router')}: a dead one is out within {timing.failover_s:g} s.",
        soft_wrap=True,
    )
    try:
        watch(watched, timing, change, lambda what: messages().print(what, soft_wrap=True, highlight=False))
    finally:
        for route in watched.main_routes:
            change(route)
    return 0


@command.command("verify")
@_system
@click.option("--flows", type=click.IntRange(1, 1000), default=24, show_default=True, help="Connections.")
@click.option(
    "--losses", type=click.IntRange(0, 100), default=3, show_default=True, help="Routers that die, one by one."
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Which routers die.")
@click.option(
    "--policy", type=click.Choice(["0", "1"]), default="1", show_default=True, help="fib_multipath_hash_policy."
)
@click.option("--watch/--no-watch", "watched", default=True, help="With or without health checks (default: with).")
@json_option
def verify_command(system: str, flows: int, losses: int, seed: int, policy: str, watched: bool, as_json: bool) -> int:
    """Try the plan of SYSTEM out: build it in network namespaces of this machine, send flows, let routers die.

    Nothing outside the namespaces is changed, and they are removed at the end. Needs root. Exit code 1 when something
    did not hold.

    \b
    Examples:
      sonde route verify cumulus
      sonde route verify cumulus --losses 20
    """
    from sonde.design.routes.verify import verify

    source = system_source(system)
    outcomes = []
    for fabric in fabrics(read_system(source)):
        with steps("routers that die") as step:
            file = str(Path(source).resolve())
            layer = 4 if policy == "1" else 3
            found = verify(fabric, file, flows=flows, losses=losses, seed=seed, watched=watched, layer=layer, step=step)
        outcomes.append((fabric, found))
    if as_json:
        print_json([{"fabric": fabric.name, "holds": one.holds, **asdict(one)} for fabric, one in outcomes])
    for fabric, one in outcomes if not as_json else ():
        _print_verified(fabric, one)
    return 0 if all(one.holds for _, one in outcomes) else FAILED


def _print_verified(fabric: Fabric, one: Verified) -> None:
    console = results()
    console.print(fabric_words(fabric), style="bold", soft_wrap=True)
    table = plain_table()
    for title in ("router", "predicted", "counted"):
        table.add_column(title, justify="left" if title == "router" else "right")
    for name, predicted, seen in zip(one.spread.routers, one.spread.predicted, one.spread.counted, strict=True):
        table.add_row(name, f"{100 * predicted:.1f} %", f"{100 * seen:.1f} %")
    console.print(table)
    holds = "as predicted" if one.spread.holds else "not as predicted"
    console.print(f"{counted(one.flows, 'flow')}: spread {holds}.", soft_wrap=True)
    for loss in one.losses:
        late = "" if loss.stall_s <= one.limit_s else f", longer than {one.limit_s:.2g} s"
        broke = f"; {counted(loss.broken, 'flow')} broke ({loss.reason})" if loss.broken else ""
        console.print(f"{loss.router} died: the longest pause was {loss.stall_s:.2f} s{late}{broke}.", soft_wrap=True)
    console.print("Removed without a trace." if one.clean else "Removing left something behind.", soft_wrap=True)
