"""Gives users the settings of an environment: ``env.get_config().set("table-storage.bucket", "4")``."""

from tablestore.environment.session.sessionsettings import Settings


class Configuration:
    """The settings of an environment, which SET and RESET change too."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def set(self, key: str, value: str) -> "Configuration":
        """Sets a key, and returns this configuration, to go on. Raises InvalidInputError for an unknown key or a wrong value."""
        self._settings.set(key, value)
        return self

    def get(self, key: str, default: str | None = None) -> str | None:
        """The value as text, else its default, else ``default``."""
        return self._settings.get(key, default)

    def reset(self, key: str | None = None) -> "Configuration":
        """Sets a key, or all, back to what the environment was created with."""
        self._settings.reset(key)
        return self

    def to_dict(self) -> dict[str, str]:
        """The values that were set, by key."""
        return self._settings.all()

    def __repr__(self) -> str:
        return f"Configuration({self.to_dict()!r})"
