"""Files are drawn as what they are, within bounds, and nothing in them runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Organisation, User
from accounts.persons import whose_place
from agents.models import Environment
from chat.presentation.previews import (
    CELL,
    COLUMNS,
    DRAWING_BYTES,
    PAGE_BYTES,
    ROWS,
    reading,
    table_of,
)
from conversations.models import Conversation
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin
from tests.papers import letter
from tests.pictures import paper, picture
from tools_app.workspace import workspace_for

EVIL_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script>'
    '<foreignObject><iframe src="javascript:alert(1)"/></foreignObject></svg>'
)
EVIL_PAGE = (
    '<meta http-equiv="refresh" content="0;url=https://evil.example"><base href="https://evil.example">'
    '<script>parent.location="https://evil.example"</script><form action="/c/" method="post"></form>'
    '<img src="https://evil.example/x.png" onerror="alert(1)">'
    '<a target="_top" href="javascript:alert(1)">x</a>'
    '<link rel="preconnect" href="https://secret.evil.example"><LINK\nrel=dns-prefetch href=//evil.example>'
    "<lInK/rel=preconnect href=//evil.example>"
)


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Conversation:
    return begin(alice, acme, make_agent("Coding"), environment)


@pytest.fixture
def root(conversation: Conversation) -> Path:
    return workspace_for(conversation.uid)


class Looks:
    def __init__(self, client: Client, conversation: Conversation) -> None:
        self.client, self.uid = client, conversation.uid

    def at(self, name: str, path: str, **query: str):
        place = reverse(f"conversations:{name}", args=[self.uid])
        return self.client.get(place, {"path": path, **query})

    def shown(self, path: str, **query: str) -> str:
        html: str = self.at("file", path, **query).content.decode()
        return html.partition("<main")[2].partition("</main")[0]


@pytest.fixture
def look(alice: User, client_of: ClientOf, conversation: Conversation) -> Looks:
    return Looks(client_of(alice), conversation)


def policy_of(answer) -> dict[str, list[str]]:
    parts = [part.split() for part in answer["Content-Security-Policy"].split(";")]
    return {name: sources for name, *sources in parts}


def is_sandboxed(answer) -> bool:
    policy = policy_of(answer)
    return (
        policy["sandbox"] == []
        and policy["default-src"] == ["'none'"]
        and "script-src" not in policy
        and policy["img-src"] == ["data:"]
        and policy["form-action"] == ["'none'"]
        and policy["frame-ancestors"] == ["'self'"]
        and answer["X-Content-Type-Options"] == "nosniff"
        and answer["X-DNS-Prefetch-Control"] == "off"
    )


# --- pictures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["logo.png", "logo.txt", "logo.html"])
def test_a_picture_is_what_begins_as_one_whatever_its_name(
    name: str, root: Path, look: Looks
) -> None:
    (root / name).write_bytes(picture())
    assert f"/files/picture/?path={name}" in look.shown(name)
    answer = look.at("file-picture", name)
    assert answer["Content-Type"] == "image/png"
    assert answer.content == picture()
    assert is_sandboxed(answer)


@pytest.mark.parametrize(
    "data", [EVIL_PAGE.encode(), b"%PDF-1.4", b"GIF8", b"\x89PNG\0", b"", EVIL_SVG.encode()]
)
def test_what_only_has_a_picture_s_name_is_none(data: bytes, root: Path, look: Looks) -> None:
    (root / "x.png").write_bytes(data)
    assert look.at("file-picture", "x.png").status_code == 400
    assert "<img" not in look.shown("x.png")


def test_a_picture_that_is_a_page_too_is_only_a_picture(root: Path, look: Looks) -> None:
    (root / "x.html").write_bytes(b"GIF89a\0/*" + EVIL_PAGE.encode())
    assert look.at("file-picture", "x.html")["Content-Type"] == "image/gif"
    assert "<iframe" not in look.shown("x.html")
    assert look.at("file-page", "x.html").status_code == 400


def test_an_svg_is_drawn_as_a_picture_and_runs_nothing(root: Path, look: Looks) -> None:
    (root / "x.svg").write_text(EVIL_SVG)
    html = look.shown("x.svg")
    assert "<img" in html
    assert "<svg xmlns" not in html
    answer = look.at("file-picture", "x.svg")
    assert answer["Content-Type"] == "image/svg+xml; charset=utf-8"
    assert is_sandboxed(answer)
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Content-Disposition"] == "attachment"
    assert "&lt;script&gt;" in re.sub(r"</?span[^>]*>", "", look.shown("x.svg", **{"as": "text"}))


@pytest.mark.parametrize(("name", "limit"), [("big.svg", DRAWING_BYTES), ("big.html", PAGE_BYTES)])
def test_what_is_too_big_to_draw_is_shown_as_text(
    name: str, limit: int, root: Path, look: Looks
) -> None:
    (root / name).write_text("<p>" + "x" * limit)
    html = look.shown(name)
    assert "<img" not in html
    assert "<iframe" not in html
    assert "Only the beginning is shown" in html
    place = "file-picture" if name.endswith("svg") else "file-page"
    assert look.at(place, name).status_code == 413


# --- pages ----------------------------------------------------------------------------------------


def test_a_page_is_framed_without_any_right(root: Path, look: Looks) -> None:
    (root / "x.html").write_text(EVIL_PAGE)
    html = look.shown("x.html")
    assert re.search(
        r'<iframe class="page-view" sandbox referrerpolicy="no-referrer" src="/c/', html
    )
    assert "evil.example" not in html
    answer = look.at("file-page", "x.html")
    assert answer["Content-Type"] == "text/html; charset=utf-8"
    assert is_sandboxed(answer)
    assert answer["X-Frame-Options"] == "SAMEORIGIN"
    told = answer.content.decode().lower()
    assert "<link" not in told  # which connects whatever a policy says
    assert told.count("<bgsound") == 3


def test_only_pages_are_framed_and_in_one_encoding(root: Path, look: Looks) -> None:
    (root / "x.txt").write_text(EVIL_PAGE)
    (root / "x.html").write_bytes("<p>Grüße".encode("utf-16"))
    assert look.at("file-page", "x.txt").status_code == 400
    assert look.at("file-page", "x.html").content == "<p>Grüße".encode()


# --- texts ----------------------------------------------------------------------------------------


def test_markdown_is_prose_and_its_text_one_click_away(root: Path, look: Looks) -> None:
    (root / "x.md").write_text(
        "# Plan\n\n**Go** <script>alert(1)</script> ![x](https://e.example/x)"
    )
    html = look.shown("x.md")
    assert "<h2>Plan</h2>" in html
    assert "<strong>Go</strong>" in html
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "as=text" in html
    assert "**Go**" in re.sub(r"</?span[^>]*>", "", look.shown("x.md", **{"as": "text"}))


def test_a_table_is_one_and_its_formulas_are_text(root: Path, look: Looks) -> None:
    (root / "x.csv").write_text("name;sum\n\"a;b\";=cmd|'/c calc'!A1\n<b>,x;\u202e1\n")
    html = look.shown("x.csv")
    assert '<th scope="col">name</th>' in html
    assert "<td>a;b</td>" in html
    assert "<td>=cmd|&#x27;/c calc&#x27;!A1</td>" in html
    assert "<td>&lt;b&gt;,x</td>" in html
    assert "\\u202e1" in html


def test_a_table_is_bounded_and_says_so() -> None:
    row = ",".join(["y" * (CELL + 9)] * (COLUMNS + 1))
    table = table_of("\n".join([row] * (ROWS + 5)), "csv")
    assert table is not None
    assert len(table.rows) == ROWS
    assert {len(cells) for cells in (table.head, *table.rows)} == {COLUMNS}
    assert table.head[0] == "y" * CELL + "…"
    assert str(ROWS) in table.note
    assert str(COLUMNS) in table.note


@pytest.mark.parametrize("text", ["\n\n", '"' + "x" * 140_000, 'a\tb\n"never closed\n' * 9])
def test_what_is_no_table_breaks_nothing(text: str) -> None:
    table = table_of(text, "tsv")
    assert table is None or table.head


# --- documents ------------------------------------------------------------------------------------


def test_a_document_is_shown_as_its_text_and_never_opened_here(root: Path, look: Looks) -> None:
    (root / "x.docx").write_bytes(letter("Harbour dues"))
    (root / "x.pdf").write_bytes(paper())
    written, scanned = look.shown("x.docx"), look.shown("x.pdf")
    assert "Harbour dues" in written
    assert "it may be scanned" in scanned
    for html in (written, scanned):
        assert not re.search("<(iframe|embed|object)", html)
        assert "because they may hold scripts" in html


def test_one_person_has_one_document_read_at_a_time(root: Path, look: Looks, alice: User) -> None:
    (root / "x.docx").write_bytes(letter("Harbour dues"))
    with reading.place(whose_place(alice)):
        html = look.shown("x.docx")
    assert "cannot be shown at the moment" in html
    assert "Download" in html
    assert "Harbour dues" in look.shown("x.docx")


def test_mallory_sees_no_preview(
    root: Path, mallory: User, client_of: ClientOf, conversation: Conversation
) -> None:
    (root / "x.png").write_bytes(picture())
    (root / "x.html").write_text("<p>mine")
    hers = Looks(client_of(mallory), conversation)
    for name, path in (("file-picture", "x.png"), ("file-page", "x.html"), ("file", "x.html")):
        answer = hers.at(name, path)
        assert answer.status_code == 404
        assert b"mine" not in answer.content
