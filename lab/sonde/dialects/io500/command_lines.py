# SPDX-License-Identifier: Apache-2.0
"""Builds the command lines that IO500 passes to IOR, mdtest and its search, with the arguments in IO500's order."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.dialects.io500.hashes import compute_part_seed
from sonde.dialects.io500.ini import Io500Config
from sonde.dialects.io500.phases import Io500Phase

FIND_FILE_BYTES = 3901  # bytes of a file of mdtest-hard
FIND_NAME = "*01*"
SETS_PER_TASK = 10  # of md-workbench, of each task
DEFAULT_OBJECT_COUNT = 15000  # of a task in each set, when no rate of mdtest is known


@dataclass(frozen=True)
class RunDirectories:
    """The directories of a run, with its timestamp if the settings request it."""

    data: str
    results: str
    timestamp: str


def make_run_directories(config: Io500Config, start_timestamp: str) -> RunDirectories:
    """Returns the directories of a run that began at `start_timestamp`."""
    data, results = config.get_required_text("global", "datadir"), config.get_required_text("global", "resultdir")
    return RunDirectories(
        f"{data}/{start_timestamp}" if config.get_flag("global", "timestamp-datadir") else data,
        f"{results}/{start_timestamp}" if config.get_flag("global", "timestamp-resultdir") else results,
        start_timestamp,
    )


def make_phase_command_line(
    phase: Io500Phase, config: Io500Config, run_directories: RunDirectories, object_count: int = DEFAULT_OBJECT_COUNT
) -> list[str]:
    """Returns the command line of a phase; the first argument is the program. `object_count`: objects of md-workbench
    if the settings lack the number."""
    if phase.tool == "find":
        return _make_find_arguments(phase, config, run_directories)
    if phase.tool == "mdworkbench":
        return _make_mdworkbench_arguments(phase, config, run_directories, object_count)
    return (_make_ior_arguments if phase.tool == "ior" else _make_mdtest_arguments)(phase, config, run_directories)


def is_phase_enabled(phase: Io500Phase, config: Io500Config) -> bool:
    """Returns whether the settings enable the phase."""
    if not phase.is_measured:
        return True
    return bool(config.get_flag(phase.part, "run") and config.get_flag(phase.name, "run"))


def get_stonewall_seconds(config: Io500Config) -> int:
    """Returns the seconds after which a write phase may end."""
    return config.get_number("debug", "stonewall-time") or 0


def _make_api_arguments(phase: Io500Phase, config: Io500Config) -> list[str]:
    phase_api, part_api = config.get_text(phase.name, "API"), config.get_text(phase.part, "API")
    return ["-a", *(phase_api or part_api or config.get_required_text("global", "api")).split()]


def _make_details_file_name(phase: Io500Phase, run_directories: RunDirectories) -> str:
    return f"{run_directories.results}/{phase.name}.csv"


def _make_ior_arguments(phase: Io500Phase, config: Io500Config, run_directories: RunDirectories) -> list[str]:
    verbose = ["-v"] * max(0, config.get_number(phase.part, "verbosity") or 0)
    gpu = ["-O", "allocateBufferOnGPU=1"] if config.get_flag("global", "io-buffers-on-gpu") else []
    begin = ["./ior", f"--dataPacketType={config.get_required_text('global', 'dataPacketType')}", *verbose, *gpu]
    if phase.part == "ior-easy":
        return [*begin, *_make_ior_easy_arguments(phase, config, run_directories)]
    return [*begin, *_make_ior_hard_arguments(phase, config, run_directories)]


def _make_ior_easy_arguments(phase: Io500Phase, config: Io500Config, run_directories: RunDirectories) -> list[str]:
    random = phase.name == "ior-rnd4K-easy-read"
    own_file = bool(config.get_flag("ior-easy", "filePerProc"))
    arguments = ["-g", "-G", str(compute_part_seed("ior-easy", run_directories.timestamp)), "-k", "-e"]
    arguments += ["-o", f"{run_directories.data}/ior-easy/ior_file_easy"]
    if not random:
        arguments += ["-C", "-Q", "1", "-O", f"stoneWallingStatusFile={run_directories.results}/ior-easy.stonewall"]
        arguments += [
            "-t",
            config.get_required_text("ior-easy", "transferSize"),
            "-b",
            config.get_required_text("ior-easy", "blockSize"),
        ]
    arguments += ["-u"] if config.get_flag("ior-easy", "uniqueDir") else []
    arguments += ["-F"] if own_file else []
    details = ["-O", f"saveRankPerformanceDetailsCSV={_make_details_file_name(phase, run_directories)}"]
    if phase.writes:
        limit = ["-D", str(get_stonewall_seconds(config)), "-O", "stoneWallingWearOut=1"]
        return [*arguments, "-w", *limit, *_make_api_arguments(phase, config), *details]
    if not random:
        return [*arguments, "-r", "-R", *_make_api_arguments(phase, config), *details]
    arguments += [
        "-r",
        "-D",
        str(get_stonewall_seconds(config)),
        "-z",
        "-z",
        *_make_api_arguments(phase, config),
        *details,
    ]
    arguments += ["-t=4096", "-b=4096", "-s=10000000", "-O", "stoneWallingWearOut=1"]
    return [*arguments, *(["-C", "-Q", "2"] if own_file else [])]


def _make_ior_hard_arguments(phase: Io500Phase, config: Io500Config, run_directories: RunDirectories) -> list[str]:
    arguments = ["-C", "-Q", "1", "-g", f"-G={compute_part_seed('ior-hard', run_directories.timestamp)}", "-k", "-e"]
    arguments += ["-o", f"{run_directories.data}/ior-hard/file"]
    arguments += ["-O", f"stoneWallingStatusFile={run_directories.results}/ior-hard.stonewall"]
    arguments += ["-t", "47008", "-b", "47008", "-s", config.get_required_text("ior-hard", "segmentCount")]
    phase_setting = config.get_flag(phase.name, "collective")
    collective = (
        ["-c"] if (config.get_flag("ior-hard", "collective") if phase_setting is None else phase_setting) else []
    )
    details = ["-O", f"saveRankPerformanceDetailsCSV={_make_details_file_name(phase, run_directories)}"]
    if phase.writes:
        limit = ["-D", str(get_stonewall_seconds(config))]
        wear_out = ["-O", "stoneWallingWearOut=1"]
        return [*arguments, "-w", *collective, *limit, *_make_api_arguments(phase, config), *details, *wear_out]
    return [*arguments, "-r", "-R", *collective, *_make_api_arguments(phase, config), *details]


def uses_several_directories(config: Io500Config) -> bool:
    """Returns whether mdtest-hard uses several directories, which the rules forbid."""
    return bool(config.get_number("mdtest-hard", "files-per-dir"))


def _make_mdtest_arguments(phase: Io500Phase, config: Io500Config, run_directories: RunDirectories) -> list[str]:
    hard = phase.part == "mdtest-hard"
    seed = compute_part_seed(phase.part, run_directories.timestamp)
    arguments = ["./mdtest", f"--dataPacketType={config.get_required_text('global', 'dataPacketType')}"]
    arguments += ["--allocateBufferOnGPU"] if config.get_flag("global", "io-buffers-on-gpu") else []
    arguments += ["-n", config.get_required_text(phase.part, "n")]
    if hard:
        arguments += (
            [f"-I={config.get_number('mdtest-hard', 'files-per-dir')}"] if uses_several_directories(config) else []
        )
        arguments += ["-t", "-w", str(FIND_FILE_BYTES), "-e", str(FIND_FILE_BYTES), "-P", f"-G={seed}", "-N", "1", "-F"]
    else:
        arguments += ["-u", "-L", "-F", "-P", "-G", str(seed), "-N", "1"]
    arguments += [
        "-d",
        f"{run_directories.data}/{phase.part}",
        "-x",
        f"{run_directories.results}/{phase.part}.stonewall",
    ]
    operation = phase.name.rpartition("-")[2]
    arguments += {"write": ["-C", "-Y"], "stat": ["-T"], "read": ["-E", "-X"], "delete": ["-r"]}[operation]
    if phase.writes and not (hard and uses_several_directories(config)):
        arguments += ["-W", str(get_stonewall_seconds(config))]
    return [
        *arguments,
        f"--saveRankPerformanceDetails={_make_details_file_name(phase, run_directories)}",
        *_make_api_arguments(phase, config),
    ]


def _make_mdworkbench_arguments(
    phase: Io500Phase, config: Io500Config, run_directories: RunDirectories, object_count: int
) -> list[str]:
    arguments = ["./md-workbench", f"--dataPacketType={config.get_required_text('global', 'dataPacketType')}"]
    arguments += ["--allocateBufferOnGPU"] if config.get_flag("global", "io-buffers-on-gpu") else []
    api = config.get_text("mdworkbench", "API") or config.get_required_text("global", "api")
    arguments += ["--process-reports", "-a", *api.split(), f"-o={run_directories.data}/mdworkbench"]
    arguments += [f"-t={float(config.get_text('mdworkbench', 'waitingTime') or 0):f}", "-O=1"]
    arguments += [f"--run-info-file={run_directories.results}/mdworkbench.status", f"-D={SETS_PER_TASK}"]
    arguments += [f"-G={compute_part_seed('md-workbench', run_directories.timestamp)}"]
    arguments += [f"-P={config.get_number('mdworkbench', 'precreatePerSet') or object_count}"]
    arguments += [f"-I={config.get_number('mdworkbench', 'filesPerProc') or object_count}"]
    operation = phase.name.rpartition("-")[2]
    return [*arguments, *{"create": ["-1"], "bench": ["-2", "-R=2", "-X"], "delete": ["-3"]}[operation]]


def _make_find_arguments(phase: Io500Phase, config: Io500Config, run_directories: RunDirectories) -> list[str]:
    conditions = make_search_conditions(phase, run_directories)
    script = config.get_text(phase.name, "external-script")
    if script:
        mpi_arguments, extra_arguments = (
            config.get_required_text(phase.name, f"external-{which}-args") for which in ("mpi", "extra")
        )
        quoted = [f'"{word}"' if word == FIND_NAME else word for word in conditions]
        return [
            mpi_arguments,
            script,
            extra_arguments,
            " ".join(quoted),
        ]  # empty ones too: IO500 joins these four by blanks
    arguments = ["./pfind", *conditions, "-C"]
    arguments += ["-N"] if config.get_flag(phase.name, "pfind-steal-next") else []
    arguments += ["-H", "1"] if config.get_flag(phase.name, "pfind-parallelize-single-dir-access-using-hashing") else []
    return [*arguments, "-q", config.get_required_text(phase.name, "pfind-queue-length")]


def make_search_conditions(phase: Io500Phase, run_directories: RunDirectories) -> list[str]:
    """Returns the start folder and conditions of a search, as arguments of find(1)."""
    start_folders = {
        "find": run_directories.data,
        "find-easy": f"{run_directories.data}/mdtest-easy/",
        "find-hard": f"{run_directories.data}/mdtest-hard/",
    }
    conditions = [start_folders[phase.name]]
    if phase.name != "find-easy":
        conditions += ["-newer", f"{run_directories.results}/timestampfile", "-size", f"{FIND_FILE_BYTES}c"]
    return [*conditions, "-name", FIND_NAME]
