"""`manage.py benchapp doctor | up | verify`: for a project that lists this app in INSTALLED_APPS of its development."""
