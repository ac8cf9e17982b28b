"""The addresses of `/v1`, without a slash at the end, as the public API has them."""

from __future__ import annotations

from typing import Any

from django.urls import path, re_path
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema

from harness.errors import NotFound

from . import (
    agents,
    credentials,
    deploymentruns,
    deployments,
    environments,
    events,
    exports,
    files,
    memories,
    memorystores,
    memoryversions,
    modellist,
    resources,
    sessions,
    skills,
    streams,
    threads,
    vaults,
    work,
    workpoll,
    worksessions,
)
from .door import Door
from .workers import for_workers

app_name = "v1"


@extend_schema(exclude=True)
class Nothing(Door):
    """Any other address: the error of this door, not a page."""

    scopes = dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE"))

    def get(self, request: Any) -> None:
        raise NotFound(_("There is nothing at this address."))

    post = put = patch = delete = get


ONE_SESSION = "sessions/<str:uid>"
WORK = "environments/<str:uid>/work"
ONE_WORK = f"{WORK}/<str:work>"
ONE_THREAD = f"{ONE_SESSION}/threads/<str:thread>"
ONE_SKILL_VERSION = "skills/<str:uid>/versions/<str:version>"
ONE_STORE = "memory_stores/<str:uid>"
ONE_MEMORY_VERSION = f"{ONE_STORE}/memory_versions/<str:version>"
ONE_CREDENTIAL = "vaults/<str:uid>/credentials/<str:credential>"

urlpatterns = [
    path("agents", agents.Agents.as_view(), name="agents"),
    path("agents/<str:uid>", agents.OneAgent.as_view(), name="agent"),
    path("agents/<str:uid>/archive", agents.ArchiveAgent.as_view(), name="agent-archive"),
    path("agents/<str:uid>/versions", agents.AgentVersions.as_view(), name="agent-versions"),
    path("environments", environments.Environments.as_view(), name="environments"),
    path("environments/<str:uid>", environments.OneEnvironment.as_view(), name="environment"),
    path(
        "environments/<str:uid>/archive",
        environments.ArchiveEnvironment.as_view(),
        name="environment-archive",
    ),
    path(WORK, work.Work.as_view(), name="work"),
    path(f"{WORK}/poll", workpoll.poll, name="work-poll"),
    path(f"{WORK}/stats", work.WorkStats.as_view(), name="work-stats"),
    path(ONE_WORK, work.OneWork.as_view(), name="one-work"),
    path(f"{ONE_WORK}/ack", work.AckWork.as_view(), name="work-ack"),
    path(f"{ONE_WORK}/heartbeat", work.Heartbeat.as_view(), name="work-heartbeat"),
    path(f"{ONE_WORK}/stop", work.StopWork.as_view(), name="work-stop"),
    path("sessions", sessions.Sessions.as_view(), name="sessions"),
    path(
        ONE_SESSION,
        for_workers(sessions.OneSession.as_view(), worksessions.ItemSession.as_view()),
        name="session",
    ),
    path(f"{ONE_SESSION}/archive", sessions.ArchiveSession.as_view(), name="session-archive"),
    path(f"{ONE_SESSION}/export", exports.ExportSession.as_view(), name="session-export"),
    path(f"{ONE_SESSION}/wake", sessions.WakeSession.as_view(), name="session-wake"),
    path(f"{ONE_SESSION}/x_branch", sessions.Branch.as_view(), name="session-branch"),
    path(f"{ONE_SESSION}/x_fork", sessions.Fork.as_view(), name="session-fork"),
    path(f"{ONE_SESSION}/x_set_aside", sessions.SetAside.as_view(), name="session-set-aside"),
    path(
        f"{ONE_SESSION}/events",
        for_workers(events.Events.as_view(), worksessions.ItemEvents.as_view()),
        name="events",
    ),
    path(
        f"{ONE_SESSION}/events/stream",
        for_workers(streams.stream_session, worksessions.follow),
        name="stream",
    ),
    path(f"{ONE_SESSION}/resources", resources.Resources.as_view(), name="resources"),
    path(
        f"{ONE_SESSION}/resources/<str:resource>",
        resources.OneResource.as_view(),
        name="resource",
    ),
    path(f"{ONE_SESSION}/threads", threads.Threads.as_view(), name="threads"),
    path(ONE_THREAD, threads.OneThread.as_view(), name="thread"),
    path(f"{ONE_THREAD}/archive", threads.ArchiveThread.as_view(), name="thread-archive"),
    path(f"{ONE_THREAD}/events", threads.ThreadEvents.as_view(), name="thread-events"),
    path(f"{ONE_THREAD}/stream", streams.stream_thread, name="thread-stream"),
    path("deployments", deployments.Deployments.as_view(), name="deployments"),
    path("deployments/<str:uid>", deployments.OneDeployment.as_view(), name="deployment"),
    path(
        "deployments/<str:uid>/archive",
        deployments.ArchiveDeployment.as_view(),
        name="deployment-archive",
    ),
    path(
        "deployments/<str:uid>/pause",
        deployments.PauseDeployment.as_view(),
        name="deployment-pause",
    ),
    path(
        "deployments/<str:uid>/unpause",
        deployments.UnpauseDeployment.as_view(),
        name="deployment-unpause",
    ),
    path("deployments/<str:uid>/run", deployments.RunDeployment.as_view(), name="deployment-run"),
    path("deployment_runs", deploymentruns.DeploymentRuns.as_view(), name="deployment-runs"),
    path(
        "deployment_runs/<str:uid>",
        deploymentruns.OneDeploymentRun.as_view(),
        name="one-deployment-run",
    ),
    path("files", files.Files.as_view(), name="files"),
    path("files/<str:uid>", files.OneFile.as_view(), name="file"),
    path("files/<str:uid>/content", files.FileContent.as_view(), name="file-content"),
    path("vaults", vaults.Vaults.as_view(), name="vaults"),
    path("vaults/<str:uid>", vaults.OneVault.as_view(), name="vault"),
    path("vaults/<str:uid>/archive", vaults.ArchiveVault.as_view(), name="vault-archive"),
    path("vaults/<str:uid>/credentials", credentials.Credentials.as_view(), name="credentials"),
    path(ONE_CREDENTIAL, credentials.OneCredential.as_view(), name="credential"),
    path(
        f"{ONE_CREDENTIAL}/archive",
        credentials.ArchiveCredential.as_view(),
        name="credential-archive",
    ),
    path(
        f"{ONE_CREDENTIAL}/mcp_oauth_validate",
        credentials.validate_credential,
        name="credential-validate",
    ),
    path("memory_stores", memorystores.MemoryStores.as_view(), name="memory-stores"),
    path(ONE_STORE, memorystores.OneMemoryStore.as_view(), name="memory-store"),
    path(
        f"{ONE_STORE}/archive",
        memorystores.ArchiveMemoryStore.as_view(),
        name="memory-store-archive",
    ),
    path(f"{ONE_STORE}/memories", memories.Memories.as_view(), name="memories"),
    path(f"{ONE_STORE}/memories/<str:memory>", memories.OneMemory.as_view(), name="memory"),
    path(
        f"{ONE_STORE}/memory_versions",
        memoryversions.MemoryVersions.as_view(),
        name="memory-versions",
    ),
    path(ONE_MEMORY_VERSION, memoryversions.OneMemoryVersion.as_view(), name="memory-version"),
    path(
        f"{ONE_MEMORY_VERSION}/redact",
        memoryversions.RedactMemoryVersion.as_view(),
        name="memory-version-redact",
    ),
    path("skills", skills.Skills.as_view(), name="skills"),
    path("skills/<str:uid>", skills.OneSkill.as_view(), name="skill"),
    path("skills/<str:uid>/versions", skills.SkillVersions.as_view(), name="skill-versions"),
    path(ONE_SKILL_VERSION, skills.OneSkillVersion.as_view(), name="skill-version"),
    path(
        f"{ONE_SKILL_VERSION}/content",
        skills.SkillVersionContent.as_view(),
        name="skill-version-content",
    ),
    path("models", modellist.Models.as_view(), name="models"),
    path("models/<path:name>", modellist.OneModel.as_view(), name="model"),
    # Not `.*`, which ends at a line feed.
    re_path("", Nothing.as_view(), name="nothing"),
]
