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


class Version(PublicId):
    """As packages count their versions."""

    regex = "[A-Za-z0-9.+!_-]{1,50}"


register_converter(PublicId, "id")
register_converter(Version, "version")
register_converter(Anything, "anything")
