# SPDX-License-Identifier: Apache-2.0
"""``sonde site``: every history, event and run is on it, links lead somewhere, and a rebuild writes what changed."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from run_builders import age_archive
from site_builders import DROP, NIGHTS, add_night, make_site_archive, read_manifest

from sonde.cli.main import main
from sonde.site.site_folder import SiteFolder
from sonde.store.events import add_archive_events

RUNS = NIGHTS * 6 + 1
HISTORIES = 12  # 3 file systems, 2 tests, write and read


@pytest.fixture(scope="module")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the archive and its site."""
    root = tmp_path_factory.mktemp("site")
    make_site_archive(root / "archive")
    assert main(["site", str(root / "out"), "--reports", "2", "--archive", str(root / "archive")]) == 0
    return root


def read_pages(out: Path) -> dict[str, str]:
    return {name: (out / name).read_text(encoding="utf-8") for name in read_manifest(out)}


def to_text(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page)))


def test_every_link_leads_to_a_page_and_anchor(site_folder: Path) -> None:
    pages = read_pages(site_folder / "out")
    links = 0
    for name, page in pages.items():
        for target in re.findall(r'<a (?:class="[^"]*" )?href="([^"]+)"', page):
            path, _, anchor = html.unescape(target).partition("#")
            resolved = (Path(name).parent / path).as_posix() if path else name
            resolved = re.sub(r"[^/]+/\.\./", "", resolved)
            assert resolved in pages, f"{name} links to {target}"
            assert not anchor or f'id="{anchor}"' in pages[resolved], f"{name} links to {target}"
            links += 1
    assert links > 500


def test_every_run_history_and_event_is_there(site_folder: Path) -> None:
    pages = read_pages(site_folder / "out")
    lists = "".join(page for name, page in pages.items() if name.startswith("runs/"))
    assert len(set(re.findall(r'<a id="(2026[^"]+)"', lists))) == RUNS
    assert sum(name.startswith("history/") for name in pages) >= HISTORIES
    assert 'id="upgrade"' in pages["events.html"]
    assert 'id="disk"' in pages["events.html"]
    assert f"{RUNS:,} runs" in to_text(pages["runs.html"])


def test_overview_shows_the_ratio_of_the_slow_system(site_folder: Path) -> None:
    page = read_pages(site_folder / "out")["index.html"]
    row = re.search(r'<tr><th scope="row">lustre:/fs2 probe</th>(.*?)</tr>', page)
    assert row is not None
    fields = re.findall(r'<td class="(\w+)"><?.*?(\d+) %', row[1])
    assert len(fields) == 4
    assert all(css.startswith("down") and abs(int(percent) / 100 - DROP) < 0.03 for css, percent in fields)
    other = re.search(r'<tr><th scope="row">lustre:/fs1 probe</th>(.*?)</tr>', page)
    assert other is not None
    assert "down" not in other[1]
    assert "write of daily on /fs2 fell by 40 %." in to_text(page)
    assert 'Event "Upgraded <b>fs2</b>"' in to_text(page)


def test_history_has_event_lines_near_its_change(site_folder: Path) -> None:
    pages = read_pages(site_folder / "out")
    slow = [page for name, page in pages.items() if name.startswith("history/") and "lustre:/fs2" in page]
    assert len(slow) == 4
    for page in slow:
        assert page.count('class="event"') == 2, "a line for each event"
        assert "between the last run before and the first run after the change" in page
        assert "Upgraded &lt;b&gt;fs2&lt;/b&gt;" in page


def test_second_build_writes_nothing(site_folder: Path, sonde: Any) -> None:
    before = {path: path.stat().st_mtime_ns for path in (site_folder / "out").rglob("*.html")}
    assert (
        "0 pages written"
        in sonde("site", site_folder / "out", "--reports", "2", "--archive", site_folder / "archive").out
    )
    assert {path: path.stat().st_mtime_ns for path in (site_folder / "out").rglob("*.html")} == before


def test_new_run_rewrites_only_its_pages(site_folder: Path, sonde: Any, tmp_path: Path) -> None:
    archive, out = tmp_path / "archive", tmp_path / "out"
    shutil.copytree(site_folder / "archive", archive, copy_function=shutil.copy2)
    shutil.copytree(site_folder / "out", out)
    sonde("site", out, "--reports", "0", "--archive", archive)
    old = read_manifest(out)
    add_night(archive, NIGHTS, file_systems=1, tests=("daily",))
    age_archive(archive, hours=2)
    sonde("site", out, "--reports", "0", "--archive", archive)
    new = read_manifest(out)
    changed = {name for name in new if old.get(name) != new[name]}
    assert sum(name.startswith("history/") for name in changed) == 2
    assert {name for name in changed if name.startswith("runs/")} == {"runs/2026-03-1.html"}
    assert "index.html" in changed
    add_archive_events(
        archive, [{"schema": "sonde-event/1", "id": "x", "when": "2027-01-01", "kind": "other", "title": "x"}]
    )
    sonde("site", out, "--reports", "0", "--archive", archive)
    late = read_manifest(out)
    assert {name for name in late if late[name] != new.get(name)} == {"index.html", "events.html"}


def test_vanished_pages_are_removed_and_lost_pages_rewritten(site_folder: Path, sonde: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(site_folder / "out", out)
    (out / "runs.html").unlink()
    sonde("site", out, "--reports", "0", "--archive", site_folder / "archive")
    assert (out / "runs.html").exists()
    assert not list((out / "run").iterdir())


def test_folder_with_other_files_is_refused(site_folder: Path, sonde: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    result = sonde("site", tmp_path, "--archive", site_folder / "archive")
    assert result.code == 2
    assert "holds files that are no site" in result.err
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_archive_without_histories_has_a_site(sonde: Any, archive: Path, tmp_path: Path) -> None:
    archive.mkdir(exist_ok=True)
    sonde("event", "add", "Upgraded", "--at", "2026-03-02", "--archive", archive)
    assert sonde("site", tmp_path / "out", "--archive", archive).code == 0
    assert "Upgraded" in (tmp_path / "out" / "events.html").read_text()


def test_interrupted_page_is_written_by_the_next_build(tmp_path: Path) -> None:
    first = SiteFolder.open_site(tmp_path / "site")
    first.write_page("a.html", "old", lambda: "old text")
    first.remove_stale_pages()

    def interrupt() -> str:
        raise KeyboardInterrupt

    second = SiteFolder.open_site(tmp_path / "site")
    with pytest.raises(KeyboardInterrupt):
        second.write_page("a.html", "new", interrupt)
    second.save_progress()
    third = SiteFolder.open_site(tmp_path / "site")
    third.write_page("a.html", "new", lambda: "new text")
    assert (tmp_path / "site" / "a.html").read_text() == "new text"
