# SPDX-License-Identifier: Apache-2.0
"""Submits, queries and cancels jobs through PSI/J. No other file depends on PSI/J.

PSI/J (ExaWorks) provides the directives, commands and states of Slurm, PBS and LSF. It writes a script with the
scheduler's directives, which runs the batch script of the job.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sonde.jobs.job_records import SCRIPT_FILE, Job
from sonde.launch.sites import Site
from sonde.model.directives import quote_batch_value
from sonde.model.errors import MachineError, UserError
from sonde.model.escaping import escape_line

if TYPE_CHECKING:
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor

_TIMEOUT_S, _NEVER_S = 60.0, 10**6
QUEUED, RUNNING, DONE, FAILED, CANCELED, GONE = "queued", "running", "done", "failed", "canceled", "gone"
UNKNOWN_JOB_STATE = "unknown"  # the scheduler gave no answer
_ARRAY_STATE_ORDER = (RUNNING, QUEUED, UNKNOWN_JOB_STATE, CANCELED, FAILED, GONE, DONE)
ENDED_STATES = frozenset({DONE, FAILED, CANCELED, GONE})
# Messages of Slurm, PBS and LSF for a job that ended too long ago.
_JOB_UNKNOWN_MESSAGE_PATTERN = re.compile(
    r"Invalid job id|Unknown Job|has finished|is not found|No matching job", re.IGNORECASE
)
_STATES_BY_PSIJ_NAME = {
    "NEW": QUEUED, "QUEUED": QUEUED, "STAGE_IN": QUEUED, "ACTIVE": RUNNING, "STAGE_OUT": RUNNING,
    "CLEANUP": RUNNING, "COMPLETED": DONE, "FAILED": FAILED, "CANCELED": CANCELED,
}  # fmt: skip


def make_directives(job: Job, site: Site) -> str:
    """The script that the scheduler gets: its directives, and the call of the batch script."""
    executor = _get_executor(site.scheduler)
    psij_job = _make_psij_job(job, site)
    text = io.StringIO()
    executor.generate_submit_script(psij_job, executor._create_script_context(psij_job), text)
    return "\n".join(line for line in text.getvalue().splitlines() if line.strip()) + "\n"


def submit_job(job: Job, site: Site) -> str:
    """Submits the job. Returns the id that the scheduler gave it. Raises MachineError with the scheduler's message."""
    from psij import SubmitException

    executor = _get_executor(site.scheduler)
    psij_job = _make_psij_job(job, site)
    # Slurm must not requeue a measurement after the loss of a node: it would be another one under the same name.
    os.environ.setdefault("SBATCH_NO_REQUEUE", "1")
    try:
        executor.submit(psij_job)
    except FileNotFoundError as error:
        raise MachineError(
            f'There is no {error.filename} on this node; the site "{site.name}" has the scheduler {site.scheduler}:'
            " submit on a node that has its commands."
        ) from None
    except (SubmitException, subprocess.SubprocessError, OSError) as error:
        message = " ".join(str(error).split()) or "it printed no message"
        raise MachineError(f'The scheduler of "{site.name}" refused the job: {message}.') from None
    return str(psij_job.native_id)


def query_job_states(jobs: Sequence[Job]) -> Mapping[str, str]:
    """The state of each job by its id. A job that the scheduler has forgotten has ended: done, failed, or gone when it
    did not end by itself."""
    states = {job.id: _read_state_from_exit_code(job) for job in jobs}
    for scheduler in sorted({job.scheduler for job in jobs}):
        unfinished = {
            job.scheduler_id: job for job in jobs if job.scheduler == scheduler and job.read_exit_code() is None
        }
        if not unfinished:
            continue
        for scheduler_id, state in _merge_array_states(_query_scheduler(scheduler, list(unfinished))).items():
            if scheduler_id in unfinished:
                job = unfinished[scheduler_id]
                states[job.id] = _correct_ended_state(job, state)
    return states


def _merge_array_states(state_by_native_id: Mapping[str, str]) -> dict[str, str]:
    """Merges the jobs of an array ("4711_1", "4711_[2-4%1]"): the array is running while any job runs, else waiting
    while any job waits."""
    merged: dict[str, str] = {}
    for native_id, state in state_by_native_id.items():
        scheduler_id = native_id.split("_", 1)[0]
        merged[scheduler_id] = min(merged.get(scheduler_id, state), state, key=_ARRAY_STATE_ORDER.index)
    return merged


def _correct_ended_state(job: Job, scheduler_state: str) -> str:
    """The scheduler's state, unless the job has ended: then the exit code of the batch script counts, because the
    scheduler sees only that of PSI/J's script around it."""
    if scheduler_state == DONE or (scheduler_state == FAILED and job.read_exit_code() is not None):
        return _read_state_from_exit_code(job)
    return scheduler_state


def cancel_job(job: Job) -> None:
    """Cancels a job. Raises MachineError with the scheduler's message."""
    executor = _get_executor(job.scheduler)
    result = _run_command(executor.get_cancel_command(job.scheduler_id), job.scheduler)
    if result.returncode:
        message = " ".join((result.stderr or result.stdout).split())
        raise MachineError(f"Job {job.scheduler_id} cannot be canceled: {message}.")


def _read_state_from_exit_code(job: Job) -> str:
    code = job.read_exit_code()
    return GONE if code is None else DONE if code == 0 else FAILED


def _query_scheduler(scheduler_name: str, scheduler_ids: Sequence[str]) -> dict[str, str]:
    """The scheduler's state of each job. Jobs that it has forgotten are absent; a job whose answer cannot be parsed is
    unknown, because no answer is not the end of a job."""
    executor = _get_executor(scheduler_name)
    states: dict[str, str] = {}
    # One query per job: an id that the scheduler has forgotten must not hide the others.
    for scheduler_id in scheduler_ids:
        result = _run_command(executor.get_status_command([scheduler_id]), scheduler_name)
        if result.returncode and _JOB_UNKNOWN_MESSAGE_PATTERN.search(result.stdout + result.stderr):
            continue
        try:
            answer: Mapping[str, Any] = executor.parse_status_output(result.returncode, result.stdout)
        except Exception:  # PSI/J documents no exception types for its parsers
            states[scheduler_id] = UNKNOWN_JOB_STATE
            continue
        states |= {
            str(native_id): _STATES_BY_PSIJ_NAME.get(status.state.name, RUNNING) for native_id, status in answer.items()
        }
    return states


def _run_command(arguments: Sequence[str], scheduler_name: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(arguments, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise MachineError(f"There is no {arguments[0]} on this node, so {scheduler_name} cannot be queried.") from None
    except subprocess.TimeoutExpired:
        raise MachineError(f"{scheduler_name} did not answer within {_TIMEOUT_S:g} s: {' '.join(arguments)}.") from None


def _get_executor(scheduler_name: str) -> BatchSchedulerExecutor:
    from psij import JobExecutor
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig

    # PSI/J would poll the scheduler from a thread; Sonde queries it only when a user asks for states.
    never = BatchSchedulerExecutorConfig(queue_polling_interval=_NEVER_S, initial_queue_polling_delay=_NEVER_S)
    executor: Any = JobExecutor.get_instance(scheduler_name, config=never)
    return executor  # type: ignore[no-any-return]


def _require_job_folder_path(job: Job) -> None:
    """Raises UserError when a batch directive cannot hold the path of the job's folder."""
    try:
        quote_batch_value(str(job.folder))
    except ValueError:
        raise UserError(
            f"The archive {escape_line(job.folder.parent.parent)} cannot hold batch jobs: schedulers take only letters,"
            " digits and _ @ % + = : , . / - in a path; name another archive with --archive DIR."
        ) from None


def _make_psij_job(job: Job, site: Site) -> Any:
    """The job as PSI/J describes it."""
    import psij

    options: dict[str, object] = {f"{site.scheduler}.{name}": value for name, value in site.options.items()}
    if job.array:
        # One at a time: jobs that measure the same storage at once would measure each other.
        options["slurm.array"] = f"1-{job.array}%1"
    attributes = psij.JobAttributes(
        duration=timedelta(seconds=job.time_s),
        queue_name=site.partition or None,
        account=site.account or None,
        reservation_id=site.reservation or None,
        custom_attributes=options or None,
    )
    _require_job_folder_path(job)
    spec = psij.JobSpec(
        name=f"sonde-{job.id.split('-', 1)[1]}"[:40],
        executable="/bin/bash",
        arguments=[str(job.folder / SCRIPT_FILE)],
        directory=str(job.folder),
        resources=psij.ResourceSpecV1(node_count=job.nodes, processes_per_node=site.tasks_per_node or 1),
        attributes=attributes,
        launcher="single",
    )
    return psij.Job(spec)
