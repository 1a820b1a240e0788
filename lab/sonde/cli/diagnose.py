# SPDX-License-Identifier: Apache-2.0
"""``sonde diagnose``: from "it became slower" to the part and its fault."""

from __future__ import annotations

from pathlib import Path

import click

from sonde.charts.study import write_study_page
from sonde.cli.diagnose_checks import check_start_options, require_distinct_names, require_other_file
from sonde.cli.diagnose_output import (
    add_evidence,
    find_run_folder,
    open_session_with_progress,
    print_causes_and_experiments,
    print_diagnosis_state,
    print_evidence_for_hypothesis,
    print_next_experiment,
    print_second_cause_search,
    write_experiment_plan,
)
from sonde.cli.options import VerbGroup, add_archive_option, add_json_option
from sonde.diagnose.diagnosis import DiagnosisStopRule
from sonde.diagnose.diagnosis_page import build_diagnosis_page
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.diagnose.diagnosis_state import (
    DiagnosisState,
    check_planted_truth,
    check_suspects,
    make_truth,
    parse_complaint,
    read_diagnosis_state,
    write_diagnosis_state,
)
from sonde.diagnose.library import find_diagnosis_experiment, list_causes, list_diagnosis_experiments
from sonde.diagnose.stated_results import parse_stated_result
from sonde.diagnose.vendor_bundle import build_vendor_bundle
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import EXIT_OK, MachineError, UserError
from sonde.store.archive import Archive
from sonde.terminal.screen import get_messages_console, get_results_console, print_json

state_argument = click.argument("state_file", type=click.Path(path_type=Path), metavar="FILE")


@click.group("diagnose", cls=VerbGroup)
def command() -> None:
    """Find the part and the fault behind slow I/O by experiments that are worth their cost.

    FILE holds the diagnosis; a killed diagnosis is continued with the same FILE.

    \b
    Examples:
      sonde diagnose start case.json --system edison --mount fs3
      sonde diagnose next case.json
      sonde diagnose answer case.json every-target write=-40% read=-5%
      sonde diagnose report case.json --out case.html

    More: sonde help tasks/diagnose
    """


@command.command("start")
@state_argument
@click.option("--system", metavar="FILE", default="", help="System file of the machine, or the name of a shipped one.")
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    metavar="PATH",
    help="Instead of a system file: a directory of this node's file system.",
)
@click.option("--mount", metavar="ID", default="", help="Mount or file system; default: the first with storage.")
@click.option("--complaint", metavar="NAME=VALUE", multiple=True, help="What is slow, as application=theirs.")
@click.option(
    "--suspect",
    "suspects",
    metavar="FAULT",
    multiple=True,
    help="Consider only these faults of the model; default: all.",
)
@click.option(
    "--targets", type=click.IntRange(2), metavar="N", help="Use a smaller machine: N targets, in whole units."
)
@click.option("--on-model", is_flag=True, help="Practice on the model, with the faults or cause that follow.")
@click.option(
    "--fault", "faults", metavar="FAULT", multiple=True, help="With --on-model: a fault, as for sonde simulate."
)
@click.option("--cause", metavar="ID", default="", help="With --on-model: a cause of `sonde diagnose list`.")
@click.option("--seed", type=click.IntRange(0, 2**31), default=1, help="Seed of the noise of a simulated machine.")
def start_command(
    state_file: Path,
    system: str,
    directory: str | None,
    mount: str,
    complaint: tuple[str, ...],
    suspects: tuple[str, ...],
    targets: int | None,
    on_model: bool,
    faults: tuple[str, ...],
    cause: str,
    seed: int,
) -> int:
    """Begin a diagnosis in FILE.

    \b
    Examples:
      sonde diagnose start case.json --system edison --mount fs3
      sonde diagnose start case.json --directory /scratch
      sonde diagnose start practice.json --system edison --mount fs3 --on-model --fault "slow-target 17 5x"
    """
    if state_file.exists():
        raise UserError(f"{state_file} exists; name another file, or continue with `sonde diagnose next {state_file}`.")
    check_start_options(system, directory or "", bool(mount or targets or suspects), on_model, faults, cause)
    require_distinct_names(complaint)
    truth = make_truth(faults, cause, 0.5, seed) if on_model else None
    path = find_system_file(system) if system else ""
    stored_name = system if system != path else str(Path(path).absolute()) if path else ""
    state = DiagnosisState(
        stored_name,
        mount,
        targets or 0,
        parse_complaint(complaint),
        check_suspects(suspects),
        seed,
        truth=truth,
        directory=directory or "",
    )
    check_planted_truth(DiagnosisSession.read_machine(state), state)
    write_diagnosis_state(state_file, state)
    get_messages_console().print(
        f"Begun: {state_file}. Next: sonde diagnose {'run' if on_model else 'next'} {state_file}"
    )
    return EXIT_OK


@command.command("run")
@state_argument
@click.option(
    "--steps", type=click.IntRange(1), metavar="N", help="End after N experiments. Default: when it is decided."
)
@add_archive_option
@add_json_option
def run_command(state_file: Path, steps: int | None, archive: Archive, as_json: bool) -> int:
    """Do experiments on the simulated machine of FILE until the cause is decided.

    \b
    Examples:
      sonde diagnose run practice.json
      sonde diagnose run practice.json --steps 1 --json
    """
    state = read_diagnosis_state(state_file)
    if state.truth is None:
        raise UserError(
            f"{state_file} is about a real machine: do what `sonde diagnose next` says, and enter its result with"
            " `sonde diagnose answer`."
        )
    session = open_session_with_progress(state, archive)
    done = 0
    while steps is None or done < steps:
        choice = session.choose_next(DiagnosisStopRule())
        if choice.experiment is None:
            break
        session.run_on_model(choice.experiment)
        write_diagnosis_state(state_file, session.state)
        done += 1
        if not as_json:
            get_messages_console().print(
                f"{len(session.state.results)}. {session.describe_last_result()}", soft_wrap=True
            )
    return print_diagnosis_state(session, as_json)


@command.command("next")
@state_argument
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), metavar="OUT", help="Write its plan for `sonde run`."
)
@add_archive_option
@add_json_option
def next_command(state_file: Path, plan_file: Path | None, archive: Archive, as_json: bool) -> int:
    """Say which experiment is worth most next, and how to do it.

    \b
    Examples:
      sonde diagnose next case.json
      sonde diagnose next case.json --plan next.json
    """
    state = read_diagnosis_state(state_file)
    if plan_file is not None:
        require_other_file(plan_file, state_file, "--plan")
    session = open_session_with_progress(state, archive)
    choice = session.choose_next(DiagnosisStopRule())
    if plan_file is not None:
        write_experiment_plan(session, choice, plan_file)
    if as_json:
        print_json(choice.to_json())
    else:
        print_next_experiment(session, choice, state_file)
    return EXIT_OK


@command.command("answer")
@state_argument
@click.argument("experiment")
@click.argument("changes", nargs=-1, metavar="[PHASE=CHANGE]...")
@click.option("--run", "run_name", metavar="RUN", default="", help="Stored run of the experiment.")
@click.option(
    "--reference", "references", metavar="RUN", multiple=True, help="Stored run when it was fast; or several."
)
@add_archive_option
@add_json_option
def answer_command(
    state_file: Path,
    experiment: str,
    changes: tuple[str, ...],
    run_name: str,
    references: tuple[str, ...],
    archive: Archive,
    as_json: bool,
) -> int:
    """Enter the result of EXPERIMENT: changes of its phases against the fast time, or stored runs.

    Give --reference for each earlier run; their scatter says how much runs differ.

    \b
    Examples:
      sonde diagnose answer case.json every-target write=-40% read=-5%
      sonde diagnose answer case.json every-target write=0.6x
      sonde diagnose answer case.json every-target --run last --reference 20260101T000000Z-every-target-00000000
    """
    state = read_diagnosis_state(state_file)
    description = find_diagnosis_experiment(experiment)
    if bool(changes) == bool(run_name):
        raise UserError("Give either changes as PHASE=-40%, or --run with --reference.")
    require_distinct_names(changes)
    session = open_session_with_progress(state, archive)
    if run_name:
        if not references:
            raise UserError("--run needs --reference: the same experiment when it was fast.")
        session.add_stored_run(
            description, find_run_folder(archive, run_name), [find_run_folder(archive, name) for name in references]
        )
    else:
        session.add_result(parse_stated_result(description, changes, session.model.machine), "hand")
    write_diagnosis_state(state_file, session.state)
    return print_diagnosis_state(session, as_json)


@command.command("evidence")
@state_argument
@click.option("--run", "run_name", metavar="RUN", default="", help="A stored run from the slow time, of any plan.")
@click.option("--reference", metavar="RUN", default="", help="A stored run from the time when it was fast.")
@click.option(
    "--log",
    "logs",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="LOG",
    help="A log of a server from the slow time; give those of all servers in one command.",
)
@click.option("--joint-changes", "has_joint_changes", is_flag=True, help="Histories that changed between both runs.")
@add_archive_option
@add_json_option
def evidence_command(
    state_file: Path,
    run_name: str,
    reference: str,
    logs: tuple[Path, ...],
    has_joint_changes: bool,
    archive: Archive,
    as_json: bool,
) -> int:
    """Enter what needs no experiment: facts, counters and targets of two runs, histories, and messages of servers.

    \b
    Examples:
      sonde diagnose evidence case.json --run last --reference 20260101T000000Z-ior-00000000
      sonde diagnose evidence case.json --log oss1/messages --log oss2/messages.gz
    """
    if bool(run_name) != bool(reference) or not (run_name or logs) or (has_joint_changes and not run_name):
        raise UserError("Give --run with --reference, or --log with the logs of all servers, or both.")
    session = open_session_with_progress(read_diagnosis_state(state_file), archive)
    sentences = add_evidence(session, archive, run_name, reference, logs, has_joint_changes)
    write_diagnosis_state(state_file, session.state)
    if not as_json:
        get_results_console().print("\n".join(sentences), soft_wrap=True, markup=False)
    return print_diagnosis_state(session, as_json)


@command.command("show")
@state_argument
@click.option("--explain", metavar="HYPOTHESIS", default="", help="Evidence for and against one hypothesis.")
@click.option("--second", "asks_second", is_flag=True, help="Ask whether there is a second cause beside the first.")
@add_archive_option
@add_json_option
def show_command(state_file: Path, explain: str, asks_second: bool, archive: Archive, as_json: bool) -> int:
    """Show the ranking, the evidence for and against one hypothesis, or a second cause.

    \b
    Examples:
      sonde diagnose show case.json
      sonde diagnose show case.json --explain client-software
      sonde diagnose show case.json --second
    """
    if explain and asks_second:
        raise UserError("Give either --explain or --second.")
    session = open_session_with_progress(read_diagnosis_state(state_file), archive)
    if asks_second:
        return print_second_cause_search(session, as_json)
    if not explain:
        return print_diagnosis_state(session, as_json)
    return print_evidence_for_hypothesis(session, explain, as_json)


@command.command("confirm")
@state_argument
@click.argument("changes", nargs=-1, metavar="[PHASE=CHANGE]...")
@add_archive_option
@add_json_option
def confirm_fix_command(state_file: Path, changes: tuple[str, ...], archive: Archive, as_json: bool) -> int:
    """After a fix, repeat the experiment that decided. Exit code 1: the machine is not as it was when it was fast.

    On a simulated machine the fault is taken out. On a real one enter the new changes.

    \b
    Examples:
      sonde diagnose confirm practice.json
      sonde diagnose confirm case.json write=-2% read=+1%
    """
    require_distinct_names(changes)
    session = open_session_with_progress(read_diagnosis_state(state_file), archive)
    confirmation = session.confirm_fix(changes)
    write_diagnosis_state(state_file, session.state)
    if as_json:
        print_json(confirmation.to_json())
    else:
        get_results_console().print(confirmation.describe(), soft_wrap=True, markup=False)
    return EXIT_OK if confirmation.is_fixed else 1


@command.command("report")
@state_argument
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="PAGE", help="HTML file to write.")
@add_archive_option
def report_command(state_file: Path, out: Path, archive: Archive) -> int:
    """Write a page that explains the diagnosis step by step.

    \b
    Examples:
      sonde diagnose report case.json --out case.html
      sonde diagnose report case.json --out /tmp/case.html --archive /project/archive
    """
    state = read_diagnosis_state(state_file)
    require_other_file(out, state_file, "--out")
    session = open_session_with_progress(state, archive)
    get_results_console().print(str(write_study_page(build_diagnosis_page(session), out)), soft_wrap=True, markup=False)
    return EXIT_OK


@command.command("bundle")
@state_argument
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="ARCHIVE", help="A .tar.gz file to write."
)
@add_archive_option
def bundle_command(state_file: Path, out: Path, archive: Archive) -> int:
    """Write what a vendor needs in one archive: diagnosis, page, system file and records, without names of hosts.

    \b
    Examples:
      sonde diagnose bundle case.json --out case.tar.gz
      sonde diagnose bundle case.json --out case.tar.gz --archive /project/archive
    """
    state = read_diagnosis_state(state_file)
    require_other_file(out, state_file, "--out")
    session = open_session_with_progress(state, archive)
    try:
        names = build_vendor_bundle(session, archive, out)
    except OSError as error:
        raise MachineError(f"{out} cannot be written: {error.strerror}.") from None
    get_results_console().print(f"{out}: {', '.join(names)}", soft_wrap=True, markup=False)
    return EXIT_OK


@command.command("list")
@add_json_option
def list_command(as_json: bool) -> int:
    """List causes outside the model, and experiments.

    \b
    Examples:
      sonde diagnose list
      sonde diagnose list --json
    """
    print_causes_and_experiments(list_causes(), list_diagnosis_experiments(), as_json)
    return EXIT_OK
