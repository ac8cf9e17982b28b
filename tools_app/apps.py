from django.apps import AppConfig


class ToolsAppConfig(AppConfig):
    name = "tools_app"

    def ready(self) -> None:
        from tools_app import catalogue  # noqa: PLC0415 - needs the app registry

        catalogue.all_tools()
