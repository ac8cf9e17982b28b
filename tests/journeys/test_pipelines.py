"""An owner saves the shipped pipeline, starts it by its scripts, sees it drawn and is asked herself."""

from __future__ import annotations

from playwright.sync_api import expect

from providers.scripted import Hold, reply, say
from tests.journeys.conftest import Visit
from tests.journeys.forms import on_screen
from tests.journeys.looks import looks_right
from tests.journeys.model_service import ModelService

ASKING = """\
name: {name}
agent: General work
steps:
- {{name: draft, prompt: "Draft {{{{question}}}}"}}
- {{name: release, approval: "May this go out? {{{{draft}}}}"}}
- {{name: send, prompt: "Send {{{{draft}}}}"}}
"""


@on_screen(phone=True)
def test_a_pipeline_is_saved_started_drawn_and_decided(
    visit: Visit, service: ModelService, phone: bool
):
    alice = visit(phone=phone)
    page = alice.page
    page.goto("/pipelines/?example=reviewed-answer")
    text = page.get_by_label("Pipeline as YAML")
    name = "Reviewed on a phone" if phone else "Reviewed on a desk"
    text.fill(text.input_value().replace("Reviewed answer", name))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    looks_right(alice, "pipelines-definition")
    page.get_by_label("Question").fill("How high are two towers?")
    page.get_by_label("Play the steps' scripts, without a model").check()
    page.get_by_role("button", name="Start").click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("Two of them are 660 m high")
    expect(page.locator("#run-title").get_by_role("status")).to_have_text("done")
    looks_right(alice, "pipelines-done")

    page.goto("/pipelines/")
    page.get_by_label("Pipeline as YAML").fill(ASKING.format(name=f"{name}, asking"))
    page.get_by_role("button", name="Save").click()
    hold = Hold()
    service.expect("Draft a letter", reply(say("A dr", hold, "aft.")))
    service.expect("Send A draft.", reply("It is sent."))
    page.get_by_label("Question").fill("a letter")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".pipeline-node.running")).to_contain_text("draft")
    expect(page.locator(".pipeline-arriving")).to_have_text("A dr")
    looks_right(alice, "pipelines-live")
    hold.release.set()
    expect(page.get_by_text("May this go out? A draft.")).to_be_visible()
    looks_right(alice, "pipelines-asking")
    page.get_by_text("What it said").click()
    for _each in range(2):
        with page.expect_response(lambda response: "/now/" in response.url):
            pass
    expect(page.locator(".pipeline-steps details[open]")).to_contain_text("A draft.")
    page.get_by_label("Why, or what is to change").fill("Fine")
    page.get_by_role("button", name="Go on").click()
    expect(answer).to_contain_text("It is sent.")

    page.goto("/comparisons/")
    page.get_by_label("Question").fill("How high are two towers?")
    page.get_by_role("checkbox", name=name, exact=True).check()
    page.get_by_role("checkbox", name="General work", exact=True).check()
    page.get_by_label("Have the pipelines play their scripts, without a model").check()
    looks_right(alice, "pipelines-compare")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("Winner")).to_be_visible()
    expect(page.get_by_role("row", name=name)).to_contain_text("done")
    looks_right(alice, "pipelines-compared")
