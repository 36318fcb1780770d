"""One service and one state for each part of a stream.

    python partitions.py COLUMN PARTS COMMAND …

Rows of CSV come on standard input. Each goes to the part that the hash of its COLUMN decides, so
that all rows of a customer, a sensor or a shop meet the same learner. `{part}` in COMMAND is the
number of the part:

    python partitions.py shop 4 ahpatron run - --label fraud --classes no,yes \
        --state fraud-{part}.npz --predictions answers-{part}.csv
"""

import csv
import signal
import subprocess
import sys
import zlib


def main() -> None:
    """Start the services, and send each row to one of them."""
    column = sys.argv[1]
    parts = int(sys.argv[2])
    header = sys.stdin.readline()
    place = next(csv.reader([header])).index(column)
    services = []
    for part in range(parts):
        command = [word.replace("{part}", str(part)) for word in sys.argv[3:]]
        service = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        service.stdin.write(header)
        services.append(service)
    # After SIGTERM, the services get the end of the stream, and save their states.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for line in sys.stdin:
            key = next(csv.reader([line]))[place]
            service = services[zlib.crc32(key.encode()) % parts]
            service.stdin.write(line)
            service.stdin.flush()
    except KeyboardInterrupt:
        pass
    finally:
        for service in services:
            service.stdin.close()
    sys.exit(max(service.wait() for service in services))


main()
