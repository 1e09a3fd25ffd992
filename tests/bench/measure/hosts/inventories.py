"""Inventories of hosts that are this machine, or are reached by a program in place of ssh."""

from __future__ import annotations

from bench.serve.production.inventory import Inventory
from tests.skips import needs


def write(known: Inventory) -> Inventory:
    """Write the inventory for Ansible to its path."""
    needs("ansible-playbook")
    lines = []
    for host in known.hosts:
        # A program in place of ssh has no file transfer.
        far = f"ansible_host={host.target} ansible_port={host.port} ansible_ssh_transfer_method=piped"
        way = "ansible_connection=local" if host.local else far
        lines.append(f"{host.name} {way} address={host.address}")
    for group in dict.fromkeys(group for host in known.hosts for group in host.groups):
        lines += [f"[{group}]", *(host.name for host in known.hosts if group in host.groups)]
    known.path.parent.mkdir(exist_ok=True)
    known.path.write_text("\n".join([*lines, ""]))
    return known
