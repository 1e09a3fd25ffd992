"""Rendering a case's files into a directory. Nothing is started here.

A server reads, all from one directory:

- its main files, `<server>.<anything>`: those of the stack's folder, else of its base's, else of `common/<server>/`;
- the other files of `common/<server>/`, which stacks share, rendered to `<server>/`; one whose name begins with `_` is
  only there to be included by templates;
- the layer's snippets, `layer/<server>.<point>`. The layer `none` fills a point that the layer does not fill; a point
  that it does not fill either is an empty file, so that every include finds its file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from jinja2 import meta

from bench import paths
from bench.catalog import catalog
from bench.catalog.manifest import Layer, Server, Service
from bench.errors import BenchError
from bench.machine.supervise import Address
from bench.project import under_test
from bench.results.records import NO_LAYER
from bench.serve.case import Case
from bench.serve.layout import LOOPBACK, Places

ENGINE = jinja2.Environment(
    undefined=jinja2.StrictUndefined,
    loader=jinja2.FileSystemLoader(paths.DEPLOY / "common"),
    keep_trailing_newline=True,
    trim_blocks=True,
)


@dataclass(frozen=True)
class Wiring:
    """The addresses of a chain: the list of each server's instances, by the server's name.

    behind  where the next outer server finds those of a server, if not there alone: on all hosts
    """

    listens: dict[str, list[Address]] = field(default_factory=dict)
    behind: dict[str, list[Address]] = field(default_factory=dict)

    def upstreams(self, server: str) -> list[Address]:
        """Where the next outer server finds the instances of a server."""
        return self.behind.get(server) or self.listens[server]


def instance_name(server: str, number: int) -> str:
    """What the instance of a server is called: by the server's name, the second `name-2`."""
    return server if number == 1 else f"{server}-{number}"


def wire(case: Case, places: Places, ports: Callable[[], int]) -> Wiring:
    """Give each server its addresses: the outermost the front port, the others a Unix socket or a port of `ports()`."""
    listens: dict[str, list[Address]] = {}
    for server in case.servers:
        if server is case.servers[-1]:
            listens[server.name] = [Address(host=places.bind, port=places.port)]
            continue
        count = int(case.settings[server.instances]) if server.instances else 1
        listens[server.name] = [_inner_address(server, places, index, ports) for index in range(count)]
    return Wiring(listens)


def _inner_address(server: Server, places: Places, index: int, ports: Callable[[], int]) -> Address:
    if server.listen == "tcp":
        return Address(host="127.0.0.1", port=ports())
    return Address(path=f"{places.run}/{server.name}{f'-{index + 1}' if server.instances else ''}.sock")


def text(template: str, context: dict[str, Any], where: str) -> str:
    """`template` rendered; raises BenchError naming `where` for an unknown name or a syntax error."""
    try:
        return _compiled(template).render(context)
    except jinja2.TemplateError as error:
        raise BenchError(f"{where}: {error}; docs/adding-a-stack.md lists the names") from None


@functools.cache
def _compiled(template: str) -> jinja2.Template:
    """Stacks share most of their templates, and to compile one takes longer than to render it."""
    return ENGINE.from_string(template)


def context_of(server: Server, case: Case, places: Places, wiring: Wiring) -> dict[str, Any]:
    """The names that the templates of one server can use."""
    chain = [item.name for item in case.servers]
    index = chain.index(server.name)
    context: dict[str, Any] = {
        **site_context(case, places),
        **case.project.names,
        "modules": case.modules.get(server.name, {}),
        "stack": case.stack.name,
        "program": str(case.programs[server.name]),
        "speaks": server.speaks,
        "connection": _connection(server),
        "listens": wiring.listens[server.name],
        "listen": wiring.listens[server.name][0],
    }
    if context["listen"].port:
        # The front address is that of the outermost server alone, which a layer may have put in front of this one.
        context |= {"bind": context["listen"].host, "port": context["listen"].port}
    context["bypass_re"] = under_test.bypass_re(case.project, context["probed"])
    if case.project.overlaid:
        context["page_headers"] = case.project.page_headers
    if index + 1 < len(chain) and context["listener"] == "behind":
        # The outermost server has found out who the client is.
        context["listener"] = "plain"
    bind6 = context["bind6"] if index + 1 == len(chain) else "off"
    context["binds6"] = [] if bind6 == "off" else [f"[{bind6}]"]
    context["binds"] = [context["bind"], *context["binds6"]]
    if index > 0:
        inner = case.servers[index - 1]
        context["upstreams"] = wiring.upstreams(inner.name)
        context["upstream"] = context["upstreams"][0]
        context["upstream_speaks"] = inner.speaks
        context["upstream_connection"] = _connection(inner)
        # An instance on this host refuses at once; a host that has gone costs a time to connect.
        elsewhere = any(address.host not in ("", LOOPBACK) for address in context["upstreams"])
        context["upstream_max_fails"] = 3 if elsewhere else 0
        if inner.speaks in server.upstream_modules:
            context["upstream_module"] = server.upstream_modules[inner.speaks]
    return context


def site_context(case: Case, places: Places) -> dict[str, Any]:
    """The names that all templates can use."""
    return {
        **case.settings,
        **places.names,
        "services": {item.name: places.address(item.name, item.name) for item in case.services},
        "doors": {
            door: places.address(door, f"{server.name}-{door}") for server in case.servers for door in server.doors
        },
    }


def _connection(server: Server) -> str:
    """What becomes of a connection to the server after an answer: `keepalive` or `close`."""
    return "keepalive" if server.keepalive else "close"


def write_files(
    case: Case, places: Places, wiring: Wiring, conf: Path, servers: Iterable[Server] | None = None
) -> list[Path]:
    """Render every file that these servers, by default all, read into `conf`; returns the files written."""
    written = []
    for server in case.servers if servers is None else servers:
        context = context_of(server, case, places, wiring)
        for name, source in server_files(server, case).items():
            target = conf / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text(source.read_text("utf-8"), context, str(source)) if source else "", "utf-8")
            written.append(target)
    return written


def server_files(server: Server, case: Case) -> dict[str, Path | None]:
    """The templates of one server, by the name they are rendered to; None for a point of a layer that nothing fills."""
    files: dict[str, Path | None] = {}
    for path in sorted((paths.DEPLOY / "common" / server.name).glob("[!_]*")):
        if path.name != "server.toml":
            own = path.name.startswith(f"{server.name}.")
            files[path.name if own else f"{server.name}/{path.name}"] = path
    for folder in reversed(_homes(server, case)):
        files |= {path.name: path for path in sorted(folder.glob(f"{server.name}.*"))}
    layers = catalog.read().layers
    snippets = [layer.snippets(server.name) for layer in layers.values() if not _brings(layer, server)]
    files |= {f"layer/{point}": None for points in snippets for point in points}
    for layer in (layers[NO_LAYER], *case.layers):
        if not _brings(layer, server):
            files |= {f"layer/{point}": path for point, path in layer.snippets(server.name).items()}
    return files


def names_used(case: Case) -> set[str]:
    """The values that the files, commands and environment of a case use by name."""
    texts = [word for server in case.servers for word in server.start]
    texts += [*case.env.values(), *(word for words in case.sidecars.values() for word in words)]
    for server in case.servers:
        texts += [path.read_text("utf-8") for path in server_files(server, case).values() if path]
    used = {server.instances for server in case.servers if server.instances}
    while texts:
        parsed = ENGINE.parse(texts.pop())
        used |= meta.find_undeclared_variables(parsed)
        texts += [
            (paths.DEPLOY / "common" / name).read_text("utf-8")
            for name in meta.find_referenced_templates(parsed)
            if name
        ]
    return used


def _brings(layer: Layer, server: Server) -> bool:
    return server.name in {item.name for item in layer.servers}


def has_tls(server: Server, case: Case) -> bool:
    """Whether the server has a file to listen with TLS."""
    return any("listen.tls." in name for name in server_files(server, case))


def ends_tls(case: Case) -> bool:
    """Whether the server in front is reached over TLS."""
    return case.values.names["listener"] == "tls" and has_tls(case.servers[-1], case)


def _homes(server: Server, case: Case) -> tuple[Path, ...]:
    """The folder of the layer that brings the server, or else the stack's own and those of its bases."""
    return next(((layer.folder,) for layer in case.layers if server in layer.servers), case.stack.folders)


def service_context(
    service: Service, programs: dict[str, str], case: Case, places: Places, data: Path
) -> dict[str, Any]:
    """The names that the templates of a service can use; `run_in_url` is `run` for the query of a URL."""
    address = places.address(service.name, service.name)
    return {
        **site_context(case, places),
        "programs": programs,
        "data": str(data),
        "run_in_url": quote(str(places.run)),
        "socket": address.endpoint,
        "host": address.host,
        "folder": str(service.folder),
    }


def write_service_file(service: Service, context: dict[str, Any], folder: Path) -> None:
    """Render the configuration file of a service, if it has one, into `folder`."""
    if service.config:
        source = service.folder / service.config
        (folder / service.config).write_text(text(source.read_text("utf-8"), context, str(source)), "utf-8")


def site_env(case: Case, places: Places) -> dict[str, str]:
    """What values, stack and layers add to the application server's environment."""
    context = site_context(case, places)
    templates = {
        "BENCHAPP_CACHE_SECONDS": str(case.values.names["cache_seconds"]),
        "BENCHAPP_HSTS_SECONDS": str(case.values.names["hsts_seconds"]),
        **case.values.env,
        **case.env,
    }
    return {key: text(template, context, f"environment {key}") for key, template in templates.items()}


def sidecars(case: Case, places: Places) -> dict[str, list[str]]:
    """The command of each program that the layers run beside the servers, by its name."""
    context = site_context(case, places)
    where = f"{case.layer_name} sidecar"
    return {name: argv(words, context, where) for name, words in case.sidecars.items()}


def argv(items: tuple[str, ...], context: dict[str, Any], where: str) -> list[str]:
    """A command's words, each a template."""
    return [text(item, context, where) for item in items]
