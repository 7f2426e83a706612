"""A packetdrill of a few lines, which has the command line of the real one and reads no packet.

A script passes unless it says FAIL in one of its lines; what the command line gives it is checked,
and the clock is waited for as the real one does it, by times(2).  It tells nothing about a kernel.
"""

from __future__ import annotations

from pathlib import Path

MAKEFILE = """\
packetdrill: main.o
\t$(CC) -o packetdrill main.o $(packetdrill-ext-libs)
"""
MAIN = r"""
#include <stdio.h>
#include <string.h>
#include <sys/times.h>

int main(int count, char **words)
{
	const char *script = words[count - 1];
	char line[512];
	clock_t first = times(NULL);
	int ip = 0, number = 0;
	FILE *file = fopen(script, "r");

	while (times(NULL) == first)
		; /* for ever, where no call costs time */
	for (int i = 1; i < count; i++)
		ip |= !strncmp(words[i], "--ip_version=", 13);
	if (!file || !ip)
		return 2;
	while (fgets(line, sizeof line, file)) {
		number++;
		if (strstr(line, "FAIL")) {
			fprintf(stderr, "%s:%d: error handling packet: planted\n", script, number);
			return 1;
		}
	}
	return 0;
}
"""


def write_drill(folder: Path) -> Path:
    """Write its source, as the real one's is laid out, and return the folder to name."""
    source = folder / "gtests" / "net" / "packetdrill"
    source.mkdir(parents=True)
    (source / "Makefile.Linux").write_text(MAKEFILE)
    (source / "main.c").write_text(MAIN)
    return folder
