from django.apps import AppConfig


class AgentsiteConfig(AppConfig):
    name = "agentsite"

    def ready(self) -> None:
        from agentsite import checks  # noqa: F401, PLC0415 - registers itself once apps are ready
