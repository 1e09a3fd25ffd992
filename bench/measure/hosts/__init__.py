"""Several hosts: their inventory, and the programs on each."""
