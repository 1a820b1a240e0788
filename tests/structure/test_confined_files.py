# SPDX-License-Identifier: Apache-2.0
"""The engine opens, makes and removes files in directories of users through engine/files/confined_directory only, and
the preload library its own files through preload/system/own_file.hpp, so that neither follows a symbolic link that
another user plants there."""

from __future__ import annotations

import re
from pathlib import Path

ENGINE = Path(__file__).resolve().parents[2] / "engine"
MODULE = "files/confined_directory.cpp"
FOLDERS = ("files", "layouts", "runs", "phases", "main", "records", "ranks")
PRELOAD = ENGINE.parent / "preload"
PRELOAD_MODULE = "system/own_file.hpp"

NAMES = (
    "open(?:at2?)?|creat|fopen|freopen|opendir|mkdir(?:at)?|mknod(?:at)?|unlink(?:at)?|rmdir|rename(?:at2?)?|remove"
    "|symlink(?:at)?|link(?:at)?|truncate|chmod|chown"
)
CALL = re.compile(
    rf"""(?<![\w>]) (?:std)? :: (?:{NAMES}) \s*\(                      # of the system, by its qualified name
    | (?: ^ | [=(,!&|?:{{;}}] | \breturn\b ) \s* (?<!:) (?:{NAMES}) \s*\(  # unqualified; no declaration, no method
    | std::o?fstream\b | SYS_openat2
    | (?:fs|filesystem)::(?:remove(?:_all)?|rename|create_\w+|copy\w*|resize_file|permissions)\b""",
    re.VERBOSE,
)

# File, a text in the line, how many such lines, and why the call does not need the module.
EXCEPTIONS: dict[tuple[str, str], tuple[int, str]] = {
    ("layouts/local_layout.cpp", "::open(path.c_str(), O_RDONLY"): (
        1,
        "asks for the layout of a file, changes nothing",
    ),
    ("phases/file_preparation.cpp", "::open(path.c_str(), O_WRONLY | O_CREAT"): (
        1,
        "data.files.paths: the user names the link",
    ),
    ("runs/inspection.cpp", "::mkdir(directory.c_str(), 0777)"): (1, "data.files.paths: the user names the directory"),
    ("runs/run_end.cpp", "::unlink(map.path(task, 0).c_str())"): (
        1,
        "data.files.paths: removes a name, not its target",
    ),
    ("runs/device_target.cpp", "::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK"): (
        1,
        "the user names the device, and its number is checked",
    ),
    ("files/record_file.cpp", "::open(path.c_str(), append_flags)"): (1, "/dev and /proc: names that root gives"),
    ("files/record_file.cpp", "::open(examined.c_str(),"): (1, "a descriptor that the module has opened"),
    ("records/file_system.cpp", "O_TMPFILE"): (1, "a file without a name"),
    ("records/lustre_client.cpp", "::opendir(folder.c_str())"): (1, "/proc and /sys"),
    ("records/system_file.cpp", "::open(path.c_str(), O_RDONLY"): (1, "/proc and /sys"),
    ("ranks/arena.cpp", "O_TMPFILE"): (1, "a file without a name"),
    ("ranks/arena.cpp", "unlink(name.c_str())"): (1, "the random name that mkostemp has made"),
    ("ranks/wire.cpp", 'open("", O_RDWR)'): (1, "/dev/null"),
    ("main/plan_commands.cpp", "::open(path.c_str(), O_RDONLY"): (1, "the plan, which the user names"),
}


def code_lines(path: Path) -> list[str]:
    """Lines without comments and the contents of strings."""
    return [re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).split("//")[0] for line in path.read_text("utf-8").splitlines()]


def calls(path: Path) -> list[str]:
    return [line.strip() for line in code_lines(path) if CALL.search(line)]


def sources() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ENGINE / folder).glob("*.[ch]pp"))]


def test_the_pattern_finds_plain_calls() -> None:
    for line in (
        "const int fd = ::open(path.c_str(), O_RDONLY);", "FILE* file = fopen(path, mode);", "std::ofstream out(path);",
        "std::filesystem::remove_all(path);", "if (unlink(path) != 0) {", "::mkdir(path.c_str(), 0777);",
        "return ::rmdir(path.c_str());", "std::remove(path);", "fs::rename(a, b);",
    ):  # fmt: skip
        assert CALL.search(line), line
    for line in ("directory.unlink(name);", "parent->rename(a, b);", "channel_->open(0, request);", "reopen(file);",
                 "int open(const std::string& path) override;", "x = ConfinedDirectory::open(path);"):  # fmt: skip
        assert not CALL.search(line), line


def test_module_has_the_raw_file_calls() -> None:
    assert len(calls(ENGINE / MODULE)) >= 5


def test_files_of_users_are_touched_through_the_module_only() -> None:
    wrong = []
    counts = dict.fromkeys(EXCEPTIONS, 0)
    for path in sources():
        name = path.relative_to(ENGINE).as_posix()
        if name == MODULE:
            continue
        for line in calls(path):
            exception = next((key for key in EXCEPTIONS if key[0] == name and key[1] in line), None)
            if exception:
                counts[exception] += 1
            else:
                wrong.append(f"engine/{name}: {line}: use files::ConfinedDirectory")
    assert wrong == []
    assert counts == {key: expected for key, (expected, _) in EXCEPTIONS.items()}, "an exception without its line"


# Calls of the preload library without libc, and of the programs that start it.
RAW_CALL = re.compile(
    r"raw::call\(SYS_(?:open|openat2?|creat|unlink(?:at)?|rename(?:at2?)?|link(?:at)?|symlink(?:at)?|mkdir(?:at)?)\b"
)
PRELOAD_EXCEPTIONS: dict[tuple[str, str], tuple[int, str]] = {
    ("files/direct_descriptors.cpp", "raw::pointer_to_number(name.text)"): (
        1,
        "/proc/self/fd: the program's file once more",
    ),
    ("intercept/next.cpp", "SYS_openat2"): (1, "the program's own call"),
    ("intercept/process_settings.cpp", "O_RDONLY | O_CLOEXEC"): (1, "reads the settings of user and site"),
    ("trace/writer.cpp", "O_RDONLY | O_CLOEXEC"): (1, "reads /proc/self"),
    ("trace/writer.cpp", "SYS_renameat2"): (1, "replaces a name, follows no link"),
    ("starter/main.cpp", "open(path.c_str(), O_RDONLY"): (1, "reads the program that the user names"),
}


def test_preload_opens_its_files_in_a_single_module() -> None:
    wrong = []
    counts = dict.fromkeys(PRELOAD_EXCEPTIONS, 0)
    for path in sorted(PRELOAD.rglob("*.[ch]pp")):
        name = path.relative_to(PRELOAD).as_posix()
        for line in code_lines(path):
            plain = re.search(r"(?<![\w.>:])(?:open(?:at2?)?|creat|fopen)\s*\((?!int |\))", line) and "->" not in line
            if name == PRELOAD_MODULE or not (RAW_CALL.search(line) or plain):
                continue
            exception = next((key for key in PRELOAD_EXCEPTIONS if key[0] == name and key[1] in line), None)
            if exception:
                counts[exception] += 1
            else:
                wrong.append(f"preload/{name}: {line.strip()}: use system::open_own_file")
    assert wrong == []
    assert counts == {key: expected for key, (expected, _) in PRELOAD_EXCEPTIONS.items()}, (
        "an exception without its line"
    )


def test_preload_module_has_a_raw_file_call() -> None:
    assert any(RAW_CALL.search(line) for line in code_lines(PRELOAD / PRELOAD_MODULE))
