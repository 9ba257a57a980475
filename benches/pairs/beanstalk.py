"""Four connections put jobs into beanstalkd."""
import socket
import sys
import threading


def put(count):
    with socket.create_connection(("127.0.0.1", 11399)) as link:
        for _ in range(count):
            link.sendall(b"put 0 0 60 500\r\n" + b"x" * 500 + b"\r\n")
            while not link.recv(100).endswith(b"\r\n"):
                pass


threads = [threading.Thread(target=put, args=(int(sys.argv[1]),)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
