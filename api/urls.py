"""The addresses of the REST protocol of `/api`. None ends in a slash."""

from __future__ import annotations

from django.urls import include, path

from wire import converters  # noqa: F401 - registers `id` and `anything`

from . import (
    agents,
    approvals,
    briefs,
    budgets,
    canaries,
    catalogue,
    chat,
    collections,
    comparisons,
    conversations,
    decay,
    evals,
    files,
    folders,
    mcpregistry,
    mcpservers,
    memories,
    missing,
    pinned,
    pipelines,
    prompts,
    promptsources,
    registry,
    schedules,
    shares,
    skills,
    skillsources,
    skilltrials,
    tasks,
    teamrequests,
    teams,
    webhooks,
    who,
    workqueues,
)

app_name = "api"

ONE_WEBHOOK = "webhooks/<id:uid>"
ONE_MCP_SERVER = "mcp-servers/<id:uid>"
ONE_SKILL = "skills/<id:uid>"
ONE_PIPELINE_RUN = "pipelines/runs/<id:uid>"
ONE_COMPARISON = "comparisons/<id:uid>"
ONE_PROMPT = "prompts/<id:uid>"
ONE_PROMPT_SOURCE = "prompts/sources/<id:uid>"
ONE_SOURCE = "skills/sources/<id:uid>"
ONE_AGENT = "agents/<id:uid>"
ONE_COLLECTION = "collections/<id:uid>"
ONE_MEMORY = "memories/<id:uid>"
ONE_DECAY = "memories/stores/<id:uid>/decay"
ONE_TASK = "tasks/<id:task_uid>"
TEAM_REQUESTS = "conversations/<id:uid>/team-requests"
ONE_TEAMMATE = "conversations/<id:uid>/team/<id:member>"
ONE_SCHEDULE = "schedules/<id:uid>"
ONE_ITEM = f"{ONE_SCHEDULE}/items/<id:item_uid>"
ONE_DELIVERY = f"{ONE_WEBHOOK}/deliveries/<id:event_uid>"

of_registry = [
    path("servers", registry.ListedServersView.as_view(), name="registry"),
    path(
        "servers/<path:name>/versions",
        registry.ListedVersionsView.as_view(),
        name="registry-versions",
    ),
    path(
        "servers/<path:name>/versions/<str:version>",
        registry.ListedVersionView.as_view(),
        name="registry-version",
    ),
    path("<anything:rest>", missing.MissingView.as_view(), name="registry-missing"),
]

below_api = [
    path("chat", chat.ChatView.as_view(), name="chat"),
    path("chat/<id:uid>/ticket", chat.TicketView.as_view(), name="ticket"),
    path("conversations", conversations.ConversationListView.as_view(), name="conversations"),
    path("conversations/<id:uid>", conversations.ConversationView.as_view(), name="conversation"),
    path(
        "conversations/<id:uid>/background",
        conversations.BackgroundView.as_view(),
        name="background",
    ),
    path("conversations/<id:uid>/branch", conversations.BranchView.as_view(), name="branch"),
    path("conversations/<id:uid>/context", conversations.ContextView.as_view(), name="context"),
    path("conversations/<id:uid>/pinned", pinned.PinnedView.as_view(), name="pinned"),
    path("conversations/<id:uid>/fork", conversations.ForkView.as_view(), name="fork"),
    path("conversations/<id:uid>/seen", conversations.SeenView.as_view(), name="seen"),
    path("conversations/<id:uid>/budgets", budgets.BudgetsView.as_view(), name="budgets"),
    path("conversations/<id:uid>/folder", folders.PlaceView.as_view(), name="conversation-folder"),
    path("collections", collections.CollectionsView.as_view(), name="collections"),
    path(ONE_COLLECTION, collections.OneCollectionView.as_view(), name="collection"),
    path(f"{ONE_COLLECTION}/search", collections.SearchView.as_view(), name="collection-search"),
    path(
        f"{ONE_COLLECTION}/documents",
        collections.DocumentsView.as_view(),
        name="collection-documents",
    ),
    path(
        f"{ONE_COLLECTION}/documents/<id:document>",
        collections.OneDocumentView.as_view(),
        name="collection-document",
    ),
    path(
        f"{ONE_COLLECTION}/documents/<id:document>/again",
        collections.AgainView.as_view(),
        name="collection-document-again",
    ),
    path("memories", memories.MemoriesView.as_view(), name="memories"),
    path("memories/export", memories.MemoryExportView.as_view(), name="memories-export"),
    path("memories/forget", memories.ForgetMemoriesView.as_view(), name="memories-forget"),
    path("memories/search", memories.MemorySearchView.as_view(), name="memories-search"),
    path("memories/stores", memories.MemoryStoresView.as_view(), name="memories-stores"),
    path(ONE_DECAY, decay.DecayView.as_view(), name="memories-decay"),
    path(f"{ONE_DECAY}/begin", decay.BeginDecayView.as_view(), name="memories-decay-begin"),
    path("memories/switch", memories.MemorySwitchView.as_view(), name="memories-switch"),
    path(ONE_MEMORY, memories.OneMemoryView.as_view(), name="memory"),
    path(f"{ONE_MEMORY}/confirm", memories.ConfirmMemoryView.as_view(), name="memory-confirm"),
    path("conversations/<id:uid>/recalled", memories.RecalledView.as_view(), name="recalled"),
    path("mcp-registry", mcpregistry.RegistryView.as_view(), name="mcp-registry"),
    path("mcp-registry/server", mcpregistry.RegisteredView.as_view(), name="mcp-registry-server"),
    path("mcp-servers", mcpservers.McpServersView.as_view(), name="mcp-servers"),
    path(ONE_MCP_SERVER, mcpservers.OneMcpServerView.as_view(), name="mcp-server"),
    path(f"{ONE_MCP_SERVER}/look", mcpservers.LookView.as_view(), name="mcp-server-look"),
    path(f"{ONE_MCP_SERVER}/release", mcpservers.ReleaseView.as_view(), name="mcp-server-release"),
    path("briefs", briefs.BriefsView.as_view(), name="briefs"),
    path("briefs/now", briefs.BriefNowView.as_view(), name="brief-now"),
    path("briefs/<id:uid>", briefs.OneBriefView.as_view(), name="brief"),
    path("timers", briefs.TimersView.as_view(), name="timers"),
    path("schedules", schedules.SchedulesView.as_view(), name="schedules"),
    path(ONE_SCHEDULE, schedules.OneScheduleView.as_view(), name="schedule"),
    path(f"{ONE_SCHEDULE}/pause", schedules.PauseView.as_view(), name="schedule-pause"),
    path(f"{ONE_SCHEDULE}/resume", schedules.ResumeView.as_view(), name="schedule-resume"),
    path(f"{ONE_SCHEDULE}/archive", schedules.ArchiveView.as_view(), name="schedule-archive"),
    path(f"{ONE_SCHEDULE}/run", schedules.RunView.as_view(), name="schedule-run"),
    path(f"{ONE_SCHEDULE}/preflight", schedules.PreflightView.as_view(), name="schedule-preflight"),
    path(f"{ONE_SCHEDULE}/runs", schedules.RunsView.as_view(), name="schedule-runs"),
    path(f"{ONE_SCHEDULE}/address", schedules.NewAddressView.as_view(), name="schedule-address"),
    path(
        f"{ONE_SCHEDULE}/results/<id:delivery_uid>/retry",
        schedules.ResultView.as_view(),
        name="schedule-result-retry",
    ),
    path(f"{ONE_SCHEDULE}/items", workqueues.ItemsView.as_view(), name="schedule-items"),
    path(ONE_ITEM, workqueues.OneItemView.as_view(), name="schedule-item"),
    path(f"{ONE_ITEM}/retry", workqueues.RetryItemView.as_view(), name="schedule-item-retry"),
    path("folders", folders.FoldersView.as_view(), name="folders"),
    path("folders/<id:uid>", folders.OneFolderView.as_view(), name="folder"),
    path("conversations/<id:uid>/shares", shares.SharesView.as_view(), name="shares"),
    path(
        "conversations/<id:uid>/shares/<id:share>",
        shares.OneShareView.as_view(),
        name="share",
    ),
    path("approvals", approvals.ApprovalsView.as_view(), name="approvals"),
    path("approvals/<id:uid>/assign", approvals.AssignView.as_view(), name="approval-assign"),
    path("tools", catalogue.ToolsView.as_view(), name="tools"),
    path("evals/suites", evals.SuitesView.as_view(), name="suites"),
    path("evals/suites/<id:uid>", evals.OneSuiteView.as_view(), name="suite"),
    path("evals/suites/<id:uid>/runs", evals.EvaluationsView.as_view(), name="suite-runs"),
    path("evals/runs/<id:uid>", evals.OneEvaluationView.as_view(), name="evaluation"),
    path(
        "evals/runs/<id:uid>/stop",
        evals.StopEvaluationView.as_view(),
        name="evaluation-stop",
    ),
    path("evals/runs/<id:uid>/grades", evals.GradesView.as_view(), name="evaluation-grades"),
    path(
        "evals/runs/<id:uid>/comparison",
        evals.ComparisonView.as_view(),
        name="evaluation-comparison",
    ),
    path("pipelines", pipelines.PipelinesView.as_view(), name="pipelines"),
    path(ONE_PIPELINE_RUN, pipelines.OnePipelineRunView.as_view(), name="pipeline-run"),
    path(
        f"{ONE_PIPELINE_RUN}/stop",
        pipelines.StopPipelineRunView.as_view(),
        name="pipeline-run-stop",
    ),
    path(
        f"{ONE_PIPELINE_RUN}/continue",
        pipelines.ContinuePipelineRunView.as_view(),
        name="pipeline-run-continue",
    ),
    path(
        f"{ONE_PIPELINE_RUN}/decide",
        pipelines.DecidePipelineRunView.as_view(),
        name="pipeline-run-decide",
    ),
    path("pipelines/<id:uid>", pipelines.OnePipelineView.as_view(), name="pipeline"),
    path("pipelines/<id:uid>/runs", pipelines.PipelineRunsView.as_view(), name="pipeline-runs"),
    path("comparisons", comparisons.ComparisonsView.as_view(), name="comparisons"),
    path(ONE_COMPARISON, comparisons.OneComparisonView.as_view(), name="comparison"),
    path(
        f"{ONE_COMPARISON}/stop",
        comparisons.StopComparisonView.as_view(),
        name="comparison-stop",
    ),
    path(
        f"{ONE_COMPARISON}/continue",
        comparisons.ContinueComparisonView.as_view(),
        name="comparison-continue",
    ),
    path("prompts", prompts.PromptsView.as_view(), name="prompts"),
    path("prompts/import", prompts.ImportView.as_view(), name="prompts-import"),
    path("prompts/sources", promptsources.PromptSourcesView.as_view(), name="prompt-sources"),
    path(ONE_PROMPT_SOURCE, promptsources.OnePromptSourceView.as_view(), name="prompt-source"),
    path(
        f"{ONE_PROMPT_SOURCE}/ask",
        promptsources.AskPromptSourceView.as_view(),
        name="prompt-source-ask",
    ),
    path(
        f"{ONE_PROMPT_SOURCE}/labels/<id:prompt>/<id:label>",
        promptsources.PulledPromptView.as_view(),
        name="prompt-source-label",
    ),
    path(ONE_PROMPT, prompts.OnePromptView.as_view(), name="prompt"),
    path(f"{ONE_PROMPT}/export", prompts.ExportView.as_view(), name="prompt-export"),
    path(f"{ONE_PROMPT}/versions", prompts.VersionsView.as_view(), name="prompt-versions"),
    path(
        f"{ONE_PROMPT}/versions/<int:number>",
        prompts.OneVersionView.as_view(),
        name="prompt-version",
    ),
    path(
        f"{ONE_PROMPT}/versions/<int:number>/preview",
        prompts.PreviewView.as_view(),
        name="prompt-preview",
    ),
    path(f"{ONE_PROMPT}/labels/<id:label>", prompts.LabelView.as_view(), name="prompt-label"),
    path(
        "conversations/<id:uid>/prompts",
        prompts.ConversationPromptsView.as_view(),
        name="conversation-prompts",
    ),
    path("skills", skills.SkillsView.as_view(), name="skills"),
    path("skills/sources", skillsources.SkillSourcesView.as_view(), name="skill-sources"),
    path(ONE_SOURCE, skillsources.OneSkillSourceView.as_view(), name="skill-source"),
    path(
        f"{ONE_SOURCE}/look", skillsources.SkillSourceLookView.as_view(), name="skill-source-look"
    ),
    path(
        f"{ONE_SOURCE}/install",
        skillsources.SkillInstallationView.as_view(),
        name="skill-source-install",
    ),
    path(ONE_SKILL, skills.OneSkillView.as_view(), name="skill"),
    path(f"{ONE_SKILL}/stop", skills.SkillStopView.as_view(), name="skill-stop"),
    path(f"{ONE_SKILL}/versions", skills.SkillVersionsView.as_view(), name="skill-versions"),
    path(
        f"{ONE_SKILL}/versions/<version:label>",
        skills.OneSkillVersionView.as_view(),
        name="skill-version",
    ),
    path(
        f"{ONE_SKILL}/versions/<version:label>/decision",
        skills.SkillDecisionView.as_view(),
        name="skill-decision",
    ),
    path(
        f"{ONE_SKILL}/versions/<version:label>/packages",
        skills.SkillPackagesView.as_view(),
        name="skill-packages",
    ),
    path(
        f"{ONE_SKILL}/versions/<version:label>/trials",
        skilltrials.SkillTrialsView.as_view(),
        name="skill-trials",
    ),
    path(
        "conversations/<id:uid>/skills",
        skills.ConversationSkillsView.as_view(),
        name="conversation-skills",
    ),
    path("conversations/<id:uid>/team", teams.RosterView.as_view(), name="team"),
    path(ONE_TEAMMATE, teams.OneTeammateView.as_view(), name="teammate"),
    path(f"{ONE_TEAMMATE}/messages", teams.TeamMessagesView.as_view(), name="team-messages"),
    path(TEAM_REQUESTS, teamrequests.RequestsView.as_view(), name="team-requests"),
    path(
        f"{TEAM_REQUESTS}/<id:asked>/answer",
        teamrequests.AnswerView.as_view(),
        name="team-request-answer",
    ),
    path("tasks", tasks.TasksView.as_view(), name="tasks"),
    path(ONE_TASK, tasks.OneTaskView.as_view(), name="task"),
    path(f"{ONE_TASK}/claim", tasks.TaskClaimView.as_view(), name="task-claim"),
    path(f"{ONE_TASK}/links", tasks.TaskLinksView.as_view(), name="task-links"),
    path(f"{ONE_TASK}/links/<int:link>", tasks.OneTaskLinkView.as_view(), name="task-link"),
    path("presets", catalogue.PresetsView.as_view(), name="presets"),
    path("agents", agents.AgentsView.as_view(), name="agents"),
    path(ONE_AGENT, agents.OneAgentView.as_view(), name="agent"),
    path(f"{ONE_AGENT}/duplicate", agents.CopyView.as_view(), name="agent-duplicate"),
    path(f"{ONE_AGENT}/versions", agents.VersionsView.as_view(), name="agent-versions"),
    path(f"{ONE_AGENT}/restore", agents.RestoreView.as_view(), name="agent-restore"),
    path(f"{ONE_AGENT}/canary", canaries.CanaryOfAgentView.as_view(), name="agent-canary"),
    path(
        f"{ONE_AGENT}/canary/promote",
        canaries.PromoteCanaryView.as_view(),
        name="agent-canary-promote",
    ),
    path(f"{ONE_AGENT}/review", agents.ReviewOfView.as_view(), name="agent-review"),
    path("agent-reviews", agents.ReviewsView.as_view(), name="agent-reviews"),
    path("agent-reviews/<id:uid>", agents.OneReviewView.as_view(), name="agent-review-decide"),
    path("defaults", catalogue.DefaultsView.as_view(), name="defaults"),
    path("files/<id:uid>/<anything:path>", files.DownloadView.as_view(), name="file"),
    path("workspace/upload", files.UploadView.as_view(), name="upload"),
    path("workspace/files", files.WorkspaceFilesView.as_view(), name="workspace-files"),
    path(
        "workspace/file/<anything:path>",
        files.WorkspaceFileView.as_view(),
        name="workspace-file",
    ),
    path("webhooks", webhooks.WebhooksView.as_view(), name="webhooks"),
    path(ONE_WEBHOOK, webhooks.OneWebhookView.as_view(), name="webhook"),
    path(f"{ONE_WEBHOOK}/rotate", webhooks.RotateView.as_view(), name="webhook-rotate"),
    path(f"{ONE_WEBHOOK}/test", webhooks.TestView.as_view(), name="webhook-test"),
    path(
        f"{ONE_WEBHOOK}/redeliver",
        webhooks.RedeliverDeadView.as_view(),
        name="webhook-redeliver-dead",
    ),
    path(
        f"{ONE_WEBHOOK}/deliveries",
        webhooks.DeliveriesView.as_view(),
        name="webhook-deliveries",
    ),
    path(ONE_DELIVERY, webhooks.OneDeliveryView.as_view(), name="webhook-delivery"),
    path(f"{ONE_DELIVERY}/redeliver", webhooks.RedeliverView.as_view(), name="webhook-redeliver"),
    path("auth/config", who.AuthConfigView.as_view(), name="auth-config"),
    path("auth/me", who.MeView.as_view(), name="auth-me"),
    path("<anything:rest>", missing.MissingView.as_view(), name="missing"),
]

urlpatterns = [
    path("health", who.HealthView.as_view(), name="health"),
    # Each under its beginning, so that whoever asks for a page does not try them one by one.
    path("api/", include(below_api)),
    path("v0.1/", include(of_registry)),
]
