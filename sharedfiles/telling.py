"""What people are shown when they are asked about a change of a shared file: what all conversations of the
agent would find there, against what they find now.

Told when the question is made, of the contents that the call names by their hashes. A draft that is another
one then is not shown, and is not promoted whatever it is by the time that the call runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_noop

from conversations.models import Conversation
from harness.errors import AgentError
from tools_app.textfiles import decode
from tools_app.touches import changed_text, told_of
from tools_app.workspace import workspace_for

from .access import TableSharedFiles
from .versions import sha256_of

TOOLS = ("promote_shared_file", "restore_shared_file")

_SHARED = gettext_noop("What every conversation of this agent is to find as “%(path)s”:")
_REMOVED = gettext_noop("“%(path)s” is to be shared no more:")
_OTHER = gettext_noop(
    "The draft or the shared file is not the one that this call names, so nothing can be shown, and nothing "
    "is shared by it."
)
_NO_TEXT = gettext_noop("It is no text: %(bytes)d bytes, SHA-256 %(sha256)s.")


def tell(conversation_uid: str, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    rows = Conversation.objects.select_related("organisation", "agent_version__agent")
    conversation = rows.get(uid=conversation_uid)
    files = TableSharedFiles(conversation, workspace_for(conversation_uid))
    path = str(given.get("path", ""))
    try:
        path, before, after = files.change_of(
            path,
            version=int(given.get("version", 0)) if tool == "restore_shared_file" else None,
            expected_sha256=str(given.get("expected_sha256", "")),
            draft_sha256=str(given.get("draft_sha256", "")),
        )
    except AgentError:
        return told_of([], (_OTHER, {}), whole=False)
    about = {"path": path}
    words: list[tuple[str, Mapping[str, Any]]] = [(_REMOVED if after is None else _SHARED, about)]
    texts: list[str | None] = []
    for data in (before, after):
        found = None if data is None else decode(data)
        if data is not None and found is None:
            words.append((_NO_TEXT, {"bytes": len(data), "sha256": sha256_of(data)}))
        texts.append("" if data is not None and found is None else found.text if found else None)
    change = changed_text(path, *texts)
    return told_of([change], *words, bound=files.bound, whole=len(words) == 1)
