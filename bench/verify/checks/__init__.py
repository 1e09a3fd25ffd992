"""The checks, registered in the order of these modules within each stage."""

# isort: off
from bench.verify.checks import pages  # noqa: F401
from bench.verify.checks import static  # noqa: F401
from bench.verify.checks import paths  # noqa: F401
from bench.verify.checks import hosts  # noqa: F401
from bench.verify.checks import inside  # noqa: F401
from bench.verify.checks import connections  # noqa: F401
from bench.verify.checks import accounts  # noqa: F401
from bench.verify.checks import bodies  # noqa: F401
from bench.verify.checks import freshness  # noqa: F401
from bench.verify.checks import stampede  # noqa: F401
from bench.verify.checks import files  # noqa: F401
from bench.verify.checks import service  # noqa: F401
from bench.verify.checks import advisories  # noqa: F401
from bench.verify.checks import caching  # noqa: F401
from bench.verify.checks import privacy  # noqa: F401
from bench.verify.checks import web  # noqa: F401
from bench.verify.checks import octets  # noqa: F401
from bench.verify.checks import names  # noqa: F401
