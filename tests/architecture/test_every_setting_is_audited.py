"""Whatever somebody does to what others rely on stands in the audit log.

Every public action that is done by an actor tells the log, or stands below under the reason why it need
not. A new one is in neither place, and is asked about here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .sources import PRODUCT, parsed

TELLING = re.compile(r"emit|(audit\.)?about_\w+")
"""What adds an entry: `accounts.happenings.emit`, and the functions called `about_…` of the subjects."""

NEED_NOT = {
    "It asks or judges, and changes nothing.": """
        accounts/people.may_change
        agents/agents.lock_agent
        agents/agents.require_editor
        agents/agents.require_nobodys_own
        agents/own.lock_own_agent
        agents/reviews.why_not
        approvals/rules.may_revoke
        teams_app/mail.held_team
        approvals/simulation.simulate_call
        mcpservers/servers.lock_server
        mcpservers/registry.read_registered
        mcpservers/registry.search_registry
        mcpservers/attaching.find_prompt
        conversations/answering.checked
        conversations/attachments.attachments_of
        conversations/attachments.check_attachments
        conversations/children.answer_of
        conversations/conversations.find_agent
        conversations/conversations.find_environment
        conversations/links.require_reader
        programs/outputs.find_output
        programs/outputs.open_output
        programs/outputs.outputs_of
        conversations/own.copyable_conversation
        conversations/own.decidable_conversation
        conversations/own.own_conversation
        conversations/own.own_even_ended
        conversations/own.readable_conversation
        conversations/own.require_own
        conversations/own.may_read
        conversations/own.require_readable
        conversations/own.require_writable
        conversations/own.writable_conversation
        programs/sending.check_inputs
        conversations/sharing.people_to_share_with
        conversations/sharing.shares_of
        conversations/stored_files.open_file
        evals/cases.case_of
        evals/releases.held_version
        evals/releases.passed
        spending/budgets.may_change
        vaults/vaults.lock_vault
    """,
    "The points say it, with who gave them, and decide nothing.": """
        evals/grades.grade_trial
    """,
    "The versions of the memory say it, with who did it.": """
        memory/memories.change_memory
        memory/memories.create_memory
        memory/memories.delete_memory
        memory/remembering.confirm_memory
        memory/remembering.correct_memory
        memory/remembering.mark_memory
        memory/remembering.remember
        memory/suggesting.suggest_change
    """,
    "The log of the conversation says it, with who did it.": """
        conversations/answers.answer_custom_tool
        mcpservers/questions.answer_connected
        mcpservers/questions.answer_server
        conversations/answers.answer_questions
        conversations/answers.refuse_custom_tool
        conversations/answers.set_questions_aside
        conversations/answers.skip_questions
        conversations/attachments.attached
        subagents/subagents.stop_subagent
        subagents/subagents.stop_subagents
        conversations/background.cancel_all_background
        conversations/background.cancel_background
        conversations/branching.edit_and_resend
        conversations/compacting.request_compaction
        conversations/branching.go_elsewhere
        conversations/branching.regenerate
        conversations/branching.rewind
        conversations/branching.switch_branch
        conversations/forking.fork_conversation
        programs/sessions.fork_session
        conversations/reverting.revert_files
        conversations/children.begin_child
        conversations/choosing.choose_model
        conversations/children.tell_agent
        conversations/conversations.change_tools
        conversations/direct.use_tool
        keeping/feedback.give_feedback
        keeping/pinning.pin_message
        conversations/messages.edit_message
        conversations/outcomes.define_outcome
        conversations/messages.post_message
        conversations/messages.request_retry
        conversations/messages.set_feature
        conversations/messages.steer_message
        conversations/messages.stop
        conversations/messages.withdraw_message
        conversations/queue.discard_queue
        conversations/queue.move_message
        conversations/queue.release_queue
        conversations/setaside.set_aside
        conversations/wakes.cancel_wake
        teams_app/mail.send_mail
        teams_app/mail.write_as_person
        teams_app/requests.answer_as_member
        teams_app/requests.answer_as_person
        teams_app/requests.make_request
        teams_app/teams.dismiss_teammate
        teams_app/teams.resume_teammate
        teams_app/teams.spawn_teammate
        teams_app/teams.stop_team
        teams_app/teams.stop_teammate
        teams_app/tasks.change_task
        teams_app/tasks.claim_task
        teams_app/tasks.create_task
        teams_app/tasks.delete_task
        teams_app/tasks.link_task
        teams_app/tasks.unlink_task
        pipelines/runs.stop_run
        comparisons/comparisons.stop_comparison
        deadletters/letters.replay
        deadletters/letters.replay_many
    """,
    "It is the actor's own: a conversation, a file, a wish, a name. Nobody else relies on it.": """
        brief/wishes.set_brief
        brief/wishes.stop_brief_mails
        notices/devices.add_device
        notices/devices.remove_device
        notices/devices.send_test
        notices/wishes.set_notices
        notices/wishes.stop_mails
        conversations/attachments.keep_attachment
        conversations/attachments.keep_foreign
        mcpservers/attaching.attach_prompt
        mcpservers/attaching.attach_resource
        conversations/attachments.remove_attachment
        conversations/beginning.begin_conversation
        conversations/conversations.archive_conversation
        conversations/conversations.create_conversation
        conversations/conversations.delete_conversation
        conversations/conversations.rename_conversation
        conversations/files.add_files
        conversations/lending.lend_vaults
        programs/metadata.note_conversation
        programs/outputs.delete_output
        conversations/preferences.put_away_first_steps
        conversations/preferences.set_defaults
        accounts/languages.set_language
        conversations/stored_files.delete_file
        conversations/stored_files.store_file
        conversations/tickets.issue_ticket
        programs/bringing.bring_files
        programs/resources.add_resource
        programs/resources.remove_resource
        conversations/wakes.drop_wake
        conversations/wakes.hasten_wake
        conversations/wakes.put_off_wake
        folders/files.open_folder_file
        folders/folders.create_folder
        folders/places.begin_in_folder
        folders/places.move_by_uid
        folders/places.move_conversation
        recall/attaching.attach_stores
        recall/switching.switch_memory
        learning/switching.switch_learning
        keeping/many.change_many
        keeping/many.chosen
        keeping/pins.pin_conversation
        keeping/seen.mark_as_seen
        keeping/tags.tag_conversation
        schedules/items.add_item
        schedules/items.drop_item
        schedules/items.retry_item
        schedules/results.send_again
        schedules/runs.run_now
        pipelines/runs.delete_run
        comparisons/comparisons.delete_comparison
        receipts/receipts.make_receipt
        skills_app/sources.look_at_source
        skills_app/trialruns.begin_trial_run
        skills_app/packages.install_packages
        skillsets/adding.add_skill
        vaults/vaults.change_vault
    """,
    "Its own row says it, with who did it, where those look who care: letters, deliveries.": """
        evals/releases.end_canary
        prompts/sources.ask_source
        deadletters/letters.discard
        deadletters/letters.discard_many
        webhooks/endpoints.redeliver
        webhooks/endpoints.redeliver_dead
        webhooks/endpoints.send_test
        mcpservers/connections.begin_connection
        mcpservers/servers.look_again
        mcpservers/handing.look_ahead
    """,
    "It hands on to what a subject above registered, `approvals` here, whose action tells.": """
        conversations/deciding.decide_call
    """,
    "It is a hint or a program's note, and means nothing to this server.": """
        agents/metadata.note_agent
        agents/metadata.note_environment
        programs/sessions.wake_session
        workers/items.note_work
    """,
}

Key = tuple[Path, str]


def functions() -> dict[Key, ast.FunctionDef | ast.AsyncFunctionDef]:
    return {
        (path, node.name): node
        for path in PRODUCT
        if path.parent.name == "actions"
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


FUNCTIONS = functions()


def called_by(key: Key) -> Iterator[str]:
    for node in ast.walk(FUNCTIONS[key]):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def meant_by(name: str, path: Path) -> list[Key]:
    """The actions that a call of `name` in the module at `path` may lead to."""
    if (path, name) in FUNCTIONS:
        return [(path, name)]
    module, _dot, last = name.rpartition(".")
    return [key for key in FUNCTIONS if key[1] == last and module in {"", key[0].stem}]


def tells(key: Key, on_the_way: frozenset[Key] = frozenset()) -> bool:
    """Whether it adds an entry, itself or through other actions that it calls by name."""
    if key in on_the_way:
        return False
    way = on_the_way | {key}
    return any(
        TELLING.fullmatch(name) or any(tells(other, way) for other in meant_by(name, key[0]))
        for name in called_by(key)
    )


def done_by_somebody() -> dict[str, Key]:
    found = {}
    for (path, name), node in FUNCTIONS.items():
        names = {each.arg for each in [*node.args.args, *node.args.kwonlyargs]}
        if not name.startswith("_") and "actor" in names:
            found[f"{path.parts[0]}/{path.stem}.{name}"] = (path, name)
    return found


def test_every_action_tells_the_audit_log_or_says_why_it_need_not() -> None:
    silent = {name for name, key in done_by_somebody().items() if not tells(key)}
    need_not = {name for names in NEED_NOT.values() for name in names.split()}

    assert sorted(silent - need_not) == []
    assert sorted(need_not - silent) == [], "it tells by now, or is gone"
