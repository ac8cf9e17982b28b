"""A person gives conversations words of her own, by which she finds them again."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.actions.own import readable_conversation
from conversations.models import Conversation
from harness.errors import Invalid
from keeping.models import TAG_LENGTH, Tag
from wire.naming import one_line

MOST = 20
"""Tags of a conversation that one person gives."""
SEPARATOR = ","


def tag_conversation(
    *, actor: User, conversation: Conversation, words: Sequence[str], replace: bool = False
) -> list[str]:
    """Give it these tags beside those it has, or in their place; what it has then, in order.

    The same word in other letters is the same tag. Raises NotFound, and Invalid (`tags`) for one that is too
    long or has a quote or a comma, and for too many.
    """
    wanted = _clean(words)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=actor.pk)
        conversation = readable_conversation(actor, conversation)
        hers = Tag.objects.filter(user=actor, conversation=conversation)
        had = {} if replace else {tag.folded: tag.word for tag in hers}
        result = {**wanted, **had}
        if len(result) > MOST:
            raise Invalid(
                _("A conversation takes at most %(limit)d tags.") % {"limit": MOST},
                field="tags",
                hint=_("Remove some first."),
            )
        if replace:
            hers.delete()
        Tag.objects.bulk_create(
            Tag(user=actor, conversation=conversation, word=word, folded=folded)
            for folded, word in result.items()
            if folded not in had
        )
    return [result[folded] for folded in sorted(result)]


def _clean(words: Sequence[str]) -> dict[str, str]:
    """By what each is found."""
    clean: dict[str, str] = {}
    for given in words:
        word = one_line(given)
        if not word:
            continue
        if len(word) > TAG_LENGTH:
            raise Invalid(
                _("A tag has at most %(limit)d characters.") % {"limit": TAG_LENGTH},
                field="tags",
                hint=_("Shorten “%(word)s…”.") % {"word": word[:TAG_LENGTH]},
            )
        if '"' in word or SEPARATOR in word:
            raise Invalid(
                _("A tag has neither quotes nor commas."),
                field="tags",
                hint=_("Write “%(word)s” without them.") % {"word": word},
            )
        clean.setdefault(word.casefold(), word)
    return clean
