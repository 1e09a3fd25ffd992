# Run on a load host: a program whose length, and then text, come on standard input, so that no list of processes shows it.
exec python3 -I -u -c 'import sys; exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))'
