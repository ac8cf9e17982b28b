"""A download ends with the right to it, and a service account's takes its maker's place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, AsyncRequestFactory
from django.urls import reverse

from accounts.actions.members import change_role, remove_member
from accounts.actions.service_accounts import create_service_account
from accounts.actions.tokens import create_token, revoke_token
from accounts.models import ApiToken, Membership, Organisation, Role, TokenScope, User
from accounts.streaming import ReaderGone, streamed
from conversations.actions.sharing import share_conversation, unshare_conversation
from conversations.models import Conversation, Share
from tests.cast import join
from tests.chat.drawing import make_conversation
from tests.patience import PATIENCE
from wire.streaming import EACH

pytestmark = pytest.mark.django_db(transaction=True)


class World(NamedTuple):
    """Bob may read alice's conversation and manages her organisation with her."""

    alice: User
    bob: User
    acme: Organisation
    hers: Conversation

    def demote(self) -> None:
        change_role(actor=self.alice, membership=self._membership(), role=Role.MEMBER)

    def remove(self) -> None:
        remove_member(actor=self.alice, membership=self._membership())

    def unshare(self) -> None:
        share = Share.objects.get(conversation=self.hers)
        unshare_conversation(actor=self.alice, conversation=self.hers, share_uid=share.uid)

    def close(self) -> None:
        User.objects.filter(pk=self.bob.pk).update(is_active=False)

    def revoke(self) -> None:
        revoke_token(actor=self.bob, token=ApiToken.objects.get(user=self.bob))

    def _membership(self) -> Membership:
        return Membership.objects.get(user=self.bob, organisation=self.acme)


@pytest.fixture
def world(alice: User, acme: Organisation) -> World:
    bob = User.objects.create_user("bob")
    join(bob, acme, Role.ADMIN)
    hers = make_conversation(alice, acme)
    share_conversation(actor=alice, conversation=hers, user_uid=bob.uid, role="viewer")
    return World(alice, bob, acme, hers)


async def sent(answer: Any) -> bytes:
    assert answer.status_code == 200
    return b"".join([piece async for piece in answer.streaming_content])


@pytest.mark.parametrize(
    ("name", "query", "ends"),
    [
        ("conversations:export-json", "", World.unshare),
        ("conversations:export-markdown", "", World.close),
        ("audit:audit-export", "", World.demote),
        ("spending:usage-export", "?whose=organisation", World.demote),
        ("spending:usage-export", "", World.remove),
        ("recall:export", "", World.remove),
    ],
)
async def test_a_download_of_a_page_ends_with_the_right_to_it(
    name: str, query: str, ends: Callable[[World], None], world: World
):
    client = AsyncClient()
    await client.aforce_login(world.bob)
    parts = [world.hers.uid] if name.startswith("conversations:") else []
    address = reverse(name, args=parts) + query
    await sent(await client.get(address))
    begun: Any = await client.get(address)
    await sync_to_async(ends)(world)
    with pytest.raises(ReaderGone):
        await sent(begun)


async def test_a_download_ends_with_the_session(world: World):
    client = AsyncClient()
    await client.aforce_login(world.bob)
    begun: Any = await client.get(reverse("spending:usage-export"))
    await client.alogout()
    with pytest.raises(ReaderGone):
        await sent(begun)


@pytest.mark.parametrize("ends", [World.revoke, World.remove, World.unshare])
async def test_a_download_of_a_program_ends_with_its_token_and_its_right(
    ends: Callable[[World], None], world: World
):
    issued = await sync_to_async(create_token)(
        actor=world.bob,
        organisation=world.acme,
        name="t",
        scopes=[TokenScope.CONVERSATIONS_READ],
    )
    client, shown = AsyncClient(), {"x-api-key": issued.secret}
    address = f"/v1/sessions/{world.hers.uid}/export"
    assert await sent(await client.get(address, headers=shown))
    begun: Any = await client.get(address, headers=shown)
    await sync_to_async(ends)(world)
    with pytest.raises(ReaderGone):
        await sent(begun)


async def test_downloads_of_a_service_account_take_their_makers_places(world: World):
    account = await sync_to_async(create_service_account)(
        actor=world.alice, organisation=world.acme, name="reporting"
    )
    begun, go_on = threading.Semaphore(0), threading.Event()

    def long() -> Iterator[str]:
        begun.release()
        go_on.wait(PATIENCE)
        yield "at last"

    async def taken(user: User) -> list[str]:
        request: Any = AsyncRequestFactory().get("/")
        request.user, request.session = user, sessions[user.pk]
        pieces: Any = streamed(request, long(), still=lambda _user: True)
        return [piece async for piece in pieces]

    sessions = {}
    for user in (world.alice, account):
        client = AsyncClient()
        await client.aforce_login(user)
        sessions[user.pk] = await client.asession()
    waiting = [asyncio.ensure_future(taken(user)) for user in (world.alice, account) * EACH]
    try:
        for _ in range(EACH):
            assert await asyncio.to_thread(begun.acquire, timeout=PATIENCE)
        assert not await asyncio.to_thread(begun.acquire, timeout=0.2)
    finally:
        go_on.set()
    assert await asyncio.gather(*waiting) == [["at last"]] * (EACH * 2)
