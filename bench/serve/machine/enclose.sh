#!/bin/sh
# enclose.sh CLOSED VISIBLE... -- COMMAND...: run a command for which the directory CLOSED holds VISIBLE and nothing else.
# In a separate mount namespace: unshare(1). Everything in CLOSED keeps its owner and mode.
set -e
umask 022
closed=$1
shift
# Built elsewhere, because it hides what it stands on.
mount -t tmpfs -o mode=0755,size=1m enclosed /mnt
while [ "$1" != -- ]; do
    mkdir -p "/mnt${1#"$closed"}"
    mount --rbind "$1" "/mnt${1#"$closed"}"
    shift
done
shift
mount --move /mnt "$closed"
exec "$@"
