"""What may be typed behind a slash at the beginning of a message: a name, and what becomes of it.

None decides anything: one presses a control that is on the page, goes somewhere, opens a dialog, or puts
text into the box. Apps bring more with `offer`; a page shows only those that would do something there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.models import Conversation, Event

MOST = 100
"""So many are shown together."""


@dataclass(frozen=True, slots=True)
class Command:
    """Exactly one of `press`, `address`, `dialog` and `text` is given."""

    name: str
    """One word, without the slash."""
    about: str
    press: str = ""
    """The last control of the page that can be pressed and has this in `data-command` or `data-action`."""
    address: str = ""
    dialog: str = ""
    """The address of what the page's dialog shows."""
    text: str = ""
    """Put into the box, to be changed before it is sent."""
    owners_alone: bool = False
    """It would do nothing for others, or tells of what is the owner's."""
    writers_alone: bool = False
    """The same of those who only read."""


Source = Callable[[Conversation], Iterable[Command]]

_sources: list[Source] = []


def offer(source: Source) -> None:
    """Have its commands offered from now on, behind those that are; once, however often it is said."""
    if source not in _sources:
        _sources.append(source)


def commands_of(conversation: Conversation, reader: User) -> list[Command]:
    """Those of all sources that this reader is offered; of several with one name, the first."""
    owns = conversation.owner_id == reader.pk
    writes = Conversation.objects.writable_by(reader).filter(pk=conversation.pk).exists()
    found: dict[str, Command] = {}
    for source in _sources:
        for command in source(conversation):
            if (owns or not command.owners_alone) and (writes or not command.writers_alone):
                found.setdefault(command.name, command)
    return list(found.values())[:MOST]


def own_commands(conversation: Conversation) -> list[Command]:
    """What the pages of a conversation have buttons and links for."""

    def at(name: str) -> str:
        return reverse(f"conversations:{name}", args=[conversation.uid])

    said = Event.objects.filter(conversation=conversation, type="user.message")
    last = said.exclude(processed_at=None).order_by("-seq").values_list("uid", flat=True).first()
    back = (
        [
            Command(
                "rewind",
                _("Go back to before your last message"),
                dialog=reverse("conversations:event", args=[last]),
            )
        ]
        if last
        else []
    )
    return [
        Command("model", _("Pick the model and its effort"), press="model"),
        Command("switches", _("Turn a switch of this conversation"), press="switches"),
        Command("stop", _("Stop the answer"), press="stop"),
        Command("retry", _("Try again what failed"), press="retry"),
        Command("again", _("Have the last answer once more"), press="regenerate"),
        *back,
        Command(
            "compact",
            _("Summarise older messages, and see what the model is sent"),
            dialog=at("context"),
        ),
        Command("attach", _("Attach files"), press="attach"),
        Command(
            "outcome", _("Give it an outcome to reach, and be judged by"), dialog=at("outcome")
        ),
        Command("rename", _("Rename this conversation"), dialog=at("rename")),
        Command("export", _("Download it as Markdown"), address=at("export-markdown")),
        Command("new", _("Begin another conversation"), address=reverse("conversations:new")),
        Command("usage", _("Usage and budgets"), address=reverse("spending:usage")),
        Command("help", _("What keys do"), dialog=reverse("conversations:keyboard")),
    ]
