# SPDX-License-Identifier: Apache-2.0
"""Small programs in which a process, another process or a child could notice the library: by default none does. Where
an option promises less, the sentence of the documentation is the name of the test.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from preload_under_test import RUNNER, Outcome, Plain, Preload

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

Program = Callable[[str], Path]


def split_names(text: str) -> list[str]:
    return text.split()


METADATA = split_names(
    """times_by_descriptor times_by_path times_by_empty_path times_by_utimes times_by_futimes times_by_lutimes
    times_by_utime times_seen_at_once times_then_more times_move_on setuid_stays setgid_stays setuid_is_lost_by_a_write
    capabilities_stay attributes_stay owner_changes read_only_in_between renamed linked unlinked truncated_by_path
    truncated_by_descriptor emptied_by_another_open space_is_asked_for size_at_each_step size_by_statx
    offset_at_each_step holes_are_found"""
)
OTHERS = split_names(
    """told_by_a_pipe told_by_printf told_by_an_unbuffered_stream told_without_the_c_library told_by_a_socket
    told_by_an_event told_by_a_signal told_by_shared_memory told_by_a_mapped_file told_by_a_shared_segment
    told_by_a_queue told_by_a_name told_by_a_folder told_by_a_lock a_child_changes_it a_shell_changes_it
    a_shell_empties_it a_shell_in_a_pipe_changes_it a_child_changes_it_while_it_is_read it_waits_for_a_byte
    it_waits_for_more counter_under_a_lock_file counter_under_a_folder counter_under_a_link counter_under_a_semaphore
    several_append_a_log work_is_shared_by_an_offset work_is_shared_by_an_offset_of_which_nothing_is_known
    each_misses_at_most_one"""
)
PROCESS = split_names(
    """a_duplicate_shares_the_offset a_high_number_is_inherited a_number_becomes_a_pipe a_descriptor_is_sent
    a_thread_has_its_own_table all_numbers_are_used high_numbers_are_the_programs append_is_set_in_between
    pieces_follow_each_other jumps_while_it_reads two_files_in_turn addresses_that_are_none
    descriptors_of_the_wrong_kind ends_by_a_wrong_address ends_by_a_division ends_by_a_wrong_instruction
    ends_by_an_overflow_of_the_stack kills_itself sends_itself_a_fault aborts exits_by_number
    exits_without_the_c_library ends_by_an_alarm a_handler_looks a_handler_leaves handlers_are_as_they_were
    all_signals_are_blocked a_handler_that_blocks_all_writes_too main_ends_first main_ends_alone a_thread_looks_at_once
    a_process_shares_the_memory a_file_may_not_grow only_the_strict_calls another_name_space"""
)
ALL_SCENARIOS = [
    *(("metadata", scenario) for scenario in METADATA),
    *(("others", scenario) for scenario in OTHERS),
    *(("process", scenario) for scenario in PROCESS),
]
PARAMS_BY_NAME = {
    "alone": "*:alone",
    "eager": "*:alone",
    "direct": "*:direct:alone",
}
# With `alone`, and what includes it, the outcome may differ only where the documentation says so (small-io.md).
#: "Other processes see the data when the file is closed, synchronized, unlocked or renamed."
OTHERS_LOOK = set(
    split_names(
        """told_by_printf told_by_an_unbuffered_stream told_by_an_event told_by_a_signal told_by_a_mapped_file
        told_by_a_queue told_by_a_name told_by_a_folder told_by_a_lock a_child_changes_it a_shell_changes_it
        a_shell_empties_it a_shell_in_a_pipe_changes_it a_child_changes_it_while_it_is_read each_misses_at_most_one"""
    )
)
#: "System calls that a program makes without the C library are not seen."
SCENARIOS_WITHOUT_LIBC = set(
    split_names(
        """size_at_each_step two_files_in_turn a_handler_looks a_handler_leaves handlers_are_as_they_were
        all_signals_are_blocked a_handler_that_blocks_all_writes_too a_thread_looks_at_once"""
    )
)
#: "When a process is killed, a file that was written from front to back holds a beginning of what was written."
KILLED_SCENARIOS = set(
    split_names(
        """ends_by_a_wrong_address ends_by_a_wrong_instruction ends_by_an_overflow_of_the_stack kills_itself
        sends_itself_a_fault exits_without_the_c_library ends_by_an_alarm ends_by_a_division"""
    )
)
#: These two wait for what the promise excludes, and for ever: a byte that another process changes, and a message in
#: place of a file that was closed without the C library.
ENDLESS = {"it_waits_for_a_byte", "a_number_becomes_a_pipe"}
#: Each file may have descriptors of the library's own.
NUMBERED = {"all_numbers_are_used"}


def select_by_day(name: str, scenarios: Iterable[str], by_day: Sequence[str]) -> list[ParameterSet]:
    """Each scenario with each option that keeps pages; other options than those `by_day` at night."""
    marks = {option: () if option in by_day else (pytest.mark.nightly,) for option in PARAMS_BY_NAME}
    return [
        pytest.param(name, scenario, params, id=f"{scenario}-{option}", marks=marks[option])
        for scenario in scenarios
        for option, params in PARAMS_BY_NAME.items()
    ]


def select_scenarios_of_all_programs(scenarios: set[str], by_day: Sequence[str] = ("eager",)) -> list[ParameterSet]:
    """The same for some scenarios of all programs, in the order of the catalog."""
    return [
        case
        for name, scenario in ALL_SCENARIOS
        if scenario in scenarios
        for case in select_by_day(name, [scenario], by_day)
    ]


SEPARATELY_TESTED_SCENARIOS = OTHERS_LOOK | SCENARIOS_WITHOUT_LIBC | KILLED_SCENARIOS | ENDLESS | NUMBERED
with_each_option = "name,scenario,params"


def run_without_and_with_library(
    preload: Preload, run_bare: Plain, program: Path, scenario: str, folder: Path, params: str
) -> tuple[Outcome, Outcome]:
    """Outcomes of the scenario without the library and with it."""
    folder.chmod(0o777)
    without = run_bare([program, scenario], folder)
    assert without.code == 0, without.out
    return without, preload.outcome([program, scenario], folder / "with", IOBUF_PARAMS=params)


GUARDED_PARAMS = {"auto": "*:auto", "named": "*"}


@pytest.mark.parametrize("params", GUARDED_PARAMS.values(), ids=GUARDED_PARAMS.keys())
@pytest.mark.parametrize(
    ("name", "scenario"),
    [case for case in ALL_SCENARIOS if case[1] not in SCENARIOS_WITHOUT_LIBC | KILLED_SCENARIOS | ENDLESS],
    ids=lambda value: value,
)
def test_leased_files_look_as_without_library(
    preload: Preload,
    compile_same_program: Program,
    run_bare: Plain,
    tmp_path: Path,
    name: str,
    scenario: str,
    params: str,
) -> None:
    """A program that opens a file sees all earlier writes."""
    without, under = run_without_and_with_library(
        preload, run_bare, compile_same_program(name), scenario, tmp_path, params
    )
    assert under == without


@pytest.mark.parametrize("params", GUARDED_PARAMS.values(), ids=GUARDED_PARAMS.keys())
@pytest.mark.parametrize(
    ("name", "scenario"), [case for case in ALL_SCENARIOS if case[1] in SCENARIOS_WITHOUT_LIBC], ids=lambda value: value
)
def test_leased_files_are_complete_at_the_end(
    preload: Preload,
    compile_same_program: Program,
    run_bare: Plain,
    tmp_path: Path,
    name: str,
    scenario: str,
    params: str,
) -> None:
    """stat() without the C library may find a size that is up to 0.2 s old."""
    without, under = run_without_and_with_library(
        preload, run_bare, compile_same_program(name), scenario, tmp_path, params
    )
    assert (under.code, under.files) == (without.code, without.files)


@pytest.mark.parametrize("params", ["*:size=512", "*:auto", "*:size=16M:direct:count=2:prefetch=4"])
def test_other_options_change_no_result(
    preload: Preload, compile_same_program: Program, run_bare: Plain, tmp_path: Path, params: str
) -> None:
    for scenario in ("pieces_follow_each_other", "jumps_while_it_reads"):
        folder = tmp_path / scenario
        folder.mkdir()
        without, under = run_without_and_with_library(
            preload, run_bare, compile_same_program("process"), scenario, folder, params
        )
        assert under == without


@pytest.mark.parametrize(
    with_each_option,
    [
        *select_by_day(
            "metadata",
            [scenario for scenario in METADATA if scenario not in SEPARATELY_TESTED_SCENARIOS],
            tuple(PARAMS_BY_NAME),
        ),
        *select_scenarios_of_all_programs({*OTHERS, *PROCESS} - SEPARATELY_TESTED_SCENARIOS),
    ],
)
def test_calls_within_one_process_equal_bare_run(
    preload: Preload,
    compile_same_program: Program,
    run_bare: Plain,
    tmp_path: Path,
    name: str,
    scenario: str,
    params: str,
) -> None:
    without, under = run_without_and_with_library(
        preload, run_bare, compile_same_program(name), scenario, tmp_path, params
    )
    assert under == without


@pytest.mark.parametrize(with_each_option, select_scenarios_of_all_programs(OTHERS_LOOK))
def test_other_processes_see_the_data_when_the_file_is_closed(
    preload: Preload,
    compile_same_program: Program,
    run_bare: Plain,
    tmp_path: Path,
    name: str,
    scenario: str,
    params: str,
) -> None:
    """The library does not guarantee the content that they see before. In the end nothing is missing, and nobody was
    made to fail."""
    without, under = run_without_and_with_library(
        preload, run_bare, compile_same_program(name), scenario, tmp_path, params
    )
    assert (under.code, under.files) == (without.code, without.files)


@pytest.mark.parametrize(with_each_option, select_scenarios_of_all_programs(SCENARIOS_WITHOUT_LIBC))
def test_files_accessed_by_raw_system_calls_end_up_complete(
    preload: Preload,
    compile_same_program: Program,
    run_bare: Plain,
    tmp_path: Path,
    name: str,
    scenario: str,
    params: str,
) -> None:
    """Raw system calls may read less than was written; at the end the files are complete."""
    without, under = run_without_and_with_library(
        preload, run_bare, compile_same_program(name), scenario, tmp_path, params
    )
    assert (under.code, under.files) == (without.code, without.files)


@pytest.mark.parametrize(with_each_option, select_scenarios_of_all_programs(KILLED_SCENARIOS))
def test_killed_process_leaves_a_prefix_of_its_file(
    preload: Preload,
    compile_same_program: Program,
    run_bare: Plain,
    tmp_path: Path,
    name: str,
    scenario: str,
    params: str,
) -> None:
    without, under = run_without_and_with_library(
        preload, run_bare, compile_same_program(name), scenario, tmp_path, params
    )
    assert (under.code, under.out.split()[0]) == (without.code, without.out.split()[0])  # how its child ended
    assert under.files.keys() == without.files.keys() == {"data"}
    assert without.files["data"].startswith(under.files["data"])


@pytest.mark.parametrize(with_each_option, select_scenarios_of_all_programs(NUMBERED))
def test_an_extra_descriptor_per_file_does_not_damage_files(
    preload: Preload,
    compile_same_program: Program,
    run_bare: Plain,
    tmp_path: Path,
    name: str,
    scenario: str,
    params: str,
) -> None:
    """Fewer files can be open with the library: the last ones may be missing, all others are complete."""
    without, under = run_without_and_with_library(
        preload, run_bare, compile_same_program(name), scenario, tmp_path, params
    )
    assert under.code == 0
    assert under.files.items() <= without.files.items()
    assert len(without.files) - len(under.files) <= 4


@pytest.mark.parametrize("params", PARAMS_BY_NAME.values(), ids=PARAMS_BY_NAME.keys())
def test_processes_with_shared_memory_are_noticed_and_not_buffered(
    preload: Preload, compile_same_program: Program, run_bare: Plain, tmp_path: Path, params: str
) -> None:
    without, under = run_without_and_with_library(
        preload, run_bare, compile_same_program("others"), "told_by_shared_memory", tmp_path, params
    )
    assert under == without


@pytest.mark.parametrize("params", PARAMS_BY_NAME.values(), ids=PARAMS_BY_NAME.keys())
def test_lock_on_mapped_file_ends_all_buffering(preload: Preload, tmp_path: Path, params: str) -> None:
    """A lock and a map of one file together, as in SQLite and LMDB, end buffering; one of them alone does not."""
    program = """
import fcntl, mmap, os, sys
def write(name):
    fd = os.open(name, os.O_RDWR | os.O_CREAT)
    for _ in range(100): os.write(fd, b"x" * 50)
    os.close(fd)
log = os.open("log", os.O_RDWR | os.O_CREAT)
os.truncate(log, 8192)
if "lock" in sys.argv: fcntl.lockf(log, fcntl.LOCK_EX, 1, 100)
if "map" in sys.argv: memory = mmap.mmap(log, 8192)
if "lock" in sys.argv: fcntl.lockf(log, fcntl.LOCK_UN, 1, 100)
write("data")
"""
    is_buffered = {}
    for operations in (["lock"], ["map"], ["lock", "map"]):
        lines = tmp_path / "-".join(["lines", *operations])
        lines.mkdir()
        python = os.path.realpath("/proc/self/exe")
        command = [python, "-S", "-c", program, *operations]
        assert preload.run(command, tmp_path, IOBUF_PARAMS=params, SONDE_IOBUF_LINES=str(lines)).returncode == 0
        text = "".join(file.read_text(encoding="utf-8") for file in lines.iterdir())
        is_buffered[" ".join(operations)] = '/data"' in text
    assert is_buffered == {"lock": True, "map": True, "lock map": False}


@pytest.mark.parametrize("program_name", ["metadata", "others", "process"])
def test_all_scenarios_are_run(compile_same_program: Program, program_name: str) -> None:
    output = subprocess.run(
        [*RUNNER, compile_same_program(program_name), "--list"], capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == {"metadata": METADATA, "others": OTHERS, "process": PROCESS}[program_name]
    assert len(ALL_SCENARIOS) == 92
    assert {scenario for _, scenario in ALL_SCENARIOS} > SEPARATELY_TESTED_SCENARIOS


def test_calls_are_buffered_in_these_tests(preload: Preload, compile_same_program: Program, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.mkdir()
    preload.run(
        [compile_same_program("metadata"), "size_at_each_step"],
        tmp_path,
        IOBUF_PARAMS=GUARDED_PARAMS["named"],
        SONDE_IOBUF_LINES=str(lines),
    )
    (report,) = [json.loads(line) for file in lines.iterdir() for line in file.read_text("utf-8").splitlines()]
    assert report["guard"] == "lease"
    assert report["write"]["hits"] > 3000  # of 6000
