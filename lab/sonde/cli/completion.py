# SPDX-License-Identifier: Apache-2.0
"""Shell completion of names: runs, plans, phases, systems, experiments, tags and baselines."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from sonde.model.bundled_files import find_bundled_toml_files

# Every verb has these types, and only the completion of a name needs the archive: it is imported where it is used.
if TYPE_CHECKING:
    from sonde.store.archive import Archive

_MAX_COMPLETIONS = 100


def _list_runs(archive: Archive) -> Iterator[str]:
    """Names of runs, the newest first."""
    from sonde.store.shards import list_shard_contents, read_shard_stamps

    yield "last"
    try:
        months = sorted(read_shard_stamps(archive.root), reverse=True)
    except OSError:
        return
    for month in months:
        yield from sorted(list_shard_contents(archive.root, month).changed_ns, reverse=True)


def _list_plans(archive: Archive) -> Iterator[str]:
    """Shipped plans and experiments: verbs take both."""
    yield from find_bundled_toml_files("experiments", include_subfolders=True)


def _list_diagnosis_experiments(archive: Archive) -> Iterator[str]:
    from sonde.diagnose.library import list_diagnosis_experiments  # only `sonde diagnose` loads it

    return (experiment.id for experiment in list_diagnosis_experiments())


def _list_systems(archive: Archive) -> Iterator[str]:
    yield from find_bundled_toml_files("systems")


def _list_recent_phases(archive: Archive) -> Iterator[str]:
    """Phases of recent runs, the newest first."""
    from sonde.store.summary import read_summary

    runs = itertools.islice((name for name in _list_runs(archive) if name != "last"), 20)
    phases: set[str] = set()
    for name in runs:
        for phase in read_summary(archive.find_run_folders(name)[-1]).phases:
            identifier = str(phase.get("phase") or "")
            if identifier and identifier not in phases:
                phases.add(identifier)
                yield identifier


def _list_phase_limit_prefixes(archive: Archive) -> Iterator[str]:
    return (f"{phase}=" for phase in _list_recent_phases(archive))


def _list_tags(archive: Archive) -> Iterator[str]:
    from sonde.trends.sides import BASELINE_PREFIX

    yield from (tag for tag in _read_tags(archive) if not tag.startswith(BASELINE_PREFIX))


def _list_baselines(archive: Archive) -> Iterator[str]:
    from sonde.trends.sides import BASELINE_PREFIX

    yield from (tag.removeprefix(BASELINE_PREFIX) for tag in _read_tags(archive) if tag.startswith(BASELINE_PREFIX))


def _read_tags(archive: Archive) -> list[str]:
    """Tags of all runs, sorted."""
    from sonde.store.catalog import Catalog

    return sorted(
        {tag for row in Catalog(archive.root).read_run_table(["tags"]).to_pylist() for tag in row["tags"] or ()}
    )


_NameSource = Callable[["Archive"], Iterable[str]]


class NameType(click.types.StringParamType):
    """A text whose values complete to names of one kind, and to files where a file is possible."""

    def __init__(self, source: _NameSource, allows_files: bool) -> None:
        self._source = source
        self._allows_files = allows_files

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from sonde.store.archive import Archive

        option = ctx.params.get("archive")
        archive = (
            option if isinstance(option, Archive) else Archive.from_option(option if isinstance(option, str) else None)
        )
        try:
            names = (name for name in self._source(archive) if name.startswith(incomplete))
            items = [CompletionItem(name) for name in itertools.islice(names, _MAX_COMPLETIONS)]
        except Exception:  # a damaged archive must not print a traceback into the command line
            items = []
        if self._allows_files and (not items or "/" in incomplete):
            items.append(CompletionItem(incomplete, type="file"))
        return items


# Name of a parameter -> what its values are; whether a file can stand there.
_NAME_SOURCES_BY_PARAMETER: Mapping[str, tuple[_NameSource, bool]] = {
    **dict.fromkeys(("run", "runs", "before", "after", "reference", "run_name"), (_list_runs, True)),
    "plan": (_list_plans, True),
    "experiment": (_list_diagnosis_experiments, False),
    **dict.fromkeys(("system", "described", "storage"), (_list_systems, True)),
    **dict.fromkeys(("tags", "added", "removed"), (_list_tags, False)),
    "baseline": (_list_baselines, False),
    "limits": (_list_phase_limit_prefixes, False),
}


def enable_name_completion(command: click.Command) -> None:
    """Lets the shell complete the values of each parameter in `_NAME_SOURCES_BY_PARAMETER`."""
    for parameter in command.params:
        if parameter.name in _NAME_SOURCES_BY_PARAMETER and type(parameter.type) is click.types.StringParamType:
            parameter.type = NameType(*_NAME_SOURCES_BY_PARAMETER[parameter.name])
