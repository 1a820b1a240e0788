# SPDX-License-Identifier: Apache-2.0
"""`sonde iobuf --check`: programs whose calls the preload library does not see are named before they start."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from sonde.launch.elf import list_file_system_calls_in_code, read_elf_header
from sonde.launch.preload import find_interceptable_program, require_interceptable_calls
from sonde.model.errors import UserError

X86, ARM = 62, 183
WRITE = b"\xb8\x01\0\0\0\xbf\x01\0\0\0\x0f\x05"  # mov eax, 1; mov edi, 1; syscall
GETPID = b"\xb8\x27\0\0\0\x0f\x05"
RING = b"\xb8\xaa\x01\0\0\x90\x90\x90\x0f\x05"
MOVED_AWAY = b"\xb8\x01\0\0\0\xc3\x90\x0f\x05"  # a function that returns 1, and other code
ARM_WRITE = b"\x08\x08\x80\xd2\x20\x00\x80\xd2\x01\0\0\xd4"  # mov x8, 64; mov x0, 1; svc 0


def write_program(
    path: Path, machine_code: bytes, machine_type: int = X86, interpreter: str = "/lib64/ld-linux-x86-64.so.2"
) -> Path:
    """A dynamic program with one segment of code."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<HH", head, 16, 3, machine_type)
    struct.pack_into("<QQ", head, 32, 64, 0)
    struct.pack_into("<HHHHHH", head, 52, 64, 56, 2, 64, 0, 0)
    name = interpreter.encode() + b"\0"
    start = 64 + 2 * 56
    segments = struct.pack("<IIQQQQQQ", 3, 4, start, 0, 0, len(name), len(name), 1)
    segments += struct.pack("<IIQQQQQQ", 1, 5, start + len(name), 0, 0, len(machine_code), len(machine_code), 1)
    path.write_bytes(bytes(head) + segments + name + machine_code)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("machine_code", "machine_type", "expected_names"),
    [
        (WRITE, X86, ["write"]),
        (RING + WRITE, X86, ["io_uring_enter", "write"]),
        (GETPID + MOVED_AWAY, X86, []),
        (ARM_WRITE, ARM, ["write"]),
        (ARM_WRITE, X86, []),
        (WRITE, 243, []),
    ],
)
def test_direct_system_calls_are_detected_in_machine_code(
    tmp_path: Path, machine_code: bytes, machine_type: int, expected_names: list[str]
) -> None:
    assert (
        list_file_system_calls_in_code(write_program(tmp_path / "program", machine_code, machine_type))
        == expected_names
    )


def test_program_with_direct_system_calls_is_rejected(tmp_path: Path) -> None:
    program = write_program(tmp_path / "solver", RING)
    with pytest.raises(UserError, match=r"^solver makes system calls without the C library \(io_uring_enter\)"):
        require_interceptable_calls(program, "solver")
    require_interceptable_calls(write_program(tmp_path / "other", GETPID), "other")


def test_musl_program_is_refused(tmp_path: Path) -> None:
    library = write_program(tmp_path / "library.so", b"")
    program = write_program(tmp_path / "solver", b"", interpreter="/lib/ld-musl-x86_64.so.1")
    with pytest.raises(UserError, match="linked with musl"):
        find_interceptable_program(str(program), library)


def test_program_of_32_bits_is_refused(tmp_path: Path) -> None:
    library = write_program(tmp_path / "library.so", b"")
    program = tmp_path / "solver"
    program.write_bytes(b"\x7fELF\x01\x01" + bytes(10) + struct.pack("<HH", 3, 3) + bytes(60))
    program.chmod(0o755)
    with pytest.raises(UserError, match="for i386, 32 bit, and the library is for x86-64, 64 bit"):
        find_interceptable_program(str(program), library)


def test_installed_programs_are_visible() -> None:
    """Programs of the C library make no calls of their own: a false alarm would make the check useless."""
    for name in ("ls", "dd", "sh"):
        path = shutil.which(name)
        assert path is not None
        require_interceptable_calls(Path(path), name)


def test_program_with_static_liburing_is_rejected(tmp_path: Path) -> None:
    archive = next(Path("/usr").glob("lib*/**/liburing.a"), None)
    if archive is None or shutil.which("cc") is None:
        pytest.skip("liburing.a or a C compiler is not installed")
    source = tmp_path / "ring.c"
    source.write_text(
        "#include <liburing.h>\nint main(void) { struct io_uring r; return io_uring_queue_init(4, &r, 0); }\n"
    )
    subprocess.run(["cc", "-o", tmp_path / "ring", source, archive], check=True)
    assert "io_uring_setup" in list_file_system_calls_in_code(tmp_path / "ring")
    header = read_elf_header(tmp_path / "ring")
    assert header is not None
    assert header.has_loader
