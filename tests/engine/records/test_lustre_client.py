# SPDX-License-Identifier: Apache-2.0
"""What a run says of Lustre's client, read from trees in the form of its files, and whether locks were given back."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from engine_under_test import Engine, find_schema_errors, write_plan

# As `lctl get_param osc.*.import` prints it, shortened.
IMPORT = """import:
    name: scratch-OST0000-osc-ffff9c0c4e5a3800
    target: scratch-OST0000_UUID
    state: FULL
    connect_flags: [ write_grant, server_lock, version ]
    connect_data:
       flags: 0xa0425af2e3440478
       instance: 11
       target_version: {version}
       initial_grant: 8437760
    import_flags: [ replayable, pingable ]
"""


def write_files(root: Path, text_by_path: dict[str, str]) -> Path:
    for name, text in text_by_path.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def read_lustre_facts(engine: Engine, target: Path, root: Path) -> dict[str, object] | None:
    result = engine.run(write_plan(target), env={"SONDE_LUSTRE_ROOT": str(root)})
    assert result.code == 0, result.err
    (node,) = result.of("node")
    assert find_schema_errors(node) == []
    lustre: dict[str, object] | None = node.get("lustre")
    return lustre


def test_settings_of_a_new_client_are_read_from_sys_proc_and_debugfs(
    engine: Engine, target: Path, tmp_path: Path
) -> None:
    files = {"sys/fs/lustre/version": "2.15.3\n", "sys/kernel/debug/lnet/debug": "ioctl neterror warning error\n"}
    for index in range(3):
        osc = f"sys/fs/lustre/osc/scratch-OST{index:04x}-osc-ffff9c0c4e5a3800"
        files |= {f"{osc}/checksums": "1\n", f"{osc}/max_rpcs_in_flight": "32\n" if index == 2 else "8\n"}
        files |= {f"{osc}/max_dirty_mb": "2000\n", f"{osc}/checksum_type": "crc32 adler [t10ip4K] crc32c\n"}
        files |= {f"{osc.replace('sys/fs', 'proc/fs')}/import": IMPORT.format(version="2.15.3.0")}
        locks = f"sys/fs/lustre/ldlm/namespaces/scratch-OST{index:04x}-osc-ffff9c0c4e5a3800"
        files |= {f"{locks}/lru_size": "17\n", f"{locks}/lock_unused_count": "17\n", f"{locks}/lock_count": "20\n"}
    mdc = "sys/fs/lustre/mdc/scratch-MDT0000-mdc-ffff9c0c4e5a3800"
    files |= {f"{mdc}/max_rpcs_in_flight": "8\n", f"{mdc}/max_mod_rpcs_in_flight": "7\n"}
    files |= {f"{mdc.replace('sys/fs', 'proc/fs')}/import": IMPORT.format(version="2.14.0.12")}
    files |= {"sys/fs/lustre/llite/scratch-ffff9c0c4e5a3800/max_read_ahead_mb": "1024\n"}
    assert read_lustre_facts(engine, target, write_files(tmp_path / "root", files)) == {
        "client_version": "2.15.3",
        "server_version": "2.15.3.0 on 3, 2.14.0.12 on 1",
        "debug": "ioctl neterror warning error",
        "osc": {
            "checksums": "1",
            "checksum_type": "t10ip4K",
            "max_rpcs_in_flight": "8 on 2, 32 on 1",
            "max_dirty_mb": "2000",
        },
        "mdc": {"max_rpcs_in_flight": "8", "max_mod_rpcs_in_flight": "7"},
        "llite": {"max_read_ahead_mb": "1024"},
        "ldlm": {"lru_size": "dynamic"},
    }


def test_old_lustre_client_is_read_from_proc(engine: Engine, target: Path, tmp_path: Path) -> None:
    locks = "proc/fs/lustre/ldlm/namespaces/scratch-OST0000-osc-ffff88"
    files = {
        "proc/fs/lustre/version": "lustre: 1.8.9\nkernel: patchless_client\nbuild:  jenkins-wc1\n",
        "proc/sys/lnet/debug": "0\n",
        "proc/fs/lustre/osc/scratch-OST0000-osc-ffff88/checksums": "0\n",
        "proc/fs/lustre/osc/scratch-OST0000-osc-ffff88/max_dirty_mb": "256\n",
        f"{locks}/lru_size": "3200\n",
        f"{locks}/lock_unused_count": "17\n",
        f"{locks}/lru_max_age": "36000000\n",
    }
    assert read_lustre_facts(engine, target, write_files(tmp_path / "root", files)) == {
        "client_version": "1.8.9",
        "debug": "0",
        "osc": {"checksums": "0", "max_dirty_mb": "256"},
        "ldlm": {"lru_size": "3200", "lru_max_age": "36000000"},
    }


def test_record_without_lustre_client_has_no_lustre_member(engine: Engine, target: Path, tmp_path: Path) -> None:
    assert read_lustre_facts(engine, target, tmp_path) is None


# --- locks ----------------------------------------------------------------------------------------------------------


def list_lock_files(root: Path, *unused: int) -> list[Path]:
    folders = [root / f"sys/fs/lustre/ldlm/namespaces/scratch-OST{index:04x}-osc-ff" for index in range(len(unused))]
    for folder, count in zip(folders, unused, strict=True):
        write_files(
            folder, {"lru_size": f"{count}\n", "lock_unused_count": f"{count}\n", "lock_count": f"{count + 2}\n"}
        )
    return folders


def run_lock_treatment(
    engine: Engine, target: Path, root: Path, need: str = "best_effort"
) -> tuple[int, dict[str, object], str]:
    phase = {"id": "write", "op": "write", "before": [{"kind": "cancel_locks", "need": need}]}
    result = engine.run(write_plan(target, phase), env={"SONDE_LUSTRE_ROOT": str(root)})
    (line,) = result.of("treatment")
    return result.code, line, result.err


def simulate_lustre_client(folder: Path, released: list[str]) -> None:
    """Releases locks on request, as the client of Lustre does."""
    ends = time.monotonic() + 30
    while time.monotonic() < ends:
        word = (folder / "lru_size").read_text(encoding="utf-8")
        if word.startswith("clear"):
            released.append(folder.name)
            (folder / "lock_count").write_text("2\n", encoding="utf-8")
            (folder / "lock_unused_count").write_text("0\n", encoding="utf-8")
            return
        time.sleep(0.005)


def test_locks_are_counted_before_and_after_their_release(engine: Engine, target: Path, tmp_path: Path) -> None:
    folders = list_lock_files(tmp_path, 12, 30)
    released: list[str] = []
    threads = [
        threading.Thread(target=simulate_lustre_client, args=(folder, released), daemon=True) for folder in folders
    ]
    for thread in threads:
        thread.start()
    code, line, _ = run_lock_treatment(engine, target, tmp_path, "required")
    for thread in threads:
        thread.join(30)
    assert (code, line["outcome"], line["locks_before"], line["locks_after"]) == (0, "done", 42, 0)
    assert line["text"] == "Locks kept without use: 42 of 46 before, 0 of 4 after."
    assert sorted(released) == [folder.name for folder in folders]


def test_unreleased_locks_fail_the_treatment(engine: Engine, target: Path, tmp_path: Path) -> None:
    list_lock_files(tmp_path, 5)
    code, line, complaint = run_lock_treatment(engine, target, tmp_path, "required")
    assert (code, line["outcome"], line["locks_before"], line["locks_after"]) == (3, "failed", 5, 5)
    assert "Not all locks were given back" in str(line["text"])
    assert "the required treatment cancel_locks failed" in complaint


def test_lock_release_without_permission_explains_the_remedy(engine: Engine, target: Path, tmp_path: Path) -> None:
    (folder,) = list_lock_files(tmp_path, 5)
    (folder / "lru_size").unlink()
    (folder / "lru_size").mkdir()
    code, line, _ = run_lock_treatment(engine, target, tmp_path)
    assert (code, line["outcome"]) == (0, "failed")
    assert "lctl set_param ldlm.namespaces.*.lru_size=clear" in str(line["text"])


def test_lock_release_without_lustre_is_skipped_with_a_reason(engine: Engine, target: Path) -> None:
    phase = {"id": "write", "op": "write", "before": [{"kind": "cancel_locks"}]}
    (line,) = engine.run(write_plan(target, phase)).of("treatment")
    assert line["outcome"] == "skipped"
    assert "only clients of Lustre" in line["text"]
