# SPDX-License-Identifier: Apache-2.0
"""Facts about programs from their ELF files: machine, loader, language, and system calls that they make themselves."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ARCHITECTURE_NAMES = {3: "i386", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv64", 21: "ppc64"}
_LOADED_SEGMENT, _DYNAMIC_LOADER = 1, 3  # PT_LOAD, PT_INTERP
_EXECUTABLE_FLAG = 1  # PF_X
_MAX_TABLE_BYTES = 1 << 20  # of segments, sections or names that are looked at
_MAX_CODE_BYTES = 1 << 28

# Numbers of system calls on files. On x86-64 `mov eax, N` before `syscall`; on aarch64 `mov x8, N` before `svc 0`.
_CALL_NAMES_BY_MACHINE = {
    62: {1: "write", 17: "pread", 18: "pwrite", 19: "readv", 20: "writev", 257: "openat"},
    183: {63: "read", 64: "write", 65: "readv", 66: "writev", 67: "pread", 68: "pwrite", 56: "openat"},
}
_IO_URING_CALL_NAMES = {425: "io_uring_setup", 426: "io_uring_enter"}  # the same on all machines
# Between the two only instructions that load other registers, because small numbers are common elsewhere.
_X86_REGISTER_LOADS = (
    rb"(?:[\x40-\x4f]?[\xb8-\xbf]....|[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d]....|[\x40-\x4f]?[\x31\x33\x89\x8b][\xc0-\xff]"
    rb"|[\x40-\x4f][\x89\x8b\x8d][\x44\x4c\x54\x5c\x64\x6c\x74\x7c]\x24.|[\x40-\x4f][\x89\x8b\x8d][\x40-\x7f].){0,8}"
)
_X86_CALL_PATTERN = re.compile(
    rb"\xb8(..\0\0)" + _X86_REGISTER_LOADS + rb"\x0f\x05|\xb8([\xa9\xaa]\x01\0\0).{0,24}?\x0f\x05", re.DOTALL
)
_ARM_CALL_PATTERN = re.compile(
    rb"([\x08\x28\x48\x68\x88\xa8\xc8\xe8].[\x80-\x9f][\x52\xd2])[\s\S]{0,28}?\x01\0\0\xd4", re.DOTALL
)


@dataclass(frozen=True)
class ElfHeader:
    """Facts from the ELF header of a program."""

    bits: int
    machine: int
    interpreter: str  #: path of the dynamic loader; empty for a static program
    is_go_program: bool

    @property
    def has_loader(self) -> bool:
        return bool(self.interpreter)

    @property
    def architecture_name(self) -> str:
        return f"{_ARCHITECTURE_NAMES.get(self.machine, f'machine {self.machine}')}, {self.bits} bit"


def read_elf_header(file_path: Path) -> ElfHeader | None:
    """The header of an ELF file; None for any other file."""
    try:
        with file_path.open("rb") as file:
            head = file.read(64)
            if head[:4] != b"\x7fELF" or len(head) < 52:
                return None
            is_64_bit, order = head[4] == 2, "<" if head[5] == 1 else ">"
            word = "Q" if is_64_bit else "I"
            machine = struct.unpack_from(f"{order}H", head, 18)[0]
            segment_table, section_table = struct.unpack_from(f"{order}{word}{word}", head, 32 if is_64_bit else 28)
            sizes = struct.unpack_from(f"{order}HHHHH", head, 54 if is_64_bit else 42)
            segment_size, segment_count, section_size, section_count, names_section = sizes
            file.seek(segment_table)
            segments = file.read(min(segment_size * segment_count, _MAX_TABLE_BYTES))
            interpreter = ""
            for i in range(segment_count):
                entry = i * segment_size
                if struct.unpack_from(f"{order}I", segments, entry)[0] == _DYNAMIC_LOADER:
                    (offset,) = struct.unpack_from(f"{order}{word}", segments, entry + (8 if is_64_bit else 4))
                    file.seek(offset)
                    interpreter = file.read(4096).split(b"\0")[0].decode("utf-8", "replace") or "?"
            file.seek(section_table)
            sections = file.read(min(section_size * section_count, _MAX_TABLE_BYTES))
            names = b""
            if section_count > names_section > 0:
                entry = names_section * section_size + (24 if is_64_bit else 16)
                offset, length = struct.unpack_from(f"{order}{word}{word}", sections, entry)
                file.seek(offset)
                names = file.read(min(length, _MAX_TABLE_BYTES))
    except (OSError, ValueError, OverflowError, struct.error):
        return None
    is_go_program = b".note.go.buildid" in names or b".go.buildinfo" in names
    return ElfHeader(64 if is_64_bit else 32, machine, interpreter, is_go_program)


def list_file_system_calls_in_code(program_path: Path) -> list[str]:
    """Names of the system calls on files whose instructions are in this program or library, as far as they show."""
    header = read_elf_header(program_path)
    if header is None or header.machine not in _CALL_NAMES_BY_MACHINE:
        return []
    names = _CALL_NAMES_BY_MACHINE[header.machine] | _IO_URING_CALL_NAMES
    numbers: set[int] = set()
    try:
        for code in _iterate_executable_segments(program_path):
            if header.machine == 62:
                numbers.update(
                    int.from_bytes(match[1] or match[2], "little") for match in _X86_CALL_PATTERN.finditer(code)
                )
            else:  # bits 5 to 20 of the instruction
                numbers.update(
                    int.from_bytes(match[1], "little") >> 5 & 0xFFFF for match in _ARM_CALL_PATTERN.finditer(code)
                )
    except (OSError, ValueError, OverflowError, struct.error):
        return []
    return [names[number] for number in sorted(numbers & set(names), reverse=True)]


def _iterate_executable_segments(program_path: Path) -> Iterator[bytes]:
    """The executable segments of a little-endian ELF file of 64 bits."""
    with program_path.open("rb") as file:
        head = file.read(64)
        (table,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        file.seek(table)
        segments = file.read(min(size * count, _MAX_TABLE_BYTES))
        for i in range(count):
            kind, flags, offset, _, _, length = struct.unpack_from("<IIQQQQ", segments, i * size)
            if kind == _LOADED_SEGMENT and flags & _EXECUTABLE_FLAG:
                file.seek(offset)
                yield file.read(min(length, _MAX_CODE_BYTES))
