# Runs Python with its program from standard input: the length in a line, then the text.
python=PYTHON
exec "${python:-python3}" -I -u -c 'import sys; exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))'
