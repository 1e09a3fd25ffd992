"""A project's description in its pyproject.toml, and the detection without one."""

import sys
from pathlib import Path

import pytest

from bench import paths
from bench.errors import BenchError
from bench.measure.run import workload
from bench.serve.project import description
from bench.serve.project.opened import open_project, recorded_project
from tests.cases import kit

MANAGE = """
import os, sys
from django.core.management import execute_from_command_line

# os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.comment")
module = "shop.test" if "test" in sys.argv else "shop.settings"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", module)
execute_from_command_line(sys.argv)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "manage.py").write_text(MANAGE)
    return tmp_path


def write(folder, *lines):
    (folder / "pyproject.toml").write_text("\n".join(["[tool.benchapp]", *lines, ""]))


def test_the_settings_are_those_that_manage_py_sets_unless_the_project_says_others(folder):
    project = description.read(folder)
    assert (project.settings, project.description.health, project.env) == ("shop.settings", "/", {})
    assert project.python == Path(sys.executable)
    write(folder, 'settings = "shop.live"', 'health = "/up/"', 'public = ["/", "/blog/"]')
    project = description.read(folder)
    assert (project.settings, project.description.public) == ("shop.live", ("/", "/blog/"))


@pytest.mark.parametrize("name", ["site/.venv", "site/venv", ".venv"])
def test_the_interpreter_is_that_of_the_projects_environment(tmp_path, name):
    # Its manage.py is in a folder of the repository.
    (tmp_path / ".git").mkdir()
    python = tmp_path / name / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    project = tmp_path / "site"
    project.mkdir(exist_ok=True)
    (project / "manage.py").write_text(MANAGE)
    write(project, 'settings = "shop.settings"')
    assert description.read(project).python == python


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("# secrets\nexport KEY='a b'\n\nURL=db://u:p@h/n?a=b\n", {"KEY": "a b", "URL": "db://u:p@h/n?a=b"}),
        (
            "A='x # y' # z\nB=\"q\"  # z\nC=p#q\nD=on # z\nE=\n",
            {"A": "x # y", "B": "q", "C": "p#q", "D": "on", "E": ""},
        ),
        ('KEY="-----BEGIN\nabc\n-----END"\nNEXT=1\n', {"KEY": "-----BEGIN\nabc\n-----END", "NEXT": "1"}),
        ("\ufeffFIRST=1\r\nSECOND=2\r\n", {"FIRST": "1", "SECOND": "2"}),
        (r"URL=smtp://u:p\#@h$x", {"URL": r"smtp://u:p\#@h$x"}),
    ],
    ids=["export", "comments", "lines", "mark", "plain"],
)
def test_the_environment_file_is_read_as_its_project_reads_it(folder, text, variables):
    write(folder, 'env_file = ".env"')
    (folder / ".env").write_bytes(text.encode())
    assert description.read(folder).env == variables


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["[broken"], "pyproject.toml: cannot be read: "),
        (['helth = "/"'], "pyproject.toml: [tool.benchapp] has no helth; did you mean health?"),
        (["public = 3"], "[tool.benchapp] Expected `array`, got `int` - at `$.public`; correct it"),
        (["setup = ['shell -c \"x']"], "[tool.benchapp] setup is 'shell -c \"x': no closing quotation; correct it"),
        (["rows = 'count \"x'"], "[tool.benchapp] rows is 'count \"x': no closing quotation; correct it"),
        (
            ["[tool.benchapp.write]", "page = '/'", "command = 'x \"'"],
            "[tool.benchapp] write.command is 'x \"': no closing quotation",
        ),
        (['wsgi = "mysite"'], "[tool.benchapp] wsgi is 'mysite': write it as \"module:application\"; correct it"),
        (["stale.Post = ['/']"], "[tool.benchapp] stale names 'Post': write a model as \"app.Model\"; correct it"),
        (
            ["stale.'blog.Post' = ['/blog*']"],
            "stale: '/blog*' is no page: it begins with /, or ends with /*; correct it",
        ),
        *(
            ([f"harmless = ['{entry}']"], f"[tool.benchapp] harmless names '{entry}': write a header, ")
            for entry in ("", "User Agent", "cookie:", "cookie=theme", "shop.", "shop/log")
        ),
        (['health = "up"'], "[tool.benchapp] 'up' is no path: it begins with /; correct it"),
        (['health = "/système/"'], "[tool.benchapp] '/système/' is no path: percent-encode letters beyond ASCII, "),
        (
            ["login.url = '/in/'", "login.users_env = ['A', 'B']", "login.superuser = true"],
            "superuser is for accounts that are made: those of users_env have the rights they have",
        ),
        (['restore = "putback"'], "restore puts back what backup has written: name that, too; correct it"),
        (['image = ["shop", "../secret"]'], "image names '../secret': write names of files and folders in the project"),
        (['image = ["/etc/passwd"]'], "image names '/etc/passwd': write names of files and folders in the project"),
        (["login = {url = '/in/', page = '/a/*/b/'}"], "page is '/a/*/b/': * may only stand at the end, after /"),
        (["login = {url = '/in/', page = '/a*'}"], "page is '/a*': * may only stand at the end, after /"),
        (['python = "no/python"'], "no/python: no such interpreter; correct python in [tool.benchapp] of"),
        (['env_file = ".env"'], ".env: No such file or directory; correct env_file in [tool.benchapp] of"),
    ],
)
def test_a_wrong_description_is_one_line(folder, lines, message):
    write(folder, *lines)
    with pytest.raises(BenchError) as caught:
        description.read(folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[[tool.benchapp]]\n", "[tool]\nbenchapp = 1\n"])
def test_a_description_that_is_no_table_is_one_line(folder, text):
    (folder / "pyproject.toml").write_text(text)
    with pytest.raises(
        BenchError, match=r"pyproject\.toml: tool\.benchapp is no table; begin it with \[tool.benchapp\]$"
    ):
        description.read(folder)


@pytest.mark.parametrize(("method", "name"), [("open", "pyproject.toml"), ("stat", "manage.py")])
def test_what_may_not_be_read_is_one_line(folder, monkeypatch, method, name):
    write(folder)
    real = getattr(Path, method)

    def refused(path, *how, **more):
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *how, **more)

    # As root, which tests may run as, everything may be read.
    monkeypatch.setattr(Path, method, refused)
    with pytest.raises(BenchError, match=r"cannot be read: Permission denied; correct its rights$"):
        description.read(folder)


def test_a_line_of_the_environment_file_that_sets_nothing_is_named(folder):
    write(folder, 'env_file = ".env"')
    for text in ("A=1\nnonsense\n", "A='1'\nB='2' 3\n", 'A="1"\nB="2\n', "A=1\nB=2\0\n"):
        (folder / ".env").write_text(text)
        with pytest.raises(BenchError, match=r"\.env:2: not NAME=value; correct the line"):
            description.read(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it sets no DJANGO_SETTINGS_MODULE; write settings = "),
        ("import nothing_of_the_kind", "No module named 'nothing_of_the_kind'; install it there, or name the int"),
    ],
)
def test_a_manage_py_that_sets_nothing_needs_a_word(folder, text, message):
    (folder / "manage.py").write_text(text)
    with pytest.raises(BenchError, match=message):
        description.read(folder)


def test_what_manage_py_sets_beside_the_settings_is_taken_over(folder):
    (folder / ".env").write_text("SHOP=live\n")
    added = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'src'))\n"
    chosen = MANAGE.replace("module = ", "os.environ.setdefault('DJANGO_CONFIGURATION', os.environ['SHOP'])\nmodule = ")
    (folder / "manage.py").write_text(added + chosen)
    write(folder, 'env_file = ".env"')
    project = description.read(folder)
    assert project.from_manage == {"DJANGO_CONFIGURATION": "live", "PYTHONPATH": "src"}
    assert project.env == {"SHOP": "live", **project.from_manage}


def test_variables_that_manage_py_reads_from_a_file_are_no_release_s(folder):
    load = 'import os\nos.environ["SHOP_KEY"] = "secret"\n'
    utility = "management import ManagementUtility\n"
    begun = MANAGE.replace("management import execute_from_command_line\n", utility)
    begun = begun.replace("execute_from_command_line(sys.argv)", "ManagementUtility(sys.argv).execute()")
    (folder / "manage.py").write_text(load + begun)
    write(folder)
    project = description.read(folder)
    assert (project.env, project.from_manage) == ({"SHOP_KEY": "secret"}, {})


def test_this_repository_describes_its_own_project():
    project = kit().project
    assert (project.settings, project.python) == ("config.settings", paths.PYTHON)
    assert project.description.health == "/healthz"


# --------------------------------------------------------------- a description in a file elsewhere, --config FILE

TABLE = """
[tool.benchapp]
env_file = "variables"
health = "/up/"

[tool.benchapp.workloads.browse]
file = "browse.txt"
"""


@pytest.fixture
def described(tmp_path):
    """A file in a separate folder, with what it names beside it."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "shop.toml").write_text(TABLE)
    (folder / "variables").write_text("SHOP=1\n")
    (folder / "browse.txt").write_text("/\n/about/\n")
    return folder / "shop.toml"


@pytest.fixture
def shop(tmp_path):
    """A project with its description, which is not read."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "manage.py").write_text(MANAGE)
    (folder / "pyproject.toml").write_text('[tool.benchapp]\nhealth = "/own/"\n')
    return folder


def test_a_file_elsewhere_takes_the_place_of_the_projects_own(shop, described):
    project = description.read(shop, describe=described)
    assert (project.description.health, project.env) == ("/up/", {"SHOP": "1"})
    assert project.settings == "shop.settings"
    assert description.read(shop).description.health == "/own/"


def test_what_it_names_is_beside_it(described):
    kit = open_project(describe=described)
    assert workload.workload(kit, "browse").steps == ("/", "/about/")
    assert kit.described == str(described) and open_project().described == ""


def test_a_file_that_is_not_there_is_one_line(shop, tmp_path):
    with pytest.raises(BenchError) as refused:
        description.read(shop, describe=tmp_path / "gone.toml")
    assert str(refused.value) == f"--config {tmp_path / 'gone.toml'}: no such file; name one with [tool.benchapp]"
    (tmp_path / "other.toml").write_text("[tool.ruff]\nline-length = 120\n")
    with pytest.raises(BenchError) as refused:
        description.read(shop, describe=tmp_path / "other.toml")
    assert str(refused.value).startswith(f"--config {tmp_path / 'other.toml'}: it has no [tool.benchapp]; ")


def test_a_run_that_is_resumed_has_the_description_that_it_began_with(described):
    kit = open_project()
    assert recorded_project(kit, "", str(described)).described == str(described)
    assert recorded_project(kit, "", "") is kit
    with pytest.raises(BenchError, match="it was begun with the project of the kit; leave out"):
        recorded_project(open_project(describe=described), "", "")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["[tool.benchapp.workers.Tasks]", 'command = "x"'], "workers.Tasks: name it by at most 31 of a-z, 0-9 and -"),
        (["[tool.benchapp.workers.tasks]", 'command = ""'], "workers.tasks.command is '': write one such as"),
        (["[tool.benchapp.workers.tasks]", 'command = "celery \'x"'], "no closing quotation"),
        (["[tool.benchapp.jobs.digest]", 'command = "python"'], "jobs.digest.command is 'python': write one such as"),
        (["[tool.benchapp.jobs.digest]", 'command = "x"', 'schedule = "25:00"'], "schedule is '25:00': write hourly,"),
        (["[tool.benchapp.jobs.digest]", 'command = "x"', 'schedule = "*:0/0"'], "schedule is '*:0/0': write hourly,"),
        (["[tool.benchapp.jobs.digest]", 'schedule = "daily"'], "missing required field `command`"),
    ],
)
def test_a_worker_or_job_that_cannot_run_is_one_line(folder, lines, message):
    write(folder, *lines)
    with pytest.raises(BenchError) as raised:
        description.read(folder)
    assert message in str(raised.value) and "\n" not in str(raised.value)
