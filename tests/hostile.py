"""Texts and values with which one person could make a server stand still, ready for every door.

Each was once, or would be by the obvious code, seconds or hours of work. Sizes stay within what the
doors take.
"""

from __future__ import annotations

from typing import Any

OBJECT = {"type": "object"}


def _nested(levels: int, step: str) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _level in range(levels):
        value = {step: value}
    return value


def marks(length: int) -> str:
    """Text of so many characters that takes the square of its length to normalize: combining marks
    which have to be put in order."""
    return "a" + "\u0315" * ((length - 1) // 2) + "\u0327" * (length // 2)


UNSOUND_SCHEMAS: dict[str, dict[str, Any]] = {
    "a look-ahead": {**OBJECT, "properties": {"a": {"pattern": "(?=(a+)+$)b"}}},
    "a back-reference": {**OBJECT, "properties": {"a": {"pattern": r"(a+)+\1$"}}},
    "an expression for names": {**OBJECT, "patternProperties": {r"^(a|b)\1$": {}}},
    "itself": {**OBJECT, "$ref": "#"},
    "itself by a combination": {**OBJECT, "allOf": [{"$ref": "#"}]},
    "each other": {
        **OBJECT,
        "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"if": {"$ref": "#/$defs/a"}}},
        "properties": {"x": {"$ref": "#/$defs/a"}},
    },
    "doubled fourteen times": {
        **OBJECT,
        "$defs": {
            **{f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(14)},
            "a14": {},
        },
        "$ref": "#/$defs/a0",
    },
    "a long chain": {
        **OBJECT,
        "$defs": {**{f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(900)}, "a900": {}},
        "$ref": "#/$defs/a0",
    },
    "another server": {**OBJECT, "properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}},
    "a name of its own": {**OBJECT, "$id": "http://127.0.0.1:9/", "$ref": "schema"},
    "an anchor": {**OBJECT, "$defs": {"a": {"$anchor": "here"}}, "$ref": "#here"},
    "nothing": {**OBJECT, "$ref": "#/$defs/missing"},
    "five thousand levels": {**OBJECT, "properties": {"a": _nested(5_000, "not")}},
    "no schema inside": {**OBJECT, "properties": {"a": {"pattern": 5}}},
    "an expression too large": {**OBJECT, "properties": {"a": {"pattern": r"\pL{900}"}}},
    "itself, where no schema is looked for": {
        **OBJECT,
        "default": {"properties": {"x": {"$ref": "#/examples/0"}}},
        "examples": [{"$ref": "#/examples/0"}],
        "properties": {"a": {"$ref": "#/default"}},
    },
    "another server, where no schema is looked for": {
        **OBJECT,
        "default": {"properties": {"x": {"$ref": "http://127.0.0.1:9/x"}}},
        "properties": {"a": {"$ref": "#/default"}},
    },
    "a back-reference, where no schema is looked for": {
        **OBJECT,
        "default": {"pattern": r"(a+)+\1$"},
        "properties": {"a": {"$ref": "#/default"}},
    },
    "itself, written with percents": {
        **OBJECT,
        "$defs": {"%61": {}, "a": {"allOf": [{"$ref": "#/$defs/%61"}]}},
        "properties": {"a": {"$ref": "#/$defs/a"}},
    },
    "an infinite number": {**OBJECT, "properties": {"a": {"const": float("inf")}}},
    "a number of five thousand digits": {**OBJECT, "properties": {"a": {"const": 10**5_000}}},
}
"""Schemas that are refused when they are saved, and do no harm when they were stored before."""

DEAR_SCHEMAS: dict[str, dict[str, Any]] = {
    "(a+)+": {**OBJECT, "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
    "(a|aa)+ for names": {
        **OBJECT,
        "properties": {"a": {"patternProperties": {"^(a|aa)+$": False}}},
    },
    "many alternatives": {
        **OBJECT,
        "properties": {"a": {"pattern": "(a|b|){900}x", "items": {"pattern": "(a|b|){900}x"}}},
    },
    "unique items": {**OBJECT, "properties": {"a": {"uniqueItems": True}}},
    "all of nine hundred": {
        **OBJECT,
        "properties": {"a": {"allOf": [{"type": "array", "items": {"type": "integer"}}] * 900}},
    },
    "any of nine hundred": {
        **OBJECT,
        "properties": {"a": {"anyOf": [{"minItems": 10**9}] * 900}},
    },
    "one of a long list": {**OBJECT, "properties": {"a": {"items": {"enum": list(range(9_000))}}}},
    "one of many lists": {
        **OBJECT,
        "properties": {"a": {"enum": [[0] * n for n in range(150)]}},
    },
    "twice at every level": {
        **OBJECT,
        "properties": {"x": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}},
        "required": ["missing"],
    },
    "what is left over": {
        **OBJECT,
        "properties": {
            "a": {"unevaluatedItems": False, "anyOf": [{"contains": {"const": -1}}] * 300}
        },
    },
    "what is left over at every level": {
        **OBJECT,
        "unevaluatedProperties": {"$ref": "#"},
        "anyOf": [{"$ref": "#/$defs/x"}] * 300,
        "$defs": {"x": {"properties": {"b": {}}}},
    },
    "names left over by three hundred": {
        **OBJECT,
        "unevaluatedProperties": False,
        "anyOf": [{"properties": {f"k{n}": {}}} for n in range(300)],
    },
    "another dialect inside": {
        **OBJECT,
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {
            "a": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}
        },
    },
}
"""Schemas that are taken, and would run for minutes on some of `DEAR_VALUES` if nobody counted."""

DEAR_VALUES: dict[str, dict[str, Any]] = {
    "a text": {"a": "a" * 500_000 + "!"},
    "numbers": {"a": list(range(20_000))},
    "numbers of one hash": {"a": [n * (2**61 - 1) for n in range(10_000)]},
    "objects": {"a": [{} for _ in range(20_000)]},
    "names": {"a": {"a" * 30 + str(n): n for n in range(8_000)}},
    "deep": _nested(50, "x"),
}

EXPRESSIONS = {
    "nested": ("(a+)+$", "a" * 40 + "!"),
    "alternatives": ("(a|a)*$", "a" * 40 + "!"),
    "overlapping": ("(a|aa)+$", "a" * 60 + "!"),
    "three in a row": ("a*a*a*a*b", "a" * 2_000),
}
"""Expressions, and a text on which a backtracking engine runs away."""

LOOKS_LIKE_SECRETS = {
    "a-a-a": "a-" * 6_000,
    "names without a value": "secret" * 3_000,
    "names and spaces": "token " + " " * 50_000,
    "quotes": "password" + "\"'" * 20_000,
    "many beginnings of a key": "-----BEGIN PRIVATE KEY-----" * 2_000,
    "a beginning without an end": "-----BEGIN " + "A " * 30_000,
    "many beginnings without an end": "-----BEGIN A" * 5_000,
    "tokens in three parts": ("eyJ" + "a" * 20 + ".") * 3_000,
    "beginnings of a token, each before a key": ("-eyJaaaaaaaaaa-AKIA" + "A" * 16) * 1_800,
    "one long token": "eyJ" + "eyJa-" * 12_000,
    "keys end to end": "sk-" + "sk-a" * 15_000,
    "bearers": "bearer " * 10_000,
    "bearers and spaces": "bearer" + " " * 60_000,
    "addresses": "://" * 20_000,
    "addresses with colons": "://a:" * 12_000,
    "one long address": "://" + "a:" * 30_000,
    "many addresses": "://a:b" * 12_000,
}
"""What is looked through for secrets before it is shown."""

PATHS = {
    "folders of any depth": ("**/" * 8 + "x", "a/" * 500 + "b"),
    "a hundred of them": ("**/" * 200 + "x", "a/" * 2_000 + "b"),
    "stars in a name": ("*a" * 20 + "b", "a" * 4_000),
    "any text, many times": ("**a" * 20 + "b", "a" * 4_000),
    "questions and stars": ("?*" * 40 + "x/**", "a" * 3_000),
    "the whole rule": ("**/*" * 250, "a/" * 2_000),
}
"""A path as a rule names it, and the path of a call."""

_PHP = "<?php\n"
CODE = {
    "quotes in Python": ("python", '"' * 4_900),
    "a line of letters in Markdown": ("markdown", "a" * 4_900),
    "stars in Markdown": ("markdown", ("*a " * 1_500 + "\n") * 6),
    "underscores in Markdown": ("markdown", ("_a" * 2_000 + "\n") * 7),
    "brackets in Markdown": ("markdown", ("[" * 4_900 + "\n") * 6),
    "open tags": ("html", ("<a " * 1_600 + "\n") * 6),
    "open comments": ("html", ("<!--" * 1_200 + "\n") * 6),
    "heredocs in PHP": ("php", _PHP + "<<<A\n" * 5_000),
    "heredocs in Perl": ("perl", "<<A;\n" * 5_000),
    "heredocs in Ruby": ("ruby", "<<A\n" * 7_000),
    "heredocs in a shell": ("bash", "<<A\n" * 7_000),
    "percents in Ruby": ("ruby", ("%q(" * 1_600 + "\n") * 6),
    "slashes in Perl": ("perl", ("s{" * 2_400 + "\n") * 6),
    "brackets in C++": ("cpp", ("a<" * 2_400 + "\n") * 6),
    "names in C": ("c", ("a " * 2_400 + "\n") * 6),
    "names in Java": ("java", ("a " * 2_400 + "\n") * 6),
    "attributes in C#": ("csharp", ("a " * 2_400 + "\n") * 6),
    "names in Swift": ("swift", ("a." * 2_400 + "\n") * 6),
    "braces in SQL": ("sql", ("/*" * 2_400 + "\n") * 6),
    "dollars in SQL": ("postgresql", ("$a$" * 1_600 + "\n") * 6),
    "names in Haskell": ("haskell", ("a " * 2_400 + "\n") * 6),
    "quotes in TOML": ("toml", ("a." * 2_400 + "\n") * 6),
    "spaces in YAML": ("yaml", (" " * 4_900 + "a\n") * 6),
    "colons in YAML": ("yaml", ("a: " * 1_600 + "\n") * 6),
    "spaces in an INI file": ("ini", (" " * 4_900 + "\n") * 6),
    "spaces in properties": ("properties", ("a" + " " * 4_900 + "\n") * 6),
    "spaces in Make": ("make", ("a" + " " * 4_900 + "\n") * 6),
    "spaces in CMake": ("cmake", (" " * 4_900 + "\n") * 6),
    "spaces in Nix": ("nix", (" " * 4_900 + "a\n") * 6),
    "braces in Scala": ("scala", ("a[" * 2_400 + "\n") * 6),
    "signs in F#": ("fsharp", ("(*" * 2_400 + "\n") * 6),
    "names in Objective-C": ("objective-c", ("@a " * 1_600 + "\n") * 6),
    "names in Dart": ("dart", ("a " * 2_400 + "\n") * 6),
    "spaces in reStructuredText": ("rst", ("a" + " " * 4_900 + "\n") * 6),
    "quotes in reStructuredText": ("rst", ("`a " * 1_600 + "\n") * 6),
    "slashes in JavaScript": ("javascript", ("/" * 4_900 + "\n") * 6),
    "backticks in TypeScript": ("typescript", ("`${" * 1_600 + "\n") * 6),
}
"""A language and a file of it that is dear to colour: each a guess at an expression of its lexer."""

SLOW_TO_COLOUR = ("slashes in Perl",)
"""Of `CODE`, what no machine colours in time."""

MARKDOWN = {
    "brackets": "[" * 50_000,
    "brackets and parentheses": "[a](" * 20_000,
    "stars": "*a " * 30_000,
    "stars and underscores": "*_" * 45_000,
    "backticks of every length": "".join("`" * n + " " for n in range(1, 430)),
    "quotes": ">" * 50_000,
    "lists": "- " * 40_000,
    "lists in lists": "".join("  " * n + "- a\n" for n in range(400)),
    "lines of a table": "|" + "a|" * 40_000 + "\n|" + "-|" * 9_000,
    "rows of a table": "a|b\n-|-\n" + "|\n" * 40_000,
    "references": "[a]: b\n" * 14_000,
    "references with titles": '[a]: b "' * 12_000,
    "open comments": "<!--" * 24_000,
    "open tags": "<a " * 32_000,
    "addresses": "https://a." * 9_900,
    "parentheses after an address": "https://a/" + ")" * 90_000,
    "entities": "&a" * 49_000,
    "escapes": "\\" * 99_000,
    "dollars": "$" * 99_000,
    "prices": "$1 " * 33_000,
    "amounts": "$" + "1," * 950 + "$ " + ("$" + "1" * 1_900 + "$ ") * 50,
    "lines behind many quotes": "> " * 90 + "a\n" + "b\n" * 40_000,
    "a few lines behind many quotes": "> " * 90 + "a\n" + "b\n" * 1_300,
    "one long address used often": "[a]: /" + "b" * 45_000 + "\n\n" + "[a]" * 15_000,
    "displayed formulas without an end": "\\[a\n" * 24_000,
    "a wide table of empty rows": "|" + "a|" * 3_000 + "\n|" + "-|" * 3_000 + "\n" + "|\n" * 30_000,
    "formulas": r"\(x^{" * 19_000,
    "fractions": "$" + r"\frac{" * 300 + "$",
    "tildes": "~~a" * 33_000,
    "headings": "#" * 99_000,
    "lines": "a\n" * 49_000,
    "spaces": " " * 99_000,
    "spaces at the ends": ("a" + " " * 990 + "\n") * 99,
}
"""What an agent writes."""

COMMANDS = {
    "quotes": "\"'",
    "open quote": "a\\'",
    "escapes": "\\a",
    "words": "a ",
    "dollars": "$a",
    "braces": "${a",
    "brackets": "$(",
    "here-documents": "<<a ",
    "ends": "a;",
    "nested commands": "bash -c 'a; ",
    "nested in both quotes": "sh -c \"sh -c 'a b' \" ",
    "options": "git -C . ",
    "assignments": "a=b ",
    "wrappers": "env sudo nice ",
}
"""What is said again and again in a command as long as one may be."""

JSON = {
    "lists": "[" * 500_000,
    "objects": '{"a":' * 150_000,
    "numbers": "[" + "1," * 15_000 + "1]",
    "one number": "9" * 900_000,
    "digits behind the point": "0." + "9" * 900_000,
    "exponents": "[" + "1e999," * 15_000 + "1]",
    "half characters": '"' + "\\ud800" * 15_000 + '"',
    "wide and shallow": "[" + "[]," * 30_000 + "[]]",
}
"""What is sent where JSON is asked for."""

LINES = {
    "none alike": (
        "".join(f"a{n}\n" for n in range(40_000)),
        "".join(f"b{n}\n" for n in range(40_000)),
    ),
    "all alike but one": ("a\n" * 100_000, "a\n" * 50_000 + "b\n" + "a\n" * 50_000),
    "two lines in turn": ("a\nb\n" * 900, "b\na\na\n" * 600),
    "two lines in turn, long": ("a\nb\n" * 50_000, "b\na\na\n" * 33_000),
    "shuffled": (
        "".join(f"{n * 7919 % 1_999}\n" for n in range(1_999)),
        "".join(f"{n * 104_729 % 1_999}\n" for n in range(1_999)),
    ),
    "nested blocks": (
        "".join(f"{n}\n" for n in range(1_900)),
        "".join(f"{n}\n" for n in reversed(range(1_900))),
    ),
}
"""A file before and after."""
