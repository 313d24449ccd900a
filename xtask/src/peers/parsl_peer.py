"""N times /bin/true with Parsl: python parsl_peer.py N independent|chain"""
import sys
import tempfile
import time

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider


@parsl.python_app
def task(_previous=None):
    import subprocess

    subprocess.run(["/bin/true"], check=True)


if __name__ == "__main__":
    n, shape = int(sys.argv[1]), sys.argv[2]
    executor = HighThroughputExecutor(
        address="127.0.0.1", max_workers_per_node=2, provider=LocalProvider(init_blocks=1, max_blocks=1)
    )
    with tempfile.TemporaryDirectory() as directory:
        with parsl.load(Config(executors=[executor], run_dir=directory, usage_tracking=0)):
            task().result()
            start = time.perf_counter()
            if shape == "chain":
                last = None
                for _ in range(n):
                    last = task(last)
                last.result()
            else:
                for future in [task() for _ in range(n)]:
                    future.result()
            print(time.perf_counter() - start, flush=True)
