# SPDX-License-Identifier: Apache-2.0
"""The command line of IOzone: its words become settings, or one sentence that says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sonde.model.errors import UserError

KIB = 1024
# What -a goes through, in KiB: files from 64 KiB to 512 MiB, records from 4 KiB to 16 MiB; small records are left out
# for files from 32 MiB on (-z takes them in).
SMALLEST_FILE, LARGEST_FILE = 64, 512 * KIB
SMALLEST_RECORD, LARGEST_RECORD = 4, 16 * KIB
CROSS_FILE, CROSS_RECORD = 32 * KIB, 64
# Tests of -i, and those that are left out, with what they need.
SUPPORTED_TESTS = (0, 1, 2, 3, 4, 5, 8, 9, 10)
UNSUPPORTED_TESTS = {6: "fwrite of the C library", 7: "fread of the C library", 11: "pwritev", 12: "preadv"}


@dataclass(frozen=True)
class IozoneSettings:
    """Parsed command line of IOzone. Sizes in KiB, as IOzone counts."""

    auto: bool = False
    all_records: bool = False  # -z, -A
    files: tuple[int, ...] = ()  # sizes, -s
    records: tuple[int, ...] = ()  # -r
    smallest_file: int = SMALLEST_FILE
    largest_file: int = LARGEST_FILE
    smallest_record: int = SMALLEST_RECORD
    largest_record: int = LARGEST_RECORD
    tests: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()  # tests of -i that Sonde does not have
    version: bool = False  # -v: prints the version only
    children: tuple[int, ...] = ()  # -t, or -l to -u; empty: one process, the table
    path: str = "iozone.tmp"
    paths: tuple[str, ...] = ()  # -F
    close: bool = False  # -c: in the time
    flush: bool = False  # -e: in the time
    direct: bool = False
    synchronous: bool = False
    mapped: bool = False
    depth: int = 1  # -H, -k
    keep: bool = False
    verify: bool = False
    no_stonewall: bool = False  # -x: no stop when the first child is done
    once: bool = False  # -+n: no rewrite, no re-read
    read_share: int = 50  # -+p: percent of mixed work
    stride: int = 17  # -j: in records
    pause_ms: int = 0  # -J
    remount: str = ""
    cpu: bool = False  # -+u
    child_volumes: bool = False  # -C
    operations: bool = False  # -O: operations a second
    microseconds: bool = False  # -N: microseconds an operation
    notes: tuple[str, ...] = ()


def parse_size_in_kib(size_text: str, option_name: str) -> int:
    """IOzone's sizes: KiB, or with k, m, g."""
    match = re.fullmatch(r"(\d+)([kmgKMG]?)", size_text)
    if match is None or int(match[1]) == 0:
        raise UserError(f"{option_name} is {size_text}, but must be a number of KiB above zero, or one with k, m or g.")
    return int(match[1]) * {"": 1, "k": 1, "m": KIB, "g": KIB * KIB}[match[2].lower()]


def _parse_number(number_text: str, option_name: str, min_number: int = 1) -> int:
    if not number_text.isdigit() or int(number_text) < min_number:
        raise UserError(f"{option_name} is {number_text}, but must be a whole number from {min_number} on.")
    return int(number_text)


def _add_test(settings: IozoneSettings, test_number: str) -> IozoneSettings:
    number = _parse_number(test_number, "-i", 0)
    if number in UNSUPPORTED_TESTS:
        note = f"-i {number} is not run, its columns are empty: no backend of Sonde calls {UNSUPPORTED_TESTS[number]}."
        return replace(settings, notes=(*settings.notes, note), left_out=(*settings.left_out, number))
    if number not in SUPPORTED_TESTS:
        raise UserError(f"-i {number} is no test of IOzone; there are 0 to 12.")
    return replace(settings, tests=(*settings.tests, number))


def _make_note_adder(note_sentence: str) -> Callable[[IozoneSettings, str], IozoneSettings]:
    return lambda settings, value: replace(settings, notes=(*settings.notes, note_sentence))


def _make_member_setter(**members: Any) -> Callable[[IozoneSettings, str], IozoneSettings]:
    return lambda settings, value: replace(settings, **members)


_FLAG_SETTERS: dict[str, Callable[[IozoneSettings, str], IozoneSettings]] = {
    "a": _make_member_setter(auto=True),
    "A": _make_member_setter(auto=True, all_records=True),
    "z": _make_member_setter(all_records=True),
    "c": _make_member_setter(close=True),
    "e": _make_member_setter(flush=True),
    "I": _make_member_setter(direct=True),
    "o": _make_member_setter(synchronous=True),
    "B": _make_member_setter(mapped=True),
    "w": _make_member_setter(keep=True),
    "x": _make_member_setter(no_stonewall=True),
    "C": _make_member_setter(child_volumes=True),
    "O": _make_member_setter(operations=True),
    "N": _make_member_setter(microseconds=True),
    "R": lambda settings, value: settings,  # the grid is printed and drawn anyway
    "M": lambda settings, value: settings,  # the record has the machine
    "p": _make_note_adder("-p (purging the processor cache) is not done."),
    "T": _make_note_adder("-T: the children are processes, not threads of one."),
    "Q": _make_note_adder(
        "-Q: latencies of all operations are in the record, as histograms; no files of offsets are written."
    ),
    "D": _make_note_adder("-D: mapped files are synchronized at the end."),
    "G": _make_note_adder("-G: mapped files are synchronized at the end."),
    "E": _make_note_adder("-E: pread and pwrite are what all tests use."),
    "v": _make_member_setter(version=True),
    "+u": _make_member_setter(cpu=True),
    "+n": _make_member_setter(once=True),
    "+k": _make_note_adder("-+k: the size of each file stays the same."),
    "+N": _make_note_adder("-+N: files are made anew."),
    "+d": _make_member_setter(verify=True),
}
_VALUE_SETTERS: dict[str, Callable[[IozoneSettings, str], IozoneSettings]] = {
    "s": lambda settings, value: replace(settings, files=(*settings.files, parse_size_in_kib(value, "-s"))),
    "r": lambda settings, value: replace(settings, records=(*settings.records, parse_size_in_kib(value, "-r"))),
    "n": lambda settings, value: replace(settings, smallest_file=parse_size_in_kib(value, "-n")),
    "g": lambda settings, value: replace(settings, largest_file=parse_size_in_kib(value, "-g")),
    "y": lambda settings, value: replace(settings, smallest_record=parse_size_in_kib(value, "-y")),
    "q": lambda settings, value: replace(settings, largest_record=parse_size_in_kib(value, "-q")),
    "i": _add_test,
    "t": lambda settings, value: replace(settings, children=(*settings.children, _parse_number(value, "-t"))),
    "f": lambda settings, value: replace(settings, path=value),
    "j": lambda settings, value: replace(settings, stride=_parse_number(value, "-j")),
    "J": lambda settings, value: replace(settings, pause_ms=_parse_number(value, "-J")),
    "H": lambda settings, value: replace(settings, depth=_parse_number(value, "-H")),
    "k": lambda settings, value: replace(settings, depth=_parse_number(value, "-k")),
    "U": lambda settings, value: replace(settings, remount=value),
    "V": _make_member_setter(verify=True),
    "b": _make_note_adder(
        "-b: no Excel file is written; the heat map is a page of its own, and the archive exports tables."
    ),
    "d": _make_note_adder("-d: no child is delayed, all begin together."),
    "S": lambda settings, value: settings,
    "L": lambda settings, value: settings,
    "P": _make_note_adder("-P: children are not bound to processors."),
    "+p": lambda settings, value: replace(settings, read_share=min(100, _parse_number(value, "-+p", 0))),
    "+m": _make_note_adder(
        "-+m: nobody logs in to the hosts of that file; --launcher mpiexec or srun starts children on several nodes."
    ),
}
_UNSUPPORTED_OPTIONS = {
    "h": "is help: see `sonde iozone --help`",
    "K": "adds random accesses to the others, for which a plan has no order",
    "W": "locks files; Sonde takes no locks",
    "X": "replays a file of offsets, for which a plan has no order",
    "Y": "replays a file of offsets, for which a plan has no order",
    "Z": "mixes mapped and other I/O on one file",
}


class _ArgumentReader:
    def __init__(self, arguments: Sequence[str]) -> None:
        self._words = list(arguments)

    def has_arguments(self) -> bool:
        return bool(self._words)

    def peek_argument(self) -> str:
        return self._words[0]

    def pop_argument(self) -> str:
        return self._words.pop(0)


def parse_arguments(arguments: Sequence[str]) -> IozoneSettings:
    """The settings that the words mean. Raises UserError with one sentence."""
    remaining, settings, bounds = _ArgumentReader(arguments), IozoneSettings(), {"l": 0, "u": 0}
    while remaining.has_arguments():
        word = remaining.pop_argument()
        if len(word) < 2 or word[0] != "-":
            raise UserError(f'"{word}" stands where an option of IOzone was expected.')
        position = 1
        while position < len(word):
            name = word[position : position + 2] if word[position] == "+" else word[position]
            position += len(name)
            suffix, position = _split_option_value(name, word, position)
            if name in _FLAG_SETTERS:
                settings = _FLAG_SETTERS[name](settings, "")
            elif name == "F":
                settings = replace(settings, paths=tuple(_pop_file_names(remaining, suffix)))
            elif name in bounds:
                bounds[name] = _parse_number(_pop_option_value(name, suffix, remaining), f"-{name}")
            elif name in _VALUE_SETTERS:
                settings = _VALUE_SETTERS[name](settings, _pop_option_value(name, suffix, remaining))
            elif word.startswith("--"):
                raise UserError(
                    f"{word} is no option of IOzone; `sonde iozone --help` lists those of Sonde, which come first."
                )
            else:
                reason = _UNSUPPORTED_OPTIONS.get(name)
                raise UserError(f"-{name} {reason}." if reason else f"IOzone's option -{name} is not known to Sonde.")
    return _check_settings(settings, bounds["l"], bounds["u"])


def _split_option_value(option_name: str, argument: str, value_position: int) -> tuple[str, int]:
    """Splits the value from an option that takes one in the same argument; the value extends to the argument's end."""
    if option_name in _VALUE_SETTERS or option_name in ("F", "l", "u"):
        return argument[value_position:], len(argument)
    return "", value_position


def _pop_option_value(option_name: str, value_in_word: str, argument_reader: _ArgumentReader) -> str:
    if value_in_word:
        return value_in_word
    if not argument_reader.has_arguments():
        raise UserError(f"-{option_name} needs a value after it.")
    return argument_reader.pop_argument()


def _pop_file_names(argument_reader: _ArgumentReader, first_file_name: str) -> list[str]:
    names = [first_file_name] if first_file_name else []
    while argument_reader.has_arguments() and not argument_reader.peek_argument().startswith("-"):
        names.append(argument_reader.pop_argument())
    if not names:
        raise UserError("-F needs the names of the files after it, one for each child.")
    return names


def _check_settings(settings: IozoneSettings, smallest_size: int, largest_size: int) -> IozoneSettings:
    if smallest_size or largest_size:
        smallest_size, largest_size = smallest_size or 1, largest_size or smallest_size
        if smallest_size > largest_size:
            raise UserError(f"-l {smallest_size} is more than -u {largest_size}.")
        settings = replace(settings, children=tuple(range(smallest_size, largest_size + 1)))
    if settings.children and settings.auto:
        raise UserError("-a goes through sizes with one process; leave it out with -t.")
    most = max(settings.children, default=0)
    if settings.paths and len(settings.paths) < most:
        raise UserError(f"-F names {len(settings.paths)} files for {most} children.")
    if settings.mapped and (settings.direct or settings.depth > 1):
        raise UserError("-B does not go with -I, -H or -k: mapped files are read and written by the processor.")
    if settings.left_out and not settings.tests:
        raise UserError("none of the tests of -i can be run; there are 0 to 5, 8, 9 and 10.")
    if settings.tests and 0 not in settings.tests and 9 not in settings.tests:
        raise UserError("-i 0 (or 9) must be among the tests: it makes the file that the others use.")
    for record in settings.records:
        for size in settings.files:
            if record > size:
                raise UserError(f"-s {size} KiB is smaller than a record of {record} KiB (-r).")
            if size % record:
                whole_kib = size - size % record
                note = f"-s {size} KiB: the file has {whole_kib} KiB, whole records of {record} KiB, as in IOzone."
                settings = replace(settings, notes=(*settings.notes, note))
    return settings


def list_grid_cells(settings: IozoneSettings) -> list[tuple[int, int]]:
    """(file, record) sizes in KiB in IOzone's order."""
    if not settings.auto:
        files, records = settings.files or (512,), settings.records or (4,)
        return [(size - size % record, record) for size in files for record in records]
    sizes = settings.files or tuple(_list_doubling_sizes(settings.smallest_file, settings.largest_file))
    cells = []
    for size in sizes:
        for record in settings.records or tuple(
            _list_doubling_sizes(settings.smallest_record, settings.largest_record)
        ):
            left_out = size >= CROSS_FILE and record < CROSS_RECORD and not settings.all_records
            is_whole = size % record == 0 or bool(settings.records)
            if record <= size and is_whole and (settings.records or not left_out):
                cells.append((size - size % record, record))
    return cells


def _list_doubling_sizes(smallest_size: int, largest_size: int) -> list[int]:
    sizes = []
    while smallest_size <= largest_size:
        sizes.append(smallest_size)
        smallest_size *= 2
    return sizes
