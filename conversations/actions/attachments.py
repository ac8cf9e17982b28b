"""Files that a person attaches to a message, before and when it is sent.

Until then each is a stored file of hers like those of programs, under the same limits, for a day. With the
message it goes into the conversation's workspace, marked as any upload; a picture that model services take
goes to the model as well. What others' servers say, which she attaches too, stands in the message itself, as
theirs. Posting the message is `messages`'.
"""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.persons import whose_place
from agents.models import Environment
from conversations import removals
from conversations.actions.files import Upload, add_files, check_size, require_files_in
from conversations.actions.media import check_media
from conversations.actions.own import require_writable
from conversations.actions.stored_files import (
    UPLOADS,
    chunks_of,
    delete_file,
    open_file,
    store_file,
)
from conversations.models import Conversation, StoredFile
from harness.content import (
    Base64Source,
    Block,
    Document,
    Image,
    PlainTextSource,
    Text,
    UploadedFile,
)
from harness.errors import Invalid, NotFound, TooLarge
from tools_app.media import PICTURES

KEPT = timedelta(days=1)
"""How long a file waits for its message."""
FIELD = "files"
TEXT_TYPE = "text/plain"
MOST_CHARACTERS = 200_000
"""Of what is attached of one answer: a message keeps it for good, and models read it anew each turn."""
CUT = "\n[More of it is left out.]"
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


def keep_attachment(
    *, actor: User, organisation: Organisation, environment: Environment, upload: Upload
) -> StoredFile:
    """Keep a file for a message in a conversation with this environment.

    Raises what `store_file` raises, TooLarge above the environment's upload limit, and for a picture
    Invalid where no model service could open it, and Busy as `check_media`.
    """
    check_size(upload, environment.upload_limit)
    kept = store_file(
        actor=actor,
        organisation=organisation,
        filename=upload.name,
        mime_type=mimetypes.guess_type(upload.name)[0] or "",
        chunks=upload.chunks,
        expires_in=KEPT,
    )
    try:
        kind = _picture_type(actor, kept)
        if kind:
            StoredFile.objects.filter(pk=kept.pk).update(mime_type=kind)
            kept.mime_type = kind
            check_media([_picture(actor, kept)], who=whose_place(actor), field=FIELD)
        else:
            require_files_in(environment)
    except BaseException:
        delete_file(actor=actor, file=kept)
        raise
    return kept


def keep_foreign(
    *,
    actor: User,
    organisation: Organisation,
    name: str,
    source: str,
    blocks: Sequence[Block],
) -> list[StoredFile]:
    """Keep what somebody else's server said for a message: its texts as one, and each picture.

    `source` says whose words they are. Raises what `store_file` raises, Invalid for a picture that no model
    service could open, and Busy as `check_media`.
    """
    text = "\n\n".join(block.text for block in blocks if isinstance(block, Text))
    pictures = [block for block in blocks if isinstance(block, Image)]
    check_media(pictures, who=whose_place(actor), field=FIELD)
    if len(text) > MOST_CHARACTERS:
        text = text[:MOST_CHARACTERS] + CUT
    parts = [(TEXT_TYPE, text.encode())] if text else []
    parts += [
        (picture.source.media_type, base64.b64decode(picture.source.data))
        for picture in pictures
        if isinstance(picture.source, Base64Source)
    ]
    plain = re.sub(r"[^\w.-]+", "-", name)[:80].strip("-.") or "attached"
    kept: list[StoredFile] = []
    try:
        for kind, body in parts:
            made = store_file(
                actor=actor,
                organisation=organisation,
                filename=plain,
                mime_type=kind,
                chunks=[body],
                expires_in=KEPT,
                source=source,
            )
            kept.append(made)
    except BaseException:
        for file in kept:
            delete_file(actor=actor, file=file)
        raise
    return kept


def remove_attachment(*, actor: User, uid: str) -> None:
    """Forget a file that was not sent. Raises NotFound."""
    file = StoredFile.objects.visible_to(actor).filter(uid=uid).first()
    if file is None:
        raise NotFound(_("There is no such file."))
    delete_file(actor=actor, file=file)


def attachments_of(
    *, actor: User, organisation: Organisation, uids: Sequence[str]
) -> list[StoredFile]:
    """Those of `uids` that still wait for their message, in this order; pages show them again."""
    if not uids:
        return []
    kept = StoredFile.objects.visible_to(actor).filter(organisation=organisation, uid__in=uids)
    known = {file.uid: file for file in kept}
    return [known[uid] for uid in dict.fromkeys(uids) if uid in known]


def is_picture(file: StoredFile) -> bool:
    return file.mime_type in PICTURES


@dataclass(slots=True)
class Attached:
    """The files of one message. Until it takes them, they stay where they were."""

    pictures: tuple[Image, ...] = ()
    documents: tuple[Document, ...] = ()
    """What others' servers said, each with whose words it is."""
    files: tuple[UploadedFile, ...] = ()
    stored: list[StoredFile] = field(default_factory=list, repr=False)

    @property
    def title(self) -> str:
        """What to call a conversation that begins with nothing else."""
        return ", ".join(file.filename for file in self.stored)

    @property
    def source(self) -> str:
        """Whose words came along that are no upload; empty: nobody's."""
        found = ", ".join(dict.fromkeys(file.source for file in self.stored if file.source))
        return found[:500]

    def take(self, conversation: Conversation) -> None:
        """Their message is there. In its transaction; Conflict where copying took too long."""
        if self.files:
            removals.begun(conversation.uid, [file.path for file in self.files])


@contextmanager
def attached(*, actor: User, conversation: Conversation, uids: Sequence[str]) -> Iterator[Attached]:
    """The files, copied into the workspace. Not taken at the end, the copies are removed again.

    Raises NotFound for one that is not the actor's or waits no more, Invalid for too many and for
    pictures that no model service takes together, Busy, and what `add_files` raises.
    """
    if not uids:
        yield Attached()
        return
    require_writable(actor, conversation)
    given = Attached(stored=_waiting(actor, conversation.organisation, uids))
    given.pictures = _pictures(actor, given.stored)
    given.documents = tuple(
        _document(actor, file) for file in given.stored if file.source and not is_picture(file)
    )
    put = [file for file in given.stored if not file.source]
    if conversation.environment.has_workers:
        put = []
    with removals.each_unless_begun(conversation.uid) as note:
        given.files = _put(actor, conversation, put, note)
        yield given


def check_attachments(*, actor: User, organisation: Organisation, uids: Sequence[str]) -> None:
    """What `attached` would refuse of the files themselves, before a transaction: pictures are opened."""
    if uids:
        _pictures(actor, _waiting(actor, organisation, uids))


def _document(actor: User, file: StoredFile) -> Document:
    with open_file(actor=actor, file=file) as source:
        text = source.read().decode(errors="replace")
    return Document(source=PlainTextSource(data=text), title=file.source)


def _pictures(actor: User, files: Sequence[StoredFile]) -> tuple[Image, ...]:
    pictures = tuple(_picture(actor, file) for file in files if is_picture(file))
    check_media(pictures, who=whose_place(actor), field=FIELD)
    return pictures


def _waiting(actor: User, organisation: Organisation, uids: Sequence[str]) -> list[StoredFile]:
    """Raises Invalid for too many, and NotFound for one that is not the actor's or waits no more."""
    most: int = settings.AGENTSITE_ATTACHMENTS
    wanted = list(dict.fromkeys(uids))
    if len(wanted) > most:
        raise Invalid(
            _("A message takes at most %(limit)d files.") % {"limit": most},
            field=FIELD,
            hint=_("Remove some, and send them with the next one."),
        )
    found = attachments_of(actor=actor, organisation=organisation, uids=wanted)
    if len(found) < len(wanted):
        raise NotFound(
            _("A file that was attached is no longer kept."),
            hint=_("Remove it, and attach it again."),
        )
    return found


def _put(
    actor: User, conversation: Conversation, files: Sequence[StoredFile], note: removals.Note
) -> tuple[UploadedFile, ...]:
    if not files:
        return ()
    uploads = [Upload(file.filename, file.size, _bytes_of(actor, file)) for file in files]
    entries = add_files(
        actor=actor, conversation=conversation, uploads=uploads, folder=UPLOADS, note=note
    )
    return tuple(
        UploadedFile(path=entry.path, size=entry.size, media_type=file.mime_type)
        for file, entry in zip(files, entries, strict=True)
    )


def _bytes_of(actor: User, file: StoredFile) -> Iterator[bytes]:
    with open_file(actor=actor, file=file) as source:
        yield from chunks_of(source)


def _picture_type(actor: User, file: StoredFile) -> str:
    """Which picture its first bytes say it is; empty: none that a model service takes."""
    with open_file(actor=actor, file=file) as source:
        start = source.read(16)
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begins, kind in _BEGINNINGS if start.startswith(begins)), "")


def _picture(actor: User, file: StoredFile) -> Image:
    most: int = settings.AGENTSITE_IMAGE_BYTES
    if file.size > most:
        raise TooLarge(
            _("The picture has %(size)d bytes; at most %(limit)d are taken.")
            % {"size": file.size, "limit": most},
            field=FIELD,
            hint=_("Make it smaller, or upload it among the conversation's files."),
        )
    with open_file(actor=actor, file=file) as source:
        body = base64.b64encode(source.read()).decode()
    return Image(source=Base64Source(media_type=file.mime_type, data=body))
