"""The rules of the house, held against the tree."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from bench import paths
from bench.serve.catalog import catalog
from bench.serve.project import description

SITE = ("benchapp", "benchapp_overlay", "config", "fixtures")
INSIDE = paths.KIT / "bench" / "serve" / "inside"
INSIDE_FILES = sorted(INSIDE.rglob("*.py"))
# A command of manage.py, for a project that lists its app.
COMMAND_FILES = sorted((paths.KIT / "bench" / "serve" / "command").rglob("*.py"))
BENCH_FILES = sorted({*(paths.KIT / "bench").rglob("*.py")} - {*INSIDE_FILES} - {*COMMAND_FILES})
SITE_FILES = sorted(path for folder in SITE for path in (paths.KIT / folder).rglob("*.py"))


@cache
def imports_of(path: Path) -> list[ast.Import | ast.ImportFrom]:
    tree = ast.parse(path.read_text("utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    names = set()
    for node in imports_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def importing(files: Iterable[Path], *names: str) -> list[str]:
    """The files that import one of these packages, each with those."""
    imports = {path.relative_to(paths.KIT): imported(path) & set(names) for path in files}
    return [f"{path} imports {', '.join(sorted(wrong))}" for path, wrong in imports.items() if wrong]


def test_the_site_never_imports_the_instrument():
    assert importing(SITE_FILES, "bench") == []


# Packages of the kit that each of these may import besides itself. `caching` and `serving` go to production with any
# project; what is inside of one while it is verified, except for the part for the kit's own site, needs no other.
REUSABLE = {
    "benchapp/caching": (),
    "benchapp/login_limit": (),
    "benchapp/serving": (),
    "benchapp_overlay": ("benchapp.caching",),
    "bench/serve/inside": ("benchapp.caching", "benchapp.serving", "benchapp_overlay"),
}


@pytest.mark.parametrize("folder", REUSABLE)
def test_what_is_laid_over_any_project_knows_nothing_of_the_site(folder):
    allowed = (folder.replace("/", "."), *REUSABLE[folder])
    files = [path for path in sorted((paths.KIT / folder).rglob("*.py")) if INSIDE / "site" not in path.parents]
    assert files and importing(files, "config", "fixtures", "tests") == []
    for path in files:
        modules = re.findall(
            r"^\s*(?:from|import) ((?:benchapp_overlay|benchapp|bench)\b[\w.]*)", path.read_text("utf-8"), re.M
        )
        assert all(f"{module}.".startswith(tuple(f"{name}." for name in allowed)) for module in modules), path
        assert not any(f"{module}.".startswith("bench.serve.inside.site.") for module in modules), path


def test_the_part_for_the_kits_own_site_imports_nothing_of_the_instrument():
    for path in sorted((INSIDE / "site").rglob("*.py")):
        modules = re.findall(r"^\s*(?:from|import) (bench\b[\w.]*)", path.read_text("utf-8"), re.M)
        assert all(f"{module}.".startswith("bench.serve.inside.") for module in modules), path


def test_the_instrument_never_imports_the_site():
    assert importing(BENCH_FILES, "django", *SITE) == []


def test_the_command_of_manage_py_knows_django_and_nothing_of_the_kit():
    assert COMMAND_FILES and importing(COMMAND_FILES, "bench", *SITE) == []


def test_load_adapters_are_pure():
    files = (paths.KIT / "bench" / "measure" / "load").glob("*.py")
    assert importing(files, "subprocess", "time", "socket", "threading", "os", "httpx2") == []


def test_one_client_speaks_http_for_the_instrument():
    assert importing(BENCH_FILES, "http", "httpx2") == []
    assert [path for path in BENCH_FILES if "urllib.request" in path.read_text("utf-8")] == []


# The packages of bench/, door by door, in the order of docs/architecture.md: each imports only those before it.
ORDER = [
    "serve.machine",
    "serve.catalog",
    "serve.project",
    "serve.deployment",
    "serve.production",
    "verify",
    "measure.stats",
    "measure.records",
    "measure.load",
    "measure.run",
    "measure.faults",
    "measure.hosts",
    "measure.report",
    "cli",
]
DOORS = ["serve", "verify", "measure", "cli"]
TOP = {"columns", "errors", "paths", "interrupt", "means", "printer", "programs", "words"}
# Records of outcomes and names that both a run's folder and a report hold.
DECLARED = {"bench.means", "bench.serve.catalog.names", "bench.verify.hosts.host_costs", "bench.verify.outcome"}


def modules_imported(path: Path) -> set[str]:
    """The modules of bench/ that a module imports, by their dotted names."""
    names = set()
    for node in imports_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif node.module and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                names.add(name if is_module(name) else node.module)
    return {name for name in names if name.startswith("bench.")}


def is_module(name: str) -> bool:
    path = paths.KIT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


def package_of(module: str) -> str:
    """`serve.catalog` of `bench.serve.catalog.compatibility`; `errors` of `bench.errors`."""
    words = [*module.split(".")[1:], ""]
    return ".".join(words[:2]) if ".".join(words[:2]) in ORDER else words[0]


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    return ".".join(path.relative_to(paths.KIT).with_suffix("").parts).removesuffix(".__init__")


def test_a_package_imports_only_those_before_it():
    for path in BENCH_FILES:
        package = package_of(name_of(path))
        if package not in ORDER:
            continue
        before = set(ORDER[: ORDER.index(package) + 1]) | TOP
        wrong = {name for name in modules_imported(path) if package_of(name) not in before}
        assert wrong == set(), path


def test_serving_knows_no_other_door_and_nothing_below_the_command_line_knows_it():
    for path in BENCH_FILES:
        door = name_of(path).split(".")[1] if path.parent != paths.KIT / "bench" else ""
        if door not in DOORS:
            continue
        beyond = set(DOORS[DOORS.index(door) + 1 :])
        assert [name for name in modules_imported(path) if name.split(".")[1] in beyond] == [], path


@pytest.mark.parametrize("command", ["list", "doctor", "up", "reload", "render", "check"])
def test_a_command_that_only_serves_starts_without_the_code_of_the_other_doors(command):
    reached, left = set(), {f"bench.cli.{command}"}
    while left:
        name = left.pop()
        reached.add(name)
        folder = paths.KIT / name.replace(".", "/")
        path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        left |= modules_imported(path) - reached
    assert "bench.serve.catalog.catalog" in reached
    assert {name for name in reached if name.split(".")[1] in ("verify", "measure")} == set()


@pytest.mark.parametrize(
    ("package", "own"), [("records", {"stats"}), ("report", {"stats", "records"}), ("stats", set())]
)
def test_results_are_read_without_what_made_them(package, own):
    allowed = {f"bench.measure.{name}" for name in (package, *own)} | DECLARED
    allowed |= {"bench.columns", "bench.errors", "bench.paths", "bench.words"}
    for path in sorted((paths.KIT / "bench" / "measure" / package).glob("*.py")):
        wrong = [
            name
            for name in modules_imported(path)
            if name not in allowed and not name.startswith(tuple(f"{prefix}." for prefix in allowed))
        ]
        assert wrong == [], path


def test_each_door_says_what_is_behind_it():
    for door in DOORS[:-1]:
        text = ast.get_docstring(ast.parse((paths.KIT / "bench" / door / "__init__.py").read_text("utf-8"))) or ""
        folder = paths.KIT / "bench" / door
        packages = {path.parent.name for path in folder.glob("*/__init__.py")}
        assert packages <= set(re.findall(r"\w+", text)), door


def test_nothing_imports_the_reproductions():
    own = paths.KIT / "reproductions"
    assert importing([*BENCH_FILES, *INSIDE_FILES, *SITE_FILES], "reproductions") == []
    assert own.is_dir()


def test_only_the_doors_and_a_few_modules_lie_in_bench():
    names = {
        path.stem for path in (paths.KIT / "bench").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert names <= {*DOORS, *TOP, "__init__", "__main__"}


# What a process has to itself and gives back when it ends: warm processes, reserved ports, and the live lines.
STATE = {
    ("bench/serve/project/run_command.py", "_warm"),
    ("bench/serve/machine/ports.py", "_reserved"),
    ("bench/printer.py", "_shown"),
}
CONTAINERS = {"Counter", "defaultdict", "deque", "dict", "list", "set"}


def state_of(tree: ast.Module) -> Iterator[str]:
    """The names that a module binds to nothing yet, to be filled, and those that its functions declare global."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and is_empty_container(node.value):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            # A Mapping cannot be filled.
            if not ast.unparse(getattr(node, "annotation", target)).startswith("Mapping["):
                yield ast.unparse(target)


def is_empty_container(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in CONTAINERS and not value.args
    return value is not None and ast.unparse(value) in ("[]", "{}")


def test_no_module_of_the_instrument_has_state():
    names = {
        (str(path.relative_to(paths.KIT)), name)
        for path in BENCH_FILES
        for name in state_of(ast.parse(path.read_text("utf-8")))
    }
    assert names == STATE


# Lines at most. A longer one has more than one idea.
MAX_FUNCTION = 50


def functions_of(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions in a module or a statement. No expression has any, and most nodes are expressions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child
        if not isinstance(child, ast.expr):
            yield from functions_of(child)


def test_functions_are_short():
    files = [*BENCH_FILES, *INSIDE_FILES, *COMMAND_FILES, *SITE_FILES, *sorted((paths.KIT / "tests").rglob("*.py"))]
    long = []
    for path in files:
        for function in functions_of(ast.parse(path.read_text("utf-8"))):
            lines = (function.end_lineno or 0) - function.lineno + 1
            if lines > MAX_FUNCTION:
                long.append(f"{path.relative_to(paths.KIT)}: {function.name}: {lines} lines, not {MAX_FUNCTION}")
    assert long == []


def test_reports_records_and_rendering_start_nothing():
    measure = paths.KIT / "bench" / "measure"
    files = [*(measure / "report").rglob("*.py"), *(measure / "records").rglob("*.py")]
    files.append(paths.KIT / "bench" / "serve" / "deployment" / "render.py")
    assert importing(files, "subprocess") == []


def test_no_server_is_named_in_the_instrument():
    known = catalog.read()
    servers = [server for it in (*known.stacks.values(), *known.layers.values()) for server in it.servers]
    names = {name.lower() for server in servers for name in (server.name, *server.programs)}
    named = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\b")
    # A load tool's adapter may say which project its tool comes from.
    for path in [*BENCH_FILES, *INSIDE_FILES]:
        if path.parent.name != "load":
            assert named.findall(path.read_text("utf-8").lower()) == [], path


def test_no_name_of_the_kits_own_site_is_in_the_instrument():
    project = description.read(paths.KIT)
    own = project.description
    pages = {own.health, own.ready, *own.public, own.login.url if own.login else ""} - {"", "/"}
    names = [*pages, project.settings, "small.txt", "large.txt"]
    folders = [paths.KIT / app / "management" / "commands" for app in ("benchapp", "bench/serve/inside/site")]
    commands = {path.stem for folder in folders for path in folder.glob("[a-z]*.py")}
    assert len(commands) > 5 and len(pages) > 3
    for path in BENCH_FILES:
        text = path.read_text("utf-8")
        assert [name for name in names if name in text] == [], path
        assert strings_of(path) & commands - ANY_PROJECTS == set(), path


# Commands of the probes of any project, or that its own probes may have.
ANY_PROJECTS = {"siteurls", "verifyaccount", "proberows"}


def strings_of(path: Path) -> set[str]:
    """The strings in a module."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def run_by_any_python() -> Iterator[Path]:
    """The files that a project's own interpreter runs, which may be Python 3.8."""
    yield from (paths.KIT / "benchapp_overlay" / name for name in ("external_services.py", "project_settings.py"))
    due = ["inspect_project", "chosen_settings"]
    for name in due:
        path = INSIDE / f"{name}.py"
        if path.is_file():
            yield path
            due += sorted(imported(path) - {*due})


def test_what_any_python_runs_is_python_3_8():
    """No grammar and no method of a text that came later."""
    files = list(run_by_any_python())
    assert INSIDE / "inspect_pages.py" in files
    for path in files:
        tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 8))
        methods = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not methods & {"removeprefix", "removesuffix"}, path


def test_no_command_goes_through_a_shell():
    assert [path for path in BENCH_FILES + INSIDE_FILES + SITE_FILES if "shell=True" in path.read_text("utf-8")] == []


STARTS = {"run", "Popen", "check_output", "check_call", "call"}


def test_no_program_that_the_instrument_starts_reads_its_input():
    """It would take what a user pipes into a command, and Ansible refuses an input that does not block."""
    places = []
    for path in BENCH_FILES:
        calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        for call in calls:
            module, _, name = ast.unparse(call.func).rpartition(".")
            given = {keyword.arg for keyword in call.keywords}
            if module == "subprocess" and name in STARTS and not given & {"stdin", "input", None}:
                places.append(f"{path.relative_to(paths.KIT)}:{call.lineno}")
    assert places == []


def test_no_test_changes_how_every_thread_waits():
    changes = re.compile(r'setattr\((\w+\.)?time, "(sleep|monotonic)"')
    tests = sorted((paths.KIT / "tests").rglob("*.py"))
    assert [str(path.relative_to(paths.KIT)) for path in tests if changes.search(path.read_text("utf-8"))] == []


def test_python_configuration_parses_as_it_stands():
    files = sorted([*paths.DEPLOY.rglob("*.py"), *paths.DEPLOY.rglob("*.py.j2")])
    assert files
    for path in files:
        ast.parse(path.read_text("utf-8"), str(path))


# The playbook's own tasks are Ansible's templates, and manifests hold templates among their values.
NOT_RENDERED = (".yml", ".toml")


def test_templates_below_deploy_end_in_j2():
    folders = [paths.DEPLOY / name for name in ("servers", "stacks", "layers", "services", "production")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files = [path for path in files if path.suffix not in NOT_RENDERED and "__pycache__" not in path.parts]
    assert {path.name for path in files} >= {"nginx.conf.j2", "static.lua", "INSTALL.md.j2"}
    for path in files:
        is_template = bool(re.search(r"\{\{|\{%|\{#|^\s*#%", path.read_text("utf-8"), re.M))
        assert is_template == (path.suffix == ".j2"), path


def test_production_says_only_what_differs_from_its_base():
    bench, production = (
        tomllib.loads((paths.DEPLOY / "values" / f"{name}.toml").read_text("utf-8")) for name in ("bench", "production")
    )
    assert production["base"] == "bench"
    assert [name for name, value in production.items() if bench.get(name) == value] == []
    assert [name for name, value in production["env"].items() if bench["env"].get(name) == value] == []
