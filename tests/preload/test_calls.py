# SPDX-License-Identifier: Apache-2.0
"""The list of calls that we stand in front of is complete: every I/O name that the installed libc exports is in it, or
is left out for a reason given here. A new name in a new libc makes this fail until somebody has decided.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from preload_under_test import ROOT, Preload

# What a name of I/O looks like.
STEMS = re.compile(
    r"open|creat|close|read|write|seek|stat|trunc|fallocate|dup|fcntl|ioctl|sync|mmap|munmap|mremap|advise|copy_file"
    r"|sendfile|splice|^v?m?tee|flock|lockf|link|rename|remove|aio_|lio_|fork|clone|spawn|exec|system|exit|abort"
    r"|temp|tmpfile|sendm?msg|pidfd|handle_at|rlimit|sigaction|signal$|sigset$|daemon|memfd|syscall"
)

# Reason -> names that look like I/O and are left alone on purpose.
LEFT: dict[str, str] = {
    "threads, processes and other things of the system, not files": r"_*pthread_.*|_thread_db_.*|__nptl_.*|thrd_.*"
    r"|cnd_.*|tss_.*|sem_.*|mq_.*|__mq_open_2|timer.*|eventfd_.*|epoll_.*|getrlimit(64)?|__getrlimit|malloc_stats"
    r"|pidfd_(open|send_signal)|create_module|p?str?signal|gsignal|psignal|initstate.*|setstate.*|svc.*|__?rpc_.*"
    r"|auth.*|clnt.*|xdr.*|__libc_(alloc|scratch|clntudp|unwind|single|rpc).*|__res_.*|hcreate.*|rpc_createerr"
    r"|argp_.*|argz_.*|envz_.*|obstack_.*|__netlink_.*|__gconv_.*|iconv_.*|__open_catalog|cat(open|close)|re_exec"
    r"|regexec|rexec.*|str(n)?dup|__str(n)?dup|wcsdup|duplocale|__duplocale|openlog|closelog|__cyg_.*|__abort_msg"
    r"|sigaction_.*|pthread_atfork|__register_atfork|__cxa_.*|on_exit|__libc_system|getpt|step|advance",
    "directories, links, file systems": r".*dirp?(64)?(_r)?|fdopendir|opendir|fts.*|(__)?readlink(at)?(_chk)?"
    r"|symlink(at)?|(l|f)?removexattr|(__)?f?statv?fs(64)?|ustat|open_tree|fsopen|name_to_handle_at|readdir.*|seekdir"
    r"|mkdtemp|(__)?mktemp|tempnam|sem_unlink|shm_(open|unlink)|mq_.*",
    "inside libc's streams: they make system calls of their own, files opened by them are never buffered": r"_IO_.*"
    r"|f(seek|seeko|seeko64|read|write)|(__)?f?(read|write)(_unlocked)?(_chk)?_?|fread_unlocked|fwrite_unlocked"
    r"|__f(read|reading|readable|seeko64|writ).*|f?m?open_?(w)?memstream|fmemopen|fopencookie|f(try)?lockfile|funlockfile"
    r"|tmpfile(64)?|__fread_.*|open_w?memstream|pclose|__fwriting|__fwritable|__freadable|__fread(ing|_chk|_unlocked_chk)",
    "results of asynchronous I/O: its files are let go": r"aio_(cancel|error|init|return|suspend)(64)?",
    "maps: a mapped file is let go": r"m(remap|unmap|sync|advise)|(posix_|process_|__)?madvise|__munmap|munmap|mremap",
    "memory of other processes": r"process_vm_.*",
    "preparations of posix_spawn": r"posix_spawn_file_actions_.*|posix_spawnattr_.*",
    "fork by libc itself: the handlers of pthread_atfork run": r"daemon|forkpty|openpty|posix_openpt",
    "pipes only": r"tee|vmsplice",
    "files in memory": r"memfd_create",
    "the ordinary end: our destructor runs": r"exit",
    "code loaded by the dynamic loader": r"dl(m)?open|dlclose",
    "another process's descriptor": r"pidfd_getfd",
}


def exported_by_libc() -> set[str]:
    """Public functions; what libc keeps to itself (GLIBC_PRIVATE) no program can call."""
    nm = shutil.which("nm")
    maps = Path("/proc/self/maps").read_text(encoding="ascii")
    match = re.search(r"(/\S*/libc\.so\.6|/\S*/libc-2\.\d+\.so)$", maps, re.MULTILINE)
    if nm is None or match is None:
        pytest.skip("no nm, or not glibc")
    listing = subprocess.run([nm, "-D", "--defined-only", match[1]], capture_output=True, text=True, check=True).stdout
    names = set()
    for line in listing.splitlines():
        _, kind, name = line.split()
        plain, _, version = name.partition("@")
        if kind in "TWi" and "GLIBC_PRIVATE" not in version:
            names.add(plain)
    return names


def exported_by_us(preload: Preload) -> set[str]:
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", preload.library], capture_output=True, text=True, check=True
    )
    return {line.split()[2] for line in listing.stdout.splitlines() if line.split()[1] == "T"}


def test_every_libc_io_function_is_wrapped_or_excluded(preload: Preload) -> None:
    ours = exported_by_us(preload)
    assert len(ours) > 150
    left_out = re.compile("|".join(f"(?:{pattern})" for pattern in LEFT.values()))
    undecided = [
        name for name in sorted(exported_by_libc() - ours) if STEMS.search(name) and left_out.fullmatch(name) is None
    ]
    assert undecided == []


def test_library_exports_only_declared_functions(preload: Preload) -> None:
    """Only names from the list are visible: a helper of ours could stand in front of a function of the program."""
    show = '#include "intercept/calls.hpp"\n#define SHOW(result, name, parameters) @name@\nSONDE_CALLS(SHOW)\n'
    command = ["c++", "-std=c++20", "-E", "-P", "-x", "c++", "-I", str(ROOT / "preload"), "-"]
    text = subprocess.run(command, input=show, capture_output=True, text=True, check=True).stdout
    declared = set(re.findall(r"@(\w+)@", text))
    assert exported_by_us(preload) == declared | {"vfork", "__vfork"}


def test_library_depends_only_on_libc(preload: Preload) -> None:
    """No C++ library at run time: it would be loaded into every program, whatever it is written in."""
    output = subprocess.run(["readelf", "-d", preload.library], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", output))
    assert needed <= {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


OLDEST_GLIBC = (2, 28)
# Symbol -> why a newer glibc than the oldest cannot be avoided for it. Empty, and meant to stay so.
NEWER: dict[str, str] = {}


def test_library_loads_on_the_oldest_supported_glibc(preload: Preload) -> None:
    """No version of a symbol that it asks for is younger, wherever it was built."""
    objdump = shutil.which("objdump")
    if objdump is None:
        pytest.skip("there is no objdump here")
    output = subprocess.run([objdump, "-T", preload.library], capture_output=True, text=True, check=True).stdout
    imports = re.findall(r"\*UND\*.*\bGLIBC_([0-9.]+)\)?\s+(\w+)$", output, re.MULTILINE)
    assert len(imports) > 10
    younger = {
        f"{name} (GLIBC_{version})"
        for version, name in imports
        if tuple(int(part) for part in version.split(".")) > OLDEST_GLIBC and name not in NEWER
    }
    assert younger == set()
    # Before glibc 2.34 these hold what is in libc now.
    needed = subprocess.run(["readelf", "-d", preload.library], capture_output=True, text=True, check=True).stdout
    assert "[libdl.so.2]" in needed
    assert "[libpthread.so.0]" in needed
