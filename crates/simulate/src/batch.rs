//! The grid of the evaluation of prio (section 4 of the paper).
//!
//! Workers come in batches. The size of a batch and the time between two are exponentially distributed; a worker
//! takes one eligible job and is gone if there is none. Jobs take 1 ± 0.1. Where the paper is silent: sizes are
//! rounded up, jobs that end when a batch comes have ended before it, and long waits without an eligible job are
//! counted at once (with normal approximations if there are many).

use crate::random::Random;
use catena_plan::Dag;

/// What a simulated execution comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// When the last job has ended.
    pub time: f64,
    /// The part of the batches that came when nothing was eligible.
    pub stalling: f64,
    /// Jobs per worker that came, until the last job was taken.
    pub utilisation: f64,
}

/// Which of the eligible jobs comes next.
#[derive(Clone, Debug)]
pub enum Choice {
    /// The one that became eligible first.
    Fifo,
    /// The one that comes first in an order.
    Order(Vec<u32>),
}

/// How many buckets the next two units of time are divided into, and within what time jobs end.
const BUCKETS: usize = 64;
const PER_UNIT: f64 = 32.0;
const LONGEST: f64 = 1.95;

/// Executes a dag again and again.
pub struct Grid<'d> {
    dag: &'d Dag,
    parents: Vec<u32>,
    /// The place of each job in the order, and the job at each place.
    order: Option<(Vec<u32>, Vec<u32>)>,
    interarrival: f64,
    size: f64,
    // What a run uses, kept to be used again.
    waits: Vec<u32>,
    queue: Vec<u32>,
    set: Bits,
    buckets: Vec<Vec<(f64, u32)>>,
    /// Which buckets have a job.
    occupied: u64,
    due: Vec<(f64, u32)>,
}

/// A set of small numbers whose smallest is found quickly.
#[derive(Default)]
struct Bits {
    words: Vec<u64>,
    /// Which words have a bit.
    summary: Vec<u64>,
}

impl Bits {
    fn clear(&mut self, size: usize) {
        self.words.clear();
        self.words.resize(size.div_ceil(64), 0);
        self.summary.clear();
        self.summary.resize(self.words.len().div_ceil(64), 0);
    }

    fn insert(&mut self, n: u32) {
        let word = n as usize / 64;
        self.words[word] |= 1 << (n % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    fn pop(&mut self) -> Option<u32> {
        let at = self.summary.iter().position(|s| *s != 0)?;
        let word = at * 64 + self.summary[at].trailing_zeros() as usize;
        let bit = self.words[word].trailing_zeros();
        self.words[word] &= self.words[word] - 1;
        if self.words[word] == 0 {
            self.summary[at] &= self.summary[at] - 1;
        }
        Some(word as u32 * 64 + bit)
    }
}

impl<'d> Grid<'d> {
    /// A grid with these means of the time between batches and of their size.
    pub fn new(dag: &'d Dag, choice: Choice, interarrival: f64, size: f64) -> Self {
        let order = match choice {
            Choice::Fifo => None,
            Choice::Order(jobs) => {
                let mut places = vec![0; jobs.len()];
                for (place, job) in (0..).zip(&jobs) {
                    places[*job as usize] = place;
                }
                Some((places, jobs))
            }
        };
        Self {
            dag,
            parents: (0..dag.len() as u32).map(|v| dag.parents(v).len() as u32).collect(),
            order,
            interarrival,
            size,
            waits: Vec::new(),
            queue: Vec::new(),
            set: Bits::default(),
            buckets: vec![Vec::new(); BUCKETS],
            occupied: 0,
            due: Vec::new(),
        }
    }

    /// The means of some executions.
    pub fn sample(&mut self, runs: usize, seed: u64) -> Metrics {
        let mut random = Random::new(seed);
        let mut sum = Metrics::default();
        for _ in 0..runs {
            let one = self.run(&mut random);
            sum.time += one.time;
            sum.stalling += one.stalling;
            sum.utilisation += one.utilisation;
        }
        let runs = runs.max(1) as f64;
        Metrics { time: sum.time / runs, stalling: sum.stalling / runs, utilisation: sum.utilisation / runs }
    }

    fn run(&mut self, random: &mut Random) -> Metrics {
        let jobs = self.dag.len();
        self.waits.clone_from(&self.parents);
        self.queue.clear();
        self.set.clear(jobs);
        let mut eligible = 0usize;
        for job in 0..jobs as u32 {
            if self.parents[job as usize] == 0 {
                self.becomes_eligible(job);
                eligible += 1;
            }
        }
        let (mut taken, mut head) = (0, 0);
        let (mut now, mut end) = (0.0f64, 0.0f64);
        // The bucket up to which everything has ended.
        let mut bucket = 0u64;
        let (mut batches, mut stalled, mut workers) = (0u64, 0u64, 0u64);
        while taken < jobs {
            batches += 1;
            let size = (random.exponential() * self.size).ceil().max(1.0) as u64;
            workers += size;
            if eligible == 0 {
                stalled += 1;
            }
            for _ in 0..size.min(eligible as u64) {
                let job = match &self.order {
                    None => {
                        head += 1;
                        self.queue[head - 1]
                    }
                    Some((_, jobs)) => jobs[self.set.pop().map_or(0, |place| place as usize)],
                };
                let finish = now + (1.0 + 0.1 * random.normal()).clamp(0.01, LONGEST);
                end = end.max(finish);
                let bucket = (finish * PER_UNIT) as usize % BUCKETS;
                self.buckets[bucket].push((finish, job));
                self.occupied |= 1 << bucket;
                taken += 1;
                eligible -= 1;
            }
            if taken == jobs {
                break;
            }
            if eligible == 0 {
                // Nobody gets anything before the next job has ended.
                let next = self.next_finish(bucket);
                let missed = random.poisson((next - now) / self.interarrival);
                batches += missed;
                stalled += missed;
                workers += self.sizes(missed, random);
                now = next;
            }
            now += random.exponential() * self.interarrival;
            eligible += self.end_until(now, &mut bucket);
        }
        for bucket in &mut self.buckets {
            bucket.clear();
        }
        self.occupied = 0;
        let part = |n: u64, of: u64| n as f64 / of.max(1) as f64;
        Metrics { time: end, stalling: part(stalled, batches), utilisation: part(jobs as u64, workers) }
    }

    fn becomes_eligible(&mut self, job: u32) {
        match &self.order {
            None => self.queue.push(job),
            Some((places, _)) => self.set.insert(places[job as usize]),
        }
    }

    /// The sum of the sizes of so many batches.
    fn sizes(&self, batches: u64, random: &mut Random) -> u64 {
        if batches <= 16 {
            return (0..batches).map(|_| (random.exponential() * self.size).ceil().max(1.0) as u64).sum();
        }
        // Rounded up, sizes are geometrically distributed.
        let miss = (-1.0 / self.size).exp();
        let (mean, variance) = (1.0 / (1.0 - miss), miss / (1.0 - miss).powi(2));
        let count = batches as f64;
        (count * mean + (count * variance).sqrt() * random.normal()).max(count) as u64
    }

    /// The first bucket from this one on that has a job.
    fn next_bucket(&self, from: u64) -> Option<u64> {
        let ahead = self.occupied.rotate_right(from as u32 % BUCKETS as u32);
        (ahead != 0).then(|| from + u64::from(ahead.trailing_zeros()))
    }

    fn next_finish(&self, from: u64) -> f64 {
        let bucket = self.next_bucket(from).map_or(&[][..], |b| &self.buckets[b as usize % BUCKETS]);
        bucket.iter().map(|(time, _)| *time).reduce(f64::min).unwrap_or(0.0)
    }

    /// Ends the jobs that are due. Returns how many have become eligible.
    fn end_until(&mut self, now: f64, bucket: &mut u64) -> usize {
        let last = (now * PER_UNIT) as u64;
        let mut fresh = 0;
        while let Some(next) = self.next_bucket(*bucket).filter(|b| *b <= last) {
            *bucket = next;
            let at = next as usize % BUCKETS;
            let mut due = std::mem::take(&mut self.due);
            let bucket_jobs = &mut self.buckets[at];
            if next < last {
                std::mem::swap(&mut due, bucket_jobs);
            } else {
                due.extend(bucket_jobs.extract_if(.., |(time, _)| *time <= now));
            }
            let is_empty = bucket_jobs.is_empty();
            // Who is first in the queue depends on who has ended first.
            if due.len() > 1 && self.order.is_none() {
                due.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            }
            for (_, job) in due.drain(..) {
                for child in self.dag.children(job) {
                    self.waits[*child as usize] -= 1;
                    if self.waits[*child as usize] == 0 {
                        self.becomes_eligible(*child);
                        fresh += 1;
                    }
                }
            }
            self.due = due;
            if !is_empty {
                return fresh;
            }
            self.occupied &= !(1 << at);
        }
        *bucket = last;
        fresh
    }
}

/// The distribution of a ratio: its mean, its median, and where 95 of 100 values lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioInterval {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The ends of the interval.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// The ratios of all pairs of samples, without the lowest and highest 2.5 %. `None` if a divisor is zero.
pub fn ratio_interval(over: &[f64], under: &[f64]) -> Option<RatioInterval> {
    if under.contains(&0.0) || over.is_empty() || under.is_empty() {
        return None;
    }
    let mut ratios: Vec<f64> = over.iter().flat_map(|o| under.iter().map(move |u| o / u)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| ratios[((ratios.len() - 1) as f64 * part).round() as usize];
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    Some(RatioInterval { mean, median: at(0.5), low: at(0.025), high: at(0.975) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::airsn;
    use catena_plan::prio_order;

    #[test]
    fn prio_is_faster_on_airsn() {
        let graph = airsn(250, 21);
        let dag = graph.dag().unwrap();
        let mut fifo = Grid::new(&dag, Choice::Fifo, 1.0, 16.0);
        let mut prio = Grid::new(&dag, Choice::Order(prio_order(&dag)), 1.0, 16.0);
        let ratio = prio.sample(300, 1).time / fifo.sample(300, 2).time;
        assert!((0.80..0.88).contains(&ratio), "{ratio}");
    }

    #[test]
    fn with_workers_for_all_the_time_is_that_of_the_longest_path() {
        let dag = airsn(10, 3).dag().unwrap();
        let metrics = Grid::new(&dag, Choice::Fifo, 0.001, 1000.0).sample(200, 3);
        // Seven jobs one after the other, a little more for waiting for the slowest of ten.
        assert!((7.0..7.9).contains(&metrics.time), "{metrics:?}");
        assert!(metrics.stalling > 0.9 && metrics.utilisation < 0.01, "{metrics:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same() {
        let dag = airsn(20, 3).dag().unwrap();
        let mut grid = Grid::new(&dag, Choice::Fifo, 1.0, 4.0);
        let first = grid.sample(20, 9);
        assert_eq!(grid.sample(20, 9), first);
        assert_ne!(grid.sample(20, 10), first);
    }

    #[test]
    fn intervals_leave_out_the_ends() {
        let over: Vec<f64> = (0..=1000).map(f64::from).collect();
        let interval = ratio_interval(&over, &[1.0]).unwrap();
        assert_eq!((interval.median, interval.low, interval.high), (500.0, 25.0, 975.0));
        assert_eq!(ratio_interval(&over, &[0.0]), None);
    }
}
