# PYTHON_ARGCOMPLETE_OK
"""`python -m bench`: the instrument's command line. This file also runs on older Pythons, to name the required
version."""

import sys

NEEDED = (3, 11)


def run() -> int:
    """Run the command line; returns its exit status."""
    if sys.version_info < NEEDED:
        version, needed = (".".join(map(str, numbers)) for numbers in (sys.version_info[:3], NEEDED))
        return _refuse(f"this is Python {version}, and {needed} or newer is needed")
    try:
        from bench.cli.main import main

        return main()
    except ModuleNotFoundError as error:
        if (error.name or "bench").partition(".")[0] == "bench":
            raise
        return _refuse(str(error))
    except KeyboardInterrupt:
        # This early nothing has been started.
        return 130


def _refuse(why: str) -> int:
    help_line = "activate the virtual environment, or run `make venv` once to create it"
    print(f"benchapp: {why}: {help_line}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(run())
