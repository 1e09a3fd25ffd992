"""A world of hosts on one machine: real systemd and sshd in containers, joined by links of a limited rate."""
