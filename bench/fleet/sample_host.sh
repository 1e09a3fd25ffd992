# As root where that is possible: access logs and PostgreSQL need it. A template: a program and what it is asked.
[ "$(id -u)" = 0 ] || ! sudo -n true 2> /dev/null || sudo=sudo
exec $sudo python3 -c {script} {asked}
