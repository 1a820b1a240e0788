# SPDX-License-Identifier: Apache-2.0
"""Recipes of package managers state the version of CMakeLists.txt and require what pyproject.toml requires."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
# File -> how it states the version.
STATED = {
    "CITATION.cff": r"(?m)^version: (\S+)",
    "packaging/conda/recipe.yaml": r"(?m)^  version: (\d\S+)",
    "packaging/debian/changelog": r"\Asonde \((\S+)\)",
    "packaging/rpm/sonde-engine.spec": r"(?m)^Version:\s+(\S+)",
}
# Names that a package manager has for a distribution of PyPI.
RENAMED = {"duckdb": "python-duckdb"}


@pytest.mark.parametrize("file", STATED)
def test_recipe_states_version_of_cmake(file: str) -> None:
    (version,) = re.findall(r"project\(sonde VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert re.findall(STATED[file], (ROOT / file).read_text(encoding="utf-8")) == [version]


# How a recipe requires a library of the programs; {} is the oldest version that CMake accepts.
REQUIRED = {
    "conda/recipe.yaml": ("cmake >={}", "nlohmann_json >={}", "cli11 >={}", "liburing >={}", ""),
    "debian/control": (
        "cmake (>= {})",
        "nlohmann-json3-dev (>= {})",
        "libcli11-dev (>= {})",
        "liburing-dev (>= {})",
        "libfuse3-dev (>= {})",
    ),
    "rpm/sonde-engine.spec": ("cmake >= {}", "", "", "liburing-devel >= {}", "fuse3-devel >= {}"),
    "spack/sonde/package.py": ("cmake@{}:", "nlohmann-json@{}:", "cli11@{}:", "liburing@{}:", "libfuse@{}:"),
}


def test_conda_recipe_has_the_requirements_of_the_lab() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[>=<]", requirement)[0] for requirement in project["dependencies"]]
    text = (PACKAGING / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert len(names) > 8
    assert [name for name in names if f"- {RENAMED.get(name, name)} >=" not in text] == []


@pytest.mark.parametrize("file", REQUIRED)
def test_recipe_requires_the_libraries_of_cmake(file: str) -> None:
    root = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    libraries = (ROOT / "cmake" / "dependencies.cmake").read_text(encoding="utf-8")
    versions = re.findall(r"cmake_minimum_required\(VERSION (\S+)\)", root)
    for form in (r"nlohmann_json (\S+) ", r"CLI11 (\S+) CLI11", r"liburing>=([0-9.]+)\)", r"fuse3>=([0-9.]+)\)"):
        versions += re.findall(rf"\b{form}", libraries)
    text = (PACKAGING / file).read_text(encoding="utf-8")
    forms = [form.format(version) for form, version in zip(REQUIRED[file], versions, strict=True) if form]
    assert [form for form in forms if form not in text] == []


# Recipes that link each program into a folder of PATH.
@pytest.mark.parametrize(
    "file", ["debian/rules", "debian/sonde-engine.links", "rpm/sonde-engine.spec", "spack/sonde/package.py"]
)
def test_recipe_links_every_program_of_cmake(file: str) -> None:
    files = [ROOT / part / "CMakeLists.txt" for part in ("engine", "preload", "simulate")]
    programs = re.findall(
        r"install\(TARGETS (\S+) RUNTIME DESTINATION sonde/bin\)",
        "".join(file.read_text(encoding="utf-8") for file in files),
    )
    assert len(programs) == 4
    text = (PACKAGING / file).read_text(encoding="utf-8")
    assert [name for name in programs if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)] == []


def test_release_page_lists_every_recipe() -> None:
    page = (ROOT / "docs" / "develop" / "release.md").read_text(encoding="utf-8")
    folders = [path.name for path in PACKAGING.iterdir() if path.is_dir() and path.name not in ("systemd", "grafana")]
    assert len(folders) > 6
    assert [name for name in folders if f"`{name}/" not in page] == []


def test_changelog_links_pages_in_every_area() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    areas = re.split(r"(?m)^### ", text)[1:]
    links = [re.findall(r"\]\((docs/[^)#]+)", area) for area in areas]
    assert len(areas) >= 4
    assert [area.splitlines()[0] for area, pages in zip(areas, links, strict=True) if not pages] == []
    assert [page for pages in links for page in pages if not (ROOT / page).is_file()] == []


def test_shipped_text_installs_no_package_of_another_project() -> None:
    """On PyPI the name sonde belongs to another project."""
    by_name = re.compile(r"""\b(?:install|inject)\b[^\n`]*[\s'"]sonde(?:\[\w|['"`)\s.]*$)|: sonde\[""", re.MULTILINE)
    files = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    for folder, suffixes in (("docs", {".md"}), ("lab", {".py"}), ("packaging", {"", ".yml", ".md", ".def", ".rb"})):
        files += [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix in suffixes]
    assert len(files) > 500
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    assert [str(path.relative_to(ROOT)) for path, text in texts.items() if by_name.search(text)] == []
