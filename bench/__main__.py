"""`python -m bench`: the instrument's command line."""

import sys

if __name__ == "__main__":
    try:
        from bench.cli.main import main

        status = main()
    except KeyboardInterrupt:
        # This early nothing has been started.
        status = 130
    sys.exit(status)
