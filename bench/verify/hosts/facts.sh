# Run on a host by `hosts check`: what is there, in one line; then the time in nanoseconds, as often as it is asked for.
command -v python3 > /dev/null && python=yes || python=no
[ "$(id -u)" = 0 ] || sudo -n true 2> /dev/null && root=yes || root=no
[ -d /run/systemd/system ] && systemd=yes || systemd=no
echo "$python $root $systemd"
while read -r line; do date +%s%N; done
