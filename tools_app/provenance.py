"""What of a workspace strangers may have written: asked where content is answered, told where it comes in.

Nothing is kept from being read by it. `harness.policy` asks before calls that reach outside once such
content has entered a run. Where the marks are kept is the runner's side, reached through a
`Provenance` among a context's extras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Protocol

from harness.errors import AgentError, NotFound
from harness.tools import ToolContext, ToolOutput
from tools_app.confinement import parse_path, shown
from tools_app.leases import Lease
from tools_app.workspace import OUTPUTS, Entry, Workspace

EXTRA = "provenance"
"""The name of the `Provenance` among a context's extras."""

UPLOADED = "it was uploaded"
WRITTEN = "it was written after untrusted content had come in"
OUTPUT = "it is the answer to a call that brought untrusted content"

_GIVEN_NAMES = frozenset({"", UPLOADED, OUTPUT})
"""Sources of what has its name from a person, or from this server."""

SourceOfFolder = Callable[[str], str]
"""By the path of a folder: where its name comes from that strangers may have written; empty: from none."""

MARGIN = 1.0
"""Seconds by which clocks of files may be behind."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """What of one workspace is foreign at one moment."""

    paths: Mapping[str, str] = field(default_factory=dict)
    """By path: where the file comes from, in words."""
    inodes: Mapping[int, str] = field(default_factory=dict)
    """The same by the files' numbers, which stay when a file is moved, and are given anew once it is gone."""
    since: float | None = None
    """When the first command began that may have carried foreign content into other files."""
    settled: bool = False
    """That command has ended; its mark stays."""
    command: str = ""
    """What that command was, in words."""

    def __bool__(self) -> bool:
        return bool(self.paths) or self.since is not None

    def source_of(self, entry: Entry) -> str:
        """Why what stands in a file is foreign, in words; empty: it is not."""
        if source := self.paths.get(entry.path):
            return source
        if self.since is None:
            return ""  # only a command gives a file another name: of what is gone, the number is another's
        if source := self.inodes.get(entry.inode, ""):
            # Whoever gave it this name, it is not the one that it had from a person or from this server.
            return f"{source}, and has another name since" if source in _GIVEN_NAMES else source
        if entry.changed >= self.since - MARGIN:
            return f"it was changed by, or after, {self.command}"
        return ""

    def about(self, entry: Entry) -> str:
        """The same with the file's path."""
        source = self.source_of(entry)
        return f"{entry.display_path}: {source}" if source else ""

    def about_name(self, entry: Entry, of_folder: SourceOfFolder | None = None) -> str:
        """The same of a file's name alone, which is a person's choice for what she uploads, and this
        server's for what it keeps of answers and for the folder of results."""
        return self.about_path(entry.path, self.source_of(entry), of_folder)

    def about_path(self, path: str, source: str, of_folder: SourceOfFolder | None = None) -> str:
        """The same of what has this `source`, with the names of the folders on the way to it; `of_folder`:
        `folders_in` where it stands."""
        if path == OUTPUTS:
            return ""
        if of_folder is None or self.paths.get(path) in _GIVEN_NAMES:  # and with it the way to it
            of_folder = self._marked
        above = (of_folder(folder) for folder in _above(path) if folder != OUTPUTS)
        named = next((each for each in chain((source,), above) if each not in _GIVEN_NAMES), "")
        return f"{shown(path)}: {named}" if named else ""

    def folders_in(self, workspace: Workspace) -> SourceOfFolder:
        """Why the name of a folder is foreign, also of one that a command made or moved, which is known by
        its number or by when it was changed. Each is looked at once."""

        @cache
        def source(path: str) -> str:
            try:
                return self.source_of(workspace.stat(path))
            except AgentError:
                return self._marked(path)

        return source

    def _marked(self, path: str) -> str:
        return self.paths.get(path, "")

    @property
    def anything(self) -> str:
        """What a command may have read, in words."""
        if self.paths:
            path, source = next(iter(self.paths.items()))
            more = f", and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
            return f"{shown(path)[:100]}: {source}{more}"
        return f"what came of {self.command}" if self.since is not None else ""


NOTHING = Foreign()


class Provenance(Protocol):
    """The marks of one workspace. Plain functions, for threads with tables."""

    def foreign(self, *, but: str = "") -> Foreign:
        """`but`: the call of a command whose own mark does not count."""

    def mark_file(self, path: str, source: str, inode: int = 0) -> None:
        """What stands at `path` is foreign from now on, whatever replaces it. Told before it is
        written, and once more with the file's number."""

    def begin_command(self, call_id: str, words: str) -> None:
        """A command begins that may carry foreign content into any file; `words` say which. Empty: there
        is none within its reach until something is marked."""

    def end_command(self, call_id: str, words: str, *, leaves: bool = False) -> None:
        """It is over. Empty `words`: it brought nothing, and what it changed is the agent's own; what it
        `leaves` running may still read whatever is marked later, and carry it into any file."""


def provenance_of(context: ToolContext) -> Provenance | None:
    """None where nobody keeps marks: a workspace without a conversation."""
    found: Provenance | None = context.extras.get(EXTRA)
    return found


def foreign_in(context: ToolContext) -> Foreign:
    held = provenance_of(context)
    return held.foreign() if held is not None else NOTHING


def answered(
    context: ToolContext, text: str, files: Iterable[Entry], *, names: bool = True
) -> ToolOutput:
    """An answer that shows what stands in `files`; with `names`, also names of theirs that the model did not
    give itself."""
    foreign = foreign_in(context)
    folders = foreign.folders_in(Workspace(context.workspace))
    sources = (
        foreign.about(file) or (foreign.about_name(file, folders) if names else "")
        for file in files
    )
    source = next(filter(None, sources), "") if foreign else ""
    return ToolOutput(text, untrusted=bool(source), untrusted_by=source)


def named(context: ToolContext, text: str, files: Iterable[Entry]) -> ToolOutput:
    """An answer that shows the names of `files`, and nothing of what stands in them."""
    foreign = foreign_in(context)
    folders = foreign.folders_in(Workspace(context.workspace))
    sources = (foreign.about_name(file, folders) for file in files)
    source = next(filter(None, sources), "") if foreign else ""
    return ToolOutput(text, untrusted=bool(source), untrusted_by=source)


def whose_name(context: ToolContext, entry: Entry) -> str:
    """Why an error that names a file repeats words of strangers; empty: it repeats none."""
    foreign = foreign_in(context)
    return foreign.about_name(entry, foreign.folders_in(Workspace(context.workspace)))


def write(
    context: ToolContext,
    workspace: Workspace,
    path: str,
    data: bytes,
    *,
    lease: Lease,
    before: Entry | None = None,
) -> Entry:
    """Write a file for a call, which holds the `lease`: marked where the model may have the words from
    strangers, or where they stand in the file that was there `before` and is only changed. So are folders
    that are made for it: their names are such words."""
    held = provenance_of(context)
    source = ""
    if held is not None:
        source = WRITTEN if context.tainted_by else _source_before(held, before)
    if held is None or not source:
        return workspace.write_bytes(path, data, lease=lease)
    missing = _missing_folders(workspace, path)
    for marked in ("/".join(parse_path(path)), *missing):
        held.mark_file(marked, source)
    entry = workspace.write_bytes(path, data, lease=lease)
    held.mark_file(entry.path, source, entry.inode)
    for folder in missing:
        with suppress(NotFound):  # a command may have taken it away again
            held.mark_file(folder, source, workspace.stat(folder).inode)
    return entry


def _missing_folders(workspace: Workspace, path: str) -> list[str]:
    """Those on the way to a file that are not there yet, the nearest to it first."""
    found: list[str] = []
    for folder in _above("/".join(parse_path(path))):
        try:
            workspace.stat(folder)
        except NotFound:
            found.append(folder)
        else:
            break
    return found


def _source_before(held: Provenance, before: Entry | None) -> str:
    return held.foreign().source_of(before) if before is not None else ""


def _above(path: str) -> Iterator[str]:
    """The folders on the way to `path`, the nearest to it first."""
    while path := path.rpartition("/")[0]:
        yield path
