"""`python -m bench`: the instrument's command line."""

import sys

if __name__ == "__main__":
    try:
        from bench.cli.main import main

        status = main()
    except KeyboardInterrupt:
        # So early that nothing was started.
        status = 130
    sys.exit(status)
