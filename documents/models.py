"""Collections of documents, and the passages in which they are found.

Who sees a collection is said here, who may change it by `documents.access`. Passages are written by
`documents.indexing` alone.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from harness.ids import new_id
from memory.models import Vector
from memory.retrieval.words import audience_of

NAME_LIMIT = 200
DESCRIPTION_LIMIT = 1_000
ADDRESS_LIMIT = 2_000


def new_collection_id() -> str:
    return new_id("coll")


def new_document_id() -> str:
    return new_id("doc")


def new_passage_id() -> str:
    return new_id("psg")


class CollectionQuerySet(models.QuerySet["Collection"]):
    def visible_to(self, user: User) -> Self:
        """Her own and those that are shared, in organisations of which she is a member now."""
        return self.seen_by(user) if user.is_active else self.none()

    def seen_by(self, user: User) -> Self:
        """The same, for who has asked whether her account is open; of a query that is built once, `user` may
        be what is given then."""
        mine = Organisation.objects.filter(memberships__user=user).values("pk")
        return self.filter(Q(owner=user) | Q(owner=None), organisation__in=mine)


class Collection(models.Model):
    class Held(models.TextChoices):
        """Why what came from the directory that is watched for it is kept as it was."""

        MISSING = "missing", _("the directory cannot be read")
        EMPTIED = "emptied", _("no file is left in the directory")

    uid = models.CharField(max_length=40, unique=True, default=new_collection_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="collections"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="collections",
    )
    """Whose alone it is. Empty: all members read it."""
    name = models.CharField(_("name"), max_length=NAME_LIMIT)
    description = models.CharField(_("description"), max_length=DESCRIPTION_LIMIT, blank=True)
    held_back = models.CharField(max_length=10, choices=Held, blank=True, editable=False)
    """Of a watched directory: what is not there is kept until it is, or somebody says that it is gone."""
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    objects = CollectionQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("collection")
        verbose_name_plural = _("collections")

    def __str__(self) -> str:
        return self.uid

    @property
    def audience(self) -> str:
        """Of whom the index finds what is in it."""
        if self.owner_id is not None:
            return audience_of("p", self.owner_id, self.organisation_id)
        return audience_of("o", self.organisation_id)


class DocumentQuerySet(models.QuerySet["Document"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(collection__in=Collection.objects.visible_to(user))

    def delete_held(self) -> None:
        """Delete these, once whoever is about to add passages to one has done so. Needs a transaction."""
        list(self.select_for_update(of=("self",), no_key=True).values_list("pk", flat=True))
        self.delete()

    def with_kept(self) -> Self:
        """With `kept`: whether what was uploaded is still there."""
        kept = DocumentBody.objects.filter(document=models.OuterRef("pk"))
        return self.annotate(kept=models.Exists(kept))


class Document(models.Model):
    class State(models.TextChoices):
        WAITING = "waiting", _("waits to be read")
        READING = "reading", _("is being read")
        READY = "ready", _("ready")
        FAILED = "failed", _("cannot be read")

    uid = models.CharField(max_length=40, unique=True, default=new_document_id, editable=False)
    collection = models.ForeignKey(
        Collection, on_delete=models.CASCADE, related_name="documents", db_index=False
    )
    name = models.CharField(_("name"), max_length=NAME_LIMIT)
    address = models.CharField(_("address"), max_length=ADDRESS_LIMIT, blank=True)
    """Where it is fetched from. Empty: it was uploaded."""
    watched = models.BooleanField(default=False)
    """It is a file of a folder that the server watches; its name is its path there."""
    stamp = models.CharField(max_length=60, blank=True)
    """When that file was last changed and how large it is, as it was last looked at."""
    mount = models.CharField(max_length=NAME_LIMIT, blank=True)
    """The folder below the one that is watched where the device begins on which the file lies: it may not be
    mounted. Empty: it is the same device."""
    sha256 = models.CharField(max_length=64, blank=True)
    """Of the bytes that were read last."""
    size = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    problem = models.CharField(max_length=500, blank=True)
    problem_code = models.CharField(max_length=40, blank=True)
    """Stable, for programs: of the error that the reading ended with, or one of `indexing`."""
    tries = models.PositiveSmallIntegerField(default=0)
    """How often somebody began to read it since it began to wait."""
    progress = models.PositiveIntegerField(default=0)
    """Passages that were made of it so far."""
    cut = models.BooleanField(default=False)
    """Only its beginning was read."""
    edition = models.PositiveIntegerField(default=0)
    """Whose passages are found; those of the next are made beside them."""
    claimed_at = models.DateTimeField(null=True)
    """When somebody last was at it: reading it, or, after that, removing passages that nobody finds."""
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("document")
        verbose_name_plural = _("documents")
        constraints = [
            models.UniqueConstraint(fields=["collection", "name"], name="document_name_once")
        ]
        indexes = [
            models.Index(
                fields=["claimed_at"],
                name="document_to_read",
                condition=Q(state__in=["waiting", "reading"]),
            ),
            models.Index(
                fields=["claimed_at"],
                name="document_to_clear",
                condition=Q(state__in=["ready", "failed"], claimed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.uid


class DocumentBody(models.Model):
    """What was uploaded, until it is read. Then only its text is kept, as passages; what cannot be read is
    kept to be read again."""

    document = models.OneToOneField(Document, on_delete=models.CASCADE, related_name="body")
    data = models.BinaryField()

    class Meta:
        verbose_name = _("bytes of a document")
        verbose_name_plural = _("bytes of documents")

    def __str__(self) -> str:
        return str(self.document_id)


class PassageQuerySet(models.QuerySet["Passage"]):
    def visible_to(self, user: User) -> Self:
        """Of what may be read now and is whole."""
        seen = Collection.objects.visible_to(user)
        return self.filter(document__collection__in=seen).current()

    def current(self) -> Self:
        return self.filter(edition=F("document__edition"))


class Passage(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_passage_id, editable=False)
    document = models.ForeignKey(
        Document, on_delete=models.CASCADE, related_name="passages", db_index=False
    )
    edition = models.PositiveIntegerField()
    number = models.PositiveIntegerField()
    """Its place in the document, from 1."""
    heading = models.CharField(max_length=300, blank=True)
    """The headings above it, from the outermost."""
    page = models.CharField(max_length=80, blank=True)
    """The page, slide or sheet on which it begins, as a reader calls it."""
    text = models.TextField()
    terms = models.TextField(editable=False)
    audience = models.CharField(max_length=60, editable=False)

    objects = PassageQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("passage")
        verbose_name_plural = _("passages")
        constraints = [
            models.UniqueConstraint(
                fields=["document", "edition", "number"], name="passage_number_once"
            )
        ]

    def __str__(self) -> str:
        return self.uid


class PassageVector(Vector):
    passage = models.OneToOneField(Passage, on_delete=models.CASCADE, related_name="vector")

    class Meta:
        verbose_name = _("vector of a passage")
        verbose_name_plural = _("vectors of passages")
        indexes = [
            models.Index(
                fields=["audience", "model", "id", "passage", "code"], name="passage_vector_codes"
            )
        ]

    def __str__(self) -> str:
        return f"{self.passage_id}: {self.model}"
