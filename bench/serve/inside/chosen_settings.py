"""The settings that a manage.py chooses, as JSON: python chosen_settings.py OUTPUT

The project's interpreter runs this script in the project's folder, so that every step of manage.py to find the settings
has happened: reading variables, files and the command line. No command begins. Needs Python 3.8 and Django.
"""

import json
import os
import runpy
import sys
from pathlib import Path

# Where django-configurations finds the class of the settings.
NAMES = ("DJANGO_SETTINGS_MODULE", "DJANGO_CONFIGURATION")


def main():
    """Run manage.py up to the point where Django takes over."""
    from django.core import management

    output, here = Path(sys.argv[1]), Path.cwd()

    def chosen(*_):
        # With the variables that it read from a file, as of python-dotenv.
        variables = {name: value for name, value in os.environ.items() if name in NAMES or name not in given}
        # What manage.py has put on the path of modules, relative to it: a `src`, or a folder of apps.
        added = [Path(folder) for folder in sys.path if Path(folder) not in before]
        variables["PYTHONPATH"] = ":".join(str(folder.relative_to(here)) for folder in added if here in folder.parents)
        output.write_text(json.dumps(variables), "utf-8")
        raise SystemExit

    # What its execute_from_command_line calls, too.
    management.ManagementUtility.execute = chosen
    # As for each of its commands: some manage.py have other settings for `test`.
    sys.argv = [str(here / "manage.py"), "check"]
    sys.path[0] = str(here)
    before, given = {here, *map(Path, sys.path)}, set(os.environ)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
