"""A storage of static files under their own names that notes names of missing files; a part of inspect_project.

Django imports the class by its name when a page first needs a static file.
"""

import sys

from django.contrib.staticfiles.storage import StaticFilesStorage
from inspect_pages import MISSING_STATIC, cause_of
from inspect_static import is_missing


class NotedStaticFilesStorage(StaticFilesStorage):
    """The storage; missing names go into MISSING_STATIC, which each page empties."""

    def url(self, name, *args, **named):
        """As Django's."""
        if name and name not in MISSING_STATIC:
            cause = cause_of(sys._getframe(1))
            # A package's code may try names, as WhiteNoise does when it starts: only a line of a template or of the
            # project says that a page needs the file.
            if ":" in cause and is_missing(name):
                MISSING_STATIC[name] = cause
        return super().url(name, *args, **named)
