"""Rendering a case's files into a directory. Nothing is started here.

Each server reads the files named by its manifest (`config`, `files`), all in one directory. The template of a file is
in `deploy/servers/<server>/`, or, for a file of several servers, in `deploy/servers/`, under the file's name with
`.j2`. A template of the same name in the folder of the stack or of a layer lies over the server's: it replaces the
server's, or says `{% extends "<name>.j2" %}` and replaces blocks. An empty template makes no file. A file without `.j2`
is copied.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from hashlib import md5
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from jinja2 import meta

from bench import programs
from bench.errors import BenchError
from bench.serve.catalog.manifest import Service
from bench.serve.catalog.server import SERVERS, TEMPLATE, Server, source
from bench.serve.deployment.case import Case
from bench.serve.deployment.layout import LOOPBACK, HostPaths
from bench.serve.deployment.placed import Placed
from bench.serve.machine.supervise import Address
from bench.serve.project import opened

# Between the names of the templates that lie over each other, the uppermost first: no path has it.
OVER = "\n"


class TemplateEngine(jinja2.Environment):
    """Templates by their paths, or by their names below `home`; of several templates of one name, each extends the
    next.
    """

    def __init__(self, home: Path) -> None:
        super().__init__(
            undefined=jinja2.StrictUndefined,
            loader=jinja2.FunctionLoader(self._source),
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
            # A statement that is a comment in Python, so that a template of it parses.
            line_statement_prefix="#%",
        )
        self.home = home

    def join_path(self, template: str, parent: str) -> str:
        """Resolve `template` in `parent`: a template that overrides another of the same name extends the other."""
        upper, _, below = parent.partition(OVER)
        if below and Path(upper).name == template:
            return below
        return template

    def _source(self, name: str) -> tuple[str, str, Callable[[], bool]]:
        path = self.home / name.partition(OVER)[0]
        if not path.is_file():
            raise jinja2.TemplateNotFound(str(path))
        changed = path.stat().st_mtime_ns
        return path.read_text("utf-8"), str(path), lambda: path.stat().st_mtime_ns == changed


ENGINE = TemplateEngine(SERVERS)


def instance_name(server: str, number: int) -> str:
    """The name of an instance: the server's name, for the second instance `name-2`."""
    if number == 1:
        return server
    return f"{server}-{number}"


def text(template: str, context: dict[str, Any], where: str) -> str:
    """`template` rendered; raises BenchError naming `where` for an unknown name or a syntax error."""
    try:
        return _compiled(template).render(context)
    except jinja2.TemplateError as error:
        raise BenchError(f"{where}: {error}; docs/adding-a-stack.md lists the names") from None


@functools.cache
def _compiled(template: str) -> jinja2.Template:
    """A template, compiled once: stacks share most templates, and compiling takes longer than rendering."""
    return ENGINE.from_string(template)


def context_of(server: Server, placed: Placed) -> dict[str, Any]:
    """The names that the templates of one server can use."""
    case = placed.case
    chain = [item.name for item in case.servers]
    index = chain.index(server.name)
    context: dict[str, Any] = {
        **site_context(placed),
        **case.project.names,
        "run": placed.places.run_of(server.name),
        "modules": case.modules.get(server.name, {}),
        "program": str(case.programs[server.name]),
        "speaks": server.speaks,
        "foreground": True,
        "listen": placed.listens[server.name][0],
    }
    if context["listen"].port:
        # The front address is that of the outermost server only, which a layer may have put in front of this one.
        context |= {"bind": context["listen"].host, "port": context["listen"].port}
    context["bypass_re"] = opened.bypass_re(case.project, context["probed"])
    if case.project.overlaid:
        context["page_headers"] = opened.page_headers(case.project)
    # Only layers can have put a server in front of it.
    context["is_front"] = index + 1 == len(chain)
    context["outermost"] = server.name == case.stack.servers[-1].name
    if index + 1 < len(chain):
        # The server in front terminates TLS, redirects to it, and has found out who the client is.
        context |= {"listener": "plain", "redirect": "off"}
    context["binds6"] = []
    if context["is_front"] and context["bind6"] != "off":
        context["binds6"] = [f"[{context['bind6']}]"]
    context["binds"] = [context["bind"], *context["binds6"]]
    if index:
        context |= _upstream(server, case.servers[index - 1], placed)
    return context


def _upstream(server: Server, inner: Server, placed: Placed) -> dict[str, Any]:
    """The names by which a template reaches the next inner server."""
    addresses = placed.upstreams(inner.name)
    # The fate of a connection after a response.
    connection = "close"
    if inner.keepalive:
        connection = "keepalive"
    context = {
        "upstreams": addresses,
        "upstream": addresses[0],
        "upstream_speaks": inner.speaks,
        "upstream_interface": inner.interface,
        "upstream_connection": connection,
        "upstream_max_fails": 0,
    }
    if any(address.host not in ("", LOOPBACK) for address in addresses):
        # An instance on this host refuses at once; a host that has gone costs a time to connect.
        context["upstream_max_fails"] = 3
    if module := server.upstream_modules.get(inner.speaks):
        context["upstream_module"] = module
    return context


def site_context(placed: Placed) -> dict[str, Any]:
    """The names that all templates can use."""
    case, places = placed.case, placed.places
    doors: dict[str, Address] = {}
    for server in case.servers:
        doors |= {door: places.address(door, f"{server.name}-{door}") for door in server.doors}
    project = case.project.project
    site = f"{project.folder.name} {project.settings} {case.settings['server_names']}"
    return {
        **case.settings,
        **places.names,
        # Tells the site's pages from those of others in one store.
        "site_word": md5(site.encode(), usedforsecurity=False).hexdigest()[:12],
        "services": {item.name: places.address(item.name, item.name) for item in case.services},
        "doors": doors,
    }


def write_files(placed: Placed, conf: Path, servers: Iterable[Server] | None = None) -> list[Path]:
    """Render every file of these servers, by default of all, into `conf`; returns the written files."""
    conf.mkdir(parents=True, exist_ok=True)
    written = []
    if servers is None:
        servers = placed.case.servers
    for server in servers:
        for name, rendered in texts(server, placed).items():
            target = conf / name
            target.unlink(missing_ok=True)
            if rendered.strip():
                target.write_text(rendered, "utf-8")
                written.append(target)
    # Servers of a chain can share a file.
    return list(dict.fromkeys(written))


def texts(server: Server, placed: Placed) -> dict[str, str]:
    """The text of each file of a server, by its name; blank for an empty template."""
    context = context_of(server, placed)
    rendered = {}
    for name, templates in server_files(server, placed.case).items():
        if not templates:
            raise BenchError(f"{server.name} reads {name}, which {SERVERS / server.name} does not have")
        rendered[name] = _file_text(templates, context)
    return rendered


def _file_text(templates: tuple[Path, ...], context: dict[str, Any]) -> str:
    """A file of a server, from the templates over each other, the uppermost first."""
    if templates[0].suffix != TEMPLATE:
        return templates[0].read_text("utf-8")
    try:
        rendered = ENGINE.get_template(OVER.join(map(str, templates))).render(context)
    except jinja2.TemplateError as error:
        raise BenchError(f"{templates[0]}: {error}; docs/adding-a-stack.md lists the names") from None
    # A directive that is off leaves its blank lines behind.
    return re.sub(r"\n{3,}", "\n\n", rendered).lstrip("\n")


def server_files(server: Server, case: Case) -> dict[str, tuple[Path, ...]]:
    """The templates of each file of a server, by its name, the uppermost first."""
    homes = [*(layer.folder for layer in reversed(case.layers)), *case.stack.folders, SERVERS / server.name, SERVERS]
    files = {}
    for name in server.file_names:
        files[name] = tuple(filter(None, (source(home, name) for home in homes)))
    return files


def names_used(case: Case) -> set[str]:
    """The values that the files, commands and environment of a case use by name."""
    texts = list(case.env.values())
    for words in case.sidecars.values():
        texts += words
    used: set[str] = set()
    for server in case.servers:
        texts += server.start
        for path in chain.from_iterable(server_files(server, case).values()):
            if path.suffix == TEMPLATE:
                texts.append(path.read_text("utf-8"))
        if server.instances:
            used.add(server.instances)
    for text in texts:
        used |= meta.find_undeclared_variables(ENGINE.parse(text))
    return used


def service_context(service: Service, placed: Placed) -> dict[str, Any]:
    """The names that the templates of a service can use; `run_in_url` is `run` for the query of a URL."""
    places, address = placed.places, service_address(service, placed.places)
    program_paths = {}
    for key, name in service.programs.items():
        program_paths[key] = f"{service.directory}/{name}"
        if places.here:
            program_paths[key] = str(programs.find([name], service.search))
    return {
        **site_context(placed),
        "programs": program_paths,
        "data": f"{places.data}/{service.name}/data",
        "run_in_url": quote(places.run),
        "socket": address.endpoint,
        "host": address.host,
        "folder": str(service.folder),
    }


def service_address(service: Service, places: HostPaths) -> Address:
    """The address of a service."""
    if service.socket:
        return Address(path=f"{places.run}/{service.socket}")
    return places.address(service.name, service.name)


def write_service_files(service: Service, context: dict[str, Any], folder: Path) -> list[Path]:
    """Render the configuration file of a service, if any, into `folder`, and copy its plain files; returns the written
    files.
    """
    written = [folder / name for name in service.files]
    for path in written:
        path.write_text((service.folder / path.name).read_text("utf-8"), "utf-8")
    if service.config:
        template = service.folder / f"{service.config}{TEMPLATE}"
        written.append(folder / service.config)
        written[-1].write_text(text(template.read_text("utf-8"), context, str(template)), "utf-8")
    return written


def site_env(placed: Placed) -> dict[str, str]:
    """The application server's environment from values, stack and layers."""
    case, context = placed.case, site_context(placed)
    templates = {
        "BENCHAPP_CACHE_SECONDS": str(case.values.names["cache_seconds"]),
        "BENCHAPP_HSTS_SECONDS": str(case.values.names["hsts_seconds"]),
        "BENCHAPP_PORT": str(placed.places.port),
        **case.values.env,
        **case.env,
    }
    return {key: text(template, context, f"environment {key}") for key, template in templates.items()}


def argv(items: Iterable[str], context: dict[str, Any], where: str) -> list[str]:
    """A command's words, each a template."""
    return [text(item, context, where) for item in items]
