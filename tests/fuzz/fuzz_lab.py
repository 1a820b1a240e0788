# SPDX-License-Identifier: Apache-2.0
"""Feeds one reader of the lab with bytes that Atheris invents, guided by coverage. Run by tools/fuzz.

Usage: python tests/fuzz/fuzz_lab.py --list
       python tests/fuzz/fuzz_lab.py READER CORPUS [OPTION OF LIBFUZZER...]

CORPUS is a folder; the files that the reader accepts are copied there first. An exception that the reader does not
document, ten seconds for one input or 500 MB of memory end the program, and the input is in a file crash-….
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tests" / "lab")]
with atheris.instrument_imports(include=["sonde"]):
    from reader_targets import TARGETS

LIMITS = ("-timeout=10", "-rss_limit_mb=500", "-max_len=65536", "-print_final_stats=1", "-verbosity=0")


def write_dictionary(path: Path, seeds: Iterable[bytes]) -> None:
    """Writes the words and strings of the seeds, and values that readers seldom expect."""
    tokens = {b"null", b"true", b"[]", b"{}", b"-1", b"1e999", b"NaN", b"9" * 50, b"[" * 50}
    for seed in seeds:
        tokens |= set(re.findall(rb'"[^"\n]{1,30}"|[\w.+-]{2,30}', seed)[:400])
    escaped = ("".join(f"\\x{byte:02x}" for byte in token) for token in sorted(tokens))
    path.write_text("".join(f'"{token}"\n' for token in escaped), encoding="ascii")


def main() -> None:
    """Ends the program with libFuzzer's exit code."""
    if sys.argv[1:] == ["--list"]:
        print("\n".join(target.name.replace(" ", "-") for target in TARGETS))
        return
    target = next(target for target in TARGETS if target.name.replace(" ", "-") == sys.argv[1])
    corpus = Path(sys.argv[2])
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (corpus / hashlib.sha1(seed, usedforsecurity=False).hexdigest()).write_bytes(seed)
    dictionary = corpus.parent / f"{target.name.replace(' ', '-')}.dict"
    write_dictionary(dictionary, target.seeds())
    folder = Path(tempfile.mkdtemp(prefix="sonde-fuzz-"))
    path = folder / target.file

    def run_once(content: bytes) -> None:
        path.write_bytes(content)
        with suppress(*target.errors):
            target.read(path)

    atheris.Setup([sys.argv[0], str(corpus), f"-dict={dictionary}", *LIMITS, *sys.argv[3:]], run_once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
