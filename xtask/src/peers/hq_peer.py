"""N times /bin/true with HyperQueue: python hq_peer.py N independent|chain"""
import sys
import time

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

if __name__ == "__main__":
    n, shape = int(sys.argv[1]), sys.argv[2]
    with LocalCluster() as cluster:
        cluster.start_worker(WorkerConfig(cores=2))
        client = cluster.client()
        job = Job()
        last = None
        for _ in range(n):
            last = job.program(["/bin/true"], stdout=None, stderr=None, deps=[last] if shape == "chain" and last else ())
        start = time.perf_counter()
        client.wait_for_jobs([client.submit(job)])
        print(time.perf_counter() - start)
