"""Prompts, prices and environments, as staff change them."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal

import pytest
from django.db import transaction
from django.urls import reverse

from agents.actions.environments import change_environment, create_environment
from agents.actions.prompts import change_prompt, check_prompt, filled_names, reset_prompt
from agents.models import Environment, Prompt
from agents.seeding import seed_agents
from conversations.kits import current_texts
from harness.errors import Conflict, Forbidden, Invalid, TooLarge
from harness.texts import Texts
from spending.actions.prices import change_price, create_price, delete_price
from spending.models import ModelPrice
from spending.seeding import seed_prices
from tests.cast import make_user
from tests.tables import table

RATES = {
    "input": Decimal(1),
    "output": Decimal(2),
    "cache_write": Decimal(3),
    "cache_read": Decimal("0.5"),
}


@pytest.fixture
def seeded(db):
    with transaction.atomic():
        seed_agents()
        seed_prices()


@pytest.fixture
def browser(staff, client_of):
    return client_of(staff)


@pytest.fixture
def hint(seeded) -> Prompt:
    return Prompt.objects.get(name="wrap-up-hint")


def at(model: str, name: str, pk: int) -> str:
    return reverse(f"admin:{table(model)}_{name}", args=[pk])


# --- prompts --------------------------------------------------------------------------------------


def test_the_harness_speaks_in_the_words_of_staff(hint, browser):
    address = at("agents.prompt", "change", hint.pk)
    answer = browser.post(address, {"text": "{steps_left} left.\r\nHurry {{up}}."})

    assert answer.status_code == 302
    said = current_texts().wrap_up_hint
    assert said.format(steps_left=2) == "2 left.\nHurry {up}."


@pytest.mark.parametrize(
    "text",
    [
        "No name at all.",
        "{steps}",
        "{steps_left} and {more}",
        "{steps_left",
        "steps_left}",
        "{}",
        "{0}",
        "{steps_left} {}",
        "{steps_left.__class__}",
        "{steps_left[0]}",
        "{steps_left!r}",
        "{steps_left:>99999999}",
        "{steps_left} {steps_left:{steps_left}}",
        "   ",
    ],
)
def test_a_text_that_could_not_be_filled_in_is_refused(text, hint, staff):
    before = hint.text
    with pytest.raises(Invalid) as refusal:
        change_prompt(actor=staff, prompt=hint, text=text)

    assert refusal.value.field == "text"
    hint.refresh_from_db()
    assert hint.text == before


def test_a_refused_text_is_refused_beside_its_field(hint, browser):
    before = hint.text
    answer = browser.post(at("agents.prompt", "change", hint.pk), {"text": "{steps}"})

    assert answer.status_code == 200
    assert answer.context["adminform"].form.errors["text"]
    hint.refresh_from_db()
    assert hint.text == before


def test_the_error_names_what_must_stay(seeded):
    with pytest.raises(Invalid) as refusal:
        check_prompt(name="shortened-result", text="[shortened]")
    assert "{size}, {tool}" in refusal.value.hint


def test_braces_mean_nothing_where_nothing_is_filled_in(seeded, staff):
    prompt = Prompt.objects.get(name="compaction-request")
    change_prompt(actor=staff, prompt=prompt, text='Answer as {"summary": "…"}.')

    assert current_texts().compaction_request == 'Answer as {"summary": "…"}.'


@pytest.mark.parametrize("field", asdict(Texts()))
def test_our_own_texts_pass_the_rule(field):
    text = asdict(Texts())[field]
    assert check_prompt(name=field.replace("_", "-"), text=text) == text


def test_a_prompt_of_the_limit_is_taken_and_one_past_it_refused():
    assert check_prompt(name="stopped-note", text="x" * 20_000)
    with pytest.raises(TooLarge):
        check_prompt(name="stopped-note", text="x" * 20_001)


def test_a_prompt_is_reset_to_ours_only_when_confirmed(hint, browser, staff):
    change_prompt(actor=staff, prompt=hint, text="{steps_left}!")
    address = at("agents.prompt", "reset", hint.pk)

    assert Texts().wrap_up_hint.split("{")[0] in browser.get(address).content.decode()
    hint.refresh_from_db()
    assert hint.text == "{steps_left}!"
    assert browser.post(address).status_code == 302
    hint.refresh_from_db()
    assert hint.text == Texts().wrap_up_hint


def test_a_prompt_this_version_does_not_know_cannot_be_reset(staff, db):
    stray = Prompt.objects.create(name="of-an-older-version", text="x")
    with pytest.raises(Conflict):
        reset_prompt(actor=staff, prompt=stray)


def test_prompts_are_neither_added_nor_deleted(hint, browser):
    assert browser.get(reverse("admin:agents_prompt_add")).status_code == 403
    delete = at("agents.prompt", "delete", hint.pk)
    assert browser.post(delete, {"post": "yes"}).status_code == 403


def test_the_page_says_which_names_are_filled_in(hint, browser):
    assert "{steps_left}" in browser.get(at("agents.prompt", "change", hint.pk)).content.decode()
    assert filled_names("wrap-up-hint") == {"steps_left"}


# --- prices ---------------------------------------------------------------------------------------


def test_staff_add_change_and_delete_a_price(seeded, browser):
    values = {"provider": "openai_compatible", "model": "qwen", "from_prompt_tokens": "0"}
    values |= {name: str(rate) for name, rate in RATES.items()}
    add = reverse("admin:spending_modelprice_add")
    assert browser.post(add, values).status_code == 302

    price = ModelPrice.objects.get(model="qwen")
    change = at("modelprice", "change", price.pk)
    assert browser.post(change, {**values, "input": "9", "model": "other"}).status_code == 302
    price.refresh_from_db()
    assert (price.input, price.output, price.model) == (Decimal(9), Decimal(2), "qwen")

    assert browser.post(at("modelprice", "delete", price.pk), {"post": "yes"}).status_code == 302
    assert not ModelPrice.objects.filter(model="qwen").exists()


def test_a_negative_price_is_refused_beside_its_field(seeded, browser):
    price = ModelPrice.objects.get(model="claude-opus-5")
    values = {name: str(rate) for name, rate in RATES.items()} | {"cache_read": "-1"}
    answer = browser.post(at("modelprice", "change", price.pk), values)

    assert answer.status_code == 200
    assert set(answer.context["adminform"].form.errors) == {"cache_read"}


def test_a_second_price_for_the_same_model_is_refused(seeded, staff, browser):
    values = {"provider": "demo", "model": "demo", "from_prompt_tokens": "0"}
    values |= {name: str(rate) for name, rate in RATES.items()}
    answer = browser.post(reverse("admin:spending_modelprice_add"), values)

    assert answer.status_code == 200
    assert answer.context["adminform"].form.errors
    with pytest.raises(Invalid):
        create_price(actor=staff, provider="demo", model="demo", from_prompt_tokens=0, rates=RATES)


def test_a_price_that_the_next_start_would_bring_back_is_not_deleted(seeded, staff, browser):
    price = ModelPrice.objects.get(model="claude-opus-5")
    with pytest.raises(Conflict):
        delete_price(actor=staff, price=price)

    assert browser.post(at("modelprice", "delete", price.pk), {"post": "yes"}).status_code == 403
    assert ModelPrice.objects.filter(pk=price.pk).exists()


# --- environments ---------------------------------------------------------------------------------


def test_staff_add_change_and_archive_an_environment(db, browser, acme):
    values = {
        "name": "House",
        "description": "Ours.",
        "organisation": str(acme.pk),
        "upload_limit": "5",
    }
    add = reverse("admin:agents_environment_add")
    assert browser.post(add, values).status_code == 302
    row = Environment.objects.get(name="House")
    assert (row.organisation, row.upload_limit, row.archived_at) == (acme, 5, None)

    change = at("environment", "change", row.pk)
    assert browser.post(change, {**values, "name": "Home", "archived": "on"}).status_code == 302
    row.refresh_from_db()
    assert (row.name, row.archived_at is None) == ("Home", False)
    assert browser.post(change, {**values, "name": "Home"}).status_code == 302
    row.refresh_from_db()
    assert row.archived_at is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "  "), ("upload_limit", 0), ("upload_limit", 1024**3 + 1), ("name", "x" * 101)],
)
def test_an_impossible_environment_is_refused(field, value, staff, environment):
    given = {"name": "A", "description": "", "upload_limit": 1024**3, field: value}
    with pytest.raises(Invalid) as refusal:
        change_environment(actor=staff, environment=environment, **given)

    assert refusal.value.field == field


def test_environments_are_not_deleted(environment, browser):
    delete = at("environment", "delete", environment.pk)
    assert browser.post(delete, {"post": "yes"}).status_code == 403


# --- permission -----------------------------------------------------------------------------------


@pytest.mark.parametrize("person", ["alice", "mallory", "clerk"])
def test_nobody_without_the_permission_changes_any_of_it(person, seeded, hint, request):
    actor = (
        make_user("clerk", is_staff=True) if person == "clerk" else request.getfixturevalue(person)
    )
    price, environment = ModelPrice.objects.all()[0], Environment.objects.all()[0]
    for attempt in (
        lambda: change_prompt(actor=actor, prompt=hint, text="{steps_left}"),
        lambda: reset_prompt(actor=actor, prompt=hint),
        lambda: change_price(actor=actor, price=price, rates=RATES),
        lambda: delete_price(actor=actor, price=price),
        lambda: create_price(
            actor=actor, provider="demo", model="d", from_prompt_tokens=0, rates=RATES
        ),
        lambda: create_environment(
            actor=actor, organisation=None, name="X", description="", upload_limit=1
        ),
        lambda: change_environment(
            actor=actor, environment=environment, name="X", description="", upload_limit=1
        ),
    ):
        with pytest.raises(Forbidden):
            attempt()
