"""docker-compose.yml as what it runs: the argv and the environment of each service, with what they would be in a container."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>\w+):-(?P<default>[^}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRun:
    """What a container runs: ``argv`` is the entrypoint and the command, ``health`` the argv of the health check."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    health: tuple[str, ...]

    def at(self, places: Mapping[str, str]) -> "ContainerRun":
        """The same where the texts that are keys of ``places``, such as addresses, stand for others."""

        def placed(text: str) -> str:
            for documented, real in places.items():
                text = text.replace(documented, real)
            return text

        return ContainerRun(
            argv=tuple(map(placed, self.argv)),
            environment={name: placed(value) for name, value in self.environment.items()},
            health=tuple(map(placed, self.health)),
        )


def services(file: Path) -> dict[str, dict[str, Any]]:
    """The services by their names, as the file has them."""
    return dict(yaml.safe_load(file.read_text())["services"])


def container_run(file: Path, service: str) -> ContainerRun:
    """What a service runs where no variable of Compose is set."""
    one = services(file)[service]
    kind, *words = one["healthcheck"]["test"]
    return ContainerRun(
        argv=tuple(map(_interpolated, [*one.get("entrypoint", ()), *one["command"]])),
        environment={name: _interpolated(str(value)) for name, value in one["environment"].items()},
        health=tuple(map(_interpolated, {"CMD": words, "CMD-SHELL": ["/bin/sh", "-c", *words]}[kind])),
    )


def _interpolated(text: str) -> str:
    return _VARIABLE.sub(lambda match: "$" if match["name"] is None else match["default"], text)
