"""Threads that begin together and switch often."""

import sys
import threading


def together(count, work):
    """Run a function in so many threads, and return when all have ended."""
    gate, interval = threading.Barrier(count), sys.getswitchinterval()

    def begin():
        gate.wait()
        work()

    threads = [threading.Thread(target=begin) for _ in range(count)]
    sys.setswitchinterval(1e-6)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)
