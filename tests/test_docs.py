"""The documentation site builds without a warning, and each of its links leads somewhere."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from itertools import chain

import pytest

from bench import paths
from bench.serve.catalog import catalog
from bench.serve.project import description
from tests import once

pytestmark = pytest.mark.long
DOCS = paths.KIT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    return once.shared(tmp_path_factory, "docs", build)


def build(folder):
    argv = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(folder)]
    done = subprocess.run(argv, cwd=paths.KIT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


WRITE = """
import pathlib, sys
import reference_pages

reference_pages.FOLDER = pathlib.Path(sys.argv[1])
reference_pages.write_all()
"""


def write_reference(folder):
    env = os.environ | {"PYTHONPATH": str(paths.KIT)}
    subprocess.run([sys.executable, "-c", WRITE, str(folder)], cwd=DOCS, env=env, check=True)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The pages of the reference, by kind and name, as Markdown."""
    folder = once.shared(tmp_path_factory, "reference", write_reference)
    return lambda kind, name: (folder / kind / f"{name}.md").read_text("utf-8")


def test_a_second_build_does_not_touch_the_pages_that_the_first_one_reads(tmp_path):
    def write():
        write_reference(tmp_path)
        return {page: page.stat().st_mtime_ns for page in tmp_path.rglob("*.md")}

    before = write()
    assert len(before) > 40
    (tmp_path / "gone.md").write_text("")
    assert write() == before


def test_the_page_of_a_stack_lists_the_files_that_its_servers_read(reference):
    for name, stack in catalog.read().stacks.items():
        paths_shown = re.findall("^- `(deploy/.+)`$", reference("stacks", name), flags=re.M)
        shown = {path.rpartition("/")[2].removesuffix(".j2") for path in paths_shown}
        read = chain.from_iterable(server.file_names for server in stack.servers)
        assert shown == {"stack.toml", "server.toml", *read}, name


def test_the_page_of_a_stack_has_only_limitations_that_hold_behind_its_servers(reference):
    assert "`chunked-body`" in reference("stacks", "granian")
    behind_nginx = reference("stacks", "nginx-granian")
    assert "`chunked-body`" not in behind_nginx
    assert "## Known limitations" not in behind_nginx


def test_the_page_of_a_layer_says_for_which_servers_a_limitation_is(reference):
    page = reference("layers", "uwsgi-cache")
    rows = [row for row in page.splitlines() if row.startswith("| [`told-of-writes`]")]
    assert len(rows) == 1
    assert rows[0].endswith("Only with cherokee-uwsgi-roundrobin. |")


def test_no_page_of_a_layer_shows_a_template(reference):
    for name in catalog.read().layers:
        assert "{{" not in reference("layers", name)


def test_the_keys_of_a_project_are_those_of_its_file(reference):
    titles = re.findall("^## (.+)$", reference(".", "project-keys"), flags=re.M)
    assert "[tool.benchapp]" in titles
    assert [title for title in titles if not title.startswith("[tool.benchapp")] == []
    keys = re.findall("^[|] `([^|]+)` [|]", reference(".", "project-keys"), flags=re.M)
    shown = {name for names in keys for name in names.split("`, `")}
    for struct in (description.Description, description.Requests, description.Login, description.Write):
        assert shown >= {*struct.__struct_fields__} - {"start"}
    # It is found, whatever a file says.
    assert "start" not in keys


def test_the_command_line_has_commands_of_commands(reference):
    section = reference(".", "command-line").partition("## hosts check\n")[2].partition("\n## ")[0]
    assert "| `--inventory " in section


def test_variables_that_the_settings_of_the_site_do_not_read_are_read_elsewhere(reference):
    page = reference(".", "environment")
    assert "| `BENCHAPP_PUBLIC` | json |" in page
    names = re.findall(r"^[|] `([A-Z_]+)` [|]", page.partition("## The command benchapp\n")[2], flags=re.M)
    assert {"BENCHAPP_STATE", "BENCH_USER", "BENCHAPP_STEP_LIMIT"} < set(names)
    folders = [paths.PACKAGE, paths.KIT / "benchapp_overlay", paths.DEPLOY / "production"]
    sources = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".j2")]
    text = "".join(path.read_text("utf-8") for path in sources)
    assert [name for name in names if name not in text] == []


def boxes_of(site, kind, name):
    """The boxes of the picture on a page of the reference."""
    page = (site / "reference" / kind / f"{name}.html").read_text("utf-8")
    picture = page.partition('<ol class="chain">')[2].partition("</ol>")[0]
    return re.findall("<span>(.*?)</span>", picture)


def test_each_stack_and_layer_has_a_page_with_its_chain(site):
    known = catalog.read()
    for name, stack in known.stacks.items():
        servers = [server.name for server in reversed(stack.servers)]
        assert boxes_of(site, "stacks", name) == ["client", *servers, "Django"]
    for name, layer in known.layers.items():
        boxes = boxes_of(site, "layers", name)
        assert layer.is_none == (not boxes)
        assert layer.is_none or layer.title in " ".join(boxes)


def test_links_within_the_site_lead_somewhere(site):
    pages = {path: path.read_text("utf-8") for path in site.rglob("*.html")}
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        for target, anchor in re.findall(r'<a [^>]*href="(?!https?:|mailto:)([^"#]*)#?([^"]*)"', text):
            page = (path.parent / target).resolve() if target else path
            if not page.exists() or (anchor and page in anchors and anchor not in anchors[page]):
                broken.append(f"{path.relative_to(site)}: {target}#{anchor}")
    assert not broken


def test_the_page_on_production_names_each_setting_that_the_kit_changes():
    module = ast.parse((paths.KIT / "benchapp_overlay" / "settings.py").read_text("utf-8"))
    names = {node.id for node in ast.walk(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    # The others are read by the kit's own code only.
    changed = {name for name in names if name.isupper() and not re.match("_|BENCHAPP_|CACHING_|WHITENOISE_", name)}

    text = (DOCS / "production.md").read_text("utf-8")
    section = text.partition("## What benchapp adds to your project\n")[2].partition("\n## ")[0]
    assert changed > {"DEBUG", "DATABASES", "MIDDLEWARE"}
    assert sorted(changed) == sorted(changed & set(re.findall("[A-Z_]+", section)))


def test_the_page_on_production_names_each_file_of_a_host():
    files = {path.name for path in (paths.DEPLOY / "examples").glob("*/*")} - {"README.md"}
    of_servers = set()
    for folder in (paths.DEPLOY / "servers").iterdir():
        contents = [folder] if folder.is_file() else folder.iterdir()
        of_servers |= {path.name.removesuffix(".j2") for path in contents}
    text = (DOCS / "production.md").read_text("utf-8")
    table = text.partition("| file | what it is |\n")[2].partition("\n\n")[0]
    assert len(files - of_servers) > 15
    # `benchapp-deploy`, `-rollback`: a second name leaves the first word out.
    named = {name.removeprefix("benchapp").rstrip("/") for name in re.findall("`([^`]+)`", table)}
    assert [name for name in sorted(files - of_servers) if name.removeprefix("benchapp") not in named] == []


def test_each_variable_of_the_site_has_a_meaning(site):
    source = (paths.KIT / "config" / "settings.py").read_text("utf-8")
    names = set(re.findall(r'env(?:\.\w+\(|,)\s*"([A-Z_]+)"', source))
    assert names > {"DATABASE_URL", "CACHE_URL"}
    shown = (site / "reference" / "environment.html").read_text("utf-8")
    assert [name for name in sorted(names) if f">{name}<" not in shown] == []
