"""A person's own agents, with every version, among what she takes along."""

from __future__ import annotations

from collections.abc import Iterator

from accounts.models import User
from owndata.parts import File, as_json

from .models import Agent


def files(user: User) -> Iterator[File]:
    for agent in Agent.objects.filter(owner=user).order_by("pk"):
        versions = [
            {"number": each.number, "created_at": each.created_at, "config": each.stored_config}
            for each in agent.versions.order_by("number")
        ]
        told = {"id": agent.uid, "name": agent.name, "description": agent.description}
        yield File(f"agents/{agent.uid}.json", iter([as_json({**told, "versions": versions})]))
