"""Fetches the broker's jars from Maven, pinned to one version and to the SHA-256 of every jar.

    <cache>/kafka-<version>/libs/*.jar    46 jars, 44 MiB
    <cache>/kafka-<version>/checked       written when every jar is there and is what jars.sha256 says

A lock lets several test processes ask at once; one of them downloads.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from filelock import FileLock

from tablestore.errors import TablestoreError

KAFKA_VERSION = "4.3.1"
# Without a binding the broker says nothing at all, not even why it dies.
LOG4J_VERSION = "2.25.4"
_DOWNLOAD_LIMIT_S = 600
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
  <groupId>tablestore</groupId><artifactId>kafka-broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>{LOG4J_VERSION}</version>
    </dependency>
  </dependencies>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId><version>3.8.1</version>
  </plugin></plugins></build>
</project>
"""


class BrokerUnavailable(TablestoreError):
    """A broker cannot be had on this machine; the message names the command that mends it."""

    default_kind = "no-broker"


def java_command() -> str:
    """The Java launcher: that of JAVA_HOME, else the one on the path. Raises :class:`BrokerUnavailable`."""
    home = os.environ.get("JAVA_HOME")
    if home and Path(home, "bin", "java").is_file():
        return str(Path(home, "bin", "java"))
    if found := shutil.which("java"):
        return found
    raise BrokerUnavailable("a Kafka broker needs Java 17 or later, and there is none; fix: apt install openjdk-17-jdk-headless")


def default_cache() -> Path:
    """The folder that keeps jars: TABLESTORE_CACHE, else ``.cache`` of the working directory's checkout, else of the user."""
    if given := os.environ.get("TABLESTORE_CACHE"):
        return Path(given)
    if Path("pyproject.toml").is_file():
        return Path.cwd() / ".cache"
    return Path.home() / ".cache" / "tablestore"


def ensure_jars(cache: Path | None = None) -> Path:
    """The directory with the broker's jars, downloaded if needed. Raises :class:`BrokerUnavailable`."""
    home = (cache or default_cache()) / f"kafka-{KAFKA_VERSION}"
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(str(home / "lock")):
        pinned = Path(__file__).with_name("jars.sha256").read_text()
        checked = home / "checked"
        if not checked.is_file() or checked.read_text() != pinned:
            _download(home)
            _verify(home / "libs", pinned)
            checked.write_text(pinned)
    return home / "libs"


def _download(home: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerUnavailable(
            f"the jars of Kafka {KAFKA_VERSION} are not in {home}, and there is no Maven to fetch them; fix: apt install maven"
        )
    pom = home / "pom.xml"
    pom.write_text(_POM)
    libs = home / "libs"
    shutil.rmtree(libs, ignore_errors=True)
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(
            [*command, f"-DoutputDirectory={libs}"], capture_output=True, text=True, timeout=_DOWNLOAD_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BrokerUnavailable(f"Maven did not fetch Kafka {KAFKA_VERSION} within {_DOWNLOAD_LIMIT_S} s; run it again") from error
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
        raise BrokerUnavailable(f"Maven could not fetch Kafka {KAFKA_VERSION}:\n{said}\nfix: {' '.join(command)}")


def _verify(libs: Path, pinned: str) -> None:
    wanted = {name: digest for digest, name in (line.split() for line in pinned.splitlines())}
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in libs.glob("*.jar")}
    wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if wrong:
        raise BrokerUnavailable(
            f"{len(wrong)} jar(s) of Kafka {KAFKA_VERSION} in {libs} are not the pinned ones, for example {wrong[0]}: expected "
            f"SHA-256 {wanted.get(wrong[0], 'none')}, found {found.get(wrong[0], 'none')}; fix: rm -r {libs.parent} and run again"
        )
