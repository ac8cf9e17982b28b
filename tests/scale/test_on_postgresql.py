"""What is promised on SQLite holds on PostgreSQL, with Redis between sockets and runs: the same tests, as far
as the database decides. `ON_POSTGRESQL=all` has every test of their files run there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentsite.environment import BASE_DIR

WHOLE = os.environ.get("ON_POSTGRESQL") == "all"
"""Every test of these files, and not only those in which PostgreSQL has a part of its own."""

SIDE_BY_SIDE: dict[str, tuple[str, ...]] = {
    "tests/teams_app/test_tasks.py": (
        "whatever_ends_a_blocker_frees_what_waited_whichever_side_said_so",
        "no_task_waits_for_itself_directly_or_by_way_of_others",
        "numbers_are_not_given_again_and_each_board_counts_for_itself",
        "a_taken_task_is_not_taken_again_and_one_given_back_is",
        "the_same_key_makes_one_task",
        "a_board_is_full_at_its_limit",
        "metadata_is_merged_and_a_null_takes_away",
        "an_agent_plans_its_work_on_the_board_and_takes_what_is_free",
    ),
    "tests/conversations/test_journal.py": (),
    "tests/conversations/test_runs.py": (
        "a_posted_message_is_answered_and_everything_is_in_the_log",
        "the_same_key_twice_stores_one_message",
        "only_so_many_messages_may_wait",
        "stop_ends_a_streaming_answer_with_one_rest",
        "a_waiting_message_can_be_withdrawn_once_and_not_after_it_was_taken",
        "an_asking_call_waits_without_a_run_and_goes_on_after_the_answer",
        "two_wakes_at_once_make_one_run",
        "of_many_claimants_exactly_one_wins",
        "a_claim_holds_for_its_lease_by_the_databases_clock",
        "a_run_that_lost_its_lease_can_write_nothing",
        "the_sweep_finds_a_conversation_whose_worker_died",
        "text_checkpointed_by_a_dead_worker_becomes_an_interrupted_message",
        "each_model_request_has_one_usage_row_with_its_price",
        "tracing_keeps_request_and_response_in_pairs_and_only_when_it_is_on",
        "a_failed_request_is_tried_again_when_its_time_has_come",
        "a_message_posted_while_a_request_is_put_off_waits_and_nothing_spins",
        "an_agents_wake_comes_due_once_and_begins_a_turn",
        "a_waiting_message_can_be_edited_and_steered",
        "a_wake_that_comes_due_between_two_looks_is_not_lost",
        "a_wake_that_came_due_outlives_the_process_that_told_the_log",
        "slow_tools_hold_up_no_write_to_the_log",
    ),
    "tests/chat/test_socket_live.py": (
        "a_socket_begins_with_a_snapshot_and_everything_after_the_number",
        "an_answer_streams_and_ends_as_a_unit",
        "a_socket_that_comes_in_mid_answer_gets_the_text_from_its_first_character",
        "what_was_streamed_equals_what_a_reload_draws",
        "asking_again_brings_a_snapshot",
        "a_nudge_that_was_lost_heals_itself",
        "many_events_at_once_are_drawn_by_few_reads",
        "a_stop_in_mid_answer_ends_with_exactly_one_rest",
        "a_message_while_running_waits_visibly_and_is_answered",
        "interrupt_now_ends_the_answer_and_goes_first",
        "the_same_key_again_is_one_message",
        "a_steered_message_joins_the_answer_under_way",
        "a_switch_turned_in_one_tab_is_turned_in_the_other",
        "closing_the_socket_cancels_nothing",
        "whoever_loses_her_membership_is_shown_out",
        "whoever_signs_out_is_shown_out",
        "a_command_after_losing_membership_does_nothing",
        "another_door_posts_and_the_socket_shows_it",
    ),
    "tests/conversations/test_search.py": (),
    "tests/keeping/test_finding.py": (
        "a_phrase_stands_as_it_is_written",
        "filters_narrow_and_go_together",
        "a_result_shows_where_and_opens_there",
        "results_are_paged_without_gap_or_repetition",
        "pins_are_a_persons_own_and_pinning_again_moves_nothing",
        "the_sidebar_shows_pinned_ones_first",
    ),
    "tests/memory/test_remembering.py": (
        "the_same_is_kept_once_by_its_key_and_by_its_words",
        "what_is_different_now_ends_what_was_true_before",
        "identifiers_and_phrases_are_found_as_they_are_written",
        "a_word_is_found_in_any_script_case_and_form",
        "nothing_that_is_typed_is_query_syntax",
        "how_many_others_know_a_word_changes_no_order",
        "mallory_finds_nothing_and_bob_nothing_from_the_moment_he_leaves",
        "what_is_forgotten_is_gone_everywhere",
        "of_a_time_before_it_was_so_nothing_is_told",
        "what_was_known_long_ago_is_found_behind_many_newer_that_say_the_same",
        "a_word_that_most_memories_have_finds_together_with_another",
        "the_index_has_the_terms_that_a_memory_has_now",
        "what_is_outside_of_the_stores_that_are_asked_for_is_not_found",
    ),
    "tests/workers/test_leavers.py": (
        "what_was_offered_of_who_left_is_not_taken",
        "a_worker_loses_the_work_of_who_left",
    ),
    "tests/workers/test_revoked_keys.py": (
        "a_worker_that_waits_while_its_key_is_revoked_gets_no_work",
        "work_that_is_offered_right_when_the_key_is_revoked_is_nobodys",
        "a_lease_ends_with_its_key",
    ),
    "tests/workers/test_work.py": (
        "a_call_is_handed_out_taken_answered_and_the_turn_goes_on",
        "work_that_comes_while_a_worker_leaves_waits_for_the_next_one",
        "an_item_is_offered_to_one_worker_only",
        "of_many_workers_that_ask_at_once_one_gets_the_item",
        "what_was_offered_and_not_acknowledged_is_offered_again_under_a_new_id",
        "a_heartbeat_must_name_the_one_before",
        "a_lost_lease_is_not_prolonged_and_its_work_waits_for_another",
        "a_lease_runs_out_although_nobody_asks_for_work",
        "a_command_lost_with_its_worker_is_repeated_only_if_a_person_says_so",
        "the_same_result_sent_again_is_the_stored_one",
        "a_revoked_key_takes_its_work_along",
        "a_deleted_conversation_leaves_no_work",
        "names_of_polling_workers_are_kept_up_to_a_bound",
    ),
}
"""By file the tests whose statements, locks or order PostgreSQL has its own way with; no names: all.
What else these files say is decided in Python."""
MONEY_AND_ANSWERS: dict[str, tuple[str, ...]] = {
    "tests/spending/test_budgets.py": (
        "twenty_parallel_runs_never_pass_their_budget_and_raising_it_resumes_them_all",
        "the_first_call_of_a_month_that_is_refused_goes_on_when_the_budget_is_raised",
        "a_call_that_waits_for_others_goes_on_when_they_leave_room",
        "a_call_that_was_lost_with_its_process_is_settled_by_the_next_run",
        "a_call_reserves_its_worst_case_in_every_budget_and_settles_what_it_used",
        "a_call_may_take_exactly_what_is_left_and_not_one_token_more",
        "a_refusal_by_one_budget_reserves_nothing_in_the_others",
        "an_end_that_is_reported_twice_is_counted_once",
        "a_new_day_begins_with_the_whole_allowance_and_late_calls_count_in_their_own",
        "the_days_of_a_budget_are_those_of_the_sites_time_zone",
        "a_budget_made_in_mid_period_counts_what_was_spent_before",
        "deleting_a_conversation_whose_call_was_lost_hides_no_spending",
        "organisations_and_people_can_go_while_a_call_is_lost",
        "without_budgets_a_call_costs_one_look_at_each_end",
        "threads_that_race_at_the_turn_of_a_day_keep_every_promise",
        "money_is_reserved_at_the_dearest_rate_and_settled_at_the_true_one",
    ),
    "tests/spending/test_budgets_rates.py": (
        "a_person_may_send_as_many_messages_a_minute_as_the_limit_and_not_one_more",
        "there_is_room_again_when_the_oldest_of_them_is_a_minute_old",
        "many_that_are_sent_at_once_are_no_more_than_the_limit",
        "counting_costs_one_statement_and_one_that_locks_and_nothing_without_a_limit",
        "the_oldest_in_the_line_is_served_first_and_a_newcomer_does_not_push_in",
        "many_at_once_never_take_more_seats_than_there_are_and_all_are_served",
        "the_sweep_names_only_those_for_whom_there_is_a_seat",
    ),
    "tests/approvals/test_approval_property.py": (),
    "tests/approvals/test_approval_kills.py": (),
    "tests/approvals/test_approvals.py": ("of_answers_at_the_same_moment_exactly_one_counts",),
    "tests/conversations/test_forgetting.py": (
        "a_brief_that_read_the_words_right_before_they_were_taken_out_keeps_nothing",
    ),
    "tests/titles/test_titles.py": (
        "of_many_that_rest_at_once_no_more_are_named_than_there_is_room_for",
        "a_call_of_a_process_that_died_is_counted_once_and_not_made_again",
        "deleting_a_conversation_whose_title_is_asked_for_hides_no_spending",
        "organisations_and_people_can_go_while_a_title_is_asked_for",
        "two_processes_that_hear_of_the_same_rest_ask_once",
    ),
    "tests/v1/test_v1_threads.py": ("threads_are_paged", "threads_are_filtered_by_status"),
    "tests/jobs/test_prepared.py": (),
}
"""In a process of their own: they turn the site's time zone, and with it connections, round."""
NARROW = ("tests/approvals/test_approvals.py", "tests/conversations/test_forgetting.py")
"""Of which no more than what is named has ever been for PostgreSQL."""
UNDER_LOAD = [
    f"tests/scale/inside/{name}.py" for name in ("database", "claims", "locks", "postings")
]
"""Beside what runs: half of what each of these took in a process of its own was to begin."""


def run_tests(postgresql, template, redis, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "TEST_DATABASE_URL": postgresql.url,
        "TEST_DATABASE_TEMPLATE": template,
        "TEST_REDIS_URL": f"{redis.url}/3",
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        env=environment,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def chosen(files: dict[str, tuple[str, ...]]) -> list[str]:
    """What pytest is told; a file that is not there has gone with its app."""
    return [
        place
        for file, names in files.items()
        if (BASE_DIR / file).exists()
        for place in (
            [file]
            if not names or (WHOLE and file not in NARROW)
            else [f"{file}::test_{name}" for name in names]
        )
    ]


@pytest.mark.parametrize(
    "modules",
    [chosen(SIDE_BY_SIDE) + UNDER_LOAD, chosen(MONEY_AND_ANSWERS)],
    ids=["runs", "money"],
)
def test_runs_sockets_and_search_keep_their_promises(postgresql, migrated, redis, modules):
    done = run_tests(postgresql, migrated, redis, *modules)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    assert "skipped" not in done.stdout
