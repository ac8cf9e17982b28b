"""Secrets of a local installation: written once, privately, and never into the environment."""

from __future__ import annotations

import os
import re
import stat

import pytest
from django.core.exceptions import ImproperlyConfigured

from agentsite import environment

NAMES = ("AGENTSITE_ENV", "AGENTSITE_SECRET_KEY", "AGENTSITE_VAULT_KEY")


@pytest.fixture
def file(tmp_path, monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENTSITE_ENV_FILE", str(tmp_path / ".env"))
    return tmp_path / ".env"


def test_the_first_start_writes_a_private_file_with_random_secrets(file):
    assert environment.ensure_secrets()

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    first = environment.load()
    file.unlink()
    environment.ensure_secrets()
    second = environment.load()
    for name in NAMES[1:]:
        assert len(first.str(name)) >= 44
        assert first.str(name) != second.str(name)


def test_a_later_start_changes_nothing(file):
    environment.ensure_secrets()
    before = file.read_bytes()

    assert not environment.ensure_secrets()
    assert file.read_bytes() == before


def test_a_file_that_lacks_a_secret_keeps_everything_else(file):
    file.write_text("AGENTSITE_SECRET_KEY=mine\n# a remark\nAGENTSITE_DEBUG=true")

    environment.ensure_secrets()

    text = file.read_text()
    assert text.startswith("AGENTSITE_SECRET_KEY=mine\n# a remark\nAGENTSITE_DEBUG=true\n")
    assert environment.load().str("AGENTSITE_SECRET_KEY") == "mine"
    assert environment.load().str("AGENTSITE_VAULT_KEY")


def test_nothing_is_written_for_production(file, monkeypatch):
    monkeypatch.setenv("AGENTSITE_ENV", "production")

    assert not environment.ensure_secrets()
    assert not file.exists()


def test_nothing_is_written_where_the_environment_brings_the_secrets(file, monkeypatch):
    for name in NAMES[1:]:
        monkeypatch.setenv(name, "given")

    assert not environment.ensure_secrets()
    assert not file.exists()


def test_a_set_variable_wins_over_the_file(file, monkeypatch):
    file.write_text("AGENTSITE_SECRET_KEY=from-file\n")
    monkeypatch.setenv("AGENTSITE_SECRET_KEY", "from-environment")

    assert environment.load().str("AGENTSITE_SECRET_KEY") == "from-environment"


def test_what_the_file_holds_is_inherited_by_no_child_process(file):
    file.write_text("ANTHROPIC_API_KEY=secret\n")

    assert environment.load().str("ANTHROPIC_API_KEY") == "secret"
    assert "ANTHROPIC_API_KEY" not in os.environ


@pytest.mark.parametrize(
    ("line", "read", "rule"),
    [
        ("AGENTSITE_X=many", lambda reader: reader.int("AGENTSITE_X"), "a whole number"),
        ("AGENTSITE_X=ture", lambda reader: reader.bool("AGENTSITE_X"), "true or false"),
        ("AGENTSITE_X=", lambda reader: reader.int("AGENTSITE_X"), "is not set"),
    ],
)
def test_a_wrong_value_is_refused_by_name(file, line, read, rule):
    file.write_text(line)

    with pytest.raises(ImproperlyConfigured, match=f"AGENTSITE_X.*{rule}"):
        read(environment.load())


def test_an_empty_value_is_an_unset_one(file):
    file.write_text("AGENTSITE_X=\n")

    assert environment.load().int("AGENTSITE_X", default=7) == 7


def test_a_value_may_begin_with_a_dollar_sign(file):
    file.write_text("AGENTSITE_X='$ecret'\n")

    assert environment.load().str("AGENTSITE_X") == "$ecret"


def test_every_setting_is_listed_in_the_example_and_nothing_else():
    source = (environment.BASE_DIR / "agentsite" / "settings.py").read_text()
    example = (environment.BASE_DIR / ".env.example").read_text()
    read = set(re.findall(r'env\.[a-z_]+\(\s*"([A-Z_]+)"', source))

    assert set(re.findall(r"^#([A-Z_]+)=", example, re.M)) == read
