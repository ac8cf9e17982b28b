"""The files of a conversation: list, preview, download, upload."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import Organisation, User
from agents.models import Environment
from chat.views.files import LISTED_FILES, OFFERED_FILES
from conversations.actions.files import Upload, add_files, megabytes
from conversations.models import Conversation
from harness.errors import NotFound, TooLarge
from tests.cast import ClientOf
from tests.conversations.conftest import MakeAgent
from tests.conversations.scenes import begin
from tools_app.confinement import RESERVED
from tools_app.workspace import PREVIEW_LIMIT, Workspace, workspace_for

HTMX = {"HX-Request": "true"}


@pytest.fixture
def conversation(
    alice: User, acme: Organisation, environment: Environment, make_agent: MakeAgent
) -> Conversation:
    return begin(alice, acme, make_agent("Coding"), environment)


@pytest.fixture
def root(conversation: Conversation) -> Path:
    return workspace_for(conversation.uid)


@pytest.fixture
def browser(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


def at(name: str, conversation: Conversation) -> str:
    return reverse(f"conversations:{name}", args=[conversation.uid])


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def small(environment: Environment, limit: int) -> None:
    environment.upload_limit = limit
    environment.save(update_fields=["upload_limit"])


# --- listing --------------------------------------------------------------------------------------


def test_the_list_names_files_with_their_sizes_and_hides_reserved_folders(
    conversation: Conversation, root: Path, browser: Client
):
    workspace = Workspace(root)
    workspace.write_bytes("notes/plan.md", b"12345")
    for reserved in RESERVED:
        for folder in (root / reserved, root / "notes" / reserved):
            folder.mkdir()
            (folder / "hidden.txt").write_text("x")
    html = browser.get(at("files", conversation)).content.decode()
    assert "notes/plan.md" in html
    assert "5\xa0bytes" in html
    assert "hidden.txt" not in html


def test_htmx_gets_the_list_alone(conversation: Conversation, root: Path, browser: Client):
    html = browser.get(at("files", conversation), headers=HTMX).content.decode()
    assert "<html" not in html
    assert 'id="files"' in html


def test_a_long_list_ends_and_says_so(conversation: Conversation, root: Path, browser: Client):
    for number in range(LISTED_FILES + 1):
        (root / f"{number:04}.txt").touch()
    html = browser.get(at("files", conversation)).content.decode()
    assert f"Only the first {LISTED_FILES} files" in html
    assert f"{LISTED_FILES:04}.txt" not in html


def test_names_are_shown_as_text_and_lead_back_to_their_file(
    conversation: Conversation, root: Path, browser: Client
):
    name = "<b>&\"'#? %2e\n.txt"
    (root / name).write_text("odd")
    html = browser.get(at("files", conversation)).content.decode()
    assert "<b>" not in html
    answer = browser.get(at("file", conversation), {"path": name})
    assert "odd" in answer.content.decode()


def test_files_are_offered_by_parts_of_their_paths_those_whose_name_begins_so_first(
    conversation: Conversation, root: Path, browser: Client
):
    workspace = Workspace(root)
    for path in ("app/plan.md", "plans/app.py", "other.txt"):
        workspace.write_bytes(path, b"x")
    for number in range(20):
        workspace.write_bytes(f"many/{number:02}.csv", b"x")

    def offered(typed: str) -> list[str]:
        paths: list[str] = browser.get(at("file-names", conversation), {"q": typed}).json()["paths"]
        return paths

    assert offered("APP") == ["plans/app.py", "app/plan.md"]
    assert offered("nothing") == []
    assert len(offered("many")) == OFFERED_FILES


def test_names_of_files_are_the_owners_alone(
    conversation: Conversation, root: Path, mallory: User, client_of: ClientOf
):
    Workspace(root).write_bytes("plan.md", b"x")
    answer = client_of(mallory).get(at("file-names", conversation), {"q": ""})
    assert answer.status_code == 404
    assert b"plan" not in answer.content


# --- preview --------------------------------------------------------------------------------------


def test_a_preview_is_text_with_its_language(
    conversation: Conversation, root: Path, browser: Client
):
    (root / "report.py").write_text("def total():\n    return '<script>'\n")
    html = browser.get(at("file", conversation), {"path": "report.py"}).content.decode()
    assert "python" in html
    assert 'class="k"' in html, "keywords are coloured"
    assert "&lt;script&gt;" in html
    assert "<script>&" not in html


def test_a_long_file_is_cut_and_says_so(conversation: Conversation, root: Path, browser: Client):
    (root / "long.txt").write_text("x" * (PREVIEW_LIMIT + 1))
    (root / "fits.txt").write_text("x" * PREVIEW_LIMIT)
    long = browser.get(at("file", conversation), {"path": "long.txt"}).content.decode()
    fits = browser.get(at("file", conversation), {"path": "fits.txt"}).content.decode()
    assert "Only the beginning is shown" in long
    assert "Only the beginning is shown" not in fits
    assert long.count("x" * PREVIEW_LIMIT) == 1


def test_a_binary_file_is_flagged_and_not_shown(
    conversation: Conversation, root: Path, browser: Client
):
    (root / "logo.png").write_bytes(b"\x89PNG\0\0")
    html = browser.get(at("file", conversation), {"path": "logo.png"}).content.decode()
    assert "not a text file" in html
    assert "PNG" not in html.partition("<main")[2]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "../secret",
        "/etc/passwd",
        "a\0b",
        "missing",
        ".agentsite/x",
        "folder",
        "outside",
        "in/out",
    ],
)
@pytest.mark.parametrize("name", ["file", "download"])
def test_paths_that_lead_nowhere_or_outside_are_refused(
    name: str, path: str, conversation: Conversation, root: Path, browser: Client, tmp_path: Path
):
    (tmp_path / "secret").write_text("top secret")
    (root / "folder").mkdir()
    (root / ".agentsite").mkdir()
    (root / ".agentsite" / "x").write_text("x")
    (root / "outside").symlink_to(tmp_path / "secret")
    (root / "in").symlink_to(tmp_path)
    (tmp_path / "out").write_text("top secret")
    answer = browser.get(at(name, conversation), {"path": path})
    assert answer.status_code in {400, 404}
    assert b"top secret" not in answer.content
    assert str(root).encode() not in answer.content


# --- download -------------------------------------------------------------------------------------


def test_a_download_is_an_attachment_that_no_browser_runs(
    conversation: Conversation, root: Path, browser: Client
):
    (root / "page.html").write_text("<script>alert(1)</script>")
    answer = browser.get(at("download", conversation), {"path": "page.html"})
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"] == 'attachment; filename="page.html"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer["Content-Security-Policy"]
    assert b"".join(answer) == b"<script>alert(1)</script>"


def test_a_name_with_a_line_break_makes_no_header_of_its_own(
    conversation: Conversation, root: Path, browser: Client
):
    (root / 'a"\r\nSet-Cookie: x=1').write_text("odd")
    answer = browser.get(at("download", conversation), {"path": 'a"\r\nSet-Cookie: x=1'})
    assert answer.status_code == 200
    assert "\n" not in answer["Content-Disposition"]
    assert "Set-Cookie" not in answer


# --- upload ---------------------------------------------------------------------------------------


def test_an_upload_takes_exactly_the_limit_and_not_one_byte_more(
    conversation: Conversation, root: Path, browser: Client, environment: Environment
):
    small(environment, 1_000)
    fits = SimpleUploadedFile("fits.bin", b"x" * 1_000)
    assert browser.post(at("upload", conversation), {"files": fits}).status_code == 302
    big = SimpleUploadedFile("big.bin", b"x" * 1_001)
    answer = browser.post(at("upload", conversation), {"files": big})
    assert answer.status_code == 413
    assert "big.bin" in answer.content.decode()
    assert "1000 bytes" in answer.content.decode()
    assert names(root) == ["fits.bin"]


def test_ten_mebibytes_and_a_byte_are_too_much_by_default(
    conversation: Conversation, root: Path, browser: Client
):
    """At the limit of a new installation, with a file large enough to be spooled to disk."""
    big = SimpleUploadedFile("big.bin", b"x" * (10 * 1024**2 + 1))
    answer = browser.post(at("upload", conversation), {"files": big}, headers=HTMX)
    assert answer.status_code == 413
    assert "10 MiB" in answer.content.decode()
    assert answer["HX-Retarget"] == "#notices"
    assert names(root) == []


def test_one_file_too_large_among_several_stores_none(
    conversation: Conversation, root: Path, browser: Client, environment: Environment
):
    small(environment, 10)
    files = [SimpleUploadedFile("a.txt", b"ok"), SimpleUploadedFile("b.txt", b"x" * 11)]
    assert browser.post(at("upload", conversation), {"files": files}).status_code == 413
    assert names(root) == []


def test_a_reserved_name_among_several_stores_none(
    conversation: Conversation, root: Path, browser: Client
):
    files = [SimpleUploadedFile("a.txt", b"ok"), SimpleUploadedFile(".agentsite", b"x")]
    assert browser.post(at("upload", conversation), {"files": files}).status_code == 400
    assert names(root) == []


def test_folders_in_a_name_are_ignored_and_nothing_is_overwritten(
    alice: User, conversation: Conversation, root: Path
):
    for name in ("../../up.txt", "C:\\docs\\up.txt", "up.txt"):
        add_files(
            actor=alice,
            conversation=conversation,
            uploads=[Upload(name, 3, [name[:3].encode()])],
        )
    assert names(root) == ["up (2).txt", "up (3).txt", "up.txt"]
    assert (root / "up.txt").read_bytes() == b"../"


def test_an_upload_without_a_file_is_refused(conversation: Conversation, browser: Client):
    answer = browser.post(at("upload", conversation))
    assert answer.status_code == 400
    assert "No file was sent" in answer.content.decode()


def test_htmx_gets_an_event_when_files_came(
    conversation: Conversation, root: Path, browser: Client
):
    answer = browser.post(
        at("upload", conversation), {"files": SimpleUploadedFile("a.txt", b"1")}, headers=HTMX
    )
    assert answer.status_code == 204
    assert "files-changed" in answer["HX-Trigger"]


def test_an_upload_from_another_site_is_refused_with_its_limit_handler_in_place(
    alice: User, conversation: Conversation, root: Path
):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    files = {"files": SimpleUploadedFile("a.txt", b"1")}
    assert browser.post(at("upload", conversation), files).status_code == 403
    assert names(root) == []
    browser.get(at("files", conversation))
    token = browser.cookies["agentsite_csrf"].value
    form = {"csrfmiddlewaretoken": token, "files": SimpleUploadedFile("a.txt", b"1")}
    assert browser.post(at("upload", conversation), form).status_code == 302
    assert names(root) == ["a.txt"]


def test_mallory_puts_nothing_into_alices_workspace(
    mallory: User, bob: User, conversation: Conversation, root: Path, client_of: ClientOf
):
    for person in (mallory, bob):
        with pytest.raises(NotFound):
            add_files(actor=person, conversation=conversation, uploads=[Upload("a", 1, [b"1"])])
        files = {"files": SimpleUploadedFile("a.txt", b"1")}
        assert client_of(person).post(at("upload", conversation), files).status_code == 404
    assert names(root) == []


def test_a_sender_who_lies_about_the_size_is_still_stopped_at_the_limit(
    alice: User, conversation: Conversation, root: Path, environment: Environment
):
    small(environment, 10)
    conversation.refresh_from_db()
    with pytest.raises(TooLarge):
        add_files(actor=alice, conversation=conversation, uploads=[Upload("a", 1, [b"x" * 6] * 2)])
    assert names(root) == []


def test_limits_are_named_in_the_unit_that_fits():
    assert [megabytes(size) for size in (12, 2048, 1024**2, 10 * 1024**2, 1_572_864)] == [
        "12 bytes",
        "2 KiB",
        "1 MiB",
        "10 MiB",
        "1.5 MiB",
    ]
