# Run on a host: its facts in one line; then the time in nanoseconds, for each line of input.
python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null) || python=no
cores=$(nproc 2> /dev/null) || cores=1
[ "$(id -u)" = 0 ] || sudo -n true 2> /dev/null && root=yes || root=no
[ -d /run/systemd/system ] && systemd=yes || systemd=no
echo "$python $cores $root $systemd"
while read -r line; do date +%s%N; done
