"""What the memory page shows of learning: the switch, and the message of which a memory was made; and what
goes with a conversation that is left out."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Max
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from chat.links import address_of
from memory.models import Memory
from recall.beside import Beside, Switch

from .forgetting import forget_all
from .models import Learned
from .wanted import may_switch, switched_off


def switch(user: User, organisation: Organisation) -> Switch | None:
    if not may_switch(user, organisation):
        return None
    on = not switched_off(user, organisation)
    words = (
        _(
            "Once a conversation rests, a model reads what is new in it for what is to be remembered."
        )
        if on
        else _(
            "Your conversations are not read for what is to be remembered; agents remember alone."
        )
    )
    return Switch(on, words, reverse("learning:switch"))


def messages(user: User, memories: Sequence[Memory]) -> dict[str, str]:
    uids = [memory.uid for memory in memories]
    seen = Learned.objects.visible_to(user).filter(memory_uid__in=uids)
    # The last of each: the one that the model named.
    last = seen.values("memory_uid").annotate(last=Max("pk")).values("last")
    found = Learned.objects.filter(pk__in=last).select_related("conversation")
    return {each.memory_uid: address_of(each.conversation, each.message_uid) for each in found}


BESIDE = Beside(switch, messages, forget_all)
