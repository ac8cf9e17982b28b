"""What an address may hold in the place of a public id: anything else is simply not found."""

from __future__ import annotations

from django.urls import register_converter


class PublicId:
    regex = "[A-Za-z0-9_-]{1,64}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class Anything(PublicId):
    """A path as a program gives it: line ends and all, so that it is refused in the door's own words."""

    regex = "(?s:.+)"


register_converter(PublicId, "id")
register_converter(Anything, "anything")
