"""SERVE AND DEPLOY: a project behind any stack, under any layer, here and on other machines.

machine     processes, users, control groups, ports and cores of this machine
catalog     what deploy/ declares: stacks, layers, services, values and sizes
project     the project that is served: description, inspection, findings of `doctor`, environment
deployment  a case, and how it is rendered, started, reloaded and checked here
production  the files of a host, of containers and of several hosts
inside      what runs in the project's own process; nothing here imports it
command     `manage.py benchapp`, for a project that lists it among its apps
"""
