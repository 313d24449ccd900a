/** Clusters to begin with, for those who describe their own. */

export const FIXED = `nodes:
  - id: node
    count: 4 # as many as are compared
    cpus: 4
    memory: 16 GiB
    speed: 1.0 # of where runtimes were recorded
    price: 0.10 # per hour
storage: local # or {mode: shared, bandwidth: 2 GB/s}
network:
  bandwidth: 125 MB/s
  latency: 1 ms
  sharing: fair
scheduling: 5 ms
`;

const ON_DEMAND = `nodes:
  - id: small
    count: 2 # from the beginning
    max: 20 # made when tasks wait
    cpus: 4
    memory: 16 GiB
    price: 0.10 # per hour
    boot: 90 s
    idle: 5 min # then it goes
  - id: large
    count: 0
    max: 4
    cpus: 16
    speed: 2.0
    price: 0.90
    boot: 2 min
storage: {mode: shared, bandwidth: 2 GB/s}
`;

const UNRELIABLE = `nodes:
  - id: node
    count: 4
    cpus: 1
storage: {mode: shared, bandwidth: 1 GB/s}
chance:
  spread: 30 % # durations are off by up to this
  stragglers: 5 % # so many are slow for no reason
  factor: 5 # so many times slower
  failures: 1 % # fail and are repeated
  lifetime: 6 h # of nodes, on average
  repair: 5 min
`;

export const TEMPLATES = [
  { id: "fixed", name: "Nodes with local disks", yaml: FIXED },
  { id: "demand", name: "Nodes on demand", yaml: ON_DEMAND },
  { id: "chance", name: "Things go wrong", yaml: UNRELIABLE },
];
