"""The memory page: what is known about a person, where from, and what becomes of it; and what a conversation
recalled. Everything is decided by the actions."""

from __future__ import annotations

import json

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import add_error, refuse
from accounts.requests import SignedInRequest
from accounts.streaming import streamed
from chat.views.answers import done
from conversations.models import Conversation
from decay.statistics import statistics_of
from harness.errors import AgentError, Conflict, NotFound
from memory.access import may_write
from memory.actions import remembering
from memory.models import Memory, MemoryVersion
from reading.unseen import visible

from .actions import switching
from .beside import messages_of, switches_of
from .forms import CorrectionForm, MemoryForm
from .listing import (
    exported,
    memories_in,
    place_of,
    recalls_in,
    still_exported,
    stores_in,
    text_shown,
)
from .models import MemoryOff

WORDS_LIMIT = 200


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_memory(request: SignedInRequest) -> HttpResponse:
    """What is remembered in the organisation one works in, and a form for more."""
    if request.method != "POST":
        return _list(request, MemoryForm())
    form = MemoryForm(request.POST)
    try:
        require_shown_organisation(request)
        if form.is_valid():
            store = remembering.own_store(actor=request.user, organisation=request.organisation)
            made = remembering.remember(actor=request.user, store=store, **form.cleaned_data)
            told = _("It is remembered.") if made.new else _("That was known already.")
            messages.success(request, told)
            return redirect("recall:memory")
    except AgentError as error:
        return _list(request, form, status=refuse(form, error))
    return _list(request, form, status=422)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_one(request: SignedInRequest, uid: str) -> HttpResponse:
    """One memory with its history, and a form that puts it right."""
    memory = _find(request, uid)
    if request.method != "POST":
        return _show(request, memory, CorrectionForm({"text": text_shown(memory)}))
    form = CorrectionForm(request.POST)
    if form.is_valid():
        try:
            said = remembering.correct_memory(
                actor=request.user,
                memory=memory,
                text=form.cleaned_data["text"],
                replaced_version_uid=request.POST.get("replaced_version_uid"),
            )
        except NotFound:
            raise
        except AgentError as error:
            add_error(form, error)
        else:
            messages.success(request, _("It is put right."))
            return redirect("recall:one", uid=said.uid)
    return _show(request, memory, form, status=422)


@login_required
@require_POST
def act(request: SignedInRequest, uid: str, what: str) -> HttpResponse:
    memory, actor = _find(request, uid), request.user
    match what:
        case "pin" | "unpin":
            remembering.mark_memory(actor=actor, memory=memory, pinned=what == "pin")
        case "confirm":
            try:
                remembering.confirm_memory(
                    actor=actor,
                    memory=memory,
                    version_uid=request.POST.get("version_uid", ""),
                    replaced_version_uid=request.POST.get("replaced_version_uid", ""),
                )
            except Conflict as problem:
                messages.error(request, problem.words)
                memory = _find(request, uid)
                return _show(
                    request, memory, CorrectionForm({"text": text_shown(memory)}), status=409
                )
            messages.success(request, _("Agents may use it from now on."))
        case "forget":
            remembering.forget_memory(actor=actor, memory=memory)
            messages.success(request, _("It is forgotten, with all that it said before."))
        case _:
            raise NotFound(_("There is nothing at this address."))
    return redirect("recall:memory")


@login_required
@require_POST
def switch(request: SignedInRequest) -> HttpResponse:
    require_shown_organisation(request)
    on = request.POST.get("on") == "true"
    switching.switch_memory(actor=request.user, organisation=request.organisation, on=on)
    told = (
        _("Agents remember and recall again.")
        if on
        else _("Agents are told nothing of what is remembered about you, and add nothing.")
    )
    messages.success(request, told)
    return redirect("recall:memory")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def forget_all(request: SignedInRequest) -> HttpResponse:
    """Everything of her own in the organisation; a page asks first."""
    mine = Memory.objects.visible_to(request.user).filter(
        store__owner=request.user, store__organisation=request.organisation
    )
    if request.method != "POST":
        return render(request, "recall/forget.html", {"count": mine.count()})
    require_shown_organisation(request)
    gone = remembering.forget_memories(
        actor=request.user, memories=list(mine.select_related("store"))
    )
    told = ngettext("%(count)d memory is forgotten.", "%(count)d memories are forgotten.", gone)
    messages.success(request, told % {"count": gone})
    return redirect("recall:memory")


@login_required
@require_safe
@never_cache
def export(request: SignedInRequest) -> HttpResponseBase:
    """All of her own as a file, one JSON object a line."""
    rows = exported(request.user, request.organisation)
    lines = (f"{json.dumps(row, cls=DjangoJSONEncoder, ensure_ascii=False)}\n" for row in rows)
    pieces = streamed(request, lines, still=still_exported(request.organisation))
    answer = StreamingHttpResponse(pieces, content_type="application/x-ndjson")
    answer["Content-Disposition"] = 'attachment; filename="memory.jsonl"'
    return answer


@login_required
@require_safe
def show_recalled(request: SignedInRequest, uid: str) -> HttpResponse:
    """What each message of a conversation recalled, and why."""
    conversation = _own(request, uid)
    context = {
        "conversation": conversation,
        "recalls": recalls_in(request.user, conversation),
        "on": conversation.features.memory,
    }
    template = "recall/_recalled.html" if request.htmx else "recall/recalled.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@login_required
@require_POST
def leave_out(request: SignedInRequest, uid: str) -> HttpResponseBase:
    conversation = _own(request, uid)
    gone = switching.leave_out(actor=request.user, conversation=conversation)
    told = ngettext(
        "Nothing of this conversation is remembered. %(count)d memory is forgotten.",
        "Nothing of this conversation is remembered. %(count)d memories are forgotten.",
        gone,
    )
    return done(request, told % {"count": gone}, to=conversation.get_absolute_url())


def _list(request: SignedInRequest, form: MemoryForm, status: int = 200) -> HttpResponse:
    words = request.GET.get("q", "").replace("\0", "")[:WORDS_LIMIT]
    store = request.GET.get("store", "").replace("\0", "")[:40]
    rows = memories_in(request.user, request.organisation, words=words, store=store)
    off = MemoryOff.objects.filter(user=request.user, organisation=request.organisation)
    stores = list(stores_in(request.user, request.organisation))
    statistics = statistics_of(stores)
    context = {
        "form": form,
        "stores": stores,
        "fading": [(each, statistics[each.pk]) for each in stores],
        "rows": rows,
        "words": words,
        "store": store,
        "off": off.exists(),
        "switches": switches_of(request.user, request.organisation),
    }
    return render(request, "recall/memory.html", context, status=status)


def _show(
    request: SignedInRequest, memory: Memory, form: CorrectionForm, status: int = 200
) -> HttpResponse:
    seen = Conversation.objects.visible_to(request.user)
    source = seen.filter(uid=memory.source_conversation).first()
    later = memory.superseded_by.first() if memory.valid_until else None
    replaced = remembering.replaced_by(memory)
    context = {
        "memory": memory,
        "text": text_shown(memory),
        "path": visible(memory.path),
        # With the yes it has the one of what it takes the place of.
        "key": memory.key or (replaced.key if replaced is not None else ""),
        "replaced": replaced,
        "replaced_path": visible(replaced.path) if replaced is not None else "",
        "replaced_text": visible(replaced.content) if replaced is not None else "",
        "before": visible(memory.supersedes.content) if memory.supersedes is not None else "",
        "since": visible(later.content) if later is not None else "",
        "form": form,
        "may_write": may_write(request.user, memory.store),
        "waits": memory.waits,
        "may_confirm": memory.waits and (replaced is None or memory.valid_until is None),
        "source": source,
        "place": place_of(source, memory),
        "message": messages_of(request.user, [memory]).get(memory.uid),
        "versions": _versions(memory),
        "later": later,
    }
    return render(request, "recall/one.html", context, status=status)


def _versions(memory: Memory) -> list[tuple[MemoryVersion, str]]:
    """The newest, each with what it says, shown like the memory itself."""
    rows = MemoryVersion.objects.filter(store=memory.store, memory_uid=memory.uid)
    said = visible if memory.waits else str
    return [(each, said(each.content or "")) for each in rows.order_by("-pk")[:50]]


def _find(request: SignedInRequest, uid: str) -> Memory:
    rows = Memory.objects.visible_to(request.user).select_related(
        "store__organisation", "store__agent", "supersedes", "faded"
    )
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such memory."))
    return found


def _own(request: SignedInRequest, uid: str) -> Conversation:
    found = Conversation.objects.owned_by(request.user).filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such conversation."))
    return found
