"""The tools for files that all conversations of an agent share: list, stage, compare, promote, restore.

Shared files are read-only for every tool and command. A change is staged as a draft in the workspace,
compared, and promoted as a new version, which a person is asked about: exactly the draft whose hash the call
names. Where versions are kept is the runner's side, reached through a `SharedAccess` among the context's
extras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from harness.errors import Declined, Invalid, ToolError
from harness.events import AgentToolUse
from harness.history import Entry
from harness.tools import Effect, Handler, Tool, ToolContext, ToolOutput
from tools_app.confinement import parse_path
from tools_app.provenance import answered
from tools_app.workspace import Workspace

EXTRA = "shared"
"""The name of the `SharedAccess` among a context's extras."""


class SharedAccess(Protocol):
    """The shared files of one conversation's agent. Plain functions, for threads with tables; each
    answers in words and raises `Declined`."""

    def overview(self) -> tuple[str, Sequence[str]]:
        """And the paths of this conversation's drafts among them."""
        ...

    def stage(self, path: str) -> str: ...

    def compare(self, path: str) -> str: ...

    def stage_removal(self, path: str) -> str: ...

    def draft_of(self, path: str) -> str | None:
        """Where the draft lies in the workspace; None for one that takes the file away."""
        ...

    def promote(self, path: str, expected_sha256: str, draft_sha256: str, call: str = "") -> str:
        """Nothing but the draft that has this hash; empty: that takes the file away. `call`: the id of the
        call that does it, which people may have been asked about."""
        ...

    def versions(self, path: str) -> str: ...

    def restore(self, path: str, version: int, expected_sha256: str, call: str = "") -> str: ...


def _handler(
    act: Callable[[SharedAccess, dict[str, Any]], str],
) -> Callable[[ToolContext, dict[str, Any]], str]:
    def handler(context: ToolContext, arguments: dict[str, Any]) -> str:
        access = _access(context)
        with _refusals_for_model():
            return act(access, arguments)

    return handler


def promote(context: ToolContext, arguments: dict[str, Any]) -> str:
    access, call = _access(context), context.call_id
    with _refusals_for_model():
        return access.promote(
            arguments["path"], arguments["expected_sha256"], arguments["draft_sha256"], call=call
        )


def restore(context: ToolContext, arguments: dict[str, Any]) -> str:
    access, call = _access(context), context.call_id
    with _refusals_for_model():
        return access.restore(
            arguments["path"], arguments["version"], arguments["expected_sha256"], call=call
        )


def _access(context: ToolContext) -> SharedAccess:
    access: SharedAccess | None = context.extras.get(EXTRA)
    if access is None:
        raise ToolError("This conversation's agent has no shared files.")
    return access


@contextmanager
def _refusals_for_model() -> Iterator[None]:
    """Refusals meant for an asker as `ToolError`: here the model asks."""
    try:
        yield
    except Declined as problem:
        raise ToolError(problem.message, hint=problem.hint) from problem


def overview(context: ToolContext, _arguments: dict[str, Any]) -> ToolOutput:
    with _refusals_for_model():
        text, drafts = _access(context).overview()
    staged = _staged(context.entries)
    source = context.brought_by(call for path in drafts for call in staged.get(path, []))
    return ToolOutput(text, untrusted=bool(source), untrusted_by=source)


def _staged(entries: Sequence[Entry]) -> Mapping[str, list[str]]:
    """By path as a draft has it, however it was written: the calls that gave it."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        use = entry.event
        if isinstance(use, AgentToolUse) and use.name.startswith("stage_shared_"):
            with suppress(Invalid):  # no draft came of it
                found.setdefault("/".join(parse_path(_path_of(use.input))), []).append(entry.uid)
    return found


def compare(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    access = _access(context)
    with _refusals_for_model():
        text = access.compare(arguments["path"])
        draft = access.draft_of(arguments["path"])
        shown = [] if draft is None else [Workspace(context.workspace).stat(draft)]
        return answered(context, text, shown, names=False)


PATH = {
    "type": "string",
    "minLength": 1,
    "maxLength": 500,
    "description": "Path of the shared file, for example “guides/style.md”.",
}
EXPECTED = {
    "type": "string",
    "maxLength": 64,
    "description": "The SHA-256 of the shared file as you know it (from compare_shared_file or "
    "shared_files); empty for a new file. If it has changed meanwhile, nothing is done.",
}

DRAFT = {
    "type": "string",
    "maxLength": 64,
    "description": "The SHA-256 of the draft (from compare_shared_file); empty where it takes the file away. "
    "If the draft is another one when a person has said yes, nothing is done.",
}


def _path_of(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("path", ""))


def _tool(
    name: str,
    description: str,
    properties: dict[str, Any],
    handler: Handler,
    **more: Any,
) -> Tool:
    return Tool(
        name=name,
        description=description,
        input_schema={
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
        handler=handler,
        intent=_path_of,
        **more,
    )


TOOLS = (
    _tool(
        "shared_files",
        "List the files that all conversations of this agent share, with version and SHA-256, and how "
        "this conversation's drafts of them stand. Commands see them read-only in /shared.",
        {},
        overview,
        effect=Effect.READ,
    ),
    _tool(
        "stage_shared_file",
        "Copy a shared file into the workspace, as a draft that can be changed; for a path that is not "
        "shared yet, note that a new file is to be written there. Replaces an earlier draft.",
        {"path": PATH},
        _handler(lambda access, given: access.stage(given["path"])),
        effect=Effect.WORKSPACE,
        apart=True,
    ),
    _tool(
        "stage_shared_removal",
        "Note, as this conversation's draft, that a file is to be shared no more. Nothing changes until "
        "the draft is promoted; earlier versions stay and can be restored.",
        {"path": PATH},
        _handler(lambda access, given: access.stage_removal(given["path"])),
        effect=Effect.WORKSPACE,
        apart=True,
    ),
    _tool(
        "compare_shared_file",
        "Show how the draft differs from the shared file as it is now, with the SHA-256 of both.",
        {"path": PATH},
        compare,
        effect=Effect.READ,
    ),
    _tool(
        "promote_shared_file",
        "Make the draft the new version of the shared file, for all conversations of this agent. A "
        "person is asked first, and is shown the change.",
        {"path": PATH, "expected_sha256": EXPECTED, "draft_sha256": DRAFT},
        promote,
        effect=Effect.OUTSIDE,
        always_asks=True,
        in_order=True,
    ),
    _tool(
        "shared_file_versions",
        "List the versions of a shared file, newest first.",
        {"path": PATH},
        _handler(lambda access, given: access.versions(given["path"])),
        effect=Effect.READ,
    ),
    _tool(
        "restore_shared_file",
        "Bring an earlier version of a shared file back, exactly, as its newest one. A person is asked "
        "first.",
        {
            "path": PATH,
            "version": {"type": "integer", "minimum": 1},
            "expected_sha256": EXPECTED,
        },
        restore,
        effect=Effect.OUTSIDE,
        always_asks=True,
        in_order=True,
    ),
)
