# SPDX-License-Identifier: Apache-2.0
"""From settings to the command lines that IO500 gives to IOR, mdtest and its search, word by word in its order."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.dialects.io500.hashes import seed_of
from sonde.dialects.io500.ini import Config
from sonde.dialects.io500.phases import Phase

FIND_SIZE = 3901  # bytes of a file of mdtest-hard
FIND_NAME = "*01*"
SETS = 10  # of md-workbench, of each task
FEW_OBJECTS = 15000  # of a task in each set, when no rate of mdtest is known


@dataclass(frozen=True)
class Places:
    """Where a run works, as the words say it: both with the time of the run, where the settings ask for that."""

    data: str
    results: str
    timestamp: str


def places_of(config: Config, timestamp: str) -> Places:
    """Where a run that began at `timestamp` works."""
    data, results = config.word("global", "datadir"), config.word("global", "resultdir")
    return Places(
        f"{data}/{timestamp}" if config.flag("global", "timestamp-datadir") else data,
        f"{results}/{timestamp}" if config.flag("global", "timestamp-resultdir") else results,
        timestamp,
    )


def words_of(phase: Phase, config: Config, places: Places, objects: int = FEW_OBJECTS) -> list[str]:
    """The command line of a phase of a tool or the search; the first word is the program. `objects`: of md-workbench,
    where the settings do not say how many."""
    if phase.tool == "find":
        return _find(phase, config, places)
    if phase.tool == "mdworkbench":
        return _mdworkbench(phase, config, places, objects)
    return (_ior if phase.tool == "ior" else _mdtest)(phase, config, places)


def runs(phase: Phase, config: Config) -> bool:
    """Whether the settings let it run."""
    if not phase.is_measured:
        return True
    return bool(config.flag(phase.part, "run") and config.flag(phase.name, "run"))


def stonewall(config: Config) -> int:
    """Seconds after which a phase that writes may end."""
    return config.number("debug", "stonewall-time") or 0


def _api(phase: Phase, config: Config) -> list[str]:
    own, part = config.text(phase.name, "API"), config.text(phase.part, "API")
    return ["-a", *(own or part or config.word("global", "api")).split()]


def _details(phase: Phase, places: Places) -> str:
    return f"{places.results}/{phase.name}.csv"


def _ior(phase: Phase, config: Config, places: Places) -> list[str]:
    verbose = ["-v"] * max(0, config.number(phase.part, "verbosity") or 0)
    gpu = ["-O", "allocateBufferOnGPU=1"] if config.flag("global", "io-buffers-on-gpu") else []
    begin = ["./ior", f"--dataPacketType={config.word('global', 'dataPacketType')}", *verbose, *gpu]
    if phase.part == "ior-easy":
        return [*begin, *_ior_easy(phase, config, places)]
    return [*begin, *_ior_hard(phase, config, places)]


def _ior_easy(phase: Phase, config: Config, places: Places) -> list[str]:
    random = phase.name == "ior-rnd4K-easy-read"
    own_file = bool(config.flag("ior-easy", "filePerProc"))
    words = ["-g", "-G", str(seed_of("ior-easy", places.timestamp)), "-k", "-e"]
    words += ["-o", f"{places.data}/ior-easy/ior_file_easy"]
    if not random:
        words += ["-C", "-Q", "1", "-O", f"stoneWallingStatusFile={places.results}/ior-easy.stonewall"]
        words += ["-t", config.word("ior-easy", "transferSize"), "-b", config.word("ior-easy", "blockSize")]
    words += ["-u"] if config.flag("ior-easy", "uniqueDir") else []
    words += ["-F"] if own_file else []
    details = ["-O", f"saveRankPerformanceDetailsCSV={_details(phase, places)}"]
    if phase.writes:
        limit = ["-D", str(stonewall(config)), "-O", "stoneWallingWearOut=1"]
        return [*words, "-w", *limit, *_api(phase, config), *details]
    if not random:
        return [*words, "-r", "-R", *_api(phase, config), *details]
    words += ["-r", "-D", str(stonewall(config)), "-z", "-z", *_api(phase, config), *details]
    words += ["-t=4096", "-b=4096", "-s=10000000", "-O", "stoneWallingWearOut=1"]
    return [*words, *(["-C", "-Q", "2"] if own_file else [])]


def _ior_hard(phase: Phase, config: Config, places: Places) -> list[str]:
    words = ["-C", "-Q", "1", "-g", f"-G={seed_of('ior-hard', places.timestamp)}", "-k", "-e"]
    words += ["-o", f"{places.data}/ior-hard/file"]
    words += ["-O", f"stoneWallingStatusFile={places.results}/ior-hard.stonewall"]
    words += ["-t", "47008", "-b", "47008", "-s", config.word("ior-hard", "segmentCount")]
    own = config.flag(phase.name, "collective")
    collective = ["-c"] if (config.flag("ior-hard", "collective") if own is None else own) else []
    details = ["-O", f"saveRankPerformanceDetailsCSV={_details(phase, places)}"]
    if phase.writes:
        limit = ["-D", str(stonewall(config))]
        wear_out = ["-O", "stoneWallingWearOut=1"]
        return [*words, "-w", *collective, *limit, *_api(phase, config), *details, *wear_out]
    return [*words, "-r", "-R", *collective, *_api(phase, config), *details]


def limits_files(config: Config) -> bool:
    """Whether mdtest-hard may use several directories, which the rules do not allow."""
    return bool(config.number("mdtest-hard", "files-per-dir"))


def _mdtest(phase: Phase, config: Config, places: Places) -> list[str]:
    hard = phase.part == "mdtest-hard"
    seed = seed_of(phase.part, places.timestamp)
    words = ["./mdtest", f"--dataPacketType={config.word('global', 'dataPacketType')}"]
    words += ["--allocateBufferOnGPU"] if config.flag("global", "io-buffers-on-gpu") else []
    words += ["-n", config.word(phase.part, "n")]
    if hard:
        words += [f"-I={config.number('mdtest-hard', 'files-per-dir')}"] if limits_files(config) else []
        words += ["-t", "-w", str(FIND_SIZE), "-e", str(FIND_SIZE), "-P", f"-G={seed}", "-N", "1", "-F"]
    else:
        words += ["-u", "-L", "-F", "-P", "-G", str(seed), "-N", "1"]
    words += ["-d", f"{places.data}/{phase.part}", "-x", f"{places.results}/{phase.part}.stonewall"]
    done = phase.name.rpartition("-")[2]
    words += {"write": ["-C", "-Y"], "stat": ["-T"], "read": ["-E", "-X"], "delete": ["-r"]}[done]
    if phase.writes and not (hard and limits_files(config)):
        words += ["-W", str(stonewall(config))]
    return [*words, f"--saveRankPerformanceDetails={_details(phase, places)}", *_api(phase, config)]


def _mdworkbench(phase: Phase, config: Config, places: Places, objects: int) -> list[str]:
    words = ["./md-workbench", f"--dataPacketType={config.word('global', 'dataPacketType')}"]
    words += ["--allocateBufferOnGPU"] if config.flag("global", "io-buffers-on-gpu") else []
    api = config.text("mdworkbench", "API") or config.word("global", "api")
    words += ["--process-reports", "-a", *api.split(), f"-o={places.data}/mdworkbench"]
    words += [f"-t={float(config.text('mdworkbench', 'waitingTime') or 0):f}", "-O=1"]
    words += [f"--run-info-file={places.results}/mdworkbench.status", f"-D={SETS}"]
    words += [f"-G={seed_of('md-workbench', places.timestamp)}"]
    words += [f"-P={config.number('mdworkbench', 'precreatePerSet') or objects}"]
    words += [f"-I={config.number('mdworkbench', 'filesPerProc') or objects}"]
    done = phase.name.rpartition("-")[2]
    return [*words, *{"create": ["-1"], "bench": ["-2", "-R=2", "-X"], "delete": ["-3"]}[done]]


def _find(phase: Phase, config: Config, places: Places) -> list[str]:
    conditions = find_conditions(phase, places)
    script = config.text(phase.name, "external-script")
    if script:
        before, after = (config.word(phase.name, f"external-{which}-args") for which in ("mpi", "extra"))
        quoted = [f'"{word}"' if word == FIND_NAME else word for word in conditions]
        return [before, script, after, " ".join(quoted)]  # empty ones too: IO500 joins these four by blanks
    words = ["./pfind", *conditions, "-C"]
    words += ["-N"] if config.flag(phase.name, "pfind-steal-next") else []
    words += ["-H", "1"] if config.flag(phase.name, "pfind-parallelize-single-dir-access-using-hashing") else []
    return [*words, "-q", config.word(phase.name, "pfind-queue-length")]


def find_conditions(phase: Phase, places: Places) -> list[str]:
    """Where a search begins and what it looks for, in words of find(1)."""
    where = {
        "find": places.data,
        "find-easy": f"{places.data}/mdtest-easy/",
        "find-hard": f"{places.data}/mdtest-hard/",
    }
    words = [where[phase.name]]
    if phase.name != "find-easy":
        words += ["-newer", f"{places.results}/timestampfile", "-size", f"{FIND_SIZE}c"]
    return [*words, "-name", FIND_NAME]
