"""Formulas become MathML; prices, shell variables and invalid LaTeX do not."""

from __future__ import annotations

import pytest

from rendering.markdown import to_html
from rendering.math import LONGEST, MOST, to_mathml


@pytest.mark.parametrize(
    "text",
    [
        "$x$",
        "$x$ is at most 5",
        "so $a_1 + b^2$.",
        "($n$)",
        "$5$",
        "$2x + 3$",
        r"$10 \text{ apples}$",
        r"\(x < y\)",
        "$$E = mc^2$$",
        "inline $$E = mc^2$$ too",
        "$$\n\\frac{1}{2}\n$$",
        "\\[\n\\begin{matrix} 1 & 2 \\\\[2pt] 3 & 4 \\end{matrix}\n\\]",
        "> $$\n> x\n> $$",
        "- item\n\n  $$\n  x\n  $$",
        "text\n$$\nx\n- y\n$$\ntext",
    ],
)
def test_a_formula_becomes_mathml(text: str) -> None:
    html = to_html(text)

    assert html.count("<math") == 1
    assert "formula-source" not in html


@pytest.mark.parametrize(
    "text",
    [
        "$5 and $10",
        "It costs $5, or 10$ with tax",
        "between $20k and $30k",
        "from $5/month to US$10",
        'The "$100" or "$200" plan',
        "**$5** and **$6**",
        "$1,000 plus $2,000",
        "$HOME/bin:$PATH",
        "echo $HOME and $USER.",
        r"\$5 and \$6",
        "`$x$`",
        "```\n$x$\n```",
        "$ x $",
        "$$",
        "$",
        "$$$",
        "a $`x`$ b",
        "$x\n\ny$",
        "$$\nx\n\ny",
    ],
)
def test_what_only_looks_like_a_formula_stays_text(text: str) -> None:
    assert "<math" not in to_html(text)


def test_a_price_keeps_its_words() -> None:
    assert to_html("$5 and $10") == "<p>$5 and $10</p>\n"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (r"$\frac{1}$", r"$\frac{1}$"),
        (r"$\nosuchcommand{x}$", r"$\nosuchcommand{x}$"),
        (r"\(x^a^b\)", r"\(x^a^b\)"),
        (r"$\left( x$", r"$\left( x$"),
    ],
)
def test_invalid_latex_is_shown_as_its_source(text: str, source: str) -> None:
    html = to_html(text)

    assert "<math" not in html
    assert f'<code class="formula-source">{source}</code>' in html


def test_definitions_are_not_expanded() -> None:
    bomb = r"\def\a{xx}" + "".join(
        rf"\def\{chr(98 + n)}{{\{chr(97 + n)}\{chr(97 + n)}}}" for n in range(20)
    )

    assert to_mathml(bomb + r"\u", display=False) is None


def test_text_in_a_formula_stays_text() -> None:
    mathml = to_mathml(r"\text{<img src=x onerror=alert(1)>}", display=False)

    assert mathml is not None
    assert "<img" not in mathml
    assert "&lt;img" in mathml


def test_links_and_styles_of_a_formula_are_dropped() -> None:
    assert "href" not in (to_mathml(r"\href{javascript:alert(1)}{x}", display=False) or "")
    assert "style=" not in (to_mathml(r"\style{a:b}{x}", display=False) or "")


def test_a_formula_at_the_limit_is_translated_and_one_past_it_is_not() -> None:
    assert to_mathml("x" * LONGEST, display=False) is not None
    assert to_mathml("x" * (LONGEST + 1), display=False) is None


def test_only_so_many_formulas_of_one_text_are_translated() -> None:
    html = to_html("$x$ " * (MOST + 1))

    assert html.count("<math") == MOST
    assert html.count("formula-source") == 1
