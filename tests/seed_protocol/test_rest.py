"""Every address of the REST protocol: parameters, statuses, limits."""

from __future__ import annotations

import base64
import json
from urllib.parse import urlsplit

import pytest

from providers.scripted import call, reply
from tools_app.catalogue import all_tools, describe

FLAGS = ("enable_teams", "enable_tracing", "enable_approval", "enable_plan_mode")
MEBIBYTE = 1024 * 1024


# --- POST /api/chat ---------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("on", [True, False])
def test_flags_are_read_back_as_sent(alice, flag, on):
    read = alice.read(alice.begin(**{flag: on}))
    assert read[flag] is on
    assert not any(read[other] for other in FLAGS if other != flag)


def test_an_empty_body_begins_a_conversation_with_the_defaults(alice):
    for answer in (alice.post("/api/chat", {}), alice.post("/api/chat")):
        assert answer.status in {200, 415}
    read = alice.read(alice.begin())
    assert read["preset"] == "Coding"
    assert (read["system_prompt"], read["title"], read["messages"]) == (None, None, [])
    assert not any(read[flag] for flag in FLAGS)


@pytest.mark.parametrize(
    ("preset", "name"),
    [("coding", "Coding"), ("Coding", "Coding"), ("General work",) * 2, ("", "Coding")],
)
def test_a_preset_is_chosen_by_any_of_its_names_and_read_back_as_it_was_sent(alice, preset, name):
    ids = {row["name"]: row["id"] for row in alice.get("/api/presets").json}
    read = alice.read(alice.begin(preset=preset))
    assert (read["preset"], read["preset_id"]) == (preset or name, ids[name])
    assert alice.read(alice.begin(preset=ids[name]))["preset"] == ids[name]


def test_an_unknown_preset_is_refused_with_what_there_is(alice):
    """It is not taken silently."""
    answer = alice.post("/api/chat", {"preset": "nothing"})
    assert (answer.status, answer.code) == (422, "invalid")
    error = answer.json["error"]
    assert error["field"] == "preset"
    assert "Coding" in error["hint"]


@pytest.mark.parametrize(
    ("given", "stored"),
    [("high", "high"), ("max", "max"), ("xhigh", "max"), ("low", "high"), ("?", "high")],
)
def test_effort_is_high_or_max(alice, given, stored):
    read = alice.read(alice.begin(enable_thinking=True, thinking_effort=given))
    assert (read["enable_thinking"], read["thinking_effort"]) == (True, stored)


def test_thinking_is_the_presets_own_where_nothing_is_said(alice):
    own = alice.read(alice.begin())["enable_thinking"]
    assert alice.read(alice.begin(enable_thinking=None))["enable_thinking"] is own
    assert alice.read(alice.begin(enable_thinking=not own))["enable_thinking"] is not own


def test_a_system_prompt_takes_the_place_of_the_presets(alice, service):
    service.expect("Who are you?", "A pirate.")
    uid = alice.begin(system_prompt="You are a pirate.", enable_tracing=True)
    assert alice.read(uid)["system_prompt"] == "You are a pirate."
    with alice.chat(uid) as chat:
        chat.ask("Who are you?")
    system = chat.of("llm_request")[0]["system"]
    assert system.startswith("You are a pirate.")
    assert "software engineer" not in system


def test_a_system_prompt_has_a_limit(alice):
    assert alice.post("/api/chat", {"system_prompt": "x" * 100_000}).status == 200
    answer = alice.post("/api/chat", {"system_prompt": "x" * 100_001})
    assert answer.status in {413, 422}
    assert answer.json["error"]["field"] == "system_prompt"


@pytest.mark.parametrize(
    "body",
    [
        {"enable_teams": "maybe"},
        {"enable_teams": 1},
        {"enable_approval": None},
        {"preset": 5},
        {"system_prompt": ["x"]},
        {"thinking_effort": {}},
    ],
)
def test_what_has_the_wrong_form_is_refused_by_name(alice, body):
    answer = alice.post("/api/chat", body)
    assert (answer.status, answer.code) == (422, "invalid")
    assert answer.json["error"]["field"] == next(iter(body))


@pytest.mark.parametrize("raw", [b"{", b"[]", b"5", b'"x"', b"\xff"])
def test_a_body_that_is_no_object_is_refused(alice, raw):
    answer = alice.request("POST", "/api/chat", raw, {"Content-Type": "application/json"})
    assert (answer.status, answer.code) == (422, "bad_json")


def test_unknown_fields_are_passed_over_and_named(alice):
    answer = alice.post("/api/chat", {"enable_aproval": True, "preset": "coding"})
    assert answer.json["ignored"] == ["enable_aproval"]


# --- conversations ----------------------------------------------------------------------------------


def test_the_list_is_newest_first_with_counts_and_pages_by_cursor(program, service):
    bob = program("bob")
    service.expect("Count me", "Counted.")
    uids = [bob.begin() for _number in range(5)]
    with bob.chat(uids[1]) as chat:
        chat.ask("Count me")
    rows = bob.get("/api/conversations").json
    assert [row["id"] for row in rows][:5] == uids[::-1]
    assert {"id", "title", "created_at", "message_count"} <= set(rows[0])
    assert rows[3]["message_count"] == 2
    assert rows[3]["title"] == "Count me"
    seen, cursor = [], None
    while True:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = bob.get("/api/conversations", **query)
        seen += [row["id"] for row in page.json]
        cursor = page.headers.get("X-Next-Cursor")
        if cursor is None:
            break
        assert f"cursor={cursor}" in page.headers["Link"]
        assert 'rel="next"' in page.headers["Link"]
        again = bob.request("GET", _path(page.headers["Link"]))
        assert again.status == 200
    assert seen == [row["id"] for row in rows]


def _path(link: str) -> str:
    parts = urlsplit(link[1 : link.index(">")])
    return f"{parts.path}?{parts.query}"


@pytest.mark.parametrize("limit", ["0", "501", "-1", "x", "", "1e2"])
def test_a_limit_out_of_its_bounds_is_refused(alice, limit):
    answer = alice.get("/api/conversations", limit=limit)
    assert (answer.status, answer.json["error"]["field"]) == (422, "limit")


@pytest.mark.parametrize(
    "place", ["x", "", "ü", base64.b64encode(b'["a"]').decode(), base64.b64encode(b"[-1]").decode()]
)
def test_a_cursor_that_was_not_given_out_is_refused(alice, place):
    answer = alice.get("/api/conversations", cursor=place)
    assert (answer.status, answer.json["error"]["field"]) == (422, "cursor")


def test_a_conversation_is_read_with_its_messages_in_pages(alice, service):
    service.expect("Do it", reply("I look. ", call("list_files")), "Done.")
    uid = alice.begin()
    with alice.chat(uid) as chat:
        chat.ask("Do it")
    read = alice.read(uid)
    assert [m["role"] for m in read["messages"]] == ["user", "assistant", "user", "assistant"]
    kinds = [block["type"] for block in read["messages"][1]["content"]]
    assert kinds == ["text", "tool_use"]
    result = read["messages"][2]["content"][0]
    assert result["type"] == "tool_result"
    assert result["tool_use_id"] == read["messages"][1]["content"][1]["id"]
    assert read["last_seq"] > 0
    seen, cursor = [], None
    while True:
        query = {"limit": 1} | ({"cursor": cursor} if cursor else {})
        page = alice.get(f"/api/conversations/{uid}", **query).json
        seen += page["messages"]
        cursor = page["messages_cursor"]
        if cursor is None:
            break
    assert seen == read["messages"]


def test_a_deleted_conversation_is_gone(alice):
    uid = alice.begin()
    assert alice.delete(f"/api/conversations/{uid}").json == {"status": "deleted"}
    assert alice.get(f"/api/conversations/{uid}").status == 404
    assert alice.delete(f"/api/conversations/{uid}").status == 404
    assert uid not in str(alice.get("/api/conversations").json)


def test_a_conversation_that_is_not_there_is_not_found(alice):
    for uid in ("sesn_" + "0" * 26, "abcdef012345", "x"):
        answer = alice.get(f"/api/conversations/{uid}")
        assert (answer.status, answer.code) == (404, "not_found")


# --- catalogue --------------------------------------------------------------------------------------


def tools(alice, **query) -> dict[str, dict[str, object]]:
    return {tool["name"]: tool for tool in alice.get("/api/tools", **query).json}


def test_tools_are_those_that_are_really_on_offer(alice):
    """The list follows what is switched on."""
    usual = tools(alice)
    described = json.loads(json.dumps(describe(all_tools()["read_file"])))
    assert usual["read_file"] == {**described, "asks": False}
    assert usual["web_fetch"]["untrusted"] is True
    assert "write_file" in usual
    assert "present_plan" not in usual
    planning = tools(alice, conversation_id=alice.begin(enable_plan_mode=True))
    assert "present_plan" in planning
    assert "write_file" not in planning
    asking = tools(alice, conversation_id=alice.begin(enable_approval=True))
    assert asking["write_file"]["asks"] is True
    assert asking["read_file"]["asks"] is False
    assert tools(alice, preset="General work")
    assert alice.get("/api/tools", preset="nothing").status == 422


@pytest.mark.parametrize("preset", ["General work", "nonsense"])
def test_tools_are_asked_for_by_conversation_or_by_preset_and_not_by_both(alice, preset):
    answer = alice.get("/api/tools", conversation_id=alice.begin(), preset=preset)
    assert (answer.status, answer.json["error"]["field"]) == (422, "preset")


def test_a_nul_is_no_preset(alice):
    assert alice.get("/api/tools", preset="\0").status == 422


def test_presets_are_listed_with_ids(alice):
    rows = alice.get("/api/presets").json
    assert {"Coding", "General work"} <= {row["name"] for row in rows}
    assert all({"name", "description", "id"} == set(row) for row in rows)
    first = alice.get("/api/presets", limit=1)
    rest = alice.get("/api/presets", cursor=first.headers["X-Next-Cursor"])
    assert first.json + rest.json == rows


def test_a_skill_is_uploaded_by_its_owner_for_herself_and_never_outside_its_folder(program):
    skiller, given = program("skiller"), {"name": "tidy", "description": "b: c", "body": "Tidy up."}
    made = skiller.post("/api/skills", given)
    assert (made.status, made.json["name"], made.json["description"]) == (200, "tidy", "b: c")
    assert "tidy" in [row["name"] for row in program("alice").get("/api/skills").json]
    assert "tidy" not in [row["name"] for row in program("mallory").get("/api/skills").json]
    assert skiller.post("/api/skills", given).code == "conflict"
    for wrong in ({"name": "../up"}, {"name": "Tidy"}, {"name": "a", "body": ""}):
        assert skiller.post("/api/skills", {**given, **wrong}).status == 422
    assert skiller.post("/api/skills", {"name": "a"}).status == 422


# --- files ------------------------------------------------------------------------------------------


@pytest.fixture
def room(alice) -> str:
    return str(alice.begin())


def test_files_are_uploaded_listed_read_and_downloaded(alice, room):
    sent = [("plan.md", b"# Plan\n"), ("code.py", b"x = 1\n"), ("data.bin", b"\0\1\2")]
    answer = alice.upload(sent, conversation_id=room)
    assert (answer.status, answer.json) == (200, {"uploaded": ["plan.md", "code.py", "data.bin"]})
    listed = alice.get("/api/workspace/files", conversation_id=room).json
    assert {"name": "code.py", "path": "code.py", "size": 6} in listed
    read = alice.get("/api/workspace/file/code.py", conversation_id=room).json
    assert read == {
        "path": "code.py",
        "name": "code.py",
        "size": 6,
        "content": "x = 1\n",
        "binary": False,
        "language": "python",
        "truncated": False,
    }
    binary = alice.get("/api/workspace/file/data.bin", conversation_id=room).json
    assert (binary["binary"], binary["content"], binary["language"]) == (True, None, None)
    file = alice.get(f"/api/files/{room}/data.bin")
    assert file.raw == b"\0\1\2"
    assert file.headers["Content-Type"] == "application/octet-stream"
    assert file.headers["Content-Disposition"].startswith("attachment")


def test_another_conversation_has_files_of_its_own(alice, room):
    """`conv_id` counts."""
    alice.upload([("a.txt", b"a")], conversation_id=room)
    other = alice.begin()
    assert alice.get(f"/api/files/{other}/a.txt").status == 404
    assert alice.get("/api/workspace/files", conversation_id=other).json == []


def test_a_file_of_the_limit_is_taken_and_one_byte_more_leaves_nothing_behind(alice, room):
    """413 names the file and its size."""
    assert alice.upload([("full", b"x" * 10 * MEBIBYTE)], conversation_id=room).status == 200
    sent = [("small", b"x"), ("over.bin", b"x" * (10 * MEBIBYTE + 1)), ("after", b"y")]
    answer = alice.upload(sent, conversation_id=room)
    assert (answer.status, answer.code) == (413, "too_large")
    assert "over.bin" in answer.json["error"]["message"]
    assert "10 MiB" in answer.json["error"]["message"]
    names = [f["name"] for f in alice.get("/api/workspace/files", conversation_id=room).json]
    assert names == ["full"]


def test_a_name_is_reduced_to_its_last_part_and_a_file_that_has_it_is_replaced(alice, room):
    for text in (b"old", b"new"):
        sent = [("../../deep/down/a.txt", text)]
        assert alice.upload(sent, conversation_id=room).json == {"uploaded": ["a.txt"]}
    assert alice.get(f"/api/files/{room}/a.txt").raw == b"new"
    kept = alice.upload([("a.txt", b"third")], conversation_id=room, overwrite="false")
    assert kept.json == {"uploaded": ["a (2).txt"]}
    assert alice.get(f"/api/files/{room}/a.txt").raw == b"new"


def test_a_folder_is_made_where_it_is_missing(alice, room):
    answer = alice.upload([("a.txt", b"a")], conversation_id=room, subdir="notes/today")
    assert answer.json == {"uploaded": ["notes/today/a.txt"]}


def test_a_conversation_is_found_by_the_other_spelling_of_its_id(alice, service, room):
    other = room.replace("sesn_", "session_")
    sent = [("a.txt", b"a")]
    assert alice.upload(sent, conversation_id=other).json == {"uploaded": ["a.txt"]}
    assert alice.get(f"/api/files/{other}/a.txt").raw == b"a"
    assert len(alice.get("/api/workspace/files", conversation_id=other).json) == 1
    assert alice.get("/api/tools", conversation_id=other).status == 200
    assert alice.read(other)["id"] == room
    service.expect("Hello", "Hello to you.")
    with alice.chat(other) as chat:
        chat.say("message", content="Hello")
        assert chat.turn()["status"] == "completed"


@pytest.mark.parametrize(
    "subdir",
    ["..", "../x", "a/../../b", "/etc", ".agent", ".transcripts", ".tasks/x", ".team", "a/.git"],
)
def test_a_folder_outside_or_reserved_is_forbidden(alice, room, subdir):
    answer = alice.upload([("a.txt", b"a")], conversation_id=room, subdir=subdir)
    assert (answer.status, answer.code) == (403, "forbidden")
    assert alice.get("/api/workspace/files", conversation_id=room).json == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("nothing.txt", 404),
        ("%2e%2e/%2e%2e/etc/passwd", 403),
        ("a/%2e%2e/%2e%2e/x", 403),
        (".agent/x", 403),
        ("deep/.transcripts/x", 403),
        (".git/config", 403),
        ("a%00b", 422),
    ],
)
def test_paths_outside_or_reserved_are_forbidden_and_missing_ones_not_found(
    alice, room, path, status
):
    """At every depth, for reading and for downloading."""
    assert alice.get(f"/api/files/{room}/{path}").status == status
    assert alice.get(f"/api/workspace/file/{path}", conversation_id=room).status == status


def test_a_long_text_is_cut_and_says_so(alice, room):
    alice.upload([("long.txt", b"x" * 102_401)], conversation_id=room)
    read = alice.get("/api/workspace/file/long.txt", conversation_id=room).json
    assert (len(read["content"]), read["truncated"], read["size"]) == (102_400, True, 102_401)


def test_files_are_listed_page_by_page(alice, room):
    names = [f"{folder}{number}.txt" for folder in ("", "a/", "a.b/", "b/") for number in range(3)]
    for name in names:
        folder = name.rpartition("/")[0]
        alice.upload([(name, b"x")], conversation_id=room, subdir=folder)
    whole = [f["path"] for f in alice.get("/api/workspace/files", conversation_id=room).json]
    assert sorted(whole) == sorted(names)
    seen, cursor = [], None
    while True:
        query = {"limit": 5} | ({"cursor": cursor} if cursor else {})
        page = alice.get("/api/workspace/files", conversation_id=room, **query)
        seen += [f["path"] for f in page.json]
        cursor = page.headers.get("X-Next-Cursor")
        if cursor is None:
            break
    assert seen == whole


def test_which_workspace_is_meant_must_be_said(alice):
    for answer in (
        alice.get("/api/workspace/files"),
        alice.get("/api/workspace/file/a.txt"),
        alice.upload([("a.txt", b"a")]),
    ):
        assert (answer.status, answer.json["error"]["field"]) == (422, "conversation_id")


def test_no_file_and_no_form_are_refused(alice, room):
    answer = alice.upload([("a.txt", b"a")], name_of_field="file", conversation_id=room)
    assert (answer.status, answer.json["error"]["field"]) == (422, "files")
    answer = alice.post("/api/workspace/upload", {"files": 1}, conversation_id=room)
    assert (answer.status, answer.code) == (415, "unsupported_media_type")


# --- errors -----------------------------------------------------------------------------------------


def test_what_is_not_there_answers_in_the_same_shape(alice):
    for method in ("GET", "POST", "DELETE"):
        answer = alice.request(method, "/api/nothing/here")
        assert (answer.status, answer.code) == (404, "not_found")
    answer = alice.request("PUT", "/api/conversations")
    assert (answer.status, answer.code) == (405, "method_not_allowed")


def test_the_schema_describes_every_address_that_is_served(alice):
    schema = json.loads(alice.get("/api/schema/", format="json").raw)
    served = {path for path in schema["paths"] if path.startswith(("/api/", "/health"))}
    assert served >= {
        "/health",
        "/api/chat",
        "/api/conversations",
        "/api/conversations/{uid}",
        "/api/tools",
        "/api/skills",
        "/api/presets",
        "/api/files/{uid}/{path}",
        "/api/workspace/upload",
        "/api/workspace/files",
        "/api/workspace/file/{path}",
        "/api/auth/config",
        "/api/auth/me",
    }
