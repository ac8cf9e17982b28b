"""The pages of documents: collections, what is in one, and a passage as answers cite it. Everything is
decided by the actions."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.formwords import OurForm
from accounts.permissions import may_manage
from accounts.requests import SignedInRequest
from harness.errors import AgentError, NotFound
from memory.embedding.asking import look_up
from memory.embedding.paying import Payer
from memory.retrieval.words import as_said
from wire.fieldnames import written

from .access import may_write
from .actions import collections, documents
from .forms import AddressForm, CollectionForm, FilesForm
from .models import Collection, Document, Passage
from .searching import search_passages

WORDS_LIMIT = 200
LISTED = 2_000
FOUND = 20


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_collections(request: SignedInRequest) -> HttpResponse:
    """The collections of the organisation one works in, and a form for a new one."""
    if request.method != "POST":
        return _list(request, CollectionForm())
    form = CollectionForm(request.POST)
    try:
        require_shown_organisation(request)
        if form.is_valid():
            made = collections.create_collection(
                actor=request.user, organisation=request.organisation, **form.cleaned_data
            )
            messages.success(request, _("The collection is made."))
            return redirect("documents:collection", uid=made.uid)
    except AgentError as error:
        return _list(request, form, status=refuse(form, error))
    return _list(request, form, status=422)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_collection(request: SignedInRequest, uid: str) -> HttpResponse:
    """What is in one, a search in it, and adding files."""
    collection = _find(request, uid)
    if request.method != "POST":
        return _show(request, collection)
    form = FilesForm(request.POST, request.FILES)
    if not form.is_valid():
        return _show(request, collection, files=form, status=422)
    added = 0
    try:
        with written({"name": "uploads", "data": "uploads"}):
            for file in form.cleaned_data["uploads"]:
                documents.add_document(
                    actor=request.user, collection=collection, name=file.name, data=file.read()
                )
                added += 1
    except AgentError as error:
        return _show(request, collection, files=form, status=refuse(form, error))
    told = ngettext(
        "%(count)d document is being read.", "%(count)d documents are being read.", added
    )
    messages.success(request, told % {"count": added})
    return redirect("documents:collection", uid=uid)


@login_required
@require_POST
def add_address(request: SignedInRequest, uid: str) -> HttpResponse:
    collection = _find(request, uid)
    form = AddressForm(request.POST)
    if not form.is_valid():
        return _show(request, collection, address=form, status=422)
    try:
        documents.add_address(
            actor=request.user, collection=collection, address=form.cleaned_data["address"]
        )
    except AgentError as error:
        return _show(request, collection, address=form, status=refuse(form, error))
    messages.success(request, _("It is being fetched and read."))
    return redirect("documents:collection", uid=uid)


@login_required
@require_POST
def delete_collection(request: SignedInRequest, uid: str) -> HttpResponse:
    collections.delete_collection(actor=request.user, collection=_find(request, uid))
    messages.success(request, _("The collection and everything in it is deleted."))
    return redirect("documents:collections")


@login_required
@require_POST
def forget_held(request: SignedInRequest, uid: str) -> HttpResponse:
    count = collections.forget_held(actor=request.user, collection=_find(request, uid))
    told = ngettext("%(count)d document is deleted.", "%(count)d documents are deleted.", count)
    messages.success(request, told % {"count": count})
    return redirect("documents:collection", uid=uid)


@login_required
@require_POST
def read_again(request: SignedInRequest, uid: str) -> HttpResponse:
    document = documents.read_again(actor=request.user, document=_document(request, uid))
    fetched = bool(document.address)
    messages.success(
        request, _("It is being fetched and read.") if fetched else _("It is being read.")
    )
    return redirect("documents:collection", uid=document.collection.uid)


@login_required
@require_POST
def delete_document(request: SignedInRequest, uid: str) -> HttpResponse:
    document = _document(request, uid)
    documents.delete_document(actor=request.user, document=document)
    messages.success(request, _("The document is deleted, and found no more."))
    return redirect("documents:collection", uid=document.collection.uid)


@login_required
@require_safe
@never_cache
def show_passage(request: SignedInRequest, uid: str) -> HttpResponse:
    """One passage, as it was read, with those beside it."""
    rows = Passage.objects.visible_to(request.user)
    passage = rows.select_related("document__collection").filter(uid=uid).first()
    if passage is None:
        raise NotFound(
            _("There is no such passage."),
            hint=_("Its document was changed or deleted, or you may not read it any more."),
        )
    beside = rows.filter(
        document=passage.document, number__in=[passage.number - 1, passage.number + 1]
    )
    by_number = {each.number: each for each in beside}
    context = {
        "passage": passage,
        "before": by_number.get(passage.number - 1),
        "after": by_number.get(passage.number + 1),
    }
    return render(request, "documents/passage.html", context)


def _list(request: SignedInRequest, form: OurForm, status: int = 200) -> HttpResponse:
    rows = Collection.objects.visible_to(request.user).filter(organisation=request.organisation)
    context = {
        "form": form,
        "rows": rows.annotate(held=Count("documents")).order_by("-owner", "name", "pk"),
        "may_share": may_manage(request.user, request.organisation),
    }
    return render(request, "documents/collections.html", context, status=status)


def _show(
    request: SignedInRequest,
    collection: Collection,
    *,
    files: OurForm | None = None,
    address: OurForm | None = None,
    status: int = 200,
) -> HttpResponse:
    words = request.GET.get("q", "").replace("\0", "")[:WORDS_LIMIT]
    one = Collection.objects.filter(pk=collection.pk)
    look_up(Payer(collection.organisation_id, request.user.pk), request.user.pk, words)
    found = search_passages(request.user, words, one, limit=FOUND) if words.strip() else None
    context = {
        "collection": collection,
        "documents": collection.documents.with_kept().order_by("name")[:LISTED],
        "may_write": may_write(request.user, collection),
        "files": files or FilesForm(),
        "address": address or AddressForm(),
        "words": words,
        "found": found,
        "hits": [(hit, as_said(hit.why, words)) for hit in found.hits] if found else [],
    }
    return render(request, "documents/collection.html", context, status=status)


def _find(request: SignedInRequest, uid: str) -> Collection:
    rows = Collection.objects.visible_to(request.user).select_related("organisation")
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such collection."))
    return found


def _document(request: SignedInRequest, uid: str) -> Document:
    rows = Document.objects.visible_to(request.user).select_related("collection__organisation")
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such document."))
    return found
