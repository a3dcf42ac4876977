"""The project as something to install, fork and run services for: files, wheel, licence, compose file."""

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import tablestore
from tests.support.syntax import parsed

# SHA-256 of https://www.apache.org/licenses/LICENSE-2.0.txt
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
FILES = (
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "Makefile",
    "mkdocs.yml",
    "pyproject.toml",
    "docker-compose.yml",
    "Dockerfile",
    ".ci/run",
    "tablestore/py.typed",
)


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(wheel_file)


@pytest.mark.parametrize("name", FILES)
def test_file_is_there(project: Path, name: str) -> None:
    assert (project / name).is_file()


def test_ci_lints_runs_all_tests_but_the_slow_ones_and_can_be_run(project: Path) -> None:
    run = project / ".ci" / "run"
    assert run.stat().st_mode & 0o111
    assert "make --no-print-directory lint test test-lowest test-deep" in run.read_text()
    options = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["addopts"]
    assert options[-2:] == ["-m", "not slow and not deep"]
    assert '-m "deep and not slow"' in (project / "Makefile").read_text()


APT = """#!/bin/sh
echo "$@" >> "$CALLS"
test "$CAN" = yes || exit 100
"""


@pytest.mark.parametrize(
    ("can", "has", "said"),
    [
        ("yes", False, ""),
        ("no", False, "the tests that need it will fail"),
        ("none", False, "apt-get cannot install"),
        ("no", True, ""),
    ],
)
def test_ci_installs_the_systems_browser_where_it_may_and_only_where_there_is_none(
    project: Path, tmp_path: Path, can: str, has: bool, said: str
) -> None:
    programs, calls = tmp_path / "bin", tmp_path / "calls"
    programs.mkdir()
    for name in ("dirname", "ls", "id"):
        (programs / name).symlink_to(str(shutil.which(name)))
    nothing = "#!/bin/sh\n"
    # Who runs the tests is not root everywhere.
    fakes = {"make": nothing, "initdb": nothing, "sudo": '#!/bin/sh\nshift\nexec "$@"\n'}
    fakes |= {"apt-get": APT} if can != "none" else {}
    fakes |= {"chromium": nothing} if has else {}
    for name, text in fakes.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(project / ".ci" / "run")],
        env={"PATH": str(programs), "CALLS": str(calls), "CAN": can},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and said in done.stderr and bool(said) == bool(done.stderr)
    ran = calls.read_text().splitlines() if calls.exists() else []
    wanted = {"yes": ["-qq update", "-qq install --yes --no-install-recommends chromium"], "no": ["-qq update"], "none": []}
    assert ran == ([] if has else wanted[can])


def test_github_runs_no_code_of_others_but_what_is_named_by_its_digest(project: Path) -> None:
    for workflow in (project / ".github" / "workflows").glob("*.yml"):
        jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
        used = [step["uses"] for job in jobs for step in job["steps"] if "uses" in step]
        assert used and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name) for name in used), used


@pytest.mark.parametrize("name", ["requirements.txt", "audit.txt", "container.txt"])
def test_every_package_of_a_lock_file_has_one_version_and_its_hashes(project: Path, name: str) -> None:
    entries = re.split(r"\n(?=[\w.-]+(?:\[[\w,-]+\])?==)", (project / ".ci" / name).read_text())[1:]
    assert entries
    for entry in entries:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.!+]+( ; [^\\]*)? \\\n    --hash=sha256:[0-9a-f]{64}", entry), entry[:200]


def test_the_lock_file_is_that_of_the_dependencies(project: Path) -> None:
    stated = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    needs = [*stated["dependencies"], *stated["optional-dependencies"]["all"], *stated["optional-dependencies"]["dev"]]
    needs += [need for needs_of in stated["optional-dependencies"].values() for need in needs_of]
    locked: dict[str, list[Version]] = {}
    for name, version in re.findall(
        r"^([\w.-]+)(?:\[[\w,-]+\])?==([\w.!+]+)", (project / ".ci" / "requirements.txt").read_text(), re.M
    ):
        locked.setdefault(canonicalize_name(name), []).append(Version(version))
    for need in map(Requirement, needs):
        if need.name != "managed-tablestore":
            versions = locked.get(canonicalize_name(need.name), [])
            assert any(need.specifier.contains(one) for one in versions), f"make the lock file again: {need}, found {versions}"


def test_arrow_is_none_that_writes_to_freed_memory(project: Path) -> None:
    (need,) = (
        Requirement(need)
        for need in tomllib.loads((project / "pyproject.toml").read_text())["project"]["dependencies"]
        if need.startswith("pyarrow")
    )
    assert not any(need.specifier.contains(version) for version in ("15.0.0", "20.0.0", "22.0.0", "23.0.0"))
    assert need.specifier.contains("23.0.1")


def test_github_runs_what_any_machine_runs(project: Path) -> None:
    workflow = yaml.safe_load((project / ".github" / "workflows" / "ci.yml").read_text())
    (step,) = (step for step in workflow["jobs"]["run"]["steps"] if "run" in step)
    assert step == {"run": ".ci/run"}
    assert 'LOCK="${LOCK-.ci/requirements.txt}"' in (project / ".ci" / "run").read_text()
    assert any("pip-audit" in step.get("run", "") for step in workflow["jobs"]["audit"]["steps"])
    for form in (project / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        assert yaml.safe_load(form.read_text())


def test_license_is_the_whole_apache_2_text(project: Path) -> None:
    assert hashlib.sha256((project / "LICENSE").read_bytes()).hexdigest() == APACHE_2
    assert pyproject(project)["project"]["license"] == "Apache-2.0"


@pytest.mark.deep
def test_wheel_has_the_engine_and_the_connectors_at_top_level(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    tops = {name.partition("/")[0] for name in names}
    packages = {"tablestore", "pyspark_tablestore", "tablestore_kafka", "tablestore_duckdb"}
    assert tops == {*packages, f"managed_tablestore-{tablestore.__version__}.dist-info"}
    assert {"tablestore/__init__.py", *(f"{name}/py.typed" for name in packages), "pyspark_tablestore/__init__.py"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_wheel_has_no_code_of_our_own_tests(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert [name for name in names if {"tests", "support", "benchmarks", "docs"} & set(name.split("/"))] == []
    assert [name for name in names if name.rpartition("/")[2].startswith(("test_", "conftest"))] == []


@pytest.mark.deep
def test_wheel_has_what_tests_of_other_stores_need_and_its_extra_brings_all_of_it(wheel: zipfile.ZipFile, project: Path) -> None:
    modules = [name for name in wheel.namelist() if name.startswith("tablestore/testing/") and name.endswith(".py")]
    shipped = ("contracts/filestore", "deterministic", "files", "kafka/broker")
    assert {f"tablestore/testing/{name}.py" for name in shipped} <= set(modules)
    given = pyproject(project)["project"]
    needs = {re.split(r"[<>=;\[ ]", need)[0] for need in [*given["dependencies"], *given["optional-dependencies"]["testing"]]}
    imported = {
        target.partition(".")[0]
        for name in modules
        for node in ast.walk(parsed(wheel.read(name)))
        for target in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    foreign = imported - sys.stdlib_module_names - {"tablestore"}
    brought = packages_distributions()
    assert {name for name in foreign if not set(brought[name]) & needs} == set()


def test_wheel_brings_the_command(wheel: zipfile.ZipFile) -> None:
    entry_points = wheel.read(f"managed_tablestore-{tablestore.__version__}.dist-info/entry_points.txt").decode()
    assert "tablestore = tablestore.__main__:main" in entry_points


def test_wheel_works_where_the_checkout_is_not(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    program = "import tablestore, pyspark_tablestore as spark; print(tablestore.__file__, spark.__file__, sep='\\n')"
    # -P and PYTHONPATH: the unpacked wheel comes first, before the editable install.
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [Path(line).parent.parent for line in done.stdout.split()] == [tmp_path, tmp_path]


def test_a_release_leads_from_the_index_to_the_repository(project: Path, tmp_path: Path) -> None:
    address = "https://forge.example/team/tablestore"
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=project, env={**os.environ, "PROJECT_URL": address}, check=True, capture_output=True)
    (built,) = tmp_path.glob("managed_tablestore-*.whl")
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(built)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    metadata = zipfile.ZipFile(built).read(f"managed_tablestore-{tablestore.__version__}.dist-info/METADATA").decode()
    assert {f"Project-URL: Homepage, {address}", "Author: The tablestore maintainers"} <= set(metadata.splitlines())
    _, _, readme = metadata.partition("\n\n")
    targets = re.findall(r"\]\(([^)\s]+)\)", readme)
    assert f"{address}/blob/main/docs/tutorial.md" in targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []


def test_no_text_sends_a_reader_to_the_package_of_another_product(project: Path) -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=project, capture_output=True, text=True, check=True).stdout.split("\n")
    suffixes = (".py", ".md", ".toml", ".yml", "Makefile")
    for name in tracked:
        if name.endswith(suffixes) and (project / name).is_file() and name != "docs/decisions/0015-distribution.md":
            text = (project / name).read_text(encoding="utf-8")
            # With an extra, or as all that `pip install` is told.
            wrong = re.search(r"(?<![\w./-])tablestore\\?\[[a-z{]|pip install (?:--?[a-z]+ )*['\"]?tablestore\b", text)
            assert wrong is None, f"{name}: {wrong[0]}"


def test_the_files_of_the_other_product_in_our_folder_are_an_error_with_the_way_out(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    # Its wheel brings this folder in every version since 4.
    (tmp_path / "tablestore" / "plainbuffer").mkdir()
    command = [sys.executable, "-P", "-c", "import tablestore"]
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: another product, the distribution `tablestore`" in done.stderr
    assert "pip uninstall --yes tablestore managed-tablestore && pip install managed-tablestore" in done.stderr


def test_a_system_whose_files_promise_less_is_refused_by_name() -> None:
    program = "import os; os.name = 'nt'; import tablestore"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: expected a POSIX system, such as Linux or macOS, found 'nt'" in done.stderr


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_the_command_without_its_extra_names_it(package: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; from tablestore.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: the command needs the package {package}; run: pip install 'managed-tablestore[cli]'\n"


def test_every_package_says_what_it_is(project: Path) -> None:
    packages = {file.parent for file in (project / "tablestore").rglob("*.py")}
    silent = [
        str(package.relative_to(project))
        for package in sorted(packages)
        if not (package / "__init__.py").is_file() or not (package / "__init__.py").read_text().startswith('"""')
    ]
    assert not silent, f"these need an __init__.py with a docstring: {silent}"


def test_extras_are_all_there_and_name_each_other_rightly(project: Path) -> None:
    extras = pyproject(project)["project"]["optional-dependencies"]
    assert {"spark", "kafka", "s3", "bench", "dev", "all"} <= set(extras)
    named = {
        name.strip()
        for needs in extras.values()
        for need in needs
        if need.startswith("managed-tablestore[")
        for name in need.removeprefix("managed-tablestore[").removesuffix("]").split(",")
    }
    assert named <= set(extras)


def test_dependencies_have_lower_bounds(project: Path) -> None:
    data = pyproject(project)["project"]
    needs = [*data["dependencies"], *(need for extra in data["optional-dependencies"].values() for need in extra)]
    assert [need for need in needs if ">=" not in need and not need.startswith("managed-tablestore[")] == []


IMAGE = r"[\w./-]+:[\w.-]*\d[\w.-]*@sha256:[0-9a-f]{64}"


def test_services_are_pinned_by_digest_at_this_machine_alone_and_say_when_they_are_healthy(project: Path) -> None:
    compose = yaml.safe_load((project / "docker-compose.yml").read_text())
    services = compose["services"]
    assert set(services) == {"postgres", "s3", "kafka", "catalog", "demo"}
    for name, service in services.items():
        assert "build" in service or re.fullmatch(IMAGE, service["image"]), f"{name} floats: {service['image']}"
        assert service["healthcheck"]["test"], f"{name} has no health check"
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), f"{name} is open to the network"
        assert not {"privileged", "network_mode", "pid", "cap_add"} & set(service), f"{name} is not held in its container"
        sources = [volume.partition(":")[0] for volume in service.get("volumes", ())]
        assert set(sources) <= set(compose["volumes"]), f"{name} sees a folder of the machine"
    bases = re.findall(r"^FROM (\S+)", (project / "Dockerfile").read_text(), re.M)
    assert len(bases) == 1 and re.fullmatch(IMAGE, bases[0])
    assert services["kafka"]["environment"]["KAFKA_PROCESS_ROLES"] == "broker,controller"


def test_the_image_is_made_from_what_it_needs_alone(project: Path) -> None:
    copied = [word for line in re.findall(r"^COPY (.+)", (project / "Dockerfile").read_text(), re.M) for word in line.split()[:-1]]
    first, *taken = [line for line in (project / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert first == "*"
    assert sorted(line.removeprefix("!") for line in taken if line.startswith("!")) == sorted(copied)
    assert all((project / name).exists() for name in copied)
    ran = (project / "Dockerfile").read_text()
    assert "--require-hashes --requirement /tmp/container.txt" in ran and "\nUSER tablestore\n" in ran


def test_the_packages_of_the_image_are_those_of_ci_and_all_that_its_extras_ask_for(project: Path) -> None:
    def locked(name: str) -> set[tuple[str, str]]:
        lines = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==([\w.!+]+)", (project / ".ci" / name).read_text(), re.M)
        return {(canonicalize_name(package), version) for package, version in lines}

    assert locked("container.txt") <= locked("requirements.txt")
    extras = pyproject(project)["project"]["optional-dependencies"]
    installed = ("cli", "server", "postgresql", "sql-catalog", "s3", "kafka", "duckdb", "rest")
    needs = [need for extra in installed for need in extras[extra]]
    needs += pyproject(project)["project"]["dependencies"]
    names = {canonicalize_name(Requirement(need).name) for need in needs} - {"managed-tablestore"}
    assert names <= {name for name, _ in locked("container.txt")}


def pyproject(project: Path) -> dict:
    return tomllib.loads((project / "pyproject.toml").read_text())
