"""Workers of a project beside its servers: what was queued before a reload is done after it, and nothing twice."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import paths
from bench.serve.machine import ports
from tests.deploy.running import Up, command, get
from tests.projects import open_folder
from tests.skips import needs
from tests.waiting import until

pytestmark = pytest.mark.servers

PROGRAMS = Path(f"{paths.VENV}-projects", "bin")
# Of a job a row is left, under a name that no other has.
DONE = """
import time, uuid


def do(number):
    from django.contrib.auth.models import Group

    time.sleep(0.7)
    Group.objects.create(name=f"job {number} {uuid.uuid4().hex}")
"""
URLS = """
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.urls import path
from shop.tasks import queue


def add(request, number):
    queue(number)
    return HttpResponse("queued")


def done(request):
    return HttpResponse("\\n".join(Group.objects.values_list("name", flat=True)))


urlpatterns = [path("", done), path("add/<int:number>/", add)]
"""
DJANGO = {
    "shop/tasks.py": DONE
    + """
from django_tasks import task

# By this name the worker finds it.
do = task()(do)


def queue(number):
    do.enqueue(number)
""",
    "settings": """
INSTALLED_APPS += ["django_tasks", "django_tasks.backends.database"]
TASKS = {"default": {"BACKEND": "django_tasks.backends.database.DatabaseBackend"}}
""",
    "command": "manage.py db_worker",
}
CELERY = {
    "shop/tasks.py": DONE
    + """
from celery import shared_task

do = shared_task(do)


def queue(number):
    do.delay(number)
""",
    # As Celery's guide for Django has it.
    "shop/__init__.py": "from .celery import app\n",
    "shop/celery.py": """
import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["shop"])
""",
    "settings": 'CELERY_BROKER_URL = "redis://127.0.0.1:{port}/0"\n',
    "command": "celery -A shop worker --concurrency 1",
}
# A queue is a table, and a worker a loop.
PLAIN = {
    "shop/tasks.py": DONE
    + """

def queue(number):
    from django.contrib.auth.models import Permission

    Permission.objects.create(codename=f"job-{number}", name="job", content_type_id=1)
""",
    "shop/management/commands/work.py": """
import signal, time

from django.contrib.auth.models import Permission
from django.core.management.base import BaseCommand

from shop.tasks import do


class Command(BaseCommand):
    def handle(self, **options):
        self.goes_on = True
        signal.signal(signal.SIGTERM, self.stop)
        while self.goes_on:
            job = Permission.objects.filter(codename__startswith="job-").order_by("pk").first()
            if job:
                do(int(job.codename[4:]))
                job.delete()
            time.sleep(0.1)

    def stop(self, *_):
        self.goes_on = False
""",
    "settings": 'INSTALLED_APPS += ["shop"]\n',
    "command": "manage.py work",
}
QUEUES = {"django": DJANGO, "celery": CELERY, "plain": PLAIN}


@pytest.fixture
def broker() -> Iterator[int]:
    """The port of a Redis for a queue."""
    needs("redis-server")
    port = ports.free_port()
    with subprocess.Popen(["redis-server", "--port", str(port), "--save", ""], stdout=subprocess.DEVNULL) as redis:
        yield port
        redis.terminate()


@contextmanager
def queue_project(queue: dict[str, str], port: int) -> Iterator[Path]:
    """A project with a queue and its worker."""
    env = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    with open_folder() as folder:
        python = PROGRAMS / "python"
        subprocess.run([python, "-m", "django", "startproject", "shop", folder], env=env, check=True)
        for name, text in queue.items():
            if "/" in name:
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        (folder / "shop/urls.py").write_text(URLS)
        with (folder / "shop/settings.py").open("a") as settings:
            settings.write('ALLOWED_HOSTS = ["127.0.0.1"]\n' + queue["settings"].replace("{port}", str(port)))
        description = (
            f'[tool.benchapp]\npython = "{python}"\n[tool.benchapp.workers.tasks]\ncommand = "{queue["command"]}"\n'
        )
        (folder / "pyproject.toml").write_text(description)
        subprocess.run([python, "manage.py", "migrate", "-v0"], cwd=folder, env=env, check=True)
        yield folder


@pytest.mark.parametrize("name", QUEUES)
def test_what_was_queued_before_a_reload_is_done_after_it_once(name, broker):
    if name == "celery" and not (PROGRAMS / "celery").is_file():
        pytest.skip("program not installed: celery")
    with queue_project(QUEUES[name], broker) as folder, Up("gunicorn", "--project", str(folder), "--workers") as up:
        for number in range(4):
            assert get(f"{up.url}add/{number}/").text == "queued"
        until(lambda: "job 0" in get(up.url).text, "the first job is done")
        # The second one is under way.
        time.sleep(0.3)
        port = re.search(r":(\d+)/", up.url)[1]
        done = command("-m", "bench", "reload", "--port", port)
        assert done.returncode == 0, done.stderr
        until(lambda: "job 3" in get(up.url).text, "the last job is done")
        time.sleep(1)
        assert Counter(line.split()[1] for line in get(up.url).text.splitlines()) == {str(n): 1 for n in range(4)}


def test_workers_that_are_not_there_are_one_line(new_project):
    done = command("-m", "bench", "up", "gunicorn", "--workers", "--project", str(new_project()))
    assert done.returncode == 2
    assert "--workers" in done.stderr and len(done.stderr.splitlines()) == 1
