# As root where that is possible: access logs and PostgreSQL need it. A template: a program and what it is asked.
exec $sudo python3 -c {script} {asked}
