from django.apps import AppConfig

from jobs.garbage import loading


class AgentsiteConfig(AppConfig):
    name = "agentsite"

    def ready(self) -> None:
        from agentsite import checks  # noqa: F401, PLC0415 - registers itself once apps are ready

        loading.end()  # begun in the settings; this is the last app
