"""The way into a lab's network for ssh: connect in there, hand the connection over, end. See ProxyUseFdpass in ssh_config(5)."""

from __future__ import annotations

import socket
import sys


def main() -> None:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as made:
        made.settimeout(None)
        with socket.socket(fileno=1) as ssh:
            socket.send_fds(ssh, [b"\0"], [made.fileno()])


main()
