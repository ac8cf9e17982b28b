"""Diagrams that agents write are pictures that load and run nothing, and never cost the text."""

from __future__ import annotations

import re
from html import escape, unescape
from urllib.parse import unquote

import pytest
from django.core.cache import cache

from rendering import diagrams
from rendering.markdown import to_html

FLOW = "flowchart TD\n  A[Order] -->|paid| B{In stock}\n  B --> C((Sent))\n"
KINDS = {
    "flowchart": (FLOW, "In stock"),
    "sequence": ("sequenceDiagram\n  Alice->>Bob: Good morning\n", "Good morning"),
    "class": ("classDiagram\n  Animal <|-- Duck\n", "Duck"),
    "state": ("stateDiagram-v2\n  [*] --> Still\n", "Still"),
    "entities": ("erDiagram\n  CUSTOMER ||--o{ ORDER : places\n", "places"),
    "gantt": ("gantt\n  section Build\n  Walls :a1, 2026-01-01, 30d\n", "Walls"),
    "pie": ('pie title Pets\n  "Dogs" : 3\n  "Cats" : 1\n', "Pets"),
}
HOSTILE = {
    "scripts": 'flowchart TD\n  A["<script>alert(1)</script>"] --> B\n  click A "javascript:alert(1)"\n',
    "pictures": 'flowchart TD\n  A@{ img: "https://evil.example/x.png", label: "x" }\n',
    "styles": (
        '%%{init: {"securityLevel": "loose", "themeCSS": "*{background:url(https://evil.example)}"}}%%\n'
        "flowchart TD\n  A --> B\n  style A fill:url(https://evil.example)\n"
    ),
}
LARGE = {
    "edges": "flowchart TD\n" + "".join(f"a{i}-->a{j}\n" for i in range(40) for j in range(i)),
    "brackets": "flowchart TD\nA" + "[" * 9_000,
    "length": FLOW + "%%" + "x" * diagrams.LONGEST,
}


def shown(text: str) -> str:
    return to_html(f"Look:\n\n```mermaid\n{text}```\n")


def pictures(html: str) -> list[str]:
    addresses = re.findall(r'<img [^>]*src="([^"]*)"', html)
    assert all(address.startswith("data:image/svg+xml,") for address in addresses)
    return [unquote(unescape(address).partition(",")[2]) for address in addresses]


@pytest.mark.parametrize("kind", KINDS)
def test_a_diagram_is_a_picture_with_its_source_below(kind: str) -> None:
    text, word = KINDS[kind]
    html = shown(text)
    (svg,) = pictures(html)
    assert svg.startswith("<svg ")
    assert word in svg
    assert "foreignObject" not in svg
    assert html.count("<details") == 1
    assert text in unescape(html.partition("<details")[2])


def test_it_is_as_large_as_it_was_laid_out() -> None:
    (svg,) = pictures(shown(FLOW))
    head = svg.partition(">")[0]
    assert re.search(r' width="[0-9.]+" height="[0-9.]+"', head)


def test_no_label_is_cut_where_letters_are_wider_than_they_were_laid_out() -> None:
    (svg,) = pictures(shown(KINDS["entities"][0]))
    labels = re.findall(r"<svg [^<>]*>", svg)[1:]
    assert labels
    assert not [label for label in labels if "overflow:hidden" in label]


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_picture_loads_and_runs_nothing(kind: str) -> None:
    html = shown(HOSTILE[kind])
    drawn = pictures(html)
    assert drawn
    for sign in ("evil.example", "javascript:", "<script"):
        assert sign not in drawn[0]


@pytest.mark.parametrize("kind", LARGE)
def test_what_would_be_too_large_is_shown_as_it_was_written(kind: str) -> None:
    html = shown(LARGE[kind])
    assert pictures(html) == []
    assert escape(LARGE[kind][:500]) in html


def test_what_is_no_diagram_stays_code_and_the_others_are_drawn() -> None:
    html = to_html(f"```mermaid\nnonsense [\n```\n\n```Mermaid\n{FLOW}```\n\n```py\nx = 1\n```\n")
    assert len(pictures(html)) == 1
    assert "nonsense [" in html
    assert html.count('<figure class="code">') == 3


def test_only_so_many_of_one_text_are_drawn() -> None:
    html = to_html(f"```mermaid\n{FLOW}```\n\n" * (diagrams.MOST + 2))
    assert len(pictures(html)) == diagrams.MOST
    assert html.count('<figure class="code">') == diagrams.MOST + 2


def test_beside_a_drawn_one_no_other_picture_and_no_other_address_passes() -> None:
    words = (
        "![x](data:image/svg+xml,<svg/>) ![y](https://evil.example/y.png) "
        "[z](data:text/html,hello) <img class=drawing src=https://evil.example/z>"
    )
    html = to_html(f"{words}\n\n```mermaid\n{FLOW}```\n")
    assert len(pictures(html)) == 1
    assert all(one.startswith("https://") for one in re.findall(r'href="([^"]*)"', html))


def test_where_the_library_is_not_installed_no_process_is_asked(monkeypatch) -> None:
    text = f"{FLOW}%% without the extra\n"
    monkeypatch.setattr(diagrams, "find_spec", lambda _name: None)
    monkeypatch.setattr("tools_app.isolation.subprocess.Popen", None)
    diagrams._drawing.processes.close()
    html = shown(text)
    assert pictures(html) == []
    assert "In stock" in html


def test_where_no_process_is_to_be_had_its_source_is_shown_for_that_moment(monkeypatch) -> None:
    cache.clear()
    text = f"{FLOW}%% turned away\n"
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("tools_app.isolation.sys.executable", "/nowhere/python")
        diagrams._drawing.processes.close()
        assert pictures(shown(text)) == []
    assert len(pictures(shown(text))) == 1
