# SPDX-License-Identifier: Apache-2.0
"""``sonde suite``: every experiment of a folder, one after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from sonde.cli.asking import How
from sonde.cli.options import archive_option, json_option, mpi_module_option, report_option, where
from sonde.experiments.where import Where
from sonde.launch.launchers.list import names
from sonde.model.errors import DONE, FAILED, INTERRUPTED, MISMATCH, UserError
from sonde.model.units import format_wait
from sonde.store.archive import Archive
from sonde.store.tags import check_tag
from sonde.terminal.screen import messages, plain_table, print_json, results

# The folder of this name means the experiments that come with Sonde, where there is no such folder.
READY_MADE = "experiments"


@click.command("suite")
@click.argument("folder")
@click.option("--on", metavar="[NAME=]DIR", multiple=True, help="Directory to measure, as of `sonde run`.")
@click.option(
    "--pool", "pools", metavar="NAME=DIR[,DIR]…", multiple=True, help="Directory of a pool, as of `sonde run`."
)
@click.option("--system", metavar="FILE", help="System file of this machine.")
@click.option(
    "--profile", metavar="NAME", default="", help="Scale: ci, laptop, published. Experiments without it: as is."
)
@click.option("--set", "settings", metavar="PATH=VALUE", multiple=True, help="Change one member of every experiment.")
@click.option("--only", metavar="TEXT", default="", help="Only experiments with this in their name.")
@click.option("--launcher", type=click.Choice(names()), default=None, help="What starts the processes.")
@click.option("--resume", is_flag=True, help="Take up those that were broken off; those that are finished stay.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Word to find the runs by later.")
@click.option("--note", metavar="TEXT", default="", help="Remark to keep with the runs.")
@mpi_module_option
@archive_option
@report_option
@click.option("-q", "--quiet", is_flag=True, help="No progress, no tables.")
@json_option
def command(
    folder: str,
    on: tuple[str, ...],
    pools: tuple[str, ...],
    system: str | None,
    profile: str,
    settings: tuple[str, ...],
    only: str,
    launcher: str | None,
    resume: bool,
    tags: tuple[str, ...],
    note: str,
    mpi_module: Path | None,
    archive: Archive,
    report: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run every experiment in FOLDER and the folders in it, one after the other.

    FOLDER experiments means those that come with Sonde. One that fails does not keep the others from being run. The
    exit code is 1 when something failed or was not as expected.

    \b
    Examples:
      sonde suite experiments --profile ci --on /scratch
      sonde suite experiments --profile ci --on /scratch --only hpcs
      sonde suite ./ours --on fs1=/scratch1 --on fs2=/scratch2 --resume
    """
    from sonde.cli.experimenting import complaint, document, perform, print_done

    for tag in tags:
        check_tag(tag)
    asked = _requests(folder, only, profile, settings, where(on, pools, system, launcher or "", ""), tags, note)
    how = How(archive, mpi_module, quiet or as_json, as_json, report)
    rows: list[dict[str, Any]] = []
    for number, request in enumerate(asked, start=1):
        name = request.experiment.id
        if not how.quiet:
            messages().print(Text(f"\n{name}  ({number} of {len(asked)})", style="bold"))
        began = time.monotonic()
        try:
            done = perform(_resumed(archive, request, resume), how)
        except UserError as reason:
            rows.append({"experiment": name, "exit_code": reason.exit_code, "text": str(reason)})
            messages().print(f"sonde: {name}: {reason}", soft_wrap=True)
            continue
        if not how.quiet:
            print_done(results(), done)
        taken = time.monotonic() - began
        rows.append({**document(done), "seconds": taken, "text": complaint(done)})
        if done.exit_code == INTERRUPTED:
            break
    code = _code(rows)
    if as_json:
        print_json({"schema": "sonde-suite/1", "exit_code": code, "experiments": rows})
    else:
        _print(rows, len(asked))
    return code


def _requests(
    folder: str,
    only: str,
    profile: str,
    settings: Sequence[str],
    places: Where,
    tags: Sequence[str],
    note: str,
) -> list[Any]:
    """A request for each experiment, with the directories that it names. Raises UserError."""
    from sonde.experiments.directories import names_of
    from sonde.experiments.ready import plan_source
    from sonde.experiments.request import new_request
    from sonde.model.experiment import read_experiment

    experiments = [read_experiment(file, finder=plan_source) for file in _files(folder, only)]
    known = [names_of(one) for one in experiments]
    for option, given, at in (("--on", places.named, 0), ("--pool", places.pools, 1)):
        unknown = next((name for name in given if not any(name in one[at] for one in known)), None)
        if unknown is not None:
            raise UserError(f"{option} {unknown}=…: no experiment in {folder} names it.")
    asked = []
    for experiment, (named, pooled) in zip(experiments, known, strict=True):
        own = replace(
            places,
            named={name: place for name, place in places.named.items() if name in named},
            pools={name: place for name, place in places.pools.items() if name in pooled},
        )
        chosen = profile if profile in experiment.profiles else ""
        asked.append(new_request(experiment, chosen, settings, own, "", tags, note))
    return asked


def _files(folder: str, only: str) -> list[Path]:
    """The experiments of a folder, in the order of their names. Raises UserError when there is none."""
    from sonde.experiments.ready import ready_experiments
    from sonde.model.experiment.description import SCHEMA

    path = Path(folder)
    if path.is_dir():
        found = [
            one for one in sorted(path.rglob("*.toml")) if f'schema = "{SCHEMA}"' in one.read_text("utf-8", "replace")
        ]
    elif folder == READY_MADE:
        found = list(ready_experiments().values())
    else:
        raise UserError(f"There is no folder {folder}; name one that holds experiments, or say {READY_MADE}.")
    chosen = [one for one in found if only in one.stem]
    if not chosen:
        what = f' with "{only}" in its name' if only else ""
        raise UserError(f"There is no experiment{what} in {folder}.")
    return chosen


def _resumed(archive: Archive, request: Any, resume: bool) -> Any:
    from sonde.experiments.request import taken_up

    if not resume:
        return request
    try:
        return taken_up(archive, request, must=True)
    except UserError:
        return request  # it was never begun


def _code(rows: Sequence[dict[str, Any]]) -> int:
    codes = [int(row["exit_code"]) for row in rows]
    if INTERRUPTED in codes:
        return INTERRUPTED
    return MISMATCH if MISMATCH in codes else FAILED if any(code != DONE for code in codes) else DONE


def _print(rows: Sequence[dict[str, Any]], count: int) -> None:
    table = plain_table()
    for title in ("experiment", "time", "runs", "holds", "fails", "open", "not here", ""):
        table.add_column(title, justify="left" if title in ("experiment", "") else "right", no_wrap=title != "")
    for row in rows:
        outcomes = [str(one["outcome"]) for one in row.get("expectations", ())]
        counts = [outcomes.count(one) for one in ("holds", "fails", "inconclusive", "not applicable")]
        taken = format_wait(row["seconds"]) if "seconds" in row else "-"
        style = "red" if row["exit_code"] != DONE else ""
        table.add_row(
            row["experiment"], taken, str(len(row.get("runs", ()))), *(str(one) if one else "" for one in counts),
            row["text"], style=style,
        )  # fmt: skip
    results().print()
    results().print(table)
    good = sum(row["exit_code"] == DONE for row in rows)
    results().print(Text(f"{good} of {count} experiments ended well and as expected.", style="bold"))
