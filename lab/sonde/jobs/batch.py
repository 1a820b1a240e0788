# SPDX-License-Identifier: Apache-2.0
"""Schedulers, through PSI/J: how a job is handed over, how it stands, how it is cancelled. The only file that knows it.

PSI/J (ExaWorks) has the directives, commands and states of Slurm, PBS and LSF. What it writes is a script with the
scheduler's directives that runs ours.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sonde.jobs.book import SCRIPT, Job
from sonde.launch.sites import Site
from sonde.model.errors import MachineError

if TYPE_CHECKING:
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor

_PATIENCE_S, _NEVER_S = 60.0, 10**6
QUEUED, RUNNING, DONE, FAILED, CANCELLED, GONE = "queued", "running", "done", "failed", "cancelled", "gone"
UNKNOWN = "unknown"  # the scheduler gave no answer
_BY_WEIGHT = (RUNNING, QUEUED, UNKNOWN, CANCELLED, FAILED, GONE, DONE)
ENDED = frozenset({DONE, FAILED, CANCELLED, GONE})
# Slurm, PBS, LSF of a job that ended too long ago.
_FORGOTTEN = re.compile(r"Invalid job id|Unknown Job|has finished|is not found|No matching job", re.IGNORECASE)
_STATES = {
    "NEW": QUEUED, "QUEUED": QUEUED, "STAGE_IN": QUEUED, "ACTIVE": RUNNING, "STAGE_OUT": RUNNING,
    "CLEANUP": RUNNING, "COMPLETED": DONE, "FAILED": FAILED, "CANCELED": CANCELLED,
}  # fmt: skip


def directives(job: Job, site: Site) -> str:
    """What is handed to the scheduler: its directives, and the call of our script."""
    executor = _executor(site.scheduler)
    asked = _asked(job, site)
    text = io.StringIO()
    executor.generate_submit_script(asked, executor._create_script_context(asked), text)
    return "\n".join(line for line in text.getvalue().splitlines() if line.strip()) + "\n"


def submit(job: Job, site: Site) -> str:
    """Hands the job over. Returns the scheduler's number. Raises MachineError with what the scheduler said."""
    from psij import SubmitException

    executor = _executor(site.scheduler)
    asked = _asked(job, site)
    # A measurement that Slurm began anew after the loss of a node would be another one under the same name.
    os.environ.setdefault("SBATCH_NO_REQUEUE", "1")
    try:
        executor.submit(asked)
    except FileNotFoundError as reason:
        raise MachineError(
            f'There is no {reason.filename} here; the site "{site.name}" has the scheduler {site.scheduler}: submit on'
            " a node that has its commands."
        ) from None
    except (SubmitException, subprocess.SubprocessError, OSError) as reason:
        said = " ".join(str(reason).split()) or "nothing was said"
        raise MachineError(f'The scheduler of "{site.name}" refused the job: {said}.') from None
    return str(asked.native_id)


def states(jobs: Sequence[Job]) -> Mapping[str, str]:
    """How each job stands, by its id. One question to each scheduler; a job that it does not know any more has ended:
    done, failed, or gone when it did not end by itself."""
    found = {job.id: _ended(job) for job in jobs}
    for scheduler in sorted({job.scheduler for job in jobs}):
        waiting = {job.number: job for job in jobs if job.scheduler == scheduler and job.exit_code() is None}
        if not waiting:
            continue
        for number, state in _joined(_asked_for(scheduler, list(waiting))).items():
            if number in waiting:
                found[waiting[number].id] = _judged(waiting[number], state)
    return found


def _joined(said: Mapping[str, str]) -> dict[str, str]:
    """The jobs of an array ("4711_1", "4711_[2-4%1]") as one: running when one of them runs, waiting when one waits."""
    found: dict[str, str] = {}
    for native, state in said.items():
        number = native.split("_", 1)[0]
        found[number] = min(found.get(number, state), state, key=_BY_WEIGHT.index)
    return found


def _judged(job: Job, state: str) -> str:
    """What the scheduler says, unless it has ended: then the script's own exit code counts, because the scheduler knows
    only that of what PSI/J has wrapped around it."""
    if state == DONE or (state == FAILED and job.exit_code() is not None):
        return _ended(job)
    return state


def cancel(job: Job) -> None:
    """Ends a job. Raises MachineError with what the scheduler said."""
    executor = _executor(job.scheduler)
    done = _run(executor.get_cancel_command(job.number), job.scheduler)
    if done.returncode:
        raise MachineError(f"Job {job.number} cannot be cancelled: {' '.join((done.stderr or done.stdout).split())}.")


def _ended(job: Job) -> str:
    code = job.exit_code()
    return GONE if code is None else DONE if code == 0 else FAILED


def _asked_for(scheduler: str, numbers: Sequence[str]) -> dict[str, str]:
    """What the scheduler says of each job; those that it has forgotten are absent, and one that cannot be asked for is
    unknown: no answer is not the end of a job."""
    executor = _executor(scheduler)
    found: dict[str, str] = {}
    # One at a time: a number that a scheduler has forgotten must not hide the others.
    for number in numbers:
        done = _run(executor.get_status_command([number]), scheduler)
        if done.returncode and _FORGOTTEN.search(done.stdout + done.stderr):
            continue
        try:
            answer: Mapping[str, Any] = executor.parse_status_output(done.returncode, done.stdout)
        except Exception:  # PSI/J raises what the parsing of each scheduler's answer happens to raise
            found[number] = UNKNOWN
            continue
        found |= {str(native): _STATES.get(status.state.name, RUNNING) for native, status in answer.items()}
    return found


def _run(words: Sequence[str], scheduler: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except FileNotFoundError:
        raise MachineError(f"There is no {words[0]} here, so {scheduler} cannot be asked.") from None
    except subprocess.TimeoutExpired:
        raise MachineError(f"{scheduler} did not answer within {_PATIENCE_S:g} s: {' '.join(words)}.") from None


def _executor(scheduler: str) -> BatchSchedulerExecutor:
    from psij import JobExecutor
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig

    # It would ask the scheduler again and again from a thread of its own; we ask when somebody wants to know.
    never = BatchSchedulerExecutorConfig(queue_polling_interval=_NEVER_S, initial_queue_polling_delay=_NEVER_S)
    executor: Any = JobExecutor.get_instance(scheduler, config=never)
    return executor  # type: ignore[no-any-return]


def _asked(job: Job, site: Site) -> Any:
    """The job in PSI/J's words."""
    import psij

    options: dict[str, object] = {f"{site.scheduler}.{name}": value for name, value in site.options.items()}
    if job.array:
        # One at a time: those that measure the same storage at once would measure each other.
        options["slurm.array"] = f"1-{job.array}%1"
    attributes = psij.JobAttributes(
        duration=timedelta(seconds=job.time_s),
        queue_name=site.partition or None,
        account=site.account or None,
        reservation_id=site.reservation or None,
        custom_attributes=options or None,
    )
    spec = psij.JobSpec(
        name=f"sonde-{job.id.split('-', 1)[1]}"[:40],
        executable="/bin/bash",
        arguments=[str(job.folder / SCRIPT)],
        directory=str(job.folder),
        resources=psij.ResourceSpecV1(node_count=job.nodes, processes_per_node=site.tasks_per_node or 1),
        attributes=attributes,
        launcher="single",
    )
    return psij.Job(spec)
