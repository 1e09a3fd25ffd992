"""Containers: the files and commands of a host, in an image without the instrument, closed to what they do not need."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from bench import paths, programs
from bench.serve.catalog import catalog
from bench.serve.catalog.server import SERVERS
from bench.serve.production import containers, lock_file, one_host, project_files
from bench.serve.project import commands
from tests.cases import kit, production

# Kubernetes' schemas of this version.
KUBERNETES = "1.37"
STACKS = [name for name, stack in catalog.read().stacks.items() if not stack.production]
SERVER_NAMES = [path.parent.name for path in SERVERS.glob("*/server.toml")]
# A stack of each kind of front server and each way to cache.
CASES = [
    ("nginx-uwsgi", "none"),
    ("nginx-gunicorn", "fragments"),
    ("nginx-cherrypy", "varnish"),
    ("apache-modwsgi", "apache-cache"),
    ("lighttpd-fastcgi", "staticgenerator"),
    ("caddy-gunicorn", "none"),
    ("haproxy-gunicorn", "none"),
    ("gunicorn", "none"),
    ("uwsgi", "uwsgi-cache"),
]
ASGI = ("uvicorn", "gunicorn-uvicorn", "gunicorn-asgi", "granian-asgi", "hypercorn", "daphne")
WITHOUT_TLS = ("gunicorn", "gunicorn-gevent", "uwsgi", "granian", "waitress", *ASGI)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """A function for the directory of a form, which is written once."""
    folders: dict[tuple, Path] = {}

    def render(stack: str, form: str, layer: str = "none", size: str = "unlimited", **changes: object) -> Path:
        key = (stack, form, layer, size, *changes.items())
        if key not in folders:
            folders[key] = tmp_path_factory.mktemp("rendered") / "out"
            containers.write(production(stack, layer, size=size, **changes), folders[key], form)
        return folders[key]

    return render


def on_a_host(text: str) -> str:
    """A text as a host has it: what terminates a stack's TLS is on the same machine, the configuration is writable."""
    return text.replace("0.0.0.0:8000", "127.0.0.1:8000").replace("/run/benchapp/maint", "/etc/benchapp/maint")


def read(path: Path):
    return yaml.safe_load(path.read_text("utf-8"))


def one(folder: Path, kind: str, name: str = "site.yaml") -> dict:
    """The manifest of that kind."""
    (manifest,) = [item for item in yaml.safe_load_all((folder / name).read_text("utf-8")) if item["kind"] == kind]
    return manifest


def of_compose(folder: Path) -> dict[str, dict]:
    """The services of compose.yaml that are containers of the chain, of its layer and of its services."""
    everything = read(folder / "compose.yaml")["services"]
    # Others run once, or on demand.
    return {name: of for name, of in everything.items() if name != "network" and "profiles" not in of}


def pod(folder: Path) -> dict:
    return one(folder, "Deployment")["spec"]["template"]["spec"]


def of_pod(folder: Path) -> dict[str, dict]:
    """The containers of the pod, in the order in which they start."""
    spec = pod(folder)
    return {container["name"]: container for container in [*spec.get("initContainers", []), *spec["containers"]]}


def of_docker_compose(folder: Path, secrets: str, **env: str) -> dict[str, dict]:
    """The services as Docker Compose reads them."""
    docker_compose = programs.find(["docker-compose"])
    if docker_compose is None:
        pytest.skip("program not installed: docker-compose")
    (folder / "secrets.env").write_text(secrets)
    argv = [str(docker_compose), "-f", "compose.yaml", "config"]
    done = subprocess.run(argv, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)
    return yaml.safe_load(done.stdout)["services"]


def validate_manifests(folder: Path) -> list[str]:
    """Kubernetes' schemas take all manifests; the names of those that kustomize uses."""
    listed = read(folder / "kustomization.yaml")["resources"]
    for name in [*listed, "secrets.example.yaml"]:
        for manifest in yaml.safe_load_all((folder / name).read_text("utf-8")):
            kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
    return listed


@pytest.mark.parametrize("stack", STACKS)
def test_the_servers_files_are_those_of_a_host(stack, tmp_path, rendered):
    host = tmp_path / "host"
    one_host.write(production(stack), host)
    for form in containers.FORMS:
        conf = rendered(stack, form) / "conf"
        files = {str(path.relative_to(conf)): path.read_text("utf-8") for path in conf.rglob("*") if path.is_file()}
        # The packages are for an image.
        del files[lock_file.LOCK]
        for name, text in files.items():
            assert on_a_host(text) == of_one_user((host / name).read_text("utf-8")), name


def of_one_user(text: str) -> str:
    """The text of a host without the directories of its servers: in containers all of them are one user."""
    return re.sub(rf"/run/benchapp/({'|'.join(SERVER_NAMES)})(?![\w.-])", "/run/benchapp", text)


@pytest.mark.parametrize(("stack", "layer"), CASES)
def test_a_container_has_nothing_that_it_does_not_need(stack, layer, rendered):
    folder = rendered(stack, "compose", layer)
    tls = [name for name, of in of_compose(folder).items() if any("/tls:ro" in item for item in of["volumes"])]
    for of in read(folder / "compose.yaml")["services"].values():
        assert (of["read_only"], of["cap_drop"]) == (True, ["ALL"])
        assert of["security_opt"] == ["no-new-privileges:true"]
        assert not {"privileged", "cap_add"} & of.keys()
    for of in of_compose(folder).values():
        assert of["stop_grace_period"] == "35s"
    spec = pod(rendered(stack, "kubernetes", layer))
    assert spec["securityContext"]["runAsNonRoot"] and not spec["automountServiceAccountToken"]
    everything = [*spec.get("initContainers", []), *spec["containers"]]
    for of in everything:
        assert of["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    mounted = [of["name"] for of in everything if "tls" in {mount["name"] for mount in of["volumeMounts"]}]
    # Only the server that terminates TLS has the key; stacks without a web server terminate none.
    expected = [] if stack in WITHOUT_TLS else [spec["containers"][0]["name"]]
    assert (tls, mounted) == (expected, expected)


def test_readiness_without_a_page_for_it_is_requested_by_name(rendered):
    folder = rendered("nginx-gunicorn", "kubernetes", redirect="off")
    front = of_pod(folder)["nginx"]
    assert front["readinessProbe"]["exec"]["command"][-1] == "https://example.org/readyz"


def test_a_cluster_has_two_pods_unless_each_would_cache_for_itself(rendered):
    for layer, replicas in (("none", 2), ("staticgenerator", 1), ("fragments", 1)):
        folder = rendered("nginx-uwsgi", "kubernetes", layer)
        assert one(folder, "Deployment")["spec"]["replicas"] == replicas


def test_a_size_limits_what_it_can(rendered):
    for name, of in of_compose(rendered("nginx-uwsgi", "compose", size="silver")).items():
        assert (of["mem_limit"], of["mem_reservation"], of["cpus"]) == ("512m", "384m", 1.0), name
    limits = pod(rendered("nginx-uwsgi", "kubernetes", size="silver"))["resources"]
    assert limits == {"requests": {"memory": "384Mi"}, "limits": {"memory": "512Mi", "cpu": "1.0"}}
    # Without one each container has another start, with room for what it stores in memory.
    folder = rendered("nginx-uwsgi", "kubernetes", "staticgenerator")
    assert "resources" not in pod(folder)
    stores = sum(int(it["emptyDir"]["sizeLimit"][:-2]) for it in pod(folder)["volumes"] if "emptyDir" in it)
    for of in of_pod(folder).values():
        least, most = (int(of["resources"][kind]["memory"][:-2]) for kind in ("requests", "limits"))
        assert least >= 64 and most == 2 * least + stores
    assert of_compose(rendered("nginx-uwsgi", "compose"))["uwsgi"]["mem_limit"] == "1216m"
    notes = [rendered("nginx-uwsgi", "kubernetes", size=size) / "INSTALL.md" for size in ("unlimited", "silver")]
    assert [re.findall(r"in Kubernetes (\S+) or newer", note.read_text()) for note in notes] == [["1.33"], ["1.34"]]


@pytest.mark.parametrize(
    ("stack", "layer", "size", "cache_mb"),
    [
        ("nginx-gunicorn", "none", "silver", 256),
        ("nginx-uwsgi", "nginx-microcache", "bronze", 128),
        ("nginx-uwsgi", "staticgenerator", "silver", 256),
    ],
)
def test_what_is_stored_in_memory_fits_into_the_size(stack, layer, size, cache_mb, rendered):
    """Else the kernel kills the pod before its store is full."""
    limit = catalog.read().size(size).burstable_mb
    folder = rendered(stack, "kubernetes", layer, size, cache_memory_mb=cache_mb)
    sizes = [volume["emptyDir"]["sizeLimit"] for volume in pod(folder)["volumes"] if "emptyDir" in volume]
    assert len(sizes) == 3 and sum(int(size_limit.removesuffix("Mi")) for size_limit in sizes) < limit
    text = (rendered(stack, "compose", layer, size, cache_memory_mb=cache_mb) / "compose.yaml").read_text("utf-8")
    assert sum(map(int, re.findall(r"\bsize=(\d+)m", text))) < limit


def test_jobs_have_limits_and_what_was_missed_for_long_is_left_out(rendered):
    folder = rendered("nginx-gunicorn", "kubernetes")
    cron = one(folder, "CronJob", "jobs.yaml")["spec"]
    assert cron["startingDeadlineSeconds"] > 0
    for spec in (cron["jobTemplate"]["spec"], one(folder, "Job", "jobs.yaml")["spec"]):
        (container,) = spec["template"]["spec"]["containers"]
        assert {*container["resources"]} == {"requests", "limits"} and "memory" in container["resources"]["limits"]


def test_the_table_of_a_cache_is_made_beside_the_migrations(tmp_path, monkeypatch):
    names = project_files.names
    monkeypatch.setattr(project_files, "names", lambda placed: {**names(placed), "database_cache": True})
    for form in ("compose", "kubernetes"):
        containers.write(production("nginx-gunicorn", "none"), tmp_path / form, form)
    validate_manifests(tmp_path / "kubernetes")
    (container,) = one(tmp_path / "kubernetes", "Job", "jobs.yaml")["spec"]["template"]["spec"]["containers"]
    assert re.findall(r"manage\.py (\w+) ", container["args"][-1]) == ["migrate", "createcachetable"]
    note = (tmp_path / "compose" / "INSTALL.md").read_text()
    assert (
        note.index("run --rm manage\n")
        < note.index("run --rm manage createcachetable\n")
        < note.index("up -d --no-build")
    )


@pytest.mark.parametrize("stack", ["nginx-gunicorn", "gunicorn"])
def test_a_cluster_lets_in_the_ports_of_the_front_only(stack, rendered):
    folder = rendered(stack, "kubernetes")
    allowed = one(folder, "NetworkPolicy")["spec"]["ingress"][0]["ports"]
    named = [port["name"] for port in pod(folder)["containers"][0]["ports"]]
    assert [port["port"] for port in allowed] == named


@pytest.mark.parametrize("listener", ["tls", "plain", "behind"])
def test_ports_are_those_of_the_listener(listener, rendered):
    folder = rendered("nginx-uwsgi", "compose", listener=listener)
    ports = ["443:443", "80:80"] if listener == "tls" else ["80:443"]
    assert read(folder / "compose.yaml")["services"]["nginx"]["ports"] == ports
    service = one(rendered("nginx-uwsgi", "kubernetes", listener=listener), "Service")
    names = ["https", "http"] if listener == "tls" else ["http"]
    assert [port["targetPort"] for port in service["spec"]["ports"]] == names
    note = (folder / "INSTALL.md").read_text("utf-8")
    assert ("privkey.pem" in note, "(`trusted_proxies`)" in note) == (listener == "tls", listener == "behind")


@pytest.mark.parametrize(("stack", "layer"), CASES)
def test_the_front_has_the_ports_unless_servers_speak_tcp_between_them(stack, layer, rendered):
    folder = rendered(stack, "compose", layer)
    services = read(folder / "compose.yaml")["services"]
    front = catalog.read().stacks[stack].servers[-1].name
    texts = "".join(
        path.read_text("utf-8") for path in (folder / "conf").rglob("*") if path.suffix in (".conf", ".vcl")
    )
    if "127.0.0.1:800" in texts.replace("127.0.0.1:8000", ""):
        assert services["network"]["ports"]
        assert {of["network_mode"] for of in of_compose(folder).values()} == {"service:network"}
    else:
        assert "network" not in services
        assert [name for name, of in services.items() if "ports" in of or "build" in of] == [front]


def test_a_stack_without_tls_is_reached_by_its_proxy_only(rendered):
    folder = rendered("gunicorn", "compose")
    assert read(folder / "compose.yaml")["services"]["gunicorn"]["ports"] == ["127.0.0.1:8000:8000"]
    assert "BENCHAPP_BEHIND_PROXY=1\n" in (folder / "site.env").read_text("utf-8")


def test_what_a_layer_stored_goes_when_a_new_version_comes(rendered):
    for layer in ("none", "staticgenerator"):
        note = (rendered("nginx-uwsgi", "compose", layer) / "INSTALL.md").read_text("utf-8")
        assert ("docker compose run --rm manage invalidatepages" in note) == (layer != "none")


def test_maintenance_is_switched_by_a_file_that_a_container_can_write(rendered):
    folder = rendered("nginx-uwsgi", "compose")
    assert "-f /run/benchapp/maintenance" in (folder / "conf" / "nginx.conf").read_text("utf-8")
    assert "exec nginx touch /run/benchapp/maintenance\n" in (folder / "INSTALL.md").read_text("utf-8")
    own = rendered("nginx-uwsgi", "compose", maintenance_file="/somewhere/else")
    assert "-f /somewhere/else" in (own / "conf" / "nginx.conf").read_text("utf-8")


def test_a_server_that_reads_one_file_gets_one(rendered):
    folder = rendered("haproxy-gunicorn", "kubernetes")
    items = next(volume for volume in pod(folder)["volumes"] if volume["name"] == "tls")["secret"]["items"]
    assert items == [{"key": "tls-combined.pem", "path": "both.pem"}]
    assert "--from-file=tls-combined.pem=both.pem" in (folder / "INSTALL.md").read_text("utf-8")


def test_the_image_keeps_no_compiler_and_installs_by_hash(rendered):
    image = (rendered("apache-modwsgi", "compose") / "Containerfile").read_text("utf-8")
    build, _, run = image.partition("# --- What runs")
    assert "apache2-dev gcc" in build and "gcc" not in run and "tini apache2 " in run
    assert image.count("--require-hashes -r") == 2
    assert "\nUSER 10001:10001\n" in run


@pytest.mark.parametrize("form", containers.FORMS)
@pytest.mark.parametrize(("stack", "layer"), CASES)
def test_files_do_not_mention_the_instrument_or_this_machine(stack, layer, form, rendered):
    for path in rendered(stack, form, layer).rglob("*"):
        if path.is_file():
            text = path.read_text("utf-8")
            assert not re.search(r"\bbench\b|benchmark|`verify`", text), path
            assert str(paths.KIT) not in text and str(paths.VENV) not in text, path
            assert "{{" not in text and "{%" not in text, path


@pytest.mark.servers
def test_the_image_is_built_from_what_the_site_needs_and_nothing_else(tmp_path, rendered):
    folder = rendered("gunicorn", "compose")
    lines = (folder / ".dockerignore").read_text("utf-8").splitlines()
    allowed = [line[1:].removeprefix("project/") for line in lines if line.startswith("!project/")]
    assert lines[lines.index("*") - 1].startswith("#"), "everything else is ignored"
    assert not {"bench", "tests", "deploy", "var", "docs"} & set(allowed)
    project = tmp_path / "project"
    project.mkdir()
    for name in allowed:
        source = paths.KIT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, project / name)
    # To compress them all takes seconds.
    commands.collect_static(kit(), kit().worker())
    shutil.copytree(kit().static_root, project / "var" / "static")
    # As the Containerfile's commands do.
    env = {"PATH": os.environ["PATH"], "SECRET_KEY": "none", "DATABASE_URL": "sqlite://:memory:"}
    for words in (["collectstatic", "--noinput"], ["loadfixtures", "--help"]):
        done = subprocess.run(
            [sys.executable, "manage.py", *words], cwd=project, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert [path.name for path in (project / "var").iterdir()] == ["static"], "no key and no database"


@pytest.mark.servers
@pytest.mark.parametrize(("stack", "layer"), [CASES[1], CASES[4], CASES[7]])
def test_compose_accepts_its_file(stack, layer, rendered):
    image, folder = "registry.example.org/benchapp:1", rendered(stack, "compose", layer, size="silver")
    resolved = of_docker_compose(folder, "SECRET_KEY=x\n", IMAGE=image)
    assert {of["image"] for name, of in resolved.items() if name != "postgresql"} == {image}
    site = next(of for of in resolved.values() if of.get("secrets"))
    assert "SECRET_KEY" not in site["environment"]
    assert site["environment"]["ALLOWED_HOSTS"] == "example.org,www.example.org"


@pytest.mark.parametrize(("stack", "layer"), CASES)
def test_kubernetes_accepts_the_manifests(stack, layer, rendered):
    folder = rendered(stack, "kubernetes", layer, size="silver")
    listed = validate_manifests(folder)
    for manifest in yaml.safe_load_all((folder / "extras.example.yaml").read_text("utf-8")):
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
    assert sorted([*listed, "extras.example.yaml", "kustomization.yaml", "secrets.example.yaml"]) == sorted(
        path.name for path in folder.glob("*.yaml")
    )


def test_kustomize_accepts_the_manifests(rendered):
    kubectl = programs.find(["kubectl"])
    if kubectl is None:
        pytest.skip("program not installed: kubectl")
    folder = rendered("nginx-gunicorn", "kubernetes", "fragments")
    done = subprocess.run([str(kubectl), "kustomize", str(folder)], capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)
    by_kind = {item["kind"]: item for item in yaml.safe_load_all(done.stdout)}
    assert set(by_kind) == {
        "ConfigMap",
        "CronJob",
        "Deployment",
        "Job",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
    }
    assert by_kind["ConfigMap"]["data"]["CACHE_URL"] == "pymemcache:///run/benchapp/memcached.sock"
    for kind in ("CronJob", "Deployment", "Job"):
        text = json.dumps(by_kind[kind])
        assert by_kind["ConfigMap"]["metadata"]["name"] in text, "its name has the hash of its content"
        assert '"registry.example.org/benchapp:1"' in text and '"image": "benchapp"' not in text
    # What a new version applies before the site: everything else.
    of_site = {kind for kind, item in by_kind.items() if _component(item) == "site"}
    assert of_site == {"Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"}


def _component(manifest: dict) -> str:
    return manifest["metadata"].get("labels", {}).get("app.kubernetes.io/component", "")
