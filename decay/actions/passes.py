"""Memories fade by the rules that are in force: one store after the other, a few in each transaction.

Nobody acts here but the server. A transaction does everything of its memories or nothing, and looks again at
what is due: a process that dies leaves the rest to the next pass, and of two at once one waits for nothing
and does nothing.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.utils import timezone

from audit.models import AuditEntry
from audit.record import write
from decay.fading import goes_to, meant_by, written_at
from decay.joining import last_use_of, remove_copies
from decay.models import DecayRule, DecayRun, Faded, Step
from decay.wording import bare_marker, left_of, tokens
from memory.models import Kind, Memory, MemoryStore
from memory.writing import HoldsSecret, write_away, write_less

logger = logging.getLogger(__name__)

AT_A_TIME = 50
"""Memories of one transaction: messages that recall one of them wait for it."""
MOST = 2_000
"""Memories of one store in one pass; the rest goes with the next."""


def fade_next(after: int, *, at_a_time: int = AT_A_TIME, most: int = MOST) -> int | None:
    """Have the first store fade whose rule is behind this one; that rule's key, None where there is none."""
    rules = DecayRule.objects.effective().filter(pk__gt=after)
    key = rules.order_by("pk").values_list("pk", flat=True).first()
    if key is not None:
        done = 0
        while done < most and (count := _fade_some(key, at_a_time)):
            done += count
    return key


def _fade_some(key: int, at_a_time: int = AT_A_TIME) -> int:
    """How many took a step. None where the rule was lifted or changed meanwhile, or the store is in use."""
    with transaction.atomic():
        rules = DecayRule.objects.effective().filter(pk=key)
        stores = MemoryStore.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
        store = stores.filter(pk__in=rules.values("store")).select_related("organisation").first()
        rule = rules.first()
        if store is None or rule is None:
            return 0
        rule.store = store
        used = last_use_of(store)
        due = meant_by(rule, used).select_for_update(skip_locked=True, of=("self",))
        run = DecayRun(store=store, rule_version=rule.version, tokens_saved=0)
        run.summaries = run.markers = run.gone = 0
        for memory in due[:at_a_time]:
            memory.store = store
            step = goes_to(rule, vars(memory)["touched"], used)
            if step > vars(memory)["stands"]:
                _try(rule, memory, step, run)
        done = run.summaries + run.markers + run.gone
        if done:
            run.save()
            _tell(rule, run)
    return done


def _try(rule: DecayRule, memory: Memory, step: Step, run: DecayRun) -> None:
    before, uid = memory.size, memory.uid
    try:
        with transaction.atomic():
            left = _fade(rule, memory, step)
    except Exception:
        logger.exception("the memory %s could not fade by its store's rule", uid)
        return
    run.tokens_saved += tokens(before) - tokens(left)
    match step:
        case Step.SUMMARY:
            run.summaries += 1
        case Step.MARKER:
            run.markers += 1
        case _:
            run.gone += 1


def _fade(rule: DecayRule, memory: Memory, step: Step) -> int:
    """Bytes that are left of it."""
    author, path, before = rule.author, memory.path, memory.sha256
    if step == Step.GONE:
        # What was written since waits for a yes, or fades in its own time.
        write_away(memory, author=author, account=None, suggested=False)
        return 0
    of = written_at(memory)
    left = left_of(step, memory.content, more=False, of=of)
    place = _place(memory) if step == Step.MARKER else path
    try:
        write_less(memory, author=author, path=place, content=left)
    except HoldsSecret:
        # Cut off, it looks like what it is not, or like what nobody saw in it.
        write_less(memory, author=author, path=place, content=bare_marker(of))
    if (memory.path, memory.sha256) != (path, before):
        remove_copies(rule.store.pk, path)
    Faded.objects.update_or_create(
        memory=memory,
        defaults={"step": step, "version_uid": memory.version_uid, "at": timezone.now()},
    )
    return memory.size


def _place(memory: Memory) -> str:
    """The path of a learning without a key is made of its words."""
    named = memory.kind == Kind.NOTE or memory.key
    return memory.path if named else f"/{memory.kind}s/{memory.uid}.md"


def _tell(rule: DecayRule, run: DecayRun) -> None:
    store = rule.store
    write(
        AuditEntry.Action.DECAY_DONE,
        actor=store.owner,
        organisation_id=store.organisation_id if store.owner_id is None else None,
        details={
            "store": store.uid,
            "rule": run.rule_version,
            "summaries": run.summaries,
            "markers": run.markers,
            "gone": run.gone,
        },
    )
