# SPDX-License-Identifier: Apache-2.0
"""Reading traces, choosing buffers from them, and saying why a program cannot be intercepted."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner

from sonde.advise.buffers import choose_iobuf_params, convert_ffio_specification
from sonde.cli.iobuf import command as iobuf
from sonde.cli.report import command as report
from sonde.cli.show import command as show
from sonde.launch.elf import read_elf_header
from sonde.launch.preload import find_interceptable_program
from sonde.model.errors import UserError
from sonde.model.trace import Trace, TracedFile, is_trace, read_trace

EXAMPLE = Path(__file__).resolve().parents[3] / "schema" / "trace" / "example.ndjson"


def test_the_example_is_read(tmp_path: Path) -> None:
    trace = read_trace(EXAMPLE)
    assert list(trace.files) == ["/scratch/run/result.dat"]
    assert trace.files["/scratch/run/result.dat"].write.calls == 200
    assert trace.damaged_files == []
    assert not is_trace(tmp_path)


def test_processes_are_added_up_by_file(tmp_path: Path) -> None:
    for number in range(3):
        shutil.copy(EXAMPLE, tmp_path / f"{number}.ndjson")
    text = EXAMPLE.read_text(encoding="utf-8")
    (tmp_path / "cut.ndjson").write_text(text[: len(text) // 2], encoding="utf-8")
    (tmp_path / "other.ndjson").write_text('{"type":"run"}\n', encoding="utf-8")
    trace = read_trace(tmp_path)
    assert len(trace.processes) == 4
    assert trace.damaged_files == ["cut.ndjson"]
    assert trace.files["/scratch/run/result.dat"].write.calls >= 600


def test_interpreter_startup_files_do_not_hide_main_file(tmp_path: Path) -> None:
    path = "/scratch/run/result.dat"
    for number in range(30):
        text = EXAMPLE.read_text(encoding="utf-8").replace(path, f"/usr/lib/python/module{number:02}.pyc")
        (tmp_path / f"{number}.ndjson").write_text(_set_times_to_nearly_zero(text), encoding="utf-8")
    shutil.copy(EXAMPLE, tmp_path / "mine.ndjson")
    done = CliRunner().invoke(show, [str(tmp_path)], standalone_mode=False)
    assert path in done.output
    assert "module" not in done.output
    assert "more, which took " in done.output


def _set_times_to_nearly_zero(text: str) -> str:
    """Returns the trace with all times of its files set to a nanosecond."""
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        if line["type"] == "file":
            line["meta_s"] = line["read"]["s"] = line["write"]["s"] = 1e-9
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def test_report_of_trace_is_rejected_with_advice() -> None:
    with pytest.raises(UserError, match=r"is a trace, of which there is no page; `sonde show"):
        CliRunner().invoke(report, [str(EXAMPLE)], standalone_mode=False, catch_exceptions=False)


def test_show_prints_a_trace() -> None:
    done = CliRunner().invoke(show, [str(EXAMPLE)], standalone_mode=False)
    assert "/scratch/run/result.dat" in done.output
    done = CliRunner().invoke(show, [str(EXAMPLE), "--json"], standalone_mode=False)
    assert json.loads(done.output)["files"][0]["write"]["bytes"] == 200_000


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("cachea:4096:8:8", "*:size=2097152:count=8:prefetch=8"),
        ("cachea", "*:size=32768:count=4:prefetch=0"),
        ("event,cachea:4096:4:2", "*:size=2097152:count=4:prefetch=2"),
        ("assign -F cachea:256:8:2 -B on f:out.dat", "out.dat:size=131072:count=8:prefetch=2:direct"),
        ("-F cachea.page_size=64.num_pages=2 p:%.dat", "*.dat:size=32768:count=2:prefetch=0"),
        ("cache:128:16 u:21", "fort.21:size=65536:count=16:prefetch=0"),
    ],
)
def test_ffio_specification_is_converted_to_iobuf_params(text: str, params: str) -> None:
    assert convert_ffio_specification(text) == params


@pytest.mark.parametrize("text", ["system", "cachea:x", "-F", "cachea:4096 -Q", "'"])
def test_invalid_ffio_specification_is_rejected(text: str) -> None:
    with pytest.raises(UserError, match="--ffio"):
        convert_ffio_specification(text)


def make_file_counts(path: str, size: int, calls: int, consecutive: int) -> TracedFile:
    file = TracedFile(path, processes=1)
    file.read.add_counters_line({"calls": calls, "bytes": calls * size, "s": 1.0, "consecutive": consecutive})
    return file


def test_only_files_that_gain_are_buffered() -> None:
    trace = Trace(processes=[{}])
    for file in (
        make_file_counts("/scratch/small,stream", 1000, 10000, 9999),
        make_file_counts("/scratch/random", 1000, 10000, 12),
        make_file_counts("/scratch/large", 8 << 20, 10000, 9999),
        make_file_counts("/scratch/rare", 1000, 20, 19),
    ):
        trace.files[file.path] = file
    assert choose_iobuf_params(trace) == "/scratch/small?stream:size=1048576:count=4:prefetch=2"
    del trace.files["/scratch/small,stream"]
    with pytest.raises(UserError, match="Nothing in this trace"):
        choose_iobuf_params(trace)


def fake_program(path: Path, *, machine: int = 62, loader: bool = True, sections: bytes = b"\0.text\0") -> Path:
    """The least that counts as a program: a head, one segment, one section with the names of sections."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<HH", head, 16, 3, machine)
    struct.pack_into("<QQ", head, 32, 64, 64 + 56)
    struct.pack_into("<HHHHHH", head, 52, 64, 56, 1, 64, 1, 0)
    segment = struct.pack("<I", 3 if loader else 1).ljust(56, b"\0")
    names = bytearray(64)
    struct.pack_into("<QQ", names, 24, 64 + 56 + 64, len(sections))
    path.write_bytes(bytes(head) + segment + bytes(names) + sections)
    path.chmod(0o755)
    return path


def test_why_a_program_cannot_be_intercepted(tmp_path: Path) -> None:
    library = fake_program(tmp_path / "library.so")
    find_interceptable_program(str(fake_program(tmp_path / "good")), library)
    for name, program, text in [
        ("static", {"loader": False}, "linked statically"),
        ("other", {"machine": 183}, "for aarch64"),
    ]:
        with pytest.raises(UserError, match=text):
            find_interceptable_program(str(fake_program(tmp_path / name, **program)), library)  # type: ignore[arg-type]
    # The table of section names is section 0 in this fake; a real program has it elsewhere.
    go = fake_program(tmp_path / "go")
    elf = read_elf_header(go)
    assert elf is not None
    assert not elf.is_go_program
    script = tmp_path / "script"
    script.write_text(f"#!{tmp_path / 'static'}\n", encoding="utf-8")
    script.chmod(0o755)
    with pytest.raises(UserError, match="linked statically"):
        find_interceptable_program(str(script), library)
    with pytest.raises(UserError, match="There is no program"):
        find_interceptable_program("no-such-program", library)


def test_dry_run_prints_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IOBUF_PARAMS", raising=False)
    done = CliRunner().invoke(iobuf, ["--dry-run", "--report"], standalone_mode=False)
    assert done.output == "IOBUF_PARAMS=*:auto\nIOBUF_VERBOSE=1\n"
    done = CliRunner().invoke(iobuf, ["--dry-run", "--from", str(EXAMPLE)], standalone_mode=False)
    assert done.output.startswith("IOBUF_PARAMS=/scratch/run/result.dat:size=1048576:count=")
    done = CliRunner().invoke(iobuf, ["--ffio", "cachea", "--params", "*", "--dry-run"], standalone_mode=False)
    assert isinstance(done.exception, UserError)
