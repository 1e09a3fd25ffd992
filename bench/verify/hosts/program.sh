# Run on a host: a program in Python whose length, and then text, come on standard input, so that no list of processes
# shows it. As root where $sudo says so.
exec $sudo python3 -I -u -c 'import sys; exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))'
