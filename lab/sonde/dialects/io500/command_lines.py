# SPDX-License-Identifier: Apache-2.0
"""Builds the command lines that IO500 passes to IOR, mdtest and its search, with the arguments in IO500's order."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.dialects.io500.hashes import compute_part_seed
from sonde.dialects.io500.ini import Config
from sonde.dialects.io500.phases import Io500Phase

FIND_SIZE = 3901  # bytes of a file of mdtest-hard
FIND_NAME = "*01*"
SETS_PER_TASK = 10  # of md-workbench, of each task
DEFAULT_OBJECTS = 15000  # of a task in each set, when no rate of mdtest is known


@dataclass(frozen=True)
class RunDirectories:
    """The directories of a run, with its timestamp if the settings request it."""

    data: str
    results: str
    timestamp: str


def run_directories(config: Config, timestamp: str) -> RunDirectories:
    """Returns the directories of a run that began at `timestamp`."""
    data, results = config.required_text("global", "datadir"), config.required_text("global", "resultdir")
    return RunDirectories(
        f"{data}/{timestamp}" if config.flag("global", "timestamp-datadir") else data,
        f"{results}/{timestamp}" if config.flag("global", "timestamp-resultdir") else results,
        timestamp,
    )


def make_phase_command_line(
    phase: Io500Phase, config: Config, places: RunDirectories, objects: int = DEFAULT_OBJECTS
) -> list[str]:
    """Returns the command line of a phase; the first argument is the program. `objects`: objects of md-workbench if
    the settings lack the number."""
    if phase.tool == "find":
        return _find_arguments(phase, config, places)
    if phase.tool == "mdworkbench":
        return _make_mdworkbench_arguments(phase, config, places, objects)
    return (_make_ior_arguments if phase.tool == "ior" else _make_mdtest_arguments)(phase, config, places)


def is_phase_enabled(phase: Io500Phase, config: Config) -> bool:
    """Returns whether the settings enable the phase."""
    if not phase.is_measured:
        return True
    return bool(config.flag(phase.part, "run") and config.flag(phase.name, "run"))


def get_stonewall_seconds(config: Config) -> int:
    """Returns the seconds after which a write phase may end."""
    return config.number("debug", "stonewall-time") or 0


def _make_api_arguments(phase: Io500Phase, config: Config) -> list[str]:
    phase_api, part_api = config.text(phase.name, "API"), config.text(phase.part, "API")
    return ["-a", *(phase_api or part_api or config.required_text("global", "api")).split()]


def _name_details_file(phase: Io500Phase, places: RunDirectories) -> str:
    return f"{places.results}/{phase.name}.csv"


def _make_ior_arguments(phase: Io500Phase, config: Config, places: RunDirectories) -> list[str]:
    verbose = ["-v"] * max(0, config.number(phase.part, "verbosity") or 0)
    gpu = ["-O", "allocateBufferOnGPU=1"] if config.flag("global", "io-buffers-on-gpu") else []
    begin = ["./ior", f"--dataPacketType={config.required_text('global', 'dataPacketType')}", *verbose, *gpu]
    if phase.part == "ior-easy":
        return [*begin, *_make_ior_easy_arguments(phase, config, places)]
    return [*begin, *_make_ior_hard_arguments(phase, config, places)]


def _make_ior_easy_arguments(phase: Io500Phase, config: Config, places: RunDirectories) -> list[str]:
    random = phase.name == "ior-rnd4K-easy-read"
    own_file = bool(config.flag("ior-easy", "filePerProc"))
    arguments = ["-g", "-G", str(compute_part_seed("ior-easy", places.timestamp)), "-k", "-e"]
    arguments += ["-o", f"{places.data}/ior-easy/ior_file_easy"]
    if not random:
        arguments += ["-C", "-Q", "1", "-O", f"stoneWallingStatusFile={places.results}/ior-easy.stonewall"]
        arguments += [
            "-t",
            config.required_text("ior-easy", "transferSize"),
            "-b",
            config.required_text("ior-easy", "blockSize"),
        ]
    arguments += ["-u"] if config.flag("ior-easy", "uniqueDir") else []
    arguments += ["-F"] if own_file else []
    details = ["-O", f"saveRankPerformanceDetailsCSV={_name_details_file(phase, places)}"]
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


def _make_ior_hard_arguments(phase: Io500Phase, config: Config, places: RunDirectories) -> list[str]:
    arguments = ["-C", "-Q", "1", "-g", f"-G={compute_part_seed('ior-hard', places.timestamp)}", "-k", "-e"]
    arguments += ["-o", f"{places.data}/ior-hard/file"]
    arguments += ["-O", f"stoneWallingStatusFile={places.results}/ior-hard.stonewall"]
    arguments += ["-t", "47008", "-b", "47008", "-s", config.required_text("ior-hard", "segmentCount")]
    phase_setting = config.flag(phase.name, "collective")
    collective = ["-c"] if (config.flag("ior-hard", "collective") if phase_setting is None else phase_setting) else []
    details = ["-O", f"saveRankPerformanceDetailsCSV={_name_details_file(phase, places)}"]
    if phase.writes:
        limit = ["-D", str(get_stonewall_seconds(config))]
        wear_out = ["-O", "stoneWallingWearOut=1"]
        return [*arguments, "-w", *collective, *limit, *_make_api_arguments(phase, config), *details, *wear_out]
    return [*arguments, "-r", "-R", *collective, *_make_api_arguments(phase, config), *details]


def uses_several_directories(config: Config) -> bool:
    """Returns whether mdtest-hard uses several directories, which the rules forbid."""
    return bool(config.number("mdtest-hard", "files-per-dir"))


def _make_mdtest_arguments(phase: Io500Phase, config: Config, places: RunDirectories) -> list[str]:
    hard = phase.part == "mdtest-hard"
    seed = compute_part_seed(phase.part, places.timestamp)
    arguments = ["./mdtest", f"--dataPacketType={config.required_text('global', 'dataPacketType')}"]
    arguments += ["--allocateBufferOnGPU"] if config.flag("global", "io-buffers-on-gpu") else []
    arguments += ["-n", config.required_text(phase.part, "n")]
    if hard:
        arguments += [f"-I={config.number('mdtest-hard', 'files-per-dir')}"] if uses_several_directories(config) else []
        arguments += ["-t", "-w", str(FIND_SIZE), "-e", str(FIND_SIZE), "-P", f"-G={seed}", "-N", "1", "-F"]
    else:
        arguments += ["-u", "-L", "-F", "-P", "-G", str(seed), "-N", "1"]
    arguments += ["-d", f"{places.data}/{phase.part}", "-x", f"{places.results}/{phase.part}.stonewall"]
    operation = phase.name.rpartition("-")[2]
    arguments += {"write": ["-C", "-Y"], "stat": ["-T"], "read": ["-E", "-X"], "delete": ["-r"]}[operation]
    if phase.writes and not (hard and uses_several_directories(config)):
        arguments += ["-W", str(get_stonewall_seconds(config))]
    return [
        *arguments,
        f"--saveRankPerformanceDetails={_name_details_file(phase, places)}",
        *_make_api_arguments(phase, config),
    ]


def _make_mdworkbench_arguments(phase: Io500Phase, config: Config, places: RunDirectories, objects: int) -> list[str]:
    arguments = ["./md-workbench", f"--dataPacketType={config.required_text('global', 'dataPacketType')}"]
    arguments += ["--allocateBufferOnGPU"] if config.flag("global", "io-buffers-on-gpu") else []
    api = config.text("mdworkbench", "API") or config.required_text("global", "api")
    arguments += ["--process-reports", "-a", *api.split(), f"-o={places.data}/mdworkbench"]
    arguments += [f"-t={float(config.text('mdworkbench', 'waitingTime') or 0):f}", "-O=1"]
    arguments += [f"--run-info-file={places.results}/mdworkbench.status", f"-D={SETS_PER_TASK}"]
    arguments += [f"-G={compute_part_seed('md-workbench', places.timestamp)}"]
    arguments += [f"-P={config.number('mdworkbench', 'precreatePerSet') or objects}"]
    arguments += [f"-I={config.number('mdworkbench', 'filesPerProc') or objects}"]
    operation = phase.name.rpartition("-")[2]
    return [*arguments, *{"create": ["-1"], "bench": ["-2", "-R=2", "-X"], "delete": ["-3"]}[operation]]


def _find_arguments(phase: Io500Phase, config: Config, places: RunDirectories) -> list[str]:
    conditions = find_conditions(phase, places)
    script = config.text(phase.name, "external-script")
    if script:
        mpi_arguments, extra_arguments = (
            config.required_text(phase.name, f"external-{which}-args") for which in ("mpi", "extra")
        )
        quoted = [f'"{word}"' if word == FIND_NAME else word for word in conditions]
        return [
            mpi_arguments,
            script,
            extra_arguments,
            " ".join(quoted),
        ]  # empty ones too: IO500 joins these four by blanks
    arguments = ["./pfind", *conditions, "-C"]
    arguments += ["-N"] if config.flag(phase.name, "pfind-steal-next") else []
    arguments += ["-H", "1"] if config.flag(phase.name, "pfind-parallelize-single-dir-access-using-hashing") else []
    return [*arguments, "-q", config.required_text(phase.name, "pfind-queue-length")]


def find_conditions(phase: Io500Phase, places: RunDirectories) -> list[str]:
    """Returns the start folder and conditions of a search, as arguments of find(1)."""
    start_folders = {
        "find": places.data,
        "find-easy": f"{places.data}/mdtest-easy/",
        "find-hard": f"{places.data}/mdtest-hard/",
    }
    conditions = [start_folders[phase.name]]
    if phase.name != "find-easy":
        conditions += ["-newer", f"{places.results}/timestampfile", "-size", f"{FIND_SIZE}c"]
    return [*conditions, "-name", FIND_NAME]
