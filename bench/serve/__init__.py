"""SERVE AND DEPLOY: a project behind any stack, under any layer, here and on other machines.

machine     processes, users, control groups, ports and cores of this machine
catalog     the declarations of deploy/: stacks, layers, services, values and sizes
project     the served project: description, inspection, findings of `doctor`, environment
deployment  a case, and how to render, start, reload and check one here
production  the files of a host, of containers and of several hosts
inside      code in the project's own process, which nothing else imports
command     `manage.py benchapp`, for a project that lists this among its apps
"""
