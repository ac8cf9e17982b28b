"""What was changed about the agent within a conversation, in words for its page and its export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

TOOLS = frozenset({"tools", "custom_tools"})


def sentences_of(overrides: Mapping[str, Any]) -> list[str]:
    """Of the fields that one event changed; of others nothing is said."""
    sentences = []
    if TOOLS & overrides.keys():
        sentences.append(_("The agent's tools in this conversation were changed."))
    if "model" in overrides:
        model = overrides["model"] or _("the usual model")
        sentences.append(_("From the next message on: %(model)s.") % {"model": model})
        if effort := overrides.get("effort"):
            sentences.append(_("Effort: %(effort)s.") % {"effort": effort})
    return sentences
