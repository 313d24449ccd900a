"""N times /bin/true with Dask: python dask_peer.py N independent|chain"""
import subprocess
import sys
import time


def task(*_):
    subprocess.run(["/bin/true"], check=True)


if __name__ == "__main__":
    from dask.distributed import Client, LocalCluster

    n, shape = int(sys.argv[1]), sys.argv[2]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.submit(task, -1, pure=False).result()
        start = time.perf_counter()
        if shape == "chain":
            last = None
            for i in range(n):
                last = client.submit(task, last, i, pure=False)
            last.result()
        else:
            client.gather(client.map(task, range(n), pure=False))
        print(time.perf_counter() - start)
