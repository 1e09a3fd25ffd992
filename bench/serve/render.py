"""Rendering a composition's files into a directory. Nothing is started here.

A server reads, all from one directory: its own files of the stack's folder (`<server>.<anything>`), the snippets that
stacks share (`common/<server>/`, rendered to `<server>/`) and the layer's snippets (`layer/<server>.<point>`). A point
that the layer does not fill is filled by the layer `none`, so that every include of a stack's file finds its file.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2

from bench import paths
from bench.catalog import catalog, values
from bench.catalog.compose import Composition
from bench.catalog.manifest import NO_LAYER, Server, Service
from bench.catalog.values import Values
from bench.errors import BenchError
from bench.host.supervise import Address

ENGINE = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True)


@dataclass(frozen=True)
class Places:
    """Where a deployment's things are when it runs; see `[places]` of deploy/values/production.toml."""

    project: str
    venv: str
    static_root: str
    conf: str
    run: str
    logs: str
    store: str
    tls: str
    user: str
    group: str
    bind: str
    port: int

    @property
    def python(self) -> str:
        return f"{self.venv}/bin/python"


@dataclass(frozen=True)
class Wiring:
    """The addresses of a chain: the list of each server's instances, by the server's name."""

    listens: dict[str, list[Address]] = field(default_factory=dict)


def instance_name(server: str, number: int) -> str:
    """What the instance of a server is called: by the server's name, the second `name-2`."""
    return server if number == 1 else f"{server}-{number}"


def wire(servers: tuple[Server, ...], places: Places, values: dict[str, Any], ports: Any) -> Wiring:
    """Give each server its addresses: the outermost the front port, the others a Unix socket or a port of `ports()`."""
    listens: dict[str, list[Address]] = {}
    for server in servers:
        if server is servers[-1]:
            listens[server.name] = [Address(host=places.bind, port=places.port)]
            continue
        count = int(values[server.instances]) if server.instances else 1
        listens[server.name] = [_inner_address(server, places, index, ports) for index in range(count)]
    return Wiring(listens)


def _inner_address(server: Server, places: Places, index: int, ports: Any) -> Address:
    if server.listen == "tcp":
        return Address(host="127.0.0.1", port=ports())
    return Address(path=f"{places.run}/{server.name}{f'-{index + 1}' if server.instances else ''}.sock")


def settings(composition: Composition, chosen: Values) -> dict[str, Any]:
    """The values by name: those of the file, over them the stack's own, over both what the user changed; and what is
    derived from them."""
    names = {**chosen.names, **composition.stack.values, **chosen.changes}
    return {**names, **values.derived(names)}


def text(template: str, context: dict[str, Any], where: str) -> str:
    """`template` rendered; raises BenchError naming `where` for an unknown name or a syntax error."""
    try:
        return ENGINE.from_string(template).render(context)
    except jinja2.TemplateError as error:
        raise BenchError(f"{where}: {error}; docs/adding-a-stack.md lists the names") from None


def context_of(
    server: Server, composition: Composition, places: Places, wiring: Wiring, chosen: Values
) -> dict[str, Any]:
    """The names that the templates of one server can use."""
    chain = [item.name for item in composition.servers]
    index = chain.index(server.name)
    context: dict[str, Any] = {
        **settings(composition, chosen),
        **vars(places),
        "python": places.python,
        "modules": composition.modules.get(server.name, {}),
        "stack": composition.stack.name,
        "program": str(composition.programs[server.name]),
        "listens": wiring.listens[server.name],
        "listen": wiring.listens[server.name][0],
    }
    if context["listen"].port:
        # The front address is that of the outermost server alone, which a layer may have put before this one.
        context |= {"bind": context["listen"].host, "port": context["listen"].port}
    if index > 0:
        context["upstreams"] = wiring.listens[chain[index - 1]]
        context["upstream"] = context["upstreams"][0]
        context["upstream_speaks"] = composition.servers[index - 1].speaks
    return context


def write_files(composition: Composition, places: Places, wiring: Wiring, chosen: Values, conf: Path) -> list[Path]:
    """Render every file that the servers of the chain read into `conf`; returns the files written."""
    written = []
    for server in composition.servers:
        context = context_of(server, composition, places, wiring, chosen)
        for name, source in server_files(server, composition).items():
            target = conf / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text(source.read_text("utf-8"), context, str(source)), "utf-8")
            written.append(target)
    return written


def server_files(server: Server, composition: Composition) -> dict[str, Path]:
    """The templates of one server, by the name they are rendered to."""
    files = {path.name: path for path in sorted(_home(server, composition).glob(f"{server.name}.*"))}
    common = paths.DEPLOY / "common" / server.name
    if common.is_dir():
        names = [path for path in sorted(common.iterdir()) if path.name != "server.toml"]
        files |= {f"{server.name}/{path.name}": path for path in names}
    for layer in (catalog.read().layers[NO_LAYER], *composition.layers):
        if server in layer.servers:
            continue
        files |= {f"layer/{point}": path for point, path in layer.snippets(server.name).items()}
    return files


def has_tls(server: Server, composition: Composition) -> bool:
    """Whether the server has a file to listen with TLS."""
    return any("listen.tls." in name for name in server_files(server, composition))


def _home(server: Server, composition: Composition) -> Path:
    """The folder of the layer that brings the server, or else the stack's."""
    return next((layer.folder for layer in composition.layers if server in layer.servers), composition.stack.folder)


def service_context(
    service: Service, programs: dict[str, str], places: Places, chosen: Values, data: Path
) -> dict[str, Any]:
    """The names that the templates of a service can use."""
    socket = f"{places.run}/{service.name}.sock"
    return {
        **chosen.names,
        **vars(places),
        "programs": programs,
        "data": str(data),
        "socket": socket,
        "folder": str(service.folder),
    }


def argv(items: tuple[str, ...], context: dict[str, Any], where: str) -> list[str]:
    """A command's words, each a template."""
    return [text(item, context, where) for item in items]


def fresh_directory(target: Path, force: bool = False) -> None:
    """Make `target` an empty directory; raises BenchError when it holds something."""
    if target.exists() and not target.is_dir():
        raise BenchError(f"{target}: is a file; name a new or empty directory")
    if target.is_dir() and any(target.iterdir()):
        if not force:
            raise BenchError(f"{target}: not empty; name a new or empty directory")
        shutil.rmtree(target)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"{target}: cannot be made: {error.strerror}") from None
