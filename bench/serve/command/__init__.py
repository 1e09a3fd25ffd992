"""`manage.py benchapp doctor | up | verify`: an app for INSTALLED_APPS of a project in development."""
