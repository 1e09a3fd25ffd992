"""Several hosts: an inventory of them, and what each of them runs."""
