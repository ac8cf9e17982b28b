"""What a person wants to be told of, and her browsers that take pushes, among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator

from django.forms.models import model_to_dict

from accounts.models import User
from owndata.parts import File, as_json

from .models import Device, NoticeWish


def files(user: User) -> Iterator[File]:
    """Without addresses and keys of the browsers: whoever has them could write to these."""
    wish = NoticeWish.objects.filter(user=user).first()
    told = {
        "wishes": model_to_dict(wish, exclude=["id", "user"]) if wish is not None else None,
        "browsers": [
            {"id": each.uid, "name": each.name, "since": each.created_at, "last": each.last_at}
            for each in Device.objects.visible_to(user)
        ],
    }
    yield File("notifications.json", iter([as_json(told)]))
