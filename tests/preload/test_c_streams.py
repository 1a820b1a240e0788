# SPDX-License-Identifier: Apache-2.0
"""Streams of the C library: by default they do what they always do; with stdio=alone they have larger buffers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from preload_under_test import Preload

Program = Callable[[str], Path]
FILE_CONTENT = "".join(f"{number:<99}\n" for number in range(3000)) + "end\n"
ONLY_STDIO_PARAMS = "*:size=1M:stdio=alone"
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/io").exists(), reason="this kernel does not count the calls of a process"
)


def count_written_calls(preload: Preload, compile_program: Program, folder: Path, params: str, *arguments: str) -> int:
    """Number of calls that wrote data until the last record. Checks the content of the file."""
    done = preload.run([compile_program("c_stream"), folder / "file", *arguments], folder, IOBUF_PARAMS=params)
    assert done.returncode == 0, done.stderr
    assert (folder / "file").read_text(encoding="ascii") == FILE_CONTENT
    return int(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("params", ["*", "*:alone", "other*:stdio=alone", "*:stdio=off"])
def test_c_stream_is_not_buffered_without_the_stdio_option(
    preload: Preload, compile_program: Program, memory_folder: Path, params: str
) -> None:
    assert (
        count_written_calls(preload, compile_program, memory_folder, params)
        == count_written_calls(preload, compile_program, memory_folder, "none:off")
        > 70
    )


@pytest.mark.parametrize("ending", ["", "append", "freopen", "many"])
def test_stdio_alone_writes_once_per_buffer(
    preload: Preload, compile_program: Program, memory_folder: Path, ending: str
) -> None:
    assert (
        count_written_calls(preload, compile_program, memory_folder, ONLY_STDIO_PARAMS, ending) == 0
    )  # 300 kB, which fclose() or exit() writes
    (memory_folder / "file").unlink()
    assert 4 <= count_written_calls(preload, compile_program, memory_folder, "*:size=64k:stdio=alone", ending) <= 6


def test_stdio_alone_writes_inherited_data_once(
    preload: Preload, compile_program: Program, memory_folder: Path
) -> None:
    assert count_written_calls(preload, compile_program, memory_folder, ONLY_STDIO_PARAMS, "fork") == 1


def test_buffer_set_by_the_program_is_not_replaced(
    preload: Preload, compile_program: Program, memory_folder: Path
) -> None:
    assert count_written_calls(
        preload, compile_program, memory_folder, ONLY_STDIO_PARAMS, "setvbuf"
    ) == count_written_calls(preload, compile_program, memory_folder, "none:off", "setvbuf")


def test_streams_that_read_and_write_keep_their_buffers(
    preload: Preload, compile_program: Program, memory_folder: Path
) -> None:
    assert count_written_calls(preload, compile_program, memory_folder, ONLY_STDIO_PARAMS, "both") > 70


def test_a_stream_that_reads_needs_a_call_for_each_buffer(
    preload: Preload, compile_program: Program, memory_folder: Path
) -> None:
    (memory_folder / "file").write_text(FILE_CONTENT, encoding="ascii")
    calls = {}
    for params in ("*", ONLY_STDIO_PARAMS):
        done = preload.run(
            [compile_program("c_stream"), memory_folder / "file", "read"], memory_folder, IOBUF_PARAMS=params
        )
        spent, total = map(int, done.stdout.split())
        assert total == sum(range(3000))
        calls[params] = spent
    assert calls["*"] > 70
    assert calls[ONLY_STDIO_PARAMS] < 10


def test_report_states_that_a_stream_got_a_larger_buffer(
    preload: Preload, compile_program: Program, memory_folder: Path
) -> None:
    done = preload.run(
        [compile_program("c_stream"), memory_folder / "file"],
        memory_folder,
        IOBUF_PARAMS=f"{ONLY_STDIO_PARAMS}:verbose",
    )
    assert "a stream of the C library, which got a larger buffer (stdio=alone)" in done.stderr
    result = preload.run(
        [compile_program("c_stream"), memory_folder / "file"], memory_folder, IOBUF_PARAMS="*:stdio=mine"
    )
    assert 'stdio= takes "alone"' in result.stderr
